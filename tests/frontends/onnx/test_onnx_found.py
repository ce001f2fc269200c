"""What is found in the data, read by nodes that need its true size, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ExecutionError, ModelError
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

N = helper.make_node


def masked_update():
    """As exporters write ``y[x > c] = f(x[x > c])``: the mask is searched twice."""
    nodes = [
        N("Greater", ["x", "least"], ["mask"]),
        N("NonZero", ["mask"], ["found"]), N("Transpose", ["found"], ["rows"], perm=[1, 0]),
        N("GatherND", ["x", "rows"], ["values"]), N("Exp", ["values"], ["exps"]),
        N("Shape", ["values"], ["size"]), N("ConstantOfShape", ["size"], ["zeros"]),
        N("Add", ["exps", "zeros"], ["sums"]), N("ReduceSum", ["sums"], ["total"], keepdims=0),
        N("NonZero", ["mask"], ["again"]), N("Transpose", ["again"], ["where"], perm=[1, 0]),
        N("ScatterND", ["x", "where", "sums"], ["y"]),
        N("Concat", ["rows", "where"], ["both"], axis=0),
    ]  # fmt: skip
    return nodes, ["y", "total", "both", "sums"], {"least": np.float32(0.3)}


def chosen_rows():
    """Rows by a condition, then what needs all of them: softmax over them and a product."""
    nodes = [
        N("ReduceSum", ["x", "one"], ["sums"], keepdims=0),
        N("Greater", ["sums", "least"], ["keep"]),
        N("Compress", ["x", "keep"], ["kept"], axis=0), N("Softmax", ["kept"], ["soft"], axis=0),
        N("MatMul", ["soft", "weight"], ["y"]), N("Shape", ["kept"], ["size"]),
    ]  # fmt: skip
    weight = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
    return nodes, ["y", "size"], {"one": np.int64([1]), "least": np.float32(0), "weight": weight}


def in_branches():
    """What is found is summed up in the branch that the data choose."""
    number = [helper.make_tensor_value_info("s", 1, [])]
    positive = [
        N("NonZero", ["x"], ["found"]), N("Transpose", ["found"], ["rows"], perm=[1, 0]),
        N("GatherND", ["x", "rows"], ["values"]), N("CumSum", ["values", "axis"], ["sums"]),
        N("ReduceSum", ["sums"], ["s"], keepdims=0),
    ]  # fmt: skip
    other = [
        N("Greater", ["x", "least"], ["mask"]), N("NonZero", ["mask"], ["where"]),
        N("Cast", ["where"], ["floats"], to=1), N("CumSum", ["floats", "last"], ["sums"]),
        N("ReduceSum", ["sums"], ["s"], keepdims=0),
    ]  # fmt: skip
    bodies = {
        name: helper.make_graph(nodes, name, [], number)
        for name, nodes in (("then_branch", positive), ("else_branch", other))
    }
    nodes = [
        N("ReduceSum", ["x"], ["total"], keepdims=0), N("Greater", ["total", "zero"], ["choice"]),
        N("If", ["choice"], ["y"], **bodies),
    ]  # fmt: skip
    weights = {"axis": np.int64(0), "last": np.int64(1), "least": np.float32(0.3)}
    return nodes, ["y"], {**weights, "zero": np.float32(0)}


def both_sides(made, shape, sizes, target="llvm", dims=None):
    nodes, outputs, weights = made
    text = tuple(d if isinstance(d, int) else str(d) for d in shape)
    proto = model(nodes, {"x": ("float32", text)}, outputs, weights)
    for output in proto.graph.output:
        if output.name in ("both", "size"):
            output.type.tensor_type.elem_type = 7
    mod, _ = relay.frontend.from_onnx(proto, shape={"x": shape}, dims=dims)
    module = GraphModule(relay.build(mod, target=target)["default"](cpu()))
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for seed, size in enumerate(sizes):
        x = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
        x = -abs(x) if seed == 2 else x
        module.run(x=x)
        for index, want in enumerate(session.run(None, {"x": x})):
            found = module.get_output(index).numpy()
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("made", [masked_update, chosen_rows])
def test_one_size(made):
    both_sides(made(), (5, 6), [(5, 6)] * 4)


def test_more_than_there_is_room_to_compare():
    both_sides(masked_update(), (70, 80), [(70, 80)] * 3)


@pytest.mark.parametrize("made", [masked_update, chosen_rows, in_branches])
def test_open_sizes(made):
    n, m = relay.Dim("n", 1, 6), relay.Dim("m", 2, 9)
    if made is chosen_rows:
        both_sides(made(), (n, 6), [(3, 6), (1, 6), (6, 6), (2, 6)])
    else:
        both_sides(made(), (n, m), [(3, 5), (1, 2), (6, 9), (4, 4)])


def test_a_computed_limit_is_bounded_by_the_user():
    """As speech is made: how long it becomes follows from what was said."""
    nodes = [
        N("Abs", ["x"], ["long"]), N("Ceil", ["long"], ["whole"]),
        N("ReduceSum", ["whole"], ["sum"], keepdims=0), N("Cast", ["sum"], ["limit"], to=7),
        N("Range", ["zero", "limit", "two"], ["every"], name="counting"),
        N("Cast", ["every"], ["floats"], to=1), N("Sin", ["floats"], ["y"]),
    ]  # fmt: skip
    weights = {"zero": np.int64(1), "two": np.int64(2)}
    proto = model(nodes, {"x": ("float32", (5, 6))}, ["y"], weights)
    with pytest.raises(ModelError, match=r"Range .* under the node's name, as in dims="):
        relay.frontend.from_onnx(proto)
    made = nodes, ["y"], weights
    both_sides(made, (5, 6), [(5, 6)] * 3, dims={"every": (0, 100)})
    mod, _ = relay.frontend.from_onnx(proto, dims={"counting": (0, 9)})
    module = GraphModule(relay.build(mod, target="llvm")["default"](cpu()))
    with pytest.raises(ExecutionError, match=r"the size counting the value 15, .* for 0 to 9"):
        module.run(x=np.ones((5, 6), np.float32))


def test_a_limit_that_is_said_to_be_one_number_is_checked():
    nodes = [N("Range", ["zero", "x", "one"], ["y"], name="Range_0")]
    proto = model(nodes, {"x": ("int64", ())}, ["y"], {"zero": np.int64(0), "one": np.int64(1)})
    proto.graph.output[0].type.tensor_type.elem_type = 7
    mod, _ = relay.frontend.from_onnx(proto, dims={"Range_0": 3})
    lib = relay.build(mod, target="llvm")
    module = GraphModule(lib["default"](cpu()))
    for limit in (2, 4, 3):
        if limit == 3:
            module.run(x=np.int64(3))
            np.testing.assert_array_equal(module.get_output(0).numpy(), [0, 1, 2])
            continue
        with pytest.raises(ExecutionError, match=rf"Range_0 the value {limit}, .* for 3 to 3"):
            module.run(x=np.int64(limit))


@pytest.mark.parametrize("axis", [None, 0, -1], ids=str)
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_different_elements_and_slices(axis, is_sorted):
    """How many there are is the size of what is computed of them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    axes = {} if axis is None else {"axis": axis}
    nodes = [
        N("Unique", ["x"], ["values", "first", "inverse", "counts"], sorted=is_sorted, **axes),
        N("CumSum", ["values", "axis"], ["sums"]),
        *(N("Cast", [x], [f"{x}_float"], to=1) for x in ("first", "inverse", "counts")),
        N("CumSum", ["first_float", "zero"], ["places"]),
        N("CumSum", ["counts_float", "zero"], ["numbers"]),
    ]  # fmt: skip
    weights = {"axis": np.int64(axis or 0), "zero": np.int64(0)}
    names = ["sums", "places", "inverse_float", "numbers"]
    proto = model(nodes, {"x": ("float32", ("n", 4))}, names, weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = relay.frontend.from_onnx(proto, dims={"n": (1, 9)})
    module = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    for n in (1, 9, 5):
        x = np.random.default_rng(n).integers(0, 2, (n, 4)).astype(np.float32)
        module.run(x=x)
        for number, want in enumerate(session.run(None, {"x": x})):
            np.testing.assert_array_equal(module.get_output(number).numpy(), want)


def boxes_or_none():
    """As detectors write it: no box where there is none, else those that are left, and then more.

    What follows takes as many as the branch that was taken has.
    """
    none = [helper.make_node("Constant", [], ["no"], value=helper.make_tensor("n", 7, [0], []))]
    some = [
        N("Greater", ["sums", "high"], ["strong"]), N("NonZero", ["strong"], ["at"]),
        N("Squeeze", ["at", "zeros"], ["keep"]),
    ]  # fmt: skip
    bodies = {
        "then_branch": helper.make_graph(
            none, "none", [], [helper.make_tensor_value_info("no", 7, [0])]
        ),
        "else_branch": helper.make_graph(
            some, "some", [], [helper.make_tensor_value_info("keep", 7, ["k"])]
        ),
    }
    nodes = [
        N("ReduceSum", ["x", "one"], ["all_sums"], keepdims=0),
        N("Greater", ["all_sums", "low"], ["is_box"]), N("NonZero", ["is_box"], ["where"]),
        N("Squeeze", ["where", "zeros"], ["chosen"]), N("Gather", ["x", "chosen"], ["boxes"]),
        N("ReduceSum", ["boxes", "one"], ["sums"], keepdims=0),
        N("Shape", ["sums"], ["shape"]), N("ReduceProd", ["shape"], ["number"], keepdims=0),
        N("Equal", ["number", "zero"], ["is_none"]), N("If", ["is_none"], ["kept"], **bodies),
        N("Slice", ["kept", "zeros", "four"], ["few"]), N("Gather", ["boxes", "few"], ["best"]),
        N("Shape", ["best"], ["size"]), N("ConstantOfShape", ["size"], ["filled"]),
        N("CumSum", ["best", "zero"], ["summed"]), N("Add", ["summed", "filled"], ["y"]),
    ]  # fmt: skip
    weights = {
        "one": np.int64([1]), "zero": np.int64(0), "zeros": np.int64([0]), "four": np.int64([4]),
        "low": np.float32(0), "high": np.float32(0.5),
    }  # fmt: skip
    return nodes, ["y"], weights


def test_branches_that_find_nothing_or_something():
    both_sides(boxes_or_none(), (9, 6), [(9, 6)] * 4)
    both_sides(boxes_or_none(), (relay.Dim("n", 1, 12), 6), [(3, 6), (12, 6), (8, 6), (1, 6)])


def test_branches_of_unequal_sizes():
    """Rows 0 to 2 of an open tensor, or all of it."""
    cut = [N("Slice", ["x", "zeros", "two"], ["s"])]
    whole = [N("Identity", ["x"], ["w"])]
    rows = helper.make_tensor_value_info
    bodies = {
        "then_branch": helper.make_graph(cut, "cut", [], [rows("s", 1, ["a", 3])]),
        "else_branch": helper.make_graph(whole, "whole", [], [rows("w", 1, ["n", 3])]),
    }
    nodes = [
        N("ReduceSum", ["x"], ["total"], keepdims=0), N("Greater", ["total", "zero"], ["choice"]),
        N("If", ["choice"], ["rows"], **bodies), N("CumSum", ["rows", "axis"], ["y"]),
    ]  # fmt: skip
    weights = {
        "zeros": np.int64([0]), "two": np.int64([2]), "zero": np.float32(0), "axis": np.int64(0)
    }  # fmt: skip
    both_sides((nodes, ["y"], weights), (relay.Dim("n", 2, 9), 3), [(4, 3), (9, 3), (5, 3)])


def test_no_more_of_the_best_than_there_are():
    """k is the smaller of a number and of how many were found."""
    nodes = [
        N("NonZero", ["x"], ["found"]), N("Squeeze", ["found", "zeros"], ["at"]),
        N("Gather", ["x", "at"], ["values"]), N("Shape", ["values"], ["size"]),
        N("Concat", ["size", "five"], ["both"], axis=0),
        N("ReduceMin", ["both"], ["k"], keepdims=1), N("TopK", ["values", "k"], ["y", "places"]),
    ]  # fmt: skip
    weights = {"zeros": np.int64([0]), "five": np.int64([5])}
    both_sides((nodes, ["y"], weights), (relay.Dim("n", 1, 12),), [(3,), (12,), (5,), (6,)])
