"""Values that the stated shapes of a model's outputs settle, and steps that a run computes."""

from contextlib import suppress

import numpy as np
import pytest
from graphs import helper, model, numpy_helper

from slipway import relay
from slipway.errors import ModelError, OpNotImplemented, TypeInferenceError
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(3)
node = helper.make_node


def read(nodes, inputs, stated, opset=20, weights=None, **given):
    proto = model(nodes, inputs, list(stated), weights, opset)
    for info, shape in zip(proto.graph.output, stated.values(), strict=True):
        info.type.tensor_type.shape.SetInParent()
        for size in shape:
            info.type.tensor_type.shape.dim.add().dim_value = size
    return relay.frontend.from_onnx(proto, **given)[0]


def counting(step):
    """Range(0, 2 n + 1) * step, and a tensor of n rows, of an input n."""
    weights = {"two": np.int64(2), "one": np.int64(1), "zero": np.int64(0), "w": np.int64([4])}
    nodes = [
        node("Mul", ["n", "two"], ["n2"]), node("Add", ["n2", "one"], ["end"]),
        node("Range", ["zero", "end", "one"], ["r"]), node("Mul", ["r", "n"], ["y"]),
        node("Reshape", ["n", "shape1"], ["n1"]), node("Concat", ["n1", "w"], ["size"], axis=0),
        node("ConstantOfShape", ["size"], ["z"], value=numpy_helper.from_array(np.int64([step]))),
    ]  # fmt: skip
    return nodes, {**weights, "shape1": np.int64([1])}


def test_a_size_that_a_formula_of_an_output_has():
    nodes, weights = counting(3)
    mod = read(nodes, {"n": ("int64", ())}, {"y": (11,), "z": (5, 4)}, weights=weights)
    y, z = interpret(mod, n=np.int64(5))
    np.testing.assert_array_equal(y, np.arange(11) * 5)
    np.testing.assert_array_equal(z, np.full((5, 4), 3))


@pytest.mark.parametrize("stated", [(10,), (0,)])
def test_no_size_makes_the_stated_shape(stated):
    nodes, weights = counting(3)
    with pytest.raises(OpNotImplemented, match="limit"):
        read(nodes[:4], {"n": ("int64", ())}, {"y": stated}, weights=weights)


def test_two_sizes_in_one_formula_stay_unknown():
    nodes = [
        node("Add", ["n", "m"], ["end"]), node("Range", ["zero", "end", "one"], ["r"]),
        node("Mul", ["r", "n"], ["y"]),
    ]  # fmt: skip
    weights = {"one": np.int64(1), "zero": np.int64(0)}
    with pytest.raises(OpNotImplemented, match="limit"):
        read(nodes, {"n": ("int64", ()), "m": ("int64", ())}, {"y": (7,)}, weights=weights)


def test_padded_and_cut_to_a_size_that_is_an_input():
    """To n columns: what is missing on the right, then what is too much on the left."""
    weights = {k: np.int64(v) for k, v in {"none": [0], "axis": [1], "five": [5]}.items()}
    nodes = [
        node("Max", ["n", "five"], ["most"]), node("Sub", ["most", "five"], ["more"]),
        node("Concat", ["none", "more"], ["pads"], axis=0),
        node("Pad", ["x", "pads", "", "axis"], ["padded"]),
        node("Sub", ["most", "n"], ["from"]),
        node("Slice", ["padded", "from", "most", "axis"], ["y"]),
    ]  # fmt: skip
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    inputs = {"x": ("float32", (2, 5)), "n": ("int64", (1,))}
    for n in (3, 5, 8):
        mod = read(nodes, inputs, {"y": (2, n)}, weights=weights)
        want = np.pad(x, ((0, 0), (0, max(n - 5, 0))))[:, -n:]
        np.testing.assert_array_equal(interpret(mod, x=x, n=np.array([n])), want)


COLUMNS = [  # image, block, attributes
    ((6, 7), (2, 3), {}),
    ((6, 7), (3, 2), {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
    ((9, 8), (2, 2), {"dilations": [3, 2], "strides": [1, 2]}),
    ((5,), (4,), {"pads": [2, 1]}),
    ((3, 4, 5), (2, 1, 3), {"strides": [1, 2, 1]}),
]


def column_count(image, block, attributes):
    axes, count = len(image), 1
    ones = [1] * axes
    pads = attributes.get("pads", [0] * 2 * axes)
    for axis, (size, k) in enumerate(zip(image, block, strict=True)):
        reach = attributes.get("dilations", ones)[axis] * (k - 1) + 1
        space = size + pads[axis] + pads[axis + axes] - reach
        count *= space // attributes.get("strides", ones)[axis] + 1
    return count


@pytest.mark.parametrize(("image", "block", "attributes"), COLUMNS)
def test_columns_of_a_block_that_is_an_input(image, block, attributes):
    shape = (2, 3 * int(np.prod(block)), column_count(image, block, attributes))
    x = RNG.standard_normal(shape).astype(np.float32)
    nodes = [node("Col2Im", ["x", "image", "block"], ["y"], **attributes)]
    stated = {"y": (2, 3, *image)}
    known = {"image": np.int64(image), "block": np.int64(block)}
    want = interpret(read(nodes, {"x": ("float32", shape)}, stated, weights=known), x=x)
    inputs = {"x": ("float32", shape), **{k: ("int64", (len(image),)) for k in known}}
    found = interpret(read(nodes, inputs, stated), x=x, **known)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [16, 17, 11])
@pytest.mark.parametrize(("onesided", "parts"), [(1, 1), (0, 1), (0, 2)])
def test_frames_of_a_length_and_a_step_that_are_inputs(length, onesided, parts):
    x = RNG.standard_normal((2, 70, parts)).astype(np.float32)
    nodes = [node("STFT", ["x", "step", "", "length"], ["y"], onesided=onesided)]
    bins = length // 2 + 1 if onesided else length
    stated = {"y": (2, (70 - length) // 9 + 1, bins, 2)}
    known = {"step": np.int64(9), "length": np.int64(length)}
    want = interpret(read(nodes, {"x": ("float32", x.shape)}, stated, weights=known), x=x)
    inputs = {"x": ("float32", x.shape), "step": ("int64", ()), "length": ("int64", ())}
    found = interpret(read(nodes, inputs, stated), x=x, **known)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("case", [(8, 16, 8192, 0.0, 4096.0), (20, 401, 16000, 80.0, 7600.0)])
def test_mel_bands_whose_edges_are_inputs(case):
    names, kinds = ("n", "length", "rate", "low", "high"), ("int32",) * 3 + ("float32",) * 2
    known = {k: np.dtype(d).type(v) for k, d, v in zip(names, kinds, case, strict=True)}
    nodes, stated = [node("MelWeightMatrix", names, ["y"])], {"y": (case[1] // 2 + 1, case[0])}
    want = interpret(read(nodes, {}, stated, weights=known))
    inputs = {k: (d, ()) for k, d in zip(names, kinds, strict=True)}
    found = interpret(read(nodes, inputs, stated), **known)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pads", [(0, 1, 2, 0), (3, 2, 0, 4), (0, 0, 3, 6)])
def test_reflected_as_far_as_an_input_says(pads):
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    want = np.pad(x, list(zip(pads[:2], pads[2:], strict=True)), "reflect")
    nodes, inputs = [node("Pad", ["x", "p"], ["y"], mode="reflect")], {"x": ("float32", (4, 3))}
    mod = read(nodes, {**inputs, "p": ("int64", (4,))}, {"y": want.shape})
    np.testing.assert_array_equal(interpret(mod, x=x, p=np.int64(pads)), want)


def test_a_loop_has_as_many_rows_as_are_stated():
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["going"], ["again"]), node("Add", ["s", "d"], ["next"]),
         node("Mul", ["s", "s"], ["row"])],
        "body",
        [info("i", 7, ()), info("going", 9, ()), info("s", 1, (2,))],
        [info("again", 9, ()), info("next", 1, (2,)), info("row", 1, (2,))],
    )  # fmt: skip
    nodes = [node("Loop", ["iterations", "", "start"], ["end", "rows"], body=body)]
    inputs = {"iterations": ("int64", ()), "start": ("float32", (2,)), "d": ("float32", ())}
    mod = read(nodes, inputs, {"end": (2,), "rows": (4, 2)})
    start = np.float32([1, -2])
    end, rows = interpret(mod, iterations=np.int64(4), start=start, d=np.float32(0.5))
    np.testing.assert_array_equal(end, start + 2)
    np.testing.assert_array_equal(rows, (start + np.arange(4)[:, None] * np.float32(0.5)) ** 2)


def test_a_stated_extent_of_zero_is_a_size_unless_an_input_has_another():
    weights = {"axes": np.int64([1])}
    nodes = [node("Slice", ["x", "from", "to", "axes"], ["y"])]
    bounds = {"from": ("int64", (1,)), "to": ("int64", (1,))}
    mod = read(nodes, {"x": ("float32", (2, 3)), **bounds}, {"y": (2, 0)}, weights=weights)
    assert mod["main"].checked_type.ret_type.shape == (2, 0)
    inputs = {"x": ("float32", (0, 3)), **bounds}  # an exporter that writes 0 for an open size
    with pytest.raises(OpNotImplemented, match="starts"):
        read(nodes, inputs, {"y": (0, 0)}, weights=weights, shape={"x": (2, 3)})


@pytest.mark.parametrize(
    ("kind", "inputs", "count"),
    [("TopK", 1, 2), ("Split", 1, 2), ("Slice", 2, 1), ("Pad", 1, 1), ("Tile", 1, 1),
     ("NonZero", 0, 1), ("Compress", 1, 1), ("Unique", 0, 4), ("Expand", 1, 1), ("OneHot", 2, 1),
     ("ConstantOfShape", 0, 1), ("Range", 2, 1), ("Squeeze", 1, 1), ("ReduceSum", 1, 1),
     ("CumSum", 1, 1), ("MaxUnpool", 2, 1), ("Col2Im", 2, 1)],
)  # fmt: skip
def test_a_stated_shape_of_another_rank_ends_in_words(kind, inputs, count):
    """Whatever a file states of results, its import ends as a module or in one ModelError."""
    names, outputs = ["x", *(f"i{n}" for n in range(inputs))], [f"y{n}" for n in range(count)]
    info = helper.make_tensor_value_info
    for shape in ((2, 3, 4), (), (1,)):
        for stated in ((), (2,), (2, 3, 4, 5), (7, 7, 7)):
            graph = helper.make_graph(
                [helper.make_node(kind, names, outputs)], "g",
                [info("x", 1, shape), *(info(n, 7, (2,)) for n in names[1:])],
                [info(n, 1, stated) for n in outputs],
            )  # fmt: skip
            proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
            with suppress(ModelError, TypeInferenceError):
                relay.frontend.from_onnx(proto)


def test_open_sizes_of_an_optional_input_are_asked_for():
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    inner = helper.make_tensor_type_proto(1, ("n", 3))
    given = helper.make_value_info("x", helper.make_optional_type_proto(inner))
    graph = helper.make_graph([node], "g", [given], [helper.make_tensor_value_info("y", 9, ())])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    with pytest.raises(ModelError, match=r"leaves sizes of its inputs open: x \(n, 3\)"):
        relay.frontend.from_onnx(proto)


def test_an_expansion_that_does_not_fit_says_so():
    node = helper.make_node("Expand", ["x", "s"], ["y"])
    proto = model([node], {"x": ("float32", (8, 3))}, ["y"], {"s": np.array([2, 3])})
    with pytest.raises(ModelError, match=r"\(8, 3\) does not broadcast with \(2, 3\)"):
        relay.frontend.from_onnx(proto)


def test_a_node_without_results_ends_in_words():
    nodes = [
        node("ReduceSum", ["x", "axes"], ["y"]), node("Log", ["y"], ["z"]), node("Log", ["z"], []),
    ]  # fmt: skip
    proto = model(nodes, {"x": ("float32", (2, 3)), "axes": ("int64", (1,))}, ["z"])
    with pytest.raises(ModelError, match=r"axes|output"):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("kind", ["Slice", "Pad"])
@pytest.mark.parametrize("listed", [(), (1, 2)])
def test_places_that_are_no_list_end_in_words(kind, listed):
    info = helper.make_tensor_value_info
    names = ["x", "a", "b"] if kind == "Slice" else ["x", "a"]
    given = [info("x", 1, (4, 5)), *(info(n, 7, listed) for n in names[1:])]
    graph = helper.make_graph([node(kind, names, ["y"])], "g", given, [info("y", 1, (2, 5))])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(ModelError):
        relay.frontend.from_onnx(proto)
