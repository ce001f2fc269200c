"""topi.nn's Winograd convolutions against the sum over positions, in float64."""

import numpy as np
import pytest

import slipway
from slipway import te, topi
from slipway.errors import InvalidShapeError
from slipway.topi.nn.winograd import winograd_transform_matrices


def run(result, inputs, arrays):
    out = slipway.nd.empty([int(n) for n in result.shape], result.dtype)
    func = slipway.build(te.create_schedule(result.op), [*inputs, result], target="llvm")
    func(*(slipway.nd.array(a) for a in arrays), out)
    return out.numpy()


def direct(x, w, before, after):
    """Return the convolution of NHWC data with a HWIO kernel, stride 1."""
    x = np.pad(x.astype("float64"), [(0, 0), *zip(before, after, strict=True), (0, 0)])
    k = w.shape[0]
    h, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    return sum(
        x[:, i : i + h, j : j + width] @ w[i, j].astype("float64")
        for i in range(k)
        for j in range(k)
    )


@pytest.mark.parametrize(("tile", "kernel"), [(2, 3), (4, 3), (6, 3), (2, 5), (4, 5), (3, 2)])
def test_matrices_filter(tile, kernel):
    out, data, weights = (np.array(m) for m in winograd_transform_matrices(tile, kernel))
    rng = np.random.default_rng(tile)
    d, g = rng.random(tile + kernel - 1), rng.random(kernel)
    wanted = np.correlate(d, g, "valid")
    np.testing.assert_allclose(out @ ((weights @ g) * (data @ d)), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "kernel", "outputs", "padding", "tile"),
    [
        ((2, 9, 7, 5), 3, 6, 1, 4),
        ((1, 8, 8, 3), 3, 4, (0, 1, 2, 1), 2),
        ((1, 11, 6, 2), 5, 3, 2, 2),
    ],
)
def test_convolutions(shape, kernel, outputs, padding, tile):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype("float32")
    w = rng.standard_normal((kernel, kernel, shape[3], outputs)).astype("float32")
    data, weight = te.placeholder(x.shape, name="x"), te.placeholder(w.shape, name="w")
    made = topi.nn.conv2d_winograd_nhwc(data, weight, 1, padding, 1, "float32", tile_size=tile)
    sides = (padding,) * 4 if isinstance(padding, int) else padding
    wanted = direct(x, w, sides[:2], sides[2:])
    np.testing.assert_allclose(run(made, [data, weight], [x, w]), wanted, rtol=1e-3, atol=1e-4)


def test_a_kernel_transformed_ahead():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 10, 10, 4)).astype("float32")
    w = rng.standard_normal((8, 4, 3, 3)).astype("float32")
    kernel = te.placeholder(w.shape, name="w")
    transformed = run(topi.nn.conv2d_winograd_weight_transform(kernel, 4), [kernel], [w])
    assert transformed.shape == (6, 6, 8, 4)
    data, weight = te.placeholder(x.shape, name="x"), te.placeholder((6, 6, 4, 8), name="u")
    made = topi.nn.conv2d_winograd_nhwc_without_weight_transform(data, weight, 1, 1, 1, "float32")
    arrays = [x, np.ascontiguousarray(transformed.transpose(0, 1, 3, 2))]
    wanted = direct(x, w.transpose(2, 3, 1, 0), (1, 1), (1, 1))
    np.testing.assert_allclose(run(made, [data, weight], arrays), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_matrix_of_constants(dtype):
    """It takes part in a product, as a transformation does, and is read inline."""
    values = np.array([[1, -2, 3], [0, 5, -6]], dtype)
    matrix = topi.utils.const_matrix(values, "B")
    assert matrix.op.name == "B"
    np.testing.assert_array_equal(run(matrix, [], []), values)
    x = te.placeholder((3,), dtype, name="x")
    k = te.reduce_axis((0, 3), name="k")
    product = te.compute((2,), lambda i: te.sum(matrix[i, k] * x[k], axis=k))
    vector = np.array([2, -1, 4], dtype)
    np.testing.assert_array_equal(run(product, [x], [vector]), values @ vector)
    with pytest.raises(InvalidShapeError, match="takes a matrix, not an array of 1 axes"):
        topi.utils.const_matrix(vector)


def test_what_is_refused():
    data, weight = te.placeholder((1, 8, 8, 4)), te.placeholder((3, 3, 4, 2))
    with pytest.raises(InvalidShapeError, match="strides and dilation of 1"):
        topi.nn.conv2d_winograd_nhwc(data, weight, 2, 1, 1)
    with pytest.raises(InvalidShapeError, match="channels"):
        topi.nn.conv2d_winograd_nhwc(data, te.placeholder((3, 3, 5, 2)), 1, 1, 1)
    with pytest.raises(InvalidShapeError, match="smaller than a kernel"):
        topi.nn.conv2d_winograd_nhwc(te.placeholder((1, 2, 2, 4)), weight, 1, 0, 1)
    with pytest.raises(InvalidShapeError, match="tiles are 2 to 8"):
        topi.nn.conv2d_winograd_weight_transform(te.placeholder((2, 4, 3, 3)), 9)
