"""Damaged models: whatever the bytes, the importer answers with an error of its own."""

import random

import pytest
from benchmarks.fuzz_importers.damage import mutate_bytes
from graphs import helper, model, small_cnn

from slipway import relay
from slipway.errors import InternalError, ModelError, SlipwayError
from slipway.frontends.onnx.converters import load_converters
from slipway.frontends.onnx.importer import check_onnx


@pytest.mark.parametrize("seed", range(8))
def test_mutated_models_never_crash(seed):
    rng = random.Random(seed)
    whole = small_cnn().SerializeToString()
    errors = 0
    for _ in range(60):
        try:
            relay.frontend.from_onnx(mutate_bytes(whole, rng))
        except SlipwayError:
            errors += 1
    assert errors


def test_a_node_that_breaks_its_operators_rules_is_named():
    proto = model(
        [helper.make_node("MaxPool", ["x"], ["y"], name="pool3")],
        {"x": ("float32", (1, 1, 4, 4))},
        ["y"],
    )
    with pytest.raises(ModelError, match=r"MaxPool x 1 \(pool3\): its attribute 'kernel_shape'"):
        relay.frontend.from_onnx(proto)


def test_a_converter_that_fails_is_no_fault_of_the_model(monkeypatch):
    def broken(node):
        return {}[node.name]

    monkeypatch.setitem(load_converters(), "Relu", broken)
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"], name="r1")], {"x": ("float32", (2,))}, ["y"]
    )
    with pytest.raises(
        InternalError, match=r"defect of Slipway.*node 'r1' \(Relu\) ended with Key"
    ):
        relay.frontend.from_onnx(proto)
    assert "defect of Slipway" in check_onnx(proto)[0].detail


def test_a_body_that_reads_from_outside_is_no_fault_of_the_model(monkeypatch):
    def broken(node):
        return {}[node.name]

    monkeypatch.setitem(load_converters(), "If", broken)
    made = helper.make_tensor_value_info("z", 1, (2,))
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "branch", [], [made])
    choice = helper.make_node(
        "If", ["c"], ["y"], name="if1", then_branch=branch, else_branch=branch
    )
    proto = model([choice], {"x": ("float32", (2,)), "c": ("bool", (1,))}, ["y"])
    with pytest.raises(InternalError, match=r"defect of Slipway.*node 'if1' \(If\) ended with Key"):
        relay.frontend.from_onnx(proto)


def test_a_converter_that_fails_on_what_onnx_refuses_too_gives_its_words(monkeypatch):
    def broken(node):
        return {}[node.name]

    monkeypatch.setitem(load_converters(), "Gemm", broken)
    proto = model(
        [helper.make_node("Gemm", ["x", "x"], ["y"], name="g")], {"x": ("float32", (2, 3))}, ["y"]
    )
    with pytest.raises(ModelError, match=r"Gemm x 1 \(g\): its attributes or inputs do not fit: "):
        relay.frontend.from_onnx(proto)


BAD_NODES = {
    "text for a list": ("MaxPool", {"kernel_shape": "3"}, "is a string, where .* list of integers"),
    "float for a list": ("MaxPool", {"kernel_shape": 3.0}, "is a float, where"),
    "kernel 0": ("AveragePool", {"kernel_shape": [0, 2]}, "must be 1 or more"),
    "dilation 0": ("MaxPool", {"kernel_shape": [2, 2], "dilations": [0, 1]}, "must be 1 or more"),
    "dilation -1": ("MaxPool", {"kernel_shape": [2, 2], "dilations": [-1, 1]}, "must be 1 or more"),
    "stride 0": ("MaxPool", {"kernel_shape": [2, 2], "strides": [0, 0]}, "must be 1 or more"),
    "unknown": ("Relu", {"slope": 0.5}, "which Relu of opset 14 does not have"),
    "block": ("DepthToSpace", {"blocksize": 0}, "must be 1 or more"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_attributes_are_those_that_onnx_defines(case):
    kind, attributes, words = BAD_NODES[case]
    node = helper.make_node(kind, ["x"], ["y"], name="n0", **attributes)
    proto = model([node], {"x": ("float32", (1, 4, 8, 8))}, ["y"])
    with pytest.raises(ModelError, match=rf"{kind} x 1 \(n0\): .* attribute .*{words}"):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("inputs", [[], ["x", "x"], [""]])
def test_a_node_has_as_many_inputs_as_onnx_defines(inputs):
    node = helper.make_node("Relu", inputs, ["y"], name="n0")
    proto = model([node], {"x": ("float32", (4,))}, ["y"])
    with pytest.raises(ModelError, match=r"Relu x 1 \(n0\): .*input.*Relu of opset 14"):
        relay.frontend.from_onnx(proto)


def test_a_loop_without_an_end_is_named():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Identity", ["v"], ["v_out"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, t, ()) for n, t in (("i", 7), ("c", 9), ("v", 1))],
        [helper.make_tensor_value_info(n, t, ()) for n, t in (("c_out", 9), ("v_out", 1))],
    )
    proto = model(
        [helper.make_node("Loop", ["", "", "x"], ["y"], name="forever", body=body)],
        {"x": ("float32", ())},
        ["y"],
    )
    with pytest.raises(ModelError, match=r"forever.*never ends"):
        relay.frontend.from_onnx(proto)


BIG = 1 << 31
REFUSED = {
    "split": (helper.make_node("Split", ["x"], ["y", "z"], num_outputs=BIG), "num_outputs is"),
    "split parts": (
        helper.make_node("Split", ["x"], list("yabc"), num_outputs=3),
        "num_outputs is",
    ),
    "einsum": (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ab,\0\x01\0cb"), "letters"),
    "einsum axes": (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ab,a"), "has 2 axes"),
    "eye": (helper.make_node("EyeLike", ["x"], ["y"]), "needs a constant of"),
    "skips": (
        helper.make_node(
            "TfIdfVectorizer",
            ["x"],
            ["y"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=2**63 - 1,
            ngram_counts=[0, 1],
            ngram_indexes=[0, 1],
            pool_int64s=[2, 5, 4],
        ),
        "max_skip_count is 70000",
    ),
    "trilu": (helper.make_node("Trilu", ["x"], ["y"]), "needs a constant of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_asks_for_too_much_is_refused(case):
    """Each of these once took gigabytes or went on for ever."""
    node, words = REFUSED[case]
    rows = BIG if case in ("eye", "trilu") else 70000
    shape = (rows, 6) if case != "skips" else (6, rows)
    proto = model([node], {"x": ("float32", shape)}, ["y"], opset=18)
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_onnx(proto)


def test_shape_inference_gets_no_vector_that_would_be_a_shape_without_end():
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    proto = model([node], {"x": ("float32", (1, 3)), "shape": ("int64", (BIG,))}, ["y"], opset=18)
    with pytest.raises(ModelError, match="depends on the model's inputs"):
        relay.frontend.from_onnx(proto)


def test_texts_that_are_no_utf8_and_that_nobody_reads_are_no_matter():
    """The inference of what the file does not say copies the model, and no such text of it."""
    nodes = [helper.make_node("Foreign", ["x"], ["y"], domain="elsewhere", name="f1"),
             helper.make_node("Relu", ["y"], ["z"])]  # fmt: skip
    proto = model(nodes, {"x": ("float32", (2,))}, ["z"])
    proto.graph.name, proto.producer_name = "graph name", "producer name"
    info = proto.graph.value_info.add()
    info.name = "value name"
    data = proto.SerializeToString()
    for text in (b"graph name", b"producer name", b"value name"):
        data = data.replace(text, b"\xe3(" + text[2:])
    with pytest.raises(SlipwayError, match="Foreign") as caught:
        relay.frontend.from_onnx(data)
    assert not isinstance(caught.value, InternalError)


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "words"),
    [
        ("ScatterND", {"x": ("float32", (4,)), "i": ("int64", (1, 1)), "u": ("float32", (1,))},
         {"reduction": "data"}, "its attribute 'reduction' is 'data'; there are add, max"),
        ("ScatterElements", {"x": ("float32", (4,)), "i": ("int64", (1,)), "u": ("float32", (1,))},
         {"reduction": "sum"}, "its attribute 'reduction' is 'sum'"),
        ("RNN", {"x": ("float32", (2, 1, 3)), "w": ("float32", (1, 4, 3)),
          "r": ("float32", (1, 4, 4))},
         {"hidden_size": 2**40}, "hidden_size is 1099511627776, and R is for 4 states"),
    ],
)  # fmt: skip
def test_attributes_that_fit_nothing_are_named(kind, inputs, attributes, words):
    node = helper.make_node(kind, list(inputs), ["y"], **attributes)
    with pytest.raises(SlipwayError, match=words) as caught:
        relay.frontend.from_onnx(model([node], inputs, ["y"]))
    assert not isinstance(caught.value, InternalError)


@pytest.mark.parametrize(
    ("kind", "inputs", "shape"),
    [
        ("CumSum", {"x": ("float32", ()), "a": ("int64", ())}, ()),
        ("Range", {"x": ("float32", ()), "l": ("float32", ()), "d": ("float32", ())}, (2, 3)),
        ("Range", {"x": ("float32", ()), "l": ("float32", ()), "d": ("float32", ())}, ()),
        ("OneHot", {"x": ("int64", ()), "d": ("int64", ()), "v": ("float32", (2,))}, ()),
    ],
)
def test_stated_shapes_of_another_rank_are_no_defect_of_ours(kind, inputs, shape):
    proto = model([helper.make_node(kind, list(inputs), ["y"])], inputs, ["y"])
    kind_of = helper.make_tensor_type_proto(1, shape)
    proto.graph.output[0].type.CopyFrom(kind_of)
    with pytest.raises(SlipwayError) as caught:
        relay.frontend.from_onnx(proto)
    assert not isinstance(caught.value, InternalError)
