"""Relay graphs as ONNX models, run by onnxruntime and read back."""

import numpy as np
import onnxruntime
import pytest

from slipway import relay
from slipway.contrib.target.onnx import to_onnx
from slipway.errors import ModelError, SlipwayError
from slipway.frontends.onnx.export.model import WRITERS
from slipway.ir.function import IRModule
from slipway.relay import testing
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import load_ops
from slipway.relay.ops.recurrence import LoopAttrs

RNG = np.random.default_rng(8)


def run(model, **inputs):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def test_a_network(tmp_path):
    mod, params = testing.resnet.get_workload(
        num_layers=18, image_shape=(3, 32, 32), num_classes=10
    )
    model = to_onnx(mod, params, "resnet", path=str(tmp_path / "resnet.onnx"))
    x = RNG.random((1, 3, 32, 32), dtype="float32")
    found = run(model, data=x)[0]
    again, weights = relay.frontend.from_onnx(str(tmp_path / "resnet.onnx"))
    bound = relay.bind_params_by_name(again["main"], weights)
    np.testing.assert_allclose(interpret(IRModule.from_expr(bound), x), found, rtol=1e-4, atol=1e-5)
    own = relay.bind_params_by_name(mod["main"], params)
    np.testing.assert_allclose(interpret(IRModule.from_expr(own), x), found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [13, 18])
def test_operators(opset):
    x = relay.var("x", shape=(2, 4, 6))
    c = relay.const(RNG.normal(size=(2, 3, 6)).astype("float32"))
    y = relay.nn.batch_matmul(relay.clip(x, -0.5, 0.9), c)
    parts = [
        relay.nn.softmax(relay.transpose(y, (0, 2, 1)), axis=1),
        relay.sum(y, axis=(1,), keepdims=True), relay.mean(y), relay.max(y, axis=[0], exclude=True),
        relay.concatenate([y, relay.nn.pad(y, [(0, 0), (1, 0), (0, 0)], 2.0)], 1),
        relay.cast(relay.nn.leaky_relu(relay.squeeze(relay.expand_dims(y, 0), [0])), "float64"),
    ]  # fmt: skip
    function = relay.Function([x], relay.Tuple(parts))
    value = RNG.normal(size=(2, 4, 6)).astype("float32")
    found = run(to_onnx(function, None, "ops", opset), x=value)
    for one, two in zip(found, interpret(IRModule.from_expr(function), value), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


# Forms that ONNX has not, or not before a later opset: told in words.
HAS_NOT = ("opset", "signed", "adaptive", "dilation", "layout", "int8", "symmetric", "has the axes")


def variables(number, value):
    """Return variables of an argument, its expression, and the variables' values."""
    if isinstance(value, tuple):
        names = [relay.var(f"x{number}_{i}", shape=v.shape, dtype=str(v.dtype))
                 for i, v in enumerate(value)]  # fmt: skip
        return names, relay.Tuple(tuple(names)), list(value)
    name = relay.var(f"x{number}", shape=value.shape, dtype=str(value.dtype))
    return [name], name, [value]


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", sorted(set(WRITERS) & set(load_ops())))
def test_every_form_of_an_operator(name, opset):
    definition, served, refused = load_ops()[name], 0, []
    for number, case in enumerate(definition.cases):
        params, arguments, values = [], [], []
        for i, given in enumerate(case.arrays(number)):
            value = tuple(map(np.asarray, given)) if isinstance(given, list | tuple) else given
            names, argument, of_names = variables(i, value)
            params, values = params + names, values + of_names
            arguments.append(argument)
        call = definition(*arguments, **({} if case.attrs is None else {"attrs": case.attrs}))
        function = relay.Function(params, call)
        try:
            model = to_onnx(function, None, "case", opset)
        except SlipwayError as error:
            refused.append(str(error))
            continue
        names = [one.name for one in model.graph.input]
        found = run(model, **{p.name_hint: v for p, v in zip(params, values, strict=True)
                              if p.name_hint in names})  # fmt: skip
        wanted = interpret(IRModule.from_expr(function), *values)
        for one, two in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert (one.dtype, one.shape) == (two.dtype, two.shape)
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
        served += 1
    assert all(any(word in text for word in HAS_NOT) for text in refused), refused
    later = name.startswith(("bitwise_", "image.grid", "vision.roi")) and opset == 13
    assert served or later or not definition.cases


def test_blocks_of_channels():
    x = relay.var("x", shape=(1, 16, 5, 4))
    blocked = relay.layout_transform(x, "NCHW", "NCHW8c")
    back = relay.layout_transform(relay.nn.relu(blocked), "NCHW8c", "NHWC4c")
    function = relay.Function([x], relay.Tuple([blocked, back]))
    value = RNG.normal(size=(1, 16, 5, 4)).astype("float32")
    found = run(to_onnx(function, None, "blocks"), x=value)
    for one, two in zip(found, interpret(IRModule.from_expr(function), value), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_over_steps(reverse):
    """A function in another: what the step reads from outside is read by its name."""
    x, state = relay.var("x", shape=(5, 2, 3)), relay.var("state", shape=(2, 3))
    factor = relay.var("factor", shape=(2, 3))
    inner = [relay.var(n, shape=(2, 3)) for n in ("s", "step", "other")]
    after = relay.tanh(inner[0] * inner[2] + inner[1])
    body = relay.Function(inner, relay.Tuple([after, after * relay.const(2.0)]))
    attrs = LoopAttrs(body, 1, 1, reverse)
    arguments = (relay.Tuple([state]), relay.Tuple([x]), relay.Tuple([factor * factor]))
    call = load_ops()["scan"](*arguments, attrs=attrs)
    function = relay.Function([x, state, factor], call)
    values = [RNG.normal(size=s).astype("float32") for s in ((5, 2, 3), (2, 3), (2, 3))]
    found = run(to_onnx(function, None, "loop"), x=values[0], state=values[1], factor=values[2])
    for one, two in zip(found, interpret(IRModule.from_expr(function), *values), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_branches_and_loops_of_a_file_come_back(tmp_path):
    """If, Loop and LSTM of an ONNX file, read and written again."""
    import onnx
    from onnx import TensorProto, helper

    def info(name, kind=TensorProto.FLOAT, shape=(2, 3)):
        return helper.make_tensor_value_info(name, kind, shape)

    node = helper.make_node
    sides = [helper.make_graph([node(kind, ["y"], ["out"])], kind, [], [info("out")])
             for kind in ("Exp", "Neg")]  # fmt: skip
    body = helper.make_graph(
        [node("Mul", ["v", "x"], ["v2"]), node("ReduceSum", ["v2"], ["t"], keepdims=0),
         node("Less", ["t", "limit"], ["on"])],
        "body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v")],
        [info("on", TensorProto.BOOL, []), info("v2")],
    )  # fmt: skip
    true = onnx.numpy_helper.from_array(np.array(True), "true")
    limit = onnx.numpy_helper.from_array(np.float32(300), "limit")
    nodes = [node("Loop", ["", "true", "x"], ["y"], body=body),
             node("If", ["flag"], ["z"], then_branch=sides[0], else_branch=sides[1])]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [info("x"), info("flag", TensorProto.BOOL, [])], [info("y"), info("z")],
        [true, limit],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    mod, params = relay.frontend.from_onnx(model)
    again = to_onnx(mod, params, "again")
    x = RNG.uniform(1.2, 1.9, (2, 3)).astype("float32")
    for flag in (True, False):
        wanted = run(model, x=x, flag=np.array(flag))
        for one, two in zip(run(again, x=x, flag=np.array(flag)), wanted, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5)


def test_open_sizes_are_told():
    x = relay.var("x", shape=(relay.Dim("n", 1, 4), 3))
    with pytest.raises(ModelError, match=r"fixed sizes.*FixShapes"):
        to_onnx(relay.Function([x], relay.nn.relu(x)), None, "open")


def test_what_is_not_served_is_named():
    x = relay.var("x", shape=(2, 4))
    function = relay.Function([x], relay.cumprod(relay.sort(x), axis=1))
    with pytest.raises(ModelError, match="cumprod"):
        to_onnx(function, {}, "f")
    with pytest.raises(ModelError, match="opset_version=7"):
        to_onnx(function, {}, "f", 7)
