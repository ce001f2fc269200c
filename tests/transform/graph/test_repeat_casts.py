"""What widens small integers is each reader's own, so that kernels hand on small ones."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.repeat_casts import repeat_casts


def gated(dtype="int8", wide="int32", channels=24):
    """A table's values, their sums over an image, and their products with a gate."""
    x = relay.var("x", shape=(1, 9, 9, channels), dtype="int8")
    gate = relay.var("gate", shape=(1, 1, 1, channels), dtype="int8")
    table = relay.const(np.arange(-128, 128)[::-1].astype(dtype))
    value = relay.subtract(relay.cast(relay.qnn.op.lookup(x, table), wide), relay.const(3, wide))
    total = relay.sum(value, axis=(1, 2), keepdims=True)
    product = relay.multiply(value, relay.cast(gate, wide))
    narrow = relay.cast(
        relay.clip(relay.right_shift(product, relay.const(7, wide)), -128, 127), "int8"
    )
    return infer_type(relay.Function([x, gate], relay.Tuple([total, narrow])))


def casts(function, wide="int32"):
    return [
        e
        for e in post_order(function.body)
        if is_call_of(e, "cast") and e.attrs.dtype == wide and e.args[0].tensor_type.rank == 4
        and e.args[0].tensor_type.shape[1] == 9
    ]  # fmt: skip


@pytest.mark.parametrize(("dtype", "wide"), [("int8", "int32"), ("int16", "int64")])
def test_readers_have_casts_of_their_own(dtype, wide):
    function = gated(dtype, wide)
    made = infer_type(repeat_casts(function))
    assert len(casts(function, wide)) == 1
    assert len(casts(made, wide)) == 2
    assert made.body.type == function.body.type
    rng = np.random.default_rng(0)
    data = [rng.integers(-128, 128, p.type.shape).astype("int8") for p in function.params]
    for got, want in zip(interpret(made, *data), interpret(function, *data), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_reader_with_two_operands_has_one_copy():
    x = relay.var("x", shape=(4, 9, 9, 2), dtype="int8")
    wide = relay.cast(x, "int32")
    square = relay.multiply(wide, wide)
    made = infer_type(repeat_casts(infer_type(relay.Function([x], relay.sum(square, axis=-1)))))
    assert len(casts(made)) == 1


def test_what_is_not_small_or_not_an_integer_stays():
    x = relay.var("x", shape=(4, 9, 9, 2), dtype="int32")
    y = relay.var("y", shape=(4, 9, 9, 2), dtype="int8")
    long, real = relay.cast(x, "int64"), relay.cast(y, "float32")
    fields = [relay.sum(long, axis=-1), relay.abs(long), relay.exp(real), relay.abs(real)]
    function = infer_type(relay.Function([x, y], relay.Tuple(fields)))
    made = infer_type(repeat_casts(function))
    assert len(casts(made, "int64")) == len(casts(made, "float32")) == 1


def test_a_microcontroller_keeps_one_byte_an_element():
    """The table's values lay in the arena with four, beside the image and the products."""
    module = tvm.IRModule.from_expr(gated())
    with tvm.transform.PassContext(opt_level=3, config={"tir.usmp.enable": True}):
        lib = relay.build(
            module,
            target=tvm.target.Target("c -keys=arm_cpu -mcpu=cortex-m4"),
            executor=relay.backend.Executor("aot", {"interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
        )
    assert lib.program.workspace_bytes < 2 * 9 * 9 * 24
