"""RFFT2D and what follows it, against NumPy and LiteRT."""

import numpy as np
import pytest
from builder import TYPES, Node, T, const, model, program
from litert import Peer

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.tflite.importer import check_tflite
from slipway.relay.interpret import interpret

TYPES["complex64"] = 8
RNG = np.random.default_rng(4)


def spectrum(shape, lengths, *follow, out=None, dtype="float32"):
    """Return a model of RFFT2D and operators behind it: (kind, constants, shape, options)."""
    x = T(shape)
    value = T((*shape[:-2], lengths[0], lengths[1] // 2 + 1), "complex64")
    nodes = [Node("RFFT2D", [x, const(lengths)], [value])]
    for i, (kind, constants, made, options, *fields) in enumerate(follow):
        after = T(made, dtype if i + 1 == len(follow) else "complex64")
        nodes.append(Node(kind, [value, *constants], [after], options, dict(*fields)))
        value = after
    return program((nodes, [x], [value]))


SHAPES = {
    "row": ((1, 1, 64), (1, 64)),
    "rows": ((3, 1, 30), (1, 30)),
    "odd": ((2, 5, 7), (5, 7)),
    "plane": ((2, 8, 12), (8, 12)),
    "padded": ((2, 3, 5), (4, 8)),
    "cut": ((2, 9, 11), (4, 8)),
    "long": ((4, 1, 1024), (1, 1024)),
    "prime": ((1, 1, 257), (1, 257)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("part", ["REAL", "IMAG", "COMPLEX_ABS"])
def test_parts_of_the_transform(name, part):
    shape, lengths = SHAPES[name]
    made = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    data = spectrum(shape, lengths, (part, [], made, ""))
    x = RNG.standard_normal(shape).astype(np.float32)
    exact = np.fft.rfft2(x.astype(np.float64), lengths)
    want = {"REAL": exact.real, "IMAG": exact.imag, "COMPLEX_ABS": np.abs(exact)}[part]
    found = interpret(relay.frontend.from_tflite(data)[0], x)
    np.testing.assert_allclose(found, want, atol=2e-6 * np.abs(exact).max())


def test_litert_agrees():
    data = spectrum((2, 8, 16), (8, 16), ("COMPLEX_ABS", [], (2, 8, 9), ""))
    x = RNG.standard_normal((2, 8, 16)).astype(np.float32)
    (want,) = Peer(data, reference=False)([x])
    found = interpret(relay.frontend.from_tflite(data)[0], x)
    np.testing.assert_allclose(found, want, atol=2e-6 * want.max())


def test_a_complex_tensor_changes_its_shape_before_its_real_part_is_taken():
    data = spectrum(
        (2, 1, 8), (1, 8),
        ("SQUEEZE", [], (2, 5), "SqueezeOptions", {"squeezeDims": [-2]}),
        ("EXPAND_DIMS", [const([-1])], (2, 5, 1), "ExpandDimsOptions"),
        ("TRANSPOSE", [const([1, 0, 2])], (5, 2, 1), "TransposeOptions"),
        ("RESHAPE", [const([-1])], (10,), "ReshapeOptions"),
        ("CAST", [], (10,), "CastOptions", {"inDataType": 8, "outDataType": 0}),
    )  # fmt: skip
    x = RNG.standard_normal((2, 1, 8)).astype(np.float32)
    found = interpret(relay.frontend.from_tflite(data)[0], x)
    want = np.fft.rfft(x[:, 0].astype(np.float64)).T.reshape(10).real
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_what_is_not_done_with_complex_numbers_is_named():
    data = spectrum((1, 1, 8), (1, 8), ("NEG", [], (1, 1, 5), "NegOptions"), dtype="complex64")
    (entry,) = [e for e in check_tflite(data) if e.status == "unsupported"]
    assert (entry.kind, entry.detail) == ("NEG", "it is not supported on complex numbers")
    bare = model("RFFT2D", [T((1, 8)), const([1, 8])], [T((1, 5), "complex64")])
    with pytest.raises(ModelError, match="is complex, which a device is not"):
        relay.frontend.from_tflite(bare)
