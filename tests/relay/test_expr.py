"""Building graphs: types on construction, operators, free variables, depth."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_equal, structural_hash
from slipway.ir.text.serialize import load_json, save_json
from slipway.relay.expr import Call, Constant, Function, Let
from slipway.relay.interpret import interpret
from slipway.relay.visit import free_vars, post_order, rewrite


def test_types_are_known_on_construction():
    x = relay.var("x", shape=(1, 64))
    y = relay.nn.softmax(relay.nn.dense(x, relay.var("w", shape=(10, 64))))
    assert y.checked_type == relay.TensorType((1, 10), "float32")


@pytest.mark.parametrize("name", ["x\0y", "\0"])
def test_no_name_that_ends_early_on_a_device(name):
    """Two of "x" and "x\\0y" were both "x" there, and neither could be set by its name."""
    with pytest.raises(TypeInferenceError, match="NUL character"):
        relay.var(name, shape=(2,))


def test_python_operators_build_calls():
    x = relay.var("x", shape=(2, 3))
    value = interpret((1.0 - x) * 2.0 / x + -x, np.full((2, 3), 4, np.float32))
    np.testing.assert_allclose(value, np.full((2, 3), -5.5))


def test_from_expr_takes_free_variables_in_order_of_first_use():
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    mod = IRModule.from_expr(relay.add(relay.exp(b), a))
    assert [p.name for p in mod["main"].params] == ["b", "a"]


def test_bound_variables_are_not_free():
    x = relay.var("x", shape=(2,))
    v = relay.Var("v", x.type)
    assert free_vars(relay.Let(v, relay.exp(x), v + v)) == [x]


def test_let_if_and_tuples_run():
    x = relay.var("x", shape=(2,))
    flag = relay.var("flag", shape=(), dtype="bool")
    v = relay.Var("v", x.type)
    body = relay.Let(v, x + 1.0, relay.If(flag, relay.Tuple((v, x)), relay.Tuple((x, v))))
    function = relay.Function((x, flag), body)
    first, second = interpret(function, np.zeros(2, np.float32), np.array(True))
    assert (first[0], second[0]) == (1, 0)
    first, second = interpret(function, np.zeros(2, np.float32), np.array(False))
    assert (first[0], second[0]) == (0, 1)


def test_split_result_unpacks():
    x = relay.var("x", shape=(6, 2))
    a, b, c = relay.split(x, 3)
    assert a.checked_type.shape == b.checked_type.shape == c.checked_type.shape == (2, 2)


def test_graphs_deeper_than_the_recursion_limit():
    y = relay.var("x", shape=(2,))
    for _ in range(5000):
        y = relay.nn.relu(y)
    assert len(post_order(y)) == 5001
    assert len(free_vars(y)) == 1
    assert interpret(y, np.array([-1, 2], np.float32)).tolist() == [0, 2]
    assert "%4998" in str(y.as_function())


def test_json_round_trip_keeps_structure():
    x = relay.var("x", shape=(1, 3, 8, 8))
    y = relay.nn.relu(relay.nn.conv2d(x, relay.const(np.ones((4, 3, 3, 3), np.float32)), padding=1))
    function = y.as_function()
    again = load_json(save_json(function))
    assert structural_equal(function, again)
    assert structural_hash(function) == structural_hash(again)
    assert again.body.checked_type == y.checked_type


def test_names_and_spans_do_not_count_in_comparison():
    def build(name, attrs):
        x = relay.var(name, shape=(4,))
        return relay.nn.leaky_relu(x, attrs).as_function()

    assert structural_equal(build("x", 0.1), build("y", 0.1))
    assert not structural_equal(build("x", 0.1), build("x", 0.2))


def test_untyped_variable_has_no_checked_type_until_inference():
    x, w = relay.var("x", shape=(1, 8)), relay.var("w")
    y = relay.nn.dense(x, w, units=4)
    for untyped in (w, relay.exp(w)):
        with pytest.raises(TypeInferenceError, match="InferType"):
            _ = untyped.checked_type
    mod = relay.transform.InferType()(IRModule.from_expr(y))
    assert mod["main"].params[1].checked_type == relay.TensorType((4, 8))
    assert mod["main"].body.checked_type == relay.TensorType((1, 4))


def test_inference_names_the_variable_that_does_not_follow():
    with pytest.raises(TypeInferenceError, match="%w"):
        relay.transform.InferType()(IRModule.from_expr(relay.exp(relay.var("w"))))


def test_shape_must_be_integers():
    with pytest.raises(TypeInferenceError, match="not a shape"):
        relay.var("x", shape=("n", 3))
    with pytest.raises(TypeInferenceError, match="negative"):
        relay.var("x", shape=(-1, 3))


def test_unknown_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match="conv2d"):
        _ = relay.nn.conv2dd
    with pytest.raises(AttributeError, match="transpose"):
        _ = relay.transpos


def test_executor_and_runtime_are_indexable():
    executor = relay.backend.Executor("aot", {"unpacked-api": True})
    assert executor["unpacked-api"] is True
    assert executor["interface-api"] == "packed"
    assert relay.backend.Runtime("crt", {"system-lib": True})["system-lib"] is True
    with pytest.raises(ValueError, match="unpacked-api"):
        relay.backend.Executor("aot", {"unpacked_api": True})


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (1 << 40, None, "1099511627776 does not fit int32, which is the default: give dtype="),
        ([-(1 << 31) - 1], None, "does not fit int32"),
        (300, "uint8", "300 does not fit uint8$"),
        (1 << 70, "int64", "does not fit int64$"),
        (None, "float32", "None is no value"),
        ("a", "float32", "'a' is no number or array of float32"),
        ([[1], [2, 3]], None, "is no number or array of one dtype"),
    ],
)
def test_a_constant_that_cannot_be_is_refused(value, dtype, words):
    with pytest.raises(TypeInferenceError, match=words):
        relay.const(value, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.ones(2), "float32"),
        (np.float64(0.5), "float32"),
        (np.arange(2), "int32"),
        (np.int64(3), "int32"),
        ([1.5, 2], "float32"),
        (3, "int32"),
        (True, "bool"),
        (np.ones(2, "float16"), "float16"),
        (np.ones(2, "uint8"), "uint8"),
    ],
)
def test_a_constant_is_of_no_default_dtype_of_numpys(value, dtype):
    made = relay.const(value)
    assert made.tensor_type.dtype == dtype
    np.testing.assert_array_equal(made.array, value)


def test_a_constant_keeps_the_dtype_that_is_asked_for():
    assert relay.const(np.ones(2), "float64").tensor_type.dtype == "float64"
    assert relay.const(np.array([1 << 40]), "int64").array[0] == 1 << 40
    with pytest.raises(TypeInferenceError, match='give dtype="int64"'):
        relay.const(np.array([1 << 40]))


def branched():
    """A sum that two products use, one of them in a Let, behind a branch."""
    x = relay.var("x", shape=(4,))
    total = relay.add(x, relay.const(np.float32(1)))
    bound = relay.var("bound", shape=(4,))
    chosen = relay.If(relay.const(np.bool_(True)), relay.multiply(total, total), total)
    return Function([x], Let(bound, chosen, relay.multiply(bound, total)))


def test_what_no_rule_changes_stays_the_same_object():
    function = branched()
    seen = []
    assert rewrite(function, seen.append) is function
    assert seen == post_order(function, into_functions=False)


def test_a_shared_expression_is_rewritten_once_and_all_that_holds_it_is_made_anew():
    function = branched()
    made = []

    def rule(expr):
        if isinstance(expr, Call) and expr.op.name == "add":
            made.append(relay.subtract(*expr.args))
            return made[-1]
        return None

    changed = rewrite(function, rule)
    assert len(made) == 1
    kept = [e for e in post_order(changed) if any(e is o for o in post_order(function))]
    assert not any(isinstance(e, (Let, Call, Function)) and e is not made[0] for e in kept)
    assert [e for e in post_order(changed) if isinstance(e, Constant)] == [
        e for e in post_order(function) if isinstance(e, Constant)
    ]
    names = [e.op.name for e in post_order(changed) if isinstance(e, Call)]
    assert names == ["subtract", "multiply", "multiply"]
