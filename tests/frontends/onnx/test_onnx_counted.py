"""Results whose size depends on the data: room for all, and a count beside it."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.relay.interpret import interpret
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

BOXES = ("float32", (1, 6, 4))
SCORES = ("float32", (1, 2, 6))


def detector():
    """NonMaxSuppression and the nodes that exporters put behind it."""
    node = helper.make_node
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["rows"]),
        node("Slice", ["rows", "two", "three", "one"], ["column"]),
        node("Squeeze", ["column", "one"], ["places"]),
        node("Squeeze", ["boxes", "zero"], ["flat"]),
        node("Gather", ["flat", "places"], ["found"]),
    ]
    weights = {
        "most": np.int64([3]), "iou": np.float32([0.5]), "least": np.float32([0.2]),
        "zero": np.int64([0]), "one": np.int64([1]), "two": np.int64([2]), "three": np.int64([3]),
    }  # fmt: skip
    return model(nodes, {"boxes": BOXES, "scores": SCORES}, ["found", "rows"], weights)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_boxes_behind_a_suppression_have_a_count(target):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(8)
    feeds = {
        "boxes": rng.uniform(0, 3, BOXES[1]).astype(np.float32),
        "scores": rng.uniform(0, 1, SCORES[1]).astype(np.float32),
    }
    proto = detector()
    proto.graph.output[1].type.tensor_type.elem_type = 7
    mod, _ = relay.frontend.from_onnx(proto)
    main = mod["main"]
    assert main.attr("output_names") == ("found", "found.count", "rows", "rows.count")
    assert main.attr("counted_outputs") == (("found", 0), ("rows", 0))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    module.run(**feeds)
    found, count, rows, again = (module.get_output(i).numpy() for i in range(4))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted = session.run(None, feeds)
    assert count[0] == again[0] == len(wanted[0])
    np.testing.assert_array_equal(rows[: count[0]], wanted[1])
    np.testing.assert_array_equal(found[: count[0]], wanted[0])
    assert (rows[count[0] :] == -1).all()


@pytest.mark.parametrize("kind", ["NonZero", "Compress"])
def test_elements_found_have_a_count(kind):
    inputs = {"x": ("float32", (3, 4))}
    arguments = ["x"]
    if kind == "Compress":
        inputs["c"] = ("bool", (4,))
        arguments.append("c")
    options = {"axis": 1} if kind == "Compress" else {}
    proto = model([helper.make_node(kind, arguments, ["y"], **options)], inputs, ["y"])
    x = np.float32([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]])
    feeds = {"x": x, "c": np.array([True, False, False, True])}
    mod, _ = relay.frontend.from_onnx(proto)
    found, count = interpret(mod, **{n: feeds[n] for n in inputs})
    wanted = np.array(np.nonzero(x)) if kind == "NonZero" else x[:, [0, 3]]
    np.testing.assert_array_equal(found[:, : count[0]], wanted)


@pytest.mark.parametrize(("axis", "in_order"), [(None, 1), (0, 1), (1, 0)])
def test_different_elements_have_a_count(axis, in_order):
    options = {"sorted": in_order} | ({} if axis is None else {"axis": axis})
    node = helper.make_node("Unique", ["x"], ["y", "first", "inverse", "counts"], **options)
    names = ["y", "first", "inverse", "counts"]
    proto = model([node], {"x": ("float32", (4, 3))}, names)
    for output in proto.graph.output[1:]:
        output.type.tensor_type.elem_type = 7
    x = np.float32([[2, 1, 2], [0, 1, 0], [2, 1, 2], [0, 0, 0]])
    mod, _ = relay.frontend.from_onnx(proto)
    main = mod["main"]
    found = dict(zip(main.attr("output_names"), interpret(mod, x=x), strict=True))
    for name, along in main.attr("counted_outputs"):
        found[name] = found[name].take(range(found[f"{name}.count"][0]), axis=along)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for name, want in zip(names, session.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[name], want, err_msg=name)


def test_what_would_see_the_filling_sees_what_was_found():
    """It reads as many as there are; in the body of a loop it is declined."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("ReduceSum", ["n"], ["y"], name="total"),
    ]
    given = {"x": ("float32", (3, 4))}
    mod, _ = relay.frontend.from_onnx(model(nodes, given, ["y"]))
    module = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](cpu(0)))
    x = np.float32([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]])
    module.run(x=x)
    np.testing.assert_array_equal(module.get_output(0).numpy(), [[np.sum(np.nonzero(x))]])

    inner = [*nodes, helper.make_node("Identity", ["go"], ["on"])]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        inner, "body", [info("i", 7, ()), info("go", 9, ())],
        [info("on", 9, ()), info("y", 7, (1, 1))],
    )  # fmt: skip
    loop = helper.make_node(
        "Loop",
        [
            "most",
            "",
        ],
        ["all"],
        body=body,
    )
    proto = model([loop], {**given, "most": ("int64", ())}, ["all"])
    with pytest.raises(ModelError, match="nothing bounds how often it runs"):
        relay.frontend.from_onnx(proto)


def test_an_extent_beyond_any_memory_is_an_error():
    proto = model(
        [helper.make_node("Pad", ["x", "pads"], ["y"])], {"x": ("float32", (2,))}, ["y"],
        {"pads": np.int64([0, 2**62])},
    )  # fmt: skip
    with pytest.raises(ModelError, match="Pad x 1"):
        relay.frontend.from_onnx(proto)
