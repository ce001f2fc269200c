"""The text form of graphs."""

import numpy as np

from slipway import relay
from slipway.ir.function import IRModule


def test_function_prints_as_relay():
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(10, 64))
    mod = IRModule.from_expr(relay.nn.softmax(relay.nn.dense(x, w)))
    assert mod.astext() == (
        "def @main (%x: Tensor[(1, 64), float32], %w: Tensor[(10, 64), float32])"
        " -> Tensor[(1, 10), float32] {\n"
        '  %0 = nn.dense(%x, %w, units=None, out_dtype="") /* ty=Tensor[(1, 10), float32] */;\n'
        "  nn.softmax(%0, axis=-1)\n"
        "}"
    )


def test_equal_names_are_told_apart():
    a, b = relay.var("x", shape=(1,)), relay.var("x", shape=(1,))
    assert str(a + b) == "add(%x, %x_1)"


def test_constants_tuples_and_lets():
    x = relay.var("x", shape=(2,))
    v = relay.Var("v", x.type)
    text = str(relay.Let(v, x + 1.0, relay.Tuple((v, relay.const(np.ones(2, np.float32))))))
    assert text == "let %v = add(%x, 1.0f);\n(%v, meta[relay.Constant][0])"


def test_kernels_print_before_their_calls():
    x = relay.var("x", shape=(2,))
    mod = relay.transform.FuseOps()(IRModule.from_expr(relay.exp(relay.abs(x))))
    assert str(mod["main"]).splitlines()[1].strip() == (
        "%0 = fn (%p0: Tensor[(2,), float32], Primitive=1) -> Tensor[(2,), float32] {"
    )


def test_a_call_that_gives_a_tuple_has_a_text():
    parts = relay.split(relay.var("x", shape=(4, 6)), 2, axis=1)
    assert parts.astext() == parts.astuple().astext()
    assert "split" in parts.astext(show_meta_data=False)
