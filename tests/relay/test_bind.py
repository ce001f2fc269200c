"""relay.bind: values and expressions in place of parameters and free variables."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import SlipwayError, TypeInferenceError
from slipway.ir.structural import structural_equal
from slipway.relay.interpret import interpret


@pytest.fixture
def leaves():
    return relay.var("x", shape=(2,)), relay.var("y", shape=(2,))


def test_parameters_and_free_variables(leaves):
    x, y = leaves
    total = relay.add(x, y)
    one = relay.const(np.ones(2, "float32"))
    made = relay.bind(relay.Function([x, y], total), {x: one})
    assert structural_equal(made, relay.Function([y], relay.add(one, y)))
    assert structural_equal(relay.bind(total, {y: x}), relay.add(x, x), map_free_vars=True)
    assert relay.bind(total, {}) is total


def test_variables_of_a_bound_expression_become_parameters(leaves):
    x, y = leaves
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    made = relay.bind(relay.Function([x, y], relay.subtract(x, y)), {"x": relay.multiply(a, b)})
    assert [p.name for p in made.params] == ["y", "a", "b"]
    values = [np.array(v, "float32") for v in ([1, 2], [3, 4], [5, 6])]
    np.testing.assert_array_equal(interpret(made, *values), [14, 22])


def test_two_variables_change_places(leaves):
    x, y = leaves
    made = relay.bind(relay.subtract(x, y), {x: y, y: x})
    assert structural_equal(made, relay.subtract(y, x), map_free_vars=True)


def test_numbers_of_numpys_default_dtypes_are_converted(leaves):
    x, y = leaves
    with pytest.warns(UserWarning, match="parameter 'x' is converted from float64 to float32"):
        made = relay.bind(relay.Function([x, y], relay.add(x, y)), {"x": np.array([1.5, 2.5])})
    np.testing.assert_array_equal(interpret(made, np.ones(2, "float32")), [2.5, 3.5])
    large = {"x": np.array([1e300, 0.0])}
    with pytest.raises(SlipwayError, match="parameter 'x' has dtype float32, got float64 with"):
        relay.bind(relay.Function([x, y], relay.add(x, y)), large)


def test_what_cannot_be_bound(leaves):
    x, y = leaves
    with pytest.raises(TypeInferenceError, match="but the value given is"):
        relay.bind(relay.add(x, y), {x: np.zeros(3, "float32")})
    with pytest.raises(TypeInferenceError, match="replaces variables"):
        relay.bind(relay.add(x, y), {3: np.zeros(2, "float32")})
    with pytest.raises(TypeInferenceError, match="takes an expression or a Function"):
        relay.bind(3, {})


def test_numbers_of_python_have_no_dtype_of_their_own(recwarn):
    x, k = relay.var("x", shape=(2,)), relay.var("k", shape=(), dtype="int32")
    func = relay.Function([x, k], relay.add(x, relay.cast(k, "float32")))
    made = relay.bind(func, {"k": 3, "x": [1, 2]})
    np.testing.assert_array_equal(interpret(made), [4, 5])
    assert not recwarn.list
    with pytest.raises(SlipwayError, match=r"got float64 with 0\.5, which that cannot hold"):
        relay.bind(func, {"k": 0.5})
