"""What an import may make has one budget: small files that ask for gigabytes are refused."""

import time

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends import budget
from slipway.transform.context import PassContext
from slipway.transform.graph.fold_constant import fold_constant

node = helper.make_node
X = {"x": ("float32", (1, 3, 8, 8))}


def doubled(levels):
    """Functions that call the next one twice."""
    proto = model([node("F0", ["x"], ["y"], domain="l")], {"x": ("float32", (2,))}, ["y"])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("l", 1)]
    proto.opset_import.append(imports[1])
    for i in range(levels):
        calls = [node(f"F{i + 1}", [a], [b], domain="l") for a, b in (("a", "b"), ("b", "c"))]
        nodes = calls if i < levels - 1 else [node("Relu", ["a"], ["c"], name="leaf")]
        proto.functions.append(helper.make_function("l", f"F{i}", ["a"], ["c"], nodes, imports))
    return proto


def concatenated(levels, inputs=None, weights=None):
    nodes = [node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(levels)]
    return model(nodes, inputs or {}, [f"c{levels}"], weights)


def test_functions_that_call_the_next_twice_end():
    with pytest.raises(ModelError, match=r"more than 200000 nodes.*the node 'F0/F1_0/.*exceeds"):
        relay.frontend.from_onnx(doubled(30))
    mod, _ = relay.frontend.from_onnx(doubled(6))
    assert str(mod).count("nn.relu") == 32


def test_constants_that_double_end_and_the_error_says_how_to_go_on():
    proto = concatenated(33, weights={"c0": np.zeros(8, np.float32)})
    assert len(proto.SerializeToString()) < 2000
    with pytest.raises(ModelError, match=r"the node 'c23' needs a constant of 268435456 bytes"):
        relay.frontend.from_onnx(proto)


def test_a_larger_budget_lets_the_model_in(monkeypatch):
    monkeypatch.setattr(budget, "BYTES", 1 << 12)
    proto = concatenated(8, weights={"c0": np.zeros(8, np.float32)})  # 16 KB in all
    with pytest.raises(ModelError, match=r"slipway --import-budget (\d+)") as found:
        relay.frontend.from_onnx(proto)
    assert "of 4432 are left" in str(found.value)
    with PassContext(config={"relay.frontend.budget": 4}):
        mod, _ = relay.frontend.from_onnx(proto)
    assert mod["main"].ret_type.shape == (2048,)
    monkeypatch.setattr(budget, "_factor", 4)  # what the command line sets
    relay.frontend.from_onnx(proto)


def test_weights_make_room_for_what_is_computed_of_them():
    weights = {"c0": np.zeros((1 << 23,), np.float32)}  # 32 MB
    nodes = [node("Neg", [f"c{i}"], [f"c{i + 1}"]) for i in range(12)]
    relay.frontend.from_onnx(model(nodes, {}, ["c12"], weights))


BIG = 10**9
MANY = {
    "Range": (["a", "b", "c"], {"a": np.int64(0), "b": np.int64(10**12), "c": np.int64(1)}, {}),
    "EyeLike": (["w"], {"w": np.zeros((1, 1), np.float32)}, {}),
    "ConstantOfShape": (["s"], {"s": np.array([2**33, 2**33])}, {}),
    "Resize": (["x", "", "s"], {"s": np.float32([1, 1, 1e9, 1e9])}, {}),
    "Resize crop": (
        ["x", "r", "", "z"],
        {"r": np.float32([0, 0, 0, 0, 1, 1, 0.5, 0.5]), "z": np.array([1, 3, BIG, 8])},
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    "Resize antialias": (
        ["x", "", "", "z"],
        {"z": np.array([1, 1, 10**5, 8])},
        {"mode": "linear", "antialias": 1},
    ),
    "DFT": (["x", "l"], {"l": np.int64(BIG)}, {"axis": 2}),
    "STFT": (["x", "s", "", "l"], {"s": np.int64(1), "l": np.int64(10**5)}, {}),
    "OneHot": (["x", "d", "v"], {"d": np.int64(10**14), "v": np.float32([0, 1])}, {}),
    "Expand": (["x", "s"], {"s": np.array([10**14, 3, 8, 8])}, {}),
    "Tile": (["x", "s"], {"s": np.array([10**14, 1, 1, 1])}, {}),
    "Pad": (["x", "p"], {"p": np.array([0, 0, BIG, BIG, 0, 0, 0, 0])}, {}),
    "MelWeightMatrix": (
        ["a", "b", "c", "d", "e"],
        {"a": np.int64(BIG), "b": np.int64(BIG), "c": np.int64(8000), "d": np.float32(0),
         "e": np.float32(4000)},
        {},
    ),
    "SplitToSequence": (["x", "s"], {"s": np.int64(1)}, {}),
    "MaxRoiPool": (
        ["x", "r"], {"r": np.float32([[0, 0, 0, 4, 4]])}, {"pooled_shape": [10**6, 10**6]}
    ),
}  # fmt: skip
SHAPES = {
    "Resize antialias": (1, 1, 2 * 10**5, 8),
    "DFT": (1, 4, 8, 1),
    "STFT": (1, 10**6, 1),
    "SplitToSequence": (10**7,),
}


@pytest.mark.parametrize("case", MANY)
def test_what_writes_out_too_much_is_refused_by_name(case):
    inputs, weights, attributes = MANY[case]
    kind = case.split()[0]
    if kind == "EyeLike":
        weights = {}
    shape = (10**6, 10**6) if kind == "EyeLike" else SHAPES.get(case, (1, 3, 8, 8))
    inputs = ["x"] if kind == "EyeLike" else inputs
    proto = model(
        [node(kind, inputs, ["y"], name="n0", **attributes)], {"x": ("float32", shape)}, ["y"],
        weights, opset=18,
    )  # fmt: skip
    start = time.process_time()
    with pytest.raises(ModelError, match="n0"):
        relay.frontend.from_onnx(proto)
    assert time.process_time() - start < 5


def test_folding_in_the_compiler_stops_at_its_bound(monkeypatch):
    from slipway.transform.graph import fold_constant as module

    monkeypatch.setattr(module, "TOTAL_BYTES", 1 << 12)
    value = relay.const(np.ones(8, np.float32))
    for _ in range(12):
        value = relay.concatenate([value, value], 0)
    folded = fold_constant(relay.Function([], value))
    text = str(folded)
    assert 0 < text.count("concatenate") < 12  # the rest is computed when the model runs
