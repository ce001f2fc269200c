"""Models that end the process of the onnx package's own C++ code are read here all the same."""

import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.onnx.importer import check_onnx
from slipway.frontends.onnx.isolated import ModelRefused, converted, inferred, objection


def foreign(kind="Ghost", domain="com.example"):
    """A node of a domain that the file does not import, with a body that has no type."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["inner"])],
        "body",
        [],
        [helper.make_tensor_value_info("inner", 1, None)],
    )
    return model(
        [
            helper.make_node(kind, ["x"], ["y"], name="ghost", domain=domain, body=body),
            helper.make_node("Relu", ["y"], ["z"], name="behind"),
        ],
        {"x": ("float32", (1, 3))},
        ["z"],
    )


def with_domain(proto, domain="a.b"):
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    return proto


# Each of these ended the process that ran onnx.shape_inference on it, or kept it for ever.
DEADLY = {
    "no type": [
        helper.make_node("Ghost", ["x"], ["g"], domain="a.b"),
        helper.make_node("RegexFullMatch", ["g"], ["y"], pattern="a"),
    ],
    "parts": [helper.make_node("Split", ["x"], ["y", "y2"], num_outputs=1 << 31)],
    "equation": [helper.make_node("Einsum", ["x", "x"], ["y"], equation="ab,\0\x01\0cb")],
}


@pytest.mark.parametrize("case", DEADLY)
def test_a_model_that_kills_shape_inference_is_reported_node_by_node(case):
    nodes = [*DEADLY[case], helper.make_node("Relu", ["y"], ["z"], name="behind")]
    proto = with_domain(model(nodes, {"x": ("float32", (2, 3))}, ["z"], opset=21))
    reports = check_onnx(proto)
    assert reports[0].status == "unsupported"
    assert reports[-1].name == "behind"
    with pytest.raises(ModelError):
        relay.frontend.from_onnx(proto)


def test_foreign_operators_with_subgraphs_are_reported():
    reports = {r.name: r for r in check_onnx(foreign())}
    assert "no converter" in reports["ghost"].detail


def test_inference_gives_the_types_of_what_is_known():
    proto = model(
        [helper.make_node("Ghost", ["x"], ["g"], domain="a.b", name="ghost"),
         helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
        {"x": ("float32", (2, 3))},
        ["y"],
    )  # fmt: skip
    found = {i.name: i for i in inferred(with_domain(proto)).graph.output}
    assert [d.dim_value for d in found["y"].type.tensor_type.shape.dim] == [3, 2]


def test_a_sound_model_meets_no_objection_and_a_broken_one_does():
    sound = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", (2,))}, ["y"])
    assert objection(sound) == ""
    broken = model([helper.make_node("MaxPool", ["x"], ["y"])], {"x": ("float32", (2,))}, ["y"])
    assert "kernel_shape" in objection(broken)


def test_the_version_converter_says_why_not():
    ghost = model([helper.make_node("Ghost", ["x"], ["y"])], {"x": ("float32", (2,))}, ["y"])
    with pytest.raises(ModelRefused):
        converted(ghost, 21)


def test_a_process_that_dies_is_no_objection():
    nodes = [helper.make_node("Split", ["x"], ["y", "z"], num_outputs=1 << 31)]
    deadly = model(nodes, {"x": ("float32", (4, 3))}, ["y"], opset=18)
    assert objection(deadly) == ""
