"""pragma import_c and import_llvm: functions that a schedule brings along, on both generators."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.contrib import clang
from slipway.errors import CodegenError, ScheduleError, ToolchainError

SOURCE = """
extern "C" int gemv_update(float *cc, float *aa, float *bb, int m, int l, int stride) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < l; ++j) {
      cc[i] += aa[j] * bb[i * stride + j];
    }
  }
  return 0;
}
extern "C" int gemv_reset(float *cc, int m) {
  for (int i = 0; i < m; ++i) {
    cc[i] = 0.0f;
  }
  return 0;
}
"""


def intrin_gemv(m, depth):
    a, b = te.placeholder((depth,), name="a"), te.placeholder((m, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    stride = te.var("s1")
    binds = {
        a: tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1]),
        b: tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[stride, 1]),
        c: tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1]),
    }

    def function(ins, outs):
        (aa, bb), cc = ins, outs[0]
        pointers = (cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r"))

        def update():
            ib = tvm.tir.ir_builder.create()
            sizes = (m, depth, bb.strides[0])
            ib.emit(tvm.tir.call_extern("int32", "gemv_update", *pointers, *sizes))
            return ib.get()

        def reset():
            ib = tvm.tir.ir_builder.create()
            ib.emit(tvm.tir.call_extern("int32", "gemv_reset", pointers[0], m))
            return ib.get()

        return update(), reset(), update()

    return te.decl_tensor_intrin(c.op, function, binds=binds)


def schedule(kind, text):
    """The program of the classic tutorial on tensorize, smaller."""
    n, m, depth, factor = 12, 32, 64, 16
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    x, y = c.op.axis
    yo, yi = s[c].split(y, factor)
    zo, zi = s[c].split(c.op.reduce_axis[0], factor)
    s[c].reorder(x, yo, zo, yi, zi)
    s[c].tensorize(yi, intrin_gemv(factor, factor))
    s[c].pragma(yo, kind, text)
    return s, [a, b, c]


def check(function, array):
    rng = np.random.default_rng(0)
    a, b = rng.random((12, 64), "float32"), rng.random((32, 64), "float32")
    got = array(np.zeros((12, 32), "float32"))
    function(array(a), array(b), got)
    np.testing.assert_allclose(got.numpy(), a @ b.T, rtol=1e-5)


@pytest.mark.parametrize(
    ("target", "kind"), [("llvm", "import_c"), ("c", "import_c"), ("llvm", "import_llvm")]
)
def test_the_tutorial_on_tensorize(target, kind, tmp_path):
    ll = tmp_path / "gemv.ll"
    text = SOURCE if kind == "import_c" else clang.create_llvm(SOURCE, output=ll)
    s, args = schedule(kind, text)
    module = tvm.build(s, args, target, name="gemv")
    check(module["gemv"], tvm.nd.array)
    path = tmp_path / "gemv.so"
    module.export_library(str(path))
    check(tvm.runtime.load_module(str(path))["gemv"], tvm.nd.array)
    if kind == "import_llvm":
        s, args = schedule(kind, str(ll))  # the path of a file does as well
        check(tvm.build(s, args, target, name="gemv")["gemv"], tvm.nd.array)


@pytest.mark.parametrize("device", ["aarch64"], indirect=True)
def test_c_for_another_processor(device):
    s, args = schedule("import_c", SOURCE)
    check(device.build(s, args), device.array)


def test_what_cannot_be_imported_is_an_error():
    with pytest.raises(CodegenError, match=r"import_llvm brings LLVM IR, which C .* cannot hold"):
        tvm.build(*schedule("import_llvm", "define void @f() { ret void }"), "c")
    with pytest.raises(CodegenError, match="LLVM refuses the text of pragma import_llvm"):
        tvm.build(*schedule("import_llvm", "define nonsense"), "llvm")
    with pytest.raises(CodegenError, match=r"names /nowhere/x\.ll, and there is no such file"):
        tvm.build(*schedule("import_llvm", "/nowhere/x.ll"), "llvm")
    with pytest.raises(ToolchainError, match=r"the C of pragma import_c .* failed"):
        tvm.build(*schedule("import_c", "int broken("), "llvm")
    with pytest.raises(ScheduleError, match="needs the source as text"):
        schedule("import_c", None)


def test_an_unknown_pragma_is_an_error():
    with pytest.raises(ScheduleError, match=r"no pragma 'import_lvm'.*Did you mean 'import_llvm'"):
        schedule("import_lvm", "x")


@pytest.mark.parametrize("kind", ["import_c", "import_llvm"])
def test_the_last_definition_of_a_function_counts(kind, tmp_path):
    """The tutorial goes on with its schedule, and brings a second form of its function along."""
    if kind == "import_llvm" and not clang.find_clang(required=False):
        pytest.skip("needs clang")
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: tvm.tir.call_pure_extern("float32", "outer", A[i]), name="B")
    s = te.create_schedule(B.op)
    c = 'extern "C" float '
    texts = (
        f"{c} inner(float x) {{ return x; }} {c} third(float x) {{ return x; }}",
        f"{c} inner(float x); {c} outer(float x) {{ return inner(x) + 1; }}",
        f"{c} inner(float x) {{ return 10 * x; }}",
        f"{c} inner(float x) {{ return 100 * x; }} {c} fourth(float x) {{ return x; }}",
    )
    for text in texts:
        given = text
        if kind == "import_llvm":
            given = clang.create_llvm(text, output=str(tmp_path / "x.ll"))
        s[B].pragma(B.op.axis[0], kind, given)
    f = tvm.build(s, [A, B], "llvm")
    b = tvm.nd.empty((4,))
    f(tvm.nd.array(np.arange(4, dtype="float32")), b)
    assert b.numpy().tolist() == [1, 101, 201, 301]
