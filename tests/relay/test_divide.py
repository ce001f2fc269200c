"""The reference of integer division against exact quotients."""

import numpy as np
import pytest

from slipway import relay
from slipway.relay.interpret import interpret


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integers_are_divided_toward_zero(dtype):
    bounds = np.iinfo(dtype)
    values = np.arange(bounds.min, bounds.max + 1)
    lhs, rhs = (m.reshape(-1) for m in np.meshgrid(values, values))
    defined = (rhs != 0) & ~((lhs == bounds.min) & (rhs == -1))
    lhs, rhs = lhs[defined].astype(dtype), rhs[defined].astype(dtype)
    a, b = (relay.var(name, shape=lhs.shape, dtype=dtype) for name in "ab")
    found = interpret(relay.Function([a, b], relay.divide(a, b)), lhs, rhs)
    np.testing.assert_array_equal(found, np.trunc(lhs / rhs.astype("float64")).astype(dtype))
