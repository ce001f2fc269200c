"""Bytes stored with the other sign: fewer moves, the same integers."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.moved_bytes import moved_bytes
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

SIGNS = {"int8": ("uint8", 128, -128, 127), "uint8": ("int8", -128, 0, 255)}


def moved(value, dtype):
    other, move, *_ = SIGNS[dtype]
    wide = relay.cast(value, "int16")
    return relay.cast(relay.add(wide, relay.const(np.int16(move))), other)


def bytes_of(x, dtype):
    _, _, low, high = SIGNS[dtype]
    return relay.cast(relay.clip(relay.add(x, relay.const(7, "int32")), low, high), dtype)


def check(body, function, count_of_moves):
    after = moved_bytes(function)
    data = np.arange(-300, 300).astype("int32")
    want = relay.interpret.interpret(function, data)
    got = relay.interpret.interpret(after, data)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert (
        sum(is_call_of(e, "cast") and e.attrs.dtype == "int16" for e in post_order(after))
        == count_of_moves
    )
    return after


def case(dtype, *readers):
    x = Var("x", TensorType((600,), "int32"))
    value = bytes_of(x, dtype)
    results = []
    for reader in readers:
        if reader == "reshaped":
            rows = relay.reshape(value, (20, 30))
            results.append(relay.abs(relay.cast(moved(rows, dtype), "int32")))
        elif reader == "wide rows":
            results.append(relay.negative(relay.cast(relay.reshape(value, (30, 20)), "int32")))
        elif reader == "move":
            results.append(relay.abs(relay.cast(moved(value, dtype), "int32")))
        elif reader == "wide":
            wide = relay.cast(value, "int32")
            results.append(relay.subtract(wide, relay.const(5, "int32")))
        else:
            results.append(value)
    body = relay.Tuple(results)
    return body, Function((x,), body)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_move_is_part_of_the_clip(dtype):
    check(*case(dtype, "move", "move"), 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_other_readers_widen_what_was_moved(dtype):
    after = check(*case(dtype, "move", "wide"), 0)
    stored = [e for e in post_order(after) if is_call_of(e, "clip")]
    assert len(stored) == 1
    # 7 and 128 are one constant before the clip, 128 and 5 another after the cast.
    assert sum(is_call_of(e, "add", "subtract") for e in post_order(after)) == 2


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_result_keeps_its_sign_and_is_moved_once(dtype):
    check(*case(dtype, "move", "result", "move"), 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_moves_of_a_reshape(dtype):
    check(*case(dtype, "reshaped", "move", "wide rows"), 0)
    check(*case(dtype, "reshaped", "result"), 1)


def test_without_moves_nothing_changes():
    _, function = case("int8", "wide", "result")
    assert moved_bytes(function) is function
