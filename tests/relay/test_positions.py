"""Positions beyond an axis, in every integer type, and axes that an int32 does not count."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.interpret import interpret

# Each type with values beyond 32 bits, beyond its own sign, and within the data.
VALUES = {
    "int64": [2**32 + 1, -(2**32) - 1, 3, -1, 2**62],
    "uint64": [2**63 + 5, 2**32 + 1, 4, 2**64 - 1],
    "int32": [2**31 - 1, -(2**31), 4],
    "uint32": [2**32 - 1, 2**31, 3],
    "int16": [-7, 300],
    "uint8": [255, 3],
}


def compared(body, *arrays, target="llvm"):
    function = body.as_function()
    module = tvm.IRModule.from_expr(function)
    found = relay.create_executor("graph", mod=module, target=target).evaluate()(*arrays).numpy()
    np.testing.assert_array_equal(found, interpret(function, *arrays))
    return found


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("dtype", VALUES)
def test_what_is_beyond_an_axis_keeps_its_value_until_it_is_clipped_or_wrapped(dtype, mode):
    positions = np.array(VALUES[dtype], dtype)
    data = np.arange(10, dtype="float32").reshape(5, 2)
    x, i = relay.var("x", shape=(5, 2)), relay.var("i", shape=positions.shape, dtype=dtype)
    parts = [relay.take(x, i, axis, mode=mode) for axis in (0, None)]
    found = compared(
        relay.concatenate([relay.reshape(p, (-1,)) for p in parts], 0), data, positions
    )
    wanted = [int(v) % 5 if mode == "wrap" else min(max(int(v), 0), 4) for v in VALUES[dtype]]
    np.testing.assert_array_equal(found[: 2 * len(wanted)].reshape(-1, 2), data[wanted])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_a_class_that_the_indices_cannot_name_is_never_theirs(dtype):
    indices = np.array([0, 44, 100, -1 if dtype != "uint8" else 255], dtype)
    body = relay.one_hot(
        relay.var("i", shape=indices.shape, dtype=dtype), relay.const(1.0), relay.const(0.0), 600
    )
    found = compared(body, indices)
    assert found.sum() == (4 if dtype == "uint8" else 3)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_axes_that_an_int32_does_not_count_are_read_in_whole(target):
    """Kernels of 2^33 elements and more are compiled; nobody has the memory to run them."""
    x, many = relay.var("x", shape=(1, 2, 7, 9)), 1 << 33
    long = relay.tile(x, (1, 1, 1 << 30, 1))
    ends = relay.const(np.array([0, 7 * (1 << 30) - 1]), "int64")
    for body in (
        long,
        relay.nn.pad(x, ((many, 0), (0, 0), (0, 0), (0, 0))),
        relay.take(long, ends, 2),
        relay.reverse(relay.broadcast_to(x, (many, 2, 7, 9)), 0),
    ):
        relay.build(tvm.IRModule.from_expr(body), target=target)


def test_the_ends_of_an_axis_that_an_int32_does_not_count():
    x = relay.var("x", shape=(1, 1), dtype="int8")
    long = relay.add(relay.tile(x, ((1 << 32) + 8, 1)), relay.const(1, "int8"))
    ends = np.array([0, 1 << 31, (1 << 32) + 7, 1 << 40], "int64")
    body = relay.take(long, relay.var("i", shape=(4,), dtype="int64"), 0)
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    call = relay.create_executor("graph", mod=module, target="llvm").evaluate()
    np.testing.assert_array_equal(call(np.array([[4]], "int8"), ends).numpy(), 5)
