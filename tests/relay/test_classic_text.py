"""Texts of graphs as classic TVM wrote and read them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.ir.structural import structural_equal


def value(text):
    found = tvm.parser.parse_expr(text)
    return found.array.item(), found.array.dtype.name


@pytest.mark.parametrize(
    ("text", "number", "dtype"),
    [
        ("7", 7, "int32"), ("-42i16", -42, "int16"), ("-42i", -42, "int32"), ("5u8", 5, "uint8"),
        ("2147483648", 2**31, "int64"), ("-2147483648", -(2**31), "int32"), ("--10", 10, "int32"),
        ("1E-1f", 0.1, "float32"), ("1.0E+1f16", 10, "float16"), ("3f64", 3, "float64"),
        ("-05", -5, "int32"), ("2float64", 2, "float64"), ("-inff", -np.inf, "float32"),
    ],
)  # fmt: skip
def test_numbers(text, number, dtype):
    found, kind = value(text)
    assert kind == dtype
    assert np.float32(found) == np.float32(number)


@pytest.mark.parametrize("text", ["2147483648i32", "32768i16", "65520f16", "3.40283e+38f32", "1q"])
def test_numbers_that_do_not_fit(text):
    with pytest.raises(tvm.error.DiagnosticError, match="line 1, column"):
        tvm.parser.parse_expr(text)


def test_operators_bind_as_in_python():
    grouped = tvm.parser.parse_expr("free_var %x: int32; (%x * 2) - ((-%x) + 1)")
    plain = tvm.parser.parse_expr("free_var %x: int32; %x * 2 - (-%x + 1)")
    assert structural_equal(plain, grouped, map_free_vars=True)
    assert grouped.op.name == "subtract"
    comparison = tvm.parser.parse_expr("True == (1 < 2)")
    assert structural_equal(tvm.parser.parse_expr("True == 1 < 2"), comparison)


def test_one_value_in_parentheses_is_no_tuple():
    assert isinstance(tvm.parser.parse_expr("(1)"), relay.Constant)
    assert isinstance(tvm.parser.parse_expr("(1,)"), relay.Tuple)


def test_comments_may_be_nested_and_end_with_a_line():
    text = """
    // a comment "with a quote
    /* one /* in another */ still */ fn (%a//b: float32) { /* \n */ exp(%a//b) // the end
    }"""
    assert tvm.parser.parse_expr(text).body.op.name == "exp"
    with pytest.raises(tvm.error.DiagnosticError, match="line 2, column 3: this comment"):
        tvm.parser.parse_expr("1 +\n  /* 2")


def test_types_of_variables():
    text = """
    free_var %x: Tensor[(2, 3), float32];
    free_var %n: int32;
    let %y: Tensor[(2, 3), float32] = exp(%x);
    let %z: _ = (%y, %n);
    abs(%n);
    let %f: fn (float32) -> float32 = fn (%a: float32) -> float32 { -%a };
    (%z.0, %f(1f))"""
    built = relay.transform.InferType()(tvm.IRModule.from_expr(tvm.parser.parse_expr(text)))
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    run = relay.create_executor("graph", mod=built).evaluate()
    found = [v.numpy() for v in run(x, np.int32(3))]
    np.testing.assert_allclose(found[0], np.exp(x), rtol=1e-5)
    assert found[1] == -1


def test_astext_is_read_again_with_constants_and_free_variables():
    weight = relay.const(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = relay.var("x", shape=(2, 4))
    y = relay.nn.dense(x, weight)
    assert structural_equal(tvm.parser.fromtext(y.astext()), y, map_free_vars=True)
    mod = tvm.IRModule.from_expr(y)
    z = relay.var("z", shape=(2, 4))
    mod["other"] = relay.Function([z], relay.nn.dense(z, weight) + relay.const(np.ones(3)))
    again = relay.transform.InferType()(tvm.parser.fromtext(mod.astext()))
    assert structural_equal(again, relay.transform.InferType()(mod))
    assert "metadata" not in mod.astext(show_meta_data=False)
    for expr in (relay.GlobalVar("main"), relay.op.get("nn.relu")):
        assert tvm.parser.parse_expr(expr.astext()).name == expr.name


def test_functions_and_constants_from_outside():
    base = tvm.parser.fromtext("def @f(%y: Tensor[(2, 3), float32]) { negative(%y) }")
    table = {"relay.Constant": [relay.const(np.full((2, 3), 2, np.float32))]}
    mod = tvm.parser.parse(
        "def @main(%x: Tensor[(2, 3), float32]) { add(@f(%x), meta[relay.Constant][0]) }",
        "from_string", base, table,
    )  # fmt: skip
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(
        relay.create_executor("graph", mod=mod).evaluate()(x).numpy(), 2 - x
    )


def test_calls_of_functions_of_the_module_are_typed_in_any_order():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x], relay.exp(relay.GlobalVar("twice")(x)))
    mod["twice"] = relay.Function([y], relay.GlobalVar("half")(y) * relay.const(4.0))
    z = relay.var("z", shape=(2, 3))
    mod["half"] = relay.Function([z], z / relay.const(2.0))
    typed = relay.transform.InferType()(mod)
    assert typed["main"].checked_type.ret_type == relay.TensorType((2, 3))
    assert relay.transform.InferType()(typed) is typed
    folded = relay.transform.FoldConstant()(mod)
    assert folded["main"].body.checked_type == relay.TensorType((2, 3))
    data = np.float32([[0, 1, 2], [-1, -2, 0.5]])
    got = relay.create_executor("graph", mod=mod).evaluate()(data).numpy()
    np.testing.assert_allclose(got, np.exp(2 * data), rtol=1e-5)


def test_functions_that_call_each_other_without_types_are_refused():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x], relay.GlobalVar("other")(x))
    mod["other"] = relay.Function([y], relay.GlobalVar("main")(y))
    with pytest.raises(tvm.error.DiagnosticError, match="a call in the function does not follow"):
        relay.transform.InferType()(mod)
    mod["other"] = relay.Function([y], relay.GlobalVar("main")(y), relay.TensorType((2,)))
    typed = relay.transform.InferType()(mod)
    assert typed["main"].checked_type.ret_type == relay.TensorType((2,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("let x = 1; ()", r"expected a variable as %x, found 'x'"),
        ("let @x = 1; ()", r"expected a variable as %x, found '@x'"),
        ("if (True) { let %x = (); () } else { %x }", r"%x is not defined"),
        ("def @f() { 1 } def @f() { 2 }", r"two functions called @f"),
        ("type List[A] { Nil }", r"use tuples"),
        ("free_var %r: ref(int32); %r", r"references are not there"),
        ("fn [A](%x: A) { %x }", r"no type parameters"),
        ("meta[relay.Call][0]", r"meta\[relay.Constant\]"),
    ],
)
def test_errors(text, words):
    with pytest.raises(tvm.error.DiagnosticError, match=words):
        tvm.parser.parse(text, "graph.txt")
    with pytest.raises(tvm.TVMError, match=r"relay text graph\.txt, line 1, column"):
        tvm.parser.parse(text, "graph.txt")


def test_lets_without_types_have_those_of_their_values():
    x, data = relay.Var("x"), np.arange(6, dtype=np.float32).reshape(2, 3)
    body = relay.Let(x, relay.Tuple([relay.const(data), relay.const(-data)]), x)
    run = relay.create_executor("graph").evaluate(relay.Function([], relay.stack(body, axis=1)))
    np.testing.assert_array_equal(run().numpy(), np.stack([data, -data], axis=1))
    y = relay.Var("y")
    typed = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Let(y, relay.const(data), relay.exp(y)))
    )
    assert typed["main"].checked_type.ret_type == relay.TensorType((2, 3))


def test_attributes_of_functions_made_as_nodes():
    attrs = tvm.ir.make_node("DictAttrs", output_tensor_names=["first", "second"], Owner="me")
    x = relay.var("x", shape=(4,))
    main = relay.Function([x], relay.Tuple([relay.exp(x), relay.abs(x)]), attrs=attrs)
    assert main.attrs["Owner"] == attrs.Owner == "me"
    built = relay.build(tvm.IRModule.from_expr(main), "llvm")
    graph = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu(0)))
    graph.run(x=np.full(4, -1, np.float32))
    np.testing.assert_array_equal(graph.get_output("second").numpy(), np.ones(4, np.float32))
    with pytest.raises(NotImplementedError, match="of other nodes call the class"):
        tvm.ir.make_node("attrs.TestAttrs", name="a")
