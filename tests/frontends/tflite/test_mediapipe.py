"""MediaPipe's custom operators.

The references are formulas in NumPy that agree with the operators inside mediapipe 0.10.21 to the
last places of float32; `test_package_models.py` compares the models themselves.
"""

import struct

import numpy as np
import pytest
from builder import T, const, model
from litert import compiled, outputs

from slipway import relay
from slipway.errors import ModelError
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(7)
MATRICES = {
    "unit": np.eye(4),
    "shift": np.eye(4) + np.array([[0, 0, 3, 0.5], [0, 0, 7, 0.25], [0, 0, 0, 0], [9, 9, 9, 9]]),
    "rotation": np.array([[0.7, -0.9, 0, 13.3], [1.1, 0.6, 0, 3.7], [0, 0, 1, 0], [0, 0, 0, 1]]),
    "outside": np.array([[2.3, -0.4, 0, -3.4], [0.3, 2.9, 0, -2.2], [0, 0, 1, 0], [0, 0, 0, 1]]),
}


def options(**entries):
    """Return a flexbuffer map of numbers and lists of numbers."""
    from flatbuffers import flexbuffers

    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in entries.items():
            builder.Key(name)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", MATRICES)
def test_landmarks_move_on_the_plane(name, size):
    data = model(
        "TransformLandmarks", [T((1, 9, size)), const(MATRICES[name][None], "float32")],
        [T((1, 9, size))], custom_options=b"\0",
    )  # fmt: skip
    x = RNG.random((1, 9, size)).astype(np.float32)
    want = x.astype(np.float64)
    want[..., :2] = x[..., :2] @ MATRICES[name][:2, :2].T + MATRICES[name][:2, 3]
    (found,) = outputs(compiled(data), [x])
    np.testing.assert_allclose(found, want, atol=1e-5)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("shape", [(1, 24, 20, 3), (1, 5, 1, 2)])
def test_an_image_is_read_between_its_outermost_pixels(name, shape):
    height, width = 6, 7
    data = model(
        "TransformTensorBilinear", [T(shape), T((1, 4, 4))], [T((1, height, width, shape[3]))],
        custom_options=options(output_height=height, output_width=width),
    )  # fmt: skip
    x, m = RNG.random(shape).astype(np.float32), MATRICES[name]
    want = np.zeros((1, height, width, shape[3]))
    for r in range(height):
        for c in range(width):
            at = m[:2] @ [c + 0.5, r + 0.5, 0, 1] - 0.5
            if (at < 0).any() or at[0] > shape[2] - 1 or at[1] > shape[1] - 1:
                continue
            floor = np.floor(at).astype(int)
            far = np.minimum(floor + 1, [shape[2] - 1, shape[1] - 1])
            u, v = at - floor
            upper = (1 - u) * x[0, floor[1], floor[0]] + u * x[0, floor[1], far[0]]
            lower = (1 - u) * x[0, far[1], floor[0]] + u * x[0, far[1], far[0]]
            want[0, r, c] = (1 - v) * upper + v * lower
    (found,) = outputs(compiled(data), [x, m[None].astype(np.float32)])
    np.testing.assert_allclose(found, want, atol=1e-4)


@pytest.mark.parametrize("target", [0.0, 0.3])
def test_the_box_around_landmarks_as_a_matrix(target):
    subset = [1, 4, 6, 7, 300]
    data = model(
        "Landmarks2TransformMatrix", [T((1, 400, 3))], [T((1, 4, 4))],
        custom_options=options(
            left_rotation_idx=2, right_rotation_idx=399, output_height=8, output_width=16,
            scale_x=1.5, scale_y=1.25, target_rotation_radians=target, subset_idxs=subset,
        ),
    )  # fmt: skip
    x = RNG.random((1, 400, 3)).astype(np.float32)
    dx, dy, _ = (x[0, 399] - x[0, 2]).astype(np.float64)
    angle = np.arctan2(dy, dx) - target
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    box = x[0, subset, :2] @ rotation
    low, high = box.min(0), box.max(0)
    want = np.eye(4)
    want[:2, :2] = rotation * ((high - low) * [1.5, 1.25] / [16, 8])
    want[:2, 3] = rotation @ ((low + high) / 2) - want[:2, :2] @ [8, 4]
    (found,) = outputs(compiled(data), [x])
    np.testing.assert_allclose(found[0], want, atol=1e-6)
    still = np.zeros_like(x)  # no direction: that of the x axis
    assert np.isfinite(outputs(compiled(data), [still])[0]).all()


@pytest.mark.parametrize("padding", [1, 2])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 3)])
def test_transposed_convolution_with_bias(padding, stride):
    from litert import Peer

    n, h, w, i, o, k = 2, 5, 4, 3, 2, 3
    size = [(e - 1) * s + k if padding == 2 else e * s for e, s in zip((h, w), stride, strict=True)]
    weights, bias = RNG.standard_normal((o, k, k, i)), RNG.standard_normal(o)
    x = RNG.standard_normal((n, h, w, i)).astype(np.float32)
    given = (const(weights, "float32"), const(bias, "float32"))
    data = model(
        "Convolution2DTransposeBias", [T((n, h, w, i)), *given], [T((n, *size, o))],
        custom_options=struct.pack("<iii", padding, stride[1], stride[0]),
    )  # fmt: skip
    builtin = model(
        "TRANSPOSE_CONV", [const([n, *size, o]), given[0], T((n, h, w, i)), given[1]],
        [T((n, *size, o))], "TransposeConvOptions", version=3, padding=padding - 1,
        strideW=stride[1], strideH=stride[0],
    )  # fmt: skip
    (want,) = Peer(builtin)([x])
    (found,) = outputs(compiled(data), [x])
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "inputs", "given", "words"),
    [
        ("TransformLandmarks", [(1, 9, 4), (1, 4, 4)], b"\0", "not .1, N, 2 or 3"),
        ("TransformLandmarks", [(1, 9, 2), (4, 4)], b"\0", "not .1, 4, 4"),
        ("TransformTensorBilinear", [(2, 9, 9, 2), (1, 4, 4)], b"\0", "options"),
        ("Landmarks2TransformMatrix", [(1, 9, 3)], options(subset_idxs=[9]), "not among its 9"),
        ("Convolution2DTransposeBias", [(1, 4, 4, 2)], b"\1\0", "options are missing"),
    ],
)
def test_what_does_not_fit_is_named(kind, inputs, given, words):
    data = model(kind, [T(s) for s in inputs], [T((1, 4, 4))], custom_options=given)
    with pytest.raises(ModelError, match=words):
        interpret(relay.frontend.from_tflite(data)[0])
