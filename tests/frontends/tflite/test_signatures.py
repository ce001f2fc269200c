"""Files of several signatures: each under its own names, as LiteRT's runners have it."""

import numpy as np
import pytest
from builder import Node, T, const, flatbuffers, program, schema

import slipway
from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.tflite.importer import check_tflite, from_tflite, initial_state


def signed(data, *signatures):
    """Return a file with signatures (key, subgraph, inputs, outputs: names of tensor numbers)."""
    whole = schema.ModelT.InitFromPackedBuf(data, 0)
    whole.signatureDefs = []
    for key, number, inputs, outputs in signatures:
        made = schema.SignatureDefT()
        made.signatureKey, made.subgraphIndex, made.inputs, made.outputs = key, number, [], []
        for listed, names in ((made.inputs, inputs), (made.outputs, outputs)):
            for name, tensor in names.items():
                entry = schema.TensorMapT()
                entry.name, entry.tensorIndex = name, tensor
                listed.append(entry)
        whole.signatureDefs.append(made)
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    return bytes(packer.Output())


def floats(*shape):
    return T(shape)


@pytest.fixture(scope="module")
def data():
    """Three entries: of one input; of two in another order, one tensor twice; of a branch."""
    x, y = floats(2, 3), floats(2, 3)
    first = ([Node("EXP", [x], [y])], [x], [y])
    a, b, less, more = floats(2, 3), floats(2, 3), floats(2, 3), floats(2, 3)
    second = ([Node("SUB", [a, b], [less], "SubOptions"), Node("ABS", [less], [more])],
              [a, b], [more, less])  # fmt: skip
    flag, z, chosen = T((1,), "bool"), floats(2, 3), floats(2, 3)
    fields = {"thenSubgraphIndex": 0, "elseSubgraphIndex": 3}
    third = ([Node("IF", [flag, z], [chosen], "IfOptions", fields)], [flag, z], [chosen])
    p, q = floats(2, 3), floats(2, 3)
    scaled = ([Node("MUL", [p, const(3.0, "float32")], [q], "MulOptions")], [p], [q])
    return signed(
        program(first, second, third, scaled),
        ("exp", 0, {"x": 0}, {"y": 1}),
        ("apart", 1, {"right": 1, "left": 0}, {"z_size": 3, "a_less": 2, "same": 3}),
        ("branch", 2, {"flag": 0, "data": 1}, {"out": 2}),
    )


@pytest.mark.parametrize(
    ("key", "outputs"),
    [("exp", ["y"]), ("apart", ["a_less", "same", "z_size"]), ("branch", ["out"])],
)
def test_each_agrees_with_litert(data, tmp_path, key, outputs):
    pytest.importorskip("ai_edge_litert.interpreter")
    (tmp_path / "several.tflite").write_bytes(data)
    model = slipway.compile(tmp_path / "several.tflite", signature=key, quiet=True)
    assert [spec.name for spec in model.outputs] == outputs
    for seed in (0, 1):
        more = {"flag": np.array([seed], bool)} if key == "branch" else {}
        assert model.check(seed=seed, tolerance=1e-6, **more)


def test_inputs_bound_to_constants(data, tmp_path):
    """LiteRT is given what the model holds, with a signature and without."""
    pytest.importorskip("ai_edge_litert.interpreter")
    (tmp_path / "several.tflite").write_bytes(data)
    bound = {"right": np.full((2, 3), 2, "float32")}
    model = slipway.compile(
        tmp_path / "several.tflite", signature="apart", constants=bound, quiet=True
    )
    assert model.check(tolerance=1e-6)
    x, y, z = floats(2, 3), floats(2, 3), floats(2, 3)
    (tmp_path / "plain.tflite").write_bytes(
        program(([Node("SUB", [x, y], [z], "SubOptions")], [x, y], [z]))
    )
    model = slipway.compile(
        tmp_path / "plain.tflite", constants={"t0": np.ones((2, 3))}, quiet=True
    )
    assert model.check(tolerance=1e-6)


def test_names_and_shapes(data):
    """Inputs are known by the signature's names alone; without one, subgraph 0 is what it was."""
    module, _ = from_tflite(data, {"left": (2, 3)}, signature="apart")
    assert [p.name for p in module["main"].params] == ["left", "right"]
    module, _ = from_tflite(
        data, signature="apart", constants={"right": np.ones((2, 3), "float32")}
    )
    assert [p.name for p in module["main"].params] == ["left"]
    assert [p.name for p in from_tflite(data)[0]["main"].params] == ["t0"]
    assert initial_state(data, signature="branch") == {}
    assert [entry.kind for entry in check_tflite(data, signature="apart")] == ["SUB", "ABS"]
    with pytest.raises(ModelError, match="t0"):
        from_tflite(data, {"t0": (2, 3)}, signature="apart")


def test_unknown_and_damaged(data, tmp_path):
    with pytest.raises(
        ModelError, match=r"no signature 'exo': it has 'exp', 'apart', 'branch'.*exp"
    ):
        from_tflite(data, signature="exo")
    x, y = floats(2), floats(2)
    plain = program(([Node("EXP", [x], [y])], [x], [y]))
    with pytest.raises(ModelError, match=r"no signature 'main', nor any other"):
        from_tflite(plain, signature="main")
    with pytest.raises(ModelError, match=r"signature 'a' is subgraph 1, but there are 1"):
        from_tflite(signed(plain, ("a", 1, {"x": 0}, {"y": 1})))
    with pytest.raises(ModelError, match=r"gives tensor 1 the name 'x', which is not an input"):
        from_tflite(signed(plain, ("a", 0, {"x": 1}, {"y": 1})))
    with pytest.raises(ModelError, match=r"names an entry of a \.tflite file"):
        slipway.compile(relay.Function([], relay.const(1.0)), signature="a")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ModelError, match="TFLite files alone have signatures"):
        slipway.compile(tmp_path / "model.onnx", signature="a", quiet=True)
