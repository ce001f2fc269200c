"""What scripts of TVM 0.6 write, where it is written otherwise today."""

import ast

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te, tir


def test_functions_made_of_statements():
    """ir_builder with for_type, vload and vstore, MakeAPI, and build of a list of functions."""

    def adding(amount, name):
        b = tir.decl_buffer((8,), "float32", name="b")
        ib = tvm.ir_builder.create()
        with ib.for_range(0, 4, "i", for_type="parallel") as i:
            value = b.vload(i * 2, "float32x2") + tir.const(amount, "float32x2")
            ib.emit(b.vstore(i * 2, value))
        return tvm.ir_pass.MakeAPI(ib.get(), name, [b], 0, True)

    built = tvm.build([adding(1, "one"), adding(2, "two")], "llvm")
    x = tvm.nd.array(np.zeros(8, "float32"), ctx=tvm.cpu(0))
    built["one"](x)
    built["two"](x)
    np.testing.assert_array_equal(x.numpy(), np.full(8, 3))


def test_modules_of_that_time(tmp_path):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    inner = s[b].split(b.op.axis[0], 2)[1]
    assert isinstance(s[b].relations[0], tvm.schedule.Split)
    s[b].vectorize(inner)
    marks = s[b].iter_var_attrs[inner]
    assert marks.iter_type == tvm.schedule.IterVar.Vectorized
    tvm.build(s, [a, b], "llvm", name="f").export_library(tmp_path / "f.so")
    loaded = tvm.module.load(tmp_path / "f.so")
    out = tvm.nd.empty((4,), "float32", ctx=tvm.cpu(0))
    loaded["f"](tvm.nd.array(np.arange(4, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), np.arange(4) + 1)
    assert isinstance(a[0] + 1, tvm.expr.Expr)
    assert tvm.codegen.llvm_version_major() == tvm.target.codegen.llvm_version_major() >= 14
    assert tvm.target.rocm().target_name == "rocm"


def test_operators_between_operands_in_old_text():
    module = tvm.parser.fromtext(
        """#[version = "0.0.5"]
        def @main(%a: Tensor[(2,), float32], %b: Tensor[(2,), float32]) {
          %0 = %a + %b * %a - 2f;
          %0 / %b < %a
        }"""
    )
    a, b = np.array([3.0, 1.0], "float32"), np.array([2.0, 4.0], "float32")
    run = relay.create_executor("debug", mod=module, ctx=tvm.cpu(0)).evaluate()
    np.testing.assert_array_equal(run(a, b).numpy(), (a + b * a - 2) / b < a)


def test_shapes_and_text_of_the_runtime():
    assert tvm.runtime.ShapeTuple([1, 2]) == [1, 2] == list(tvm.runtime.ShapeTuple((1, 2)))
    assert tvm._ffi.base.py_str(b"text") == "text"
    assert tvm.runtime.container.ADT(3, [1, 2]).tag == 3


def test_what_scripts_read_of_operations_loops_and_expressions():
    a = te.placeholder((4, 4), name="a")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="b", attrs={"hello": 1, "arr": [2, 3]})
    assert "hello" in b.op.attrs
    assert (b.op.attrs["hello"], b.op.attrs.keys()) == (1, ["arr", "hello"])
    s = te.create_schedule(b.op)
    s[b].pragma(b.op.axis[0], "auto_unroll_max_step", 4)
    assert [k.value for k in s[b].iter_var_attrs[b.op.axis[0]].pragma_keys] == [
        "auto_unroll_max_step"
    ]
    n = te.var("n")
    assert tvm.arith.Analyzer().simplify(n + n - n) is n
    both = tir.SeqStmt((tir.Evaluate(0), tir.Evaluate(1)))
    assert (len(both), both[1].value) == (2, 1)
    assert tvm.target.vta().kind.name == "ext_dev"


def test_a_tensor_without_dimensions_is_a_tensor_outside_of_a_compute():
    scalar, matrix = te.placeholder((), name="s"), te.placeholder((3, 2), name="m")
    n = te.var("n")
    for whole in (n - matrix, matrix[0, 0] * matrix, 2 / scalar, matrix[0, 1] - scalar):
        assert isinstance(whole, te.Tensor)
    inside = te.compute((3, 2), lambda i, j: matrix[i, j] - scalar)
    assert inside.op.input_tensors == (matrix, scalar)
    data = np.arange(6, dtype="float32").reshape(3, 2)
    out = tvm.nd.empty((3, 2))
    s = te.create_schedule((n - matrix).op)
    tvm.build(s, [n, matrix, s.outputs[0].output(0)])(7, tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), 7 - data)


def test_unsigned_constants_and_blocks_of_two_parts():
    """UIntImm is an IntImm, and a sequence of statements has a first one and a rest."""
    assert isinstance(tir.const(3, "uint8"), (tvm.expr.UIntImm, float))
    parts = [tir.Evaluate(tir.call_extern("int32", name)) for name in "abc"]
    block = tir.SeqStmt(tuple(parts))
    assert block.first is parts[0]
    assert block.rest.first is parts[1]
    assert block.rest.rest is parts[2]


def test_the_loops_of_a_schedule_before_any_pass_of_loops():
    a = te.placeholder((64, 8), name="a")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((64,), lambda i: te.sum(a[i, k], axis=k), name="b")
    s = te.create_schedule(b.op)
    cache = s.cache_read(a, "shared", [b])
    s[b].vectorize(s[b].split(b.op.axis[0], 8)[1])
    made = tvm.driver.build_module.form_irmodule(s, [a, b], "main", binds=None)
    text = str(tvm.driver.build_module.schedule_to_module(s, [a, b])["main"])
    assert str(made["main"]) == text
    assert cache.op.name in text
    assert "vectorized" in text
    flat = tvm.tir.transform.StorageFlatten(64)(made)
    tvm.build(tvm.tir.transform.VectorizeLoop()(flat), "llvm")


def test_register_object_names_a_node_class():
    from slipway.ir.expr import PrimExpr
    from slipway.ir.node import node

    @tvm.register_object("test.Marked")
    @node
    class Marked(PrimExpr):
        dtype: str
        what: str

    again = tvm.load_json(tvm.save_json(Marked("int32", "x")))
    assert type(again) is Marked
    assert again.what == "x"

    @tvm.register_object
    class Plain:
        pass

    assert isinstance(Plain(), Plain)


def test_loops_as_te_makes_them():
    a = te.placeholder((6,), name="a")
    b = te.compute((6,), lambda i: a[i] * 2.0, name="b")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], 3)[1])
    module = tvm.driver.build_module.schedule_to_module(s, [a, b], "twice", None)
    assert [var.name_hint for var in module.get_global_vars()] == ["twice"]
    assert "vectorize" in str(module)  # before any pass
    out = tvm.nd.empty((6,))
    tvm.build(module)(tvm.nd.array(np.arange(6, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(6))
    with pytest.raises(tvm.TVMError, match="takes a te schedule, not"):
        tvm.driver.build_module.schedule_to_module(module, [a, b])


@pytest.mark.parametrize("text", ["vadd", "it's", 'a "name"', "two\nlines", "\u00e9"])
def test_texts_are_written_in_double_quotes(text):
    written = str(tir.call_packed(text, 1).args[0])
    assert written[0] == written[-1] == '"'
    assert ast.literal_eval(written) == text
