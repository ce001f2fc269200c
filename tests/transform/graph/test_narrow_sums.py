"""Sums of 16 by 8 bits in 32 where none of them overflows, and in 64 where one might."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.expr import Constant
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.narrow_sums import narrow_sums

LIMIT = 2**31 - 1
KINDS = ("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc", "qnn.dense_packed")


def summed(kind, weight, shape, data="int16", pad_value=0, known=True):
    x = relay.var("x", shape=shape, dtype=data)
    w = Constant(weight) if known else relay.var("w", shape=weight.shape, dtype="int8")
    make = getattr(relay.qnn.op, kind, None) or tvm.relay.op_registry.make(f"qnn.{kind}")
    options = {} if kind == "dense_packed" else {"padding": (1, 1, 1, 1), "pad_value": pad_value}
    body = make(x, w, out_dtype="int64", **options)
    return infer_type(relay.Function([x] if known else [x, w], body))


def sums(function):
    """Return the dtypes of a function's sums."""
    calls = [e for e in post_order(function.body) if is_call_of(e, *KINDS)]
    return [call.attrs.out_dtype for call in calls]


CASES = {
    "conv2d_nhwc": ((3, 3, 4, 5), (1, 6, 7, 4)),
    "depthwise_conv2d_nhwc": ((3, 3, 8), (1, 6, 7, 4)),
    "dense_packed": ((40, 6), (3, 40)),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_numbers_stay_and_fit(kind):
    rng = np.random.default_rng(0)
    weight, shape = CASES[kind]
    function = summed(kind, rng.integers(-127, 128, weight).astype("int8"), shape)
    narrow = infer_type(narrow_sums(function))
    assert sums(narrow) == ["int32"]
    assert narrow.body.type == function.body.type
    for low in (-32768, 32767, None):
        x = rng.integers(-32768, 32768, shape) if low is None else np.full(shape, low)
        x = x.astype("int16")
        np.testing.assert_array_equal(interpret(narrow, x), interpret(function, x))


@pytest.mark.parametrize("count", [512, 513, 516, 517, 2000])
def test_the_largest_sum_decides(count):
    weight = np.full((count, 2), 127, "int8")
    weight[:, 0] = 1
    function = summed("dense_packed", weight, (1, count))
    made = infer_type(narrow_sums(function))
    fits = count * 127 * 32768 <= LIMIT
    assert sums(made) == ["int32" if fits else "int64"]
    assert fits == (count <= 516)
    x = np.full((1, count), -32768, "int16")
    np.testing.assert_array_equal(interpret(made, x), x.astype("int64") @ weight.astype("int64"))


def test_what_is_not_known_stays():
    weight, shape = CASES["dense_packed"]
    function = summed("dense_packed", np.ones(weight, "int8"), shape, known=False)
    assert sums(narrow_sums(function)) == ["int64"]


def test_microcontrollers_have_it():
    rng = np.random.default_rng(1)
    weight, shape = CASES["conv2d_nhwc"]
    function = summed("conv2d_nhwc", rng.integers(-127, 128, weight).astype("int8"), shape)
    mod = tvm.IRModule.from_expr(function)
    executor = relay.backend.Executor("aot", {"interface-api": "c"})
    target, runtime = "c -keys=arm_cpu -mcpu=cortex-m4", relay.backend.Runtime("crt")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, runtime=runtime, executor=executor)
    text = lib.get_lib().get_source("c")
    assert "int32_t conv[1]" in text
    assert "int64_t conv[1]" not in text
