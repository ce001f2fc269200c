"""ONNX's Attention becomes one nn.attention, with the values of ONNX's own evaluator."""

import numpy as np
import pytest
from graphs import helper, onnx

import slipway as tvm
from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.contrib import graph_executor
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.graph.attention.layouts import ATTENTIONS

Q, K = (2, 4, 24, 16), (2, 4, 30, 16)
FEW = (2, 2, 30, 16)
CASES = {
    "plain": ({}, Q, K, K),
    "scale": ({"scale": 0.3}, Q, K, K),
    "causal": ({"is_causal": 1}, Q, K, K),
    "mask": ({}, Q, K, K, (24, 30)),
    "mask of each entry": ({}, Q, K, K, (2, 1, 24, 30)),
    "condition": ({}, Q, K, K, (24, 30), "bool"),
    "shared heads": ({}, Q, FEW, FEW),
    "three axes": (
        {"q_num_heads": 4, "kv_num_heads": 4}, (2, 24, 64), (2, 30, 64), (2, 30, 64)
    ),
    "three axes, shared heads": (
        {"q_num_heads": 4, "kv_num_heads": 2}, (2, 24, 64), (2, 30, 32), (2, 30, 32)
    ),
}  # fmt: skip


def attention_model(attributes, *shapes):
    """Return the model and its inputs; a last item "bool" makes the mask a condition."""
    rng = np.random.default_rng(0)
    kind = "float32"
    if shapes[-1] == "bool":
        kind, shapes = "bool", shapes[:-1]
    feeds = {}
    for name, shape in zip(("q", "k", "v", "mask"), shapes, strict=False):
        feeds[name] = rng.standard_normal(shape).astype("float32")
    if kind == "bool":
        feeds["mask"] = feeds["mask"] > 0
        feeds["mask"][3] = False  # a row that sees nothing is zero
    types = {"float32": onnx.TensorProto.FLOAT, "bool": onnx.TensorProto.BOOL}
    inputs = [
        helper.make_tensor_value_info(name, types[x.dtype.name], x.shape)
        for name, x in feeds.items()
    ]
    node = helper.make_node("Attention", list(feeds), ["y"], **attributes)
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "attention", inputs, outputs)
    opset = [helper.make_opsetid("", 23)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10), feeds


@pytest.mark.parametrize("name", CASES)
def test_onnx_attention_is_one_operator(name):
    if onnx.defs.onnx_opset_version() < 23:
        pytest.skip("this onnx package has no Attention")
    from onnx.reference import ReferenceEvaluator

    model, feeds = attention_model(*CASES[name])
    mod, params = relay.frontend.from_onnx(model)
    with tvm.transform.PassContext(opt_level=3):
        done = optimize(mod, params, Target("llvm"), layout_lanes=8)["main"]
        lib = relay.build(mod, target="llvm", params=params)
    found = [
        c.op.name
        for c in post_order(done.body)
        if isinstance(c, relay.Call) and isinstance(c.op, relay.Op)
    ]
    assert len([n for n in found if n in ATTENTIONS]) == 1
    assert not set(found) & {"nn.softmax", "nn.batch_matmul", "broadcast_to"}
    run = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    run.run(**feeds)
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_allclose(run.get_output(0).numpy(), wanted, rtol=0, atol=5e-6)
