"""Functions whose inputs are tuples, run by the interpreter."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError
from slipway.relay.interpret import interpret

SCALAR, ROW = relay.TensorType((), "int64"), relay.TensorType((3,), "float32")


def model(type_, use):
    x = relay.var("x", type_annotation=type_)
    return tvm.IRModule.from_expr(relay.Function([x], use(x)))


def test_tuples_of_numbers_and_arrays():
    get = relay.TupleGetItem
    pair = model(relay.TupleType([SCALAR, SCALAR]), lambda x: get(x, 1) - get(x, 0))
    run = relay.create_executor("debug", mod=pair).evaluate()
    assert run((10, 8)).numpy() == -2
    assert run([tvm.nd.array(np.array(3)), tvm.nd.array(np.array(5))]).numpy() == 2
    inner = relay.TupleType([ROW, relay.TupleType([SCALAR, ROW])])
    nested = model(inner, lambda x: get(x, 0) * get(get(x, 1), 1))
    row = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(interpret(nested, (row, (4, row))), row * row)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((1, 2, 3), "'x' must be a tuple"),
        (5, "'x' must be a tuple"),
        ((1, 2.5), r"'x\[1\]' must be Tensor\[\(\), int64\], got Tensor\[\(\), float64\]"),
    ],
)
def test_what_no_such_tuple_is(given, words):
    pair = model(relay.TupleType([SCALAR, SCALAR]), lambda x: relay.TupleGetItem(x, 0))
    with pytest.raises(ExecutionError, match=words):
        interpret(pair, given)


def test_a_number_with_a_fraction_is_no_integer():
    with pytest.raises(ExecutionError, match=r"'x' must be .*int64.*, got .*float64"):
        interpret(model(SCALAR, lambda x: x + x), 1.5)
    assert interpret(model(SCALAR, lambda x: x + x), 2) == 4
