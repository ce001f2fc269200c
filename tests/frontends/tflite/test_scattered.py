"""Scatters, segments, diagonals, volumes and the later elementwise operators, beside LiteRT."""

import numpy as np
import pytest
from builder import T, const, model
from litert import Peer, compiled, outputs

from slipway import relay
from slipway.errors import SlipwayError

RNG = np.random.default_rng(4)


def i32(*shape):
    return T(shape, "int32")


def f32(*shape):
    return T(shape)


def compare(data, inputs=None, tolerance=2e-6):
    peer, executor = Peer(data), compiled(data)
    for seed in range(2):
        given = inputs or peer.random_inputs(np.random.default_rng(seed))
        for got, want in zip(outputs(executor, given), peer(given), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -3e38], np.float32)


def test_atan2():
    y, x = (a.reshape(-1).copy() for a in np.meshgrid(SPECIAL, SPECIAL))
    compare(model("ATAN2", [f32(81), f32(81)], [f32(81)]), [y, x])
    compare(model("ATAN2", [f32(5, 7), f32(5, 7)], [f32(5, 7)]))
    got = outputs(compiled(model("ATAN2", [f32(81), f32(81)], [f32(81)])), [y, x])[0]
    want = np.arctan2(y, x)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_bits(dtype):
    pair = [T((3, 5), dtype), T((3, 5), dtype)]
    compare(model("BITWISE_XOR", pair, [T((3, 5), dtype)]))
    amounts = np.resize(np.array([0, 1, 3, 7, 15, 31, 100], dtype), (3, 5))
    values = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 5)).astype(dtype)
    compare(model("RIGHT_SHIFT", pair, [T((3, 5), dtype)]), [values, amounts])


def test_bitcast():
    compare(model("BITCAST", [f32(4, 3)], [i32(4, 3)]))
    data = model("BITCAST", [f32(4, 3)], [T((4, 3, 4), "uint8")])
    with pytest.raises(SlipwayError, match="float32 as uint8"):
        relay.frontend.from_tflite(data)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_bucketize(dtype):
    limits = [-7.5, -1.0, 0.25, 3.0, 3.0, 9.0]
    data = model("BUCKETIZE", [T((4, 6), dtype)], [i32(4, 6)], "BucketizeOptions",
                 boundaries=limits)  # fmt: skip
    values = RNG.integers(-10, 11, (4, 6)).astype(dtype)
    compare(data, [values])


@pytest.mark.parametrize(("low", "most", "bits"), [(-1.0, 2.3, 8), (0, 6, 4), (-3, 0, 16)])
def test_fake_quant(low, most, bits):
    data = model("FAKE_QUANT", [f32(9, 7)], [f32(9, 7)], "FakeQuantOptions", min=low, max=most,
                 numBits=bits)  # fmt: skip
    compare(data)


@pytest.mark.parametrize(("radius", "depth"), [(2, 9), (5, 3), (1, 16)])
def test_local_response(radius, depth):
    compare(
        model(
            "LOCAL_RESPONSE_NORMALIZATION", [f32(1, 3, 2, depth)], [f32(1, 3, 2, depth)],
            "LocalResponseNormalizationOptions", radius=radius, bias=1.2, alpha=0.3, beta=0.75,
        )
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_scatter_nd(dtype):
    indices = const([[0, 3], [2, 1], [0, 3]])  # the first and the last are summed
    data = model("SCATTER_ND", [indices, T((3, 5), dtype), const([4, 6, 5])],
                 [T((4, 6, 5), dtype)])  # fmt: skip
    compare(data)


def test_scatter_outside_is_refused():
    data = model("SCATTER_ND", [const([[4]]), f32(1), const([4])], [f32(4)])
    with pytest.raises(SlipwayError, match=r"places outside the shape \(4,\)"):
        relay.frontend.from_tflite(data)


def test_sparse_to_dense():
    options = "SparseToDenseOptions"
    for indices, shape, values in (
        (const([[0, 1], [2, 0]]), [3, 4], f32(2)),
        (const([1, 4]), [6], f32()),
        (const(3), [6], f32()),
    ):
        data = model("SPARSE_TO_DENSE", [indices, const(shape), values, const(0.5, "float32")],
                     [f32(*shape)], options)  # fmt: skip
        compare(data)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_segment_sum(dtype):
    data = model("SEGMENT_SUM", [T((5, 3), dtype), const([0, 0, 1, 2, 2])], [T((3, 3), dtype)])
    compare(data)


@pytest.mark.parametrize("kind", ["SUM", "PROD", "MAX", "MIN"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_unsorted_segments(kind, dtype):
    inputs = [T((6, 2), dtype), const([4, 0, -1, 0, 2, 4]), const(6)]
    compare(model(f"UNSORTED_SEGMENT_{kind}", inputs, [T((6, 2), dtype)]))


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 2)])
def test_diagonals(rows, columns):
    size = min(rows, columns)
    inputs = [f32(2, rows, columns), f32(2, size)]
    compare(model("MATRIX_SET_DIAG", inputs, [f32(2, rows, columns)], "MatrixSetDiagOptions"))
    compare(model("MATRIX_DIAG", [f32(3, rows)], [f32(3, rows, rows)], "MatrixDiagOptions"))


@pytest.mark.parametrize(("time", "batch"), [(1, 0), (0, 1), (2, 0)])
def test_reverse_sequence(time, batch):
    shape = (3, 4, 5)
    lengths = np.arange(1, shape[batch] + 1, dtype=np.int32)
    data = model("REVERSE_SEQUENCE", [f32(*shape), T(lengths.shape, "int32")], [f32(*shape)],
                 "ReverseSequenceOptions", seqDim=time, batchDim=batch)  # fmt: skip
    values = RNG.standard_normal(shape).astype(np.float32)
    compare(data, [values, np.minimum(lengths, shape[time]).astype(np.int32)])


@pytest.mark.parametrize("padding", [0, 1])
def test_conv3d(padding):
    kernel = const(RNG.standard_normal((2, 3, 3, 4, 5)) * 0.3, "float32")
    shape = (1, 3, 4, 3, 5) if padding == 0 else (1, 2, 3, 2, 5)
    data = model(
        "CONV_3D", [f32(1, 5, 7, 6, 4), kernel, const(RNG.standard_normal(5), "float32")],
        [f32(*shape)], "Conv3DOptions", padding=padding, strideD=2, strideH=2, strideW=2,
        dilationDFactor=1, dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=1,
    )  # fmt: skip
    compare(data, tolerance=1e-5)
