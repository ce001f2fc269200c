"""The operator scan: types, text, what the passes do to its body, and the loop it becomes."""

import numpy as np
import pytest

from slipway import relay, runtime
from slipway.compiler.optimize import optimize
from slipway.errors import TypeInferenceError
from slipway.frontends.steps import run_steps
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_equal
from slipway.ir.text.serialize import load_json, save_json
from slipway.relay.backend import Executor
from slipway.relay.expr import Call, Constant, Function, Tuple, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.recurrence import body_of
from slipway.relay.text.printer import astext
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order
from slipway.rpc import LocalSession
from slipway.runtime.executor import AotModule
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.transform.context import PassContext
from slipway.transform.graph.precision.mixed_precision import to_mixed_precision

STEPS, ROWS, UNITS = 7, 3, 20


def weights(seed=0):
    return np.random.default_rng(seed).normal(0, 0.3, (UNITS, UNITS)).astype("float32")


def layer(weight, x, steps=STEPS, reverse=False):
    """h' = tanh(x + h @ weight.T), as a function of x and the first h."""
    h = relay.var("h", shape=(ROWS, UNITS))

    def step(states, slices):
        new = relay.tanh(relay.add(slices[0], relay.nn.dense(states[0], weight)))
        return [new], [new]

    (last,), (sequence,) = run_steps(step, [h], [x], reverse)
    free = [x, h, *([weight] if isinstance(weight, Var) else [])]
    return Function(tuple(free), Tuple((last, sequence)))


def expected(weight, x, h, reverse=False):
    rows = np.zeros_like(x)
    for t in range(len(x))[:: -1 if reverse else 1]:
        h = np.tanh(x[t] + h @ weight.T)
        rows[t] = h
    return h, rows


def inputs(steps=STEPS):
    rng = np.random.default_rng(1)
    shapes = (steps, ROWS, UNITS), (ROWS, UNITS)
    return [rng.normal(size=s).astype("float32") for s in shapes]


def compiled(function, target, values, **options):
    factory = relay.build(function, target=target, **options)
    module = GraphModule(factory["default"](runtime.cpu()))
    for name, value in values.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def scans(function):
    return [e for e in post_order(function) if body_of(e) is not None]


def operators(function):
    return [
        e.op.name for e in post_order(function) if isinstance(e, Call) and hasattr(e.op, "name")
    ]


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_it_computes_what_the_steps_compute(target, level):
    w, (x, h) = weights(), inputs()
    function = layer(relay.const(w), relay.var("x", shape=x.shape))
    with PassContext(opt_level=level):
        found = compiled(function, target, {"x": x, "h": h})
    for got, want in zip(found, expected(w, x, h), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [0, 1, 2, 1000])
def test_any_number_of_steps_backwards(steps):
    w, (x, h) = weights(), inputs(steps)
    function = layer(relay.const(w), relay.var("x", shape=x.shape), steps, reverse=True)
    found = compiled(function, "llvm", {"x": x, "h": h})
    for got, want in zip(found, expected(w, x, h, reverse=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_kernels_do_not_grow_with_the_steps():
    def source(steps):
        x = relay.var("x", shape=(steps, ROWS, UNITS))
        return relay.build(layer(relay.const(weights()), x), target="c").get_source("c")

    assert len(source(1000)) <= len(source(10)) + 50


def test_weights_that_are_inputs_are_packed_once():
    weight, x = relay.var("w", shape=(UNITS, UNITS)), relay.var("x", shape=(STEPS, ROWS, UNITS))
    function = layer(weight, x)
    (call,) = scans(function)
    assert [f.type for f in call.args[2].fields] == [weight.type]
    values = dict(zip("xh", inputs(), strict=True))
    found = compiled(function, "llvm", {**values, "w": weights()})
    want = expected(weights(), values["x"], values["h"])
    np.testing.assert_allclose(found[1], want[1], rtol=1e-5, atol=1e-6)


def test_constant_weights_leave_the_body_packed():
    function = layer(relay.const(weights()), relay.var("x", shape=(STEPS, ROWS, UNITS)))
    with PassContext(opt_level=3):
        main = optimize(IRModule.from_expr(function), None, None, 3, 16)["main"]
    (call,) = scans(main)
    names = operators(call.attrs.body)
    assert "nn.contrib_dense_pack" in names
    assert "layout_transform" not in names
    assert not [e for e in post_order(call.attrs.body) if isinstance(e, Constant)]


def test_states_that_change_places():
    """(a, b) -> (b, a + x): what a step reads is the state before it, whatever it writes first."""
    kind = TensorType((4,))

    def step(states, slices):
        a, b = states
        return [b, relay.add(a, slices[0])], [a]

    a, b, x = Var("a", kind), Var("b", kind), Var("x", TensorType((5, 4)))
    (p, q), (rows,) = run_steps(step, [a, b], [x])
    function = Function((a, b, x), Tuple((p, q, rows)))
    values = {n: np.random.default_rng(3).normal(size=s).astype("float32")
              for n, s in (("a", 4), ("b", 4), ("x", (5, 4)))}  # fmt: skip
    one, two, gave = values["a"], values["b"], []
    for row in values["x"]:
        gave.append(one)
        one, two = two, one + row
    for found in (interpret(function, **values), compiled(function, "llvm", values)):
        for got, want in zip(found, (one, two, np.stack(gave)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_loops_inside_a_loop_and_fixed_results():
    """The outer body runs a loop of its own, and gives a constant and an input beside."""
    x, y = relay.var("x", shape=(3, 4, 2)), relay.var("y", shape=(2,))

    def inner(states, slices):
        new = relay.add(relay.multiply(states[0], relay.const(0.5)), slices[0])
        return [new], [new]

    def outer(states, slices):
        (last,), (rows,) = run_steps(inner, states, [slices[0]])
        return [last], [relay.sum(rows, [0]), relay.const(2.0), y]

    h = relay.var("h", shape=(2,))
    (last,), outputs = run_steps(outer, [h], [x])
    function = Function((x, y, h), Tuple((last, *outputs)))
    values = {"x": np.arange(24, dtype="float32").reshape(3, 4, 2),
              "y": np.float32([3, 4]), "h": np.float32([1, 2])}  # fmt: skip
    state, sums = values["h"], []
    for part in values["x"]:
        total = 0
        for row in part:
            state = state * np.float32(0.5) + row
            total = total + state
        sums.append(total)
    wanted = state, np.stack(sums), np.full(3, 2, "float32"), np.tile(values["y"], (3, 1))
    for level in (0, 3):
        with PassContext(opt_level=level):
            found = compiled(function, "llvm", values)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_products_of_mixed_precision(low):
    w, (x, h) = weights(), inputs()
    function = layer(relay.const(w), relay.var("x", shape=x.shape))
    narrow = to_mixed_precision(function, low, keep_output_dtype=True)
    (call,) = scans(narrow)
    products = [e for e in post_order(call.attrs.body) if is_call_of(e, "nn.dense")]
    assert [a.tensor_type.dtype for p in products for a in p.args] == [low, low]
    found = compiled(narrow, "llvm", {"x": x, "h": h})
    np.testing.assert_allclose(found[1], expected(w, x, h)[1], atol=0.05)


def test_text_and_json_keep_the_body():
    function = layer(relay.const(weights()), relay.var("x", shape=(STEPS, ROWS, UNITS)))
    module = IRModule.from_expr(function)
    text = astext(module, show_meta_data=True)
    assert structural_equal(relay.fromtext(text)["main"], function)
    assert structural_equal(load_json(save_json(function)), function)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (([(2, 3)], [(5, 2, 4)]), "do not fit the body"),
        (([(2, 3)], [()]), "has no steps"),
        (([(2, 3)], [(5, 2, 3), (4, 2, 3)]), "number 1 has 4 steps"),
    ],
)
def test_what_does_not_fit_is_refused(shapes, words):
    h, x = Var("h", TensorType((2, 3))), Var("x", TensorType((2, 3)))
    body = Function((h, x), Tuple((relay.add(h, x),)))
    states, sequences = ([Var("v", TensorType(s)) for s in group] for group in shapes)
    with pytest.raises(TypeInferenceError, match=words):
        relay.scan(body, states, sequences)


@pytest.mark.parametrize("where", ["aot", "rpc"])
def test_a_scan_in_a_program_and_on_a_remote_device(where, tmp_path):
    weight, (x, h) = weights(), inputs()
    function = layer(relay.const(weight), relay.var("x", shape=x.shape))
    if where == "aot":
        library = relay.build(function, "llvm", executor=Executor("aot"))
        module = AotModule(library["default"](runtime.cpu()))
    else:
        relay.build(function, "llvm").export_library(tmp_path / "scan.tar")
        session = LocalSession()
        session.upload(tmp_path / "scan.tar")
        module = GraphModule(session.load_module("scan.tar")["default"](session.cpu(0)))
    module.set_input("x", x)
    module.set_input("h", h)
    module.run()
    for index, want in enumerate(expected(weight, x, h)):
        np.testing.assert_allclose(module.get_output(index).numpy(), want, rtol=1e-5, atol=1e-6)
