"""Names of the user's that go into generated code: what cannot be one is refused before."""

import kernels
import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te, tir
from slipway.compiler.emit import build_module
from slipway.errors import CodegenError, SlipwayError
from slipway.target import Target

BAD = ["", "a b", "a\0b", "a\nb", 'a"b', "ü", "1a", "main}", "@x", "\\41", "x" * 2000, "a(", "%s"]


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", BAD)
def test_function_names(name, target):
    with pytest.raises(CodegenError, match="cannot be the name of a function"):
        build_module({name: kernels.vector_add()}, Target(target))


def test_each_generator_takes_what_its_language_can_say():
    for name in ("a.b", "a-b", "$a", "llvm_f"):
        build_module({name: kernels.vector_add()}, Target("llvm"))
    for name in ("a.b", "a-b", "$a"):
        with pytest.raises(CodegenError, match=r"letters, digits and '_'"):
            build_module({name: kernels.vector_add()}, Target("c"))
    for name in ("llvm.sqrt.f32", "llvm"):
        with pytest.raises(CodegenError, match="no 'llvm' in front of a dot"):
            build_module({name: kernels.vector_add()}, Target("llvm"))


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", ["a b", "ü", 'x"'])
def test_names_of_models(name, target):
    x = relay.var("x", shape=(4,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    for executor in (relay.backend.Executor("graph"), relay.backend.Executor("aot")):
        with pytest.raises(CodegenError, match="cannot be the name"):
            relay.build(module, target, mod_name=name, executor=executor)


def call(make, target="llvm"):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: make(a[i]), name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target)


@pytest.mark.parametrize(
    "name", ["", "a b", "llvm.sqrt\0.f32", 'llvm."x"', "ü", 5, "f(", "llvm.x\n"]
)
def test_names_of_called_functions(name):
    with pytest.raises(CodegenError, match="cannot be the name"):
        call(lambda x: tir.call_llvm_pure_intrin("float32", name, x))
    for target in ("llvm", "c"):
        with pytest.raises(CodegenError, match="cannot be the name"):
            call(lambda x: tir.call_pure_extern("float32", name, x), target).compiled.objects  # noqa: B018


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("llvm.bogus", r"there is no intrinsic llvm\.bogus"),
        ("llvm.x86.avx512.bogus", "there is no intrinsic"),
        ("llvm.ctpop.i32", "incorrect return type"),
        ("llvm.pow.f32", "LLVM refuses the kernel main"),
        ("llvm.trap", "incorrect return type"),
        ("llvm.dbg.declare", "the kernel main"),
        ("llvm.wasm.ceil", "the kernel main"),
    ],
)
def test_intrinsics_that_do_not_fit(name, words):
    with pytest.raises(CodegenError, match=words):
        call(lambda x: tir.call_llvm_pure_intrin("float32", name, x))


def test_an_intrinsic_that_fits():
    module = call(lambda x: tir.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", x))
    out = tvm.nd.array(np.zeros(8, "float32"))
    module(tvm.nd.array(np.full(8, 4, "float32")), out)
    np.testing.assert_array_equal(out.numpy(), 2)


@pytest.mark.parametrize(
    "text",
    ["nonsense", "define void @f( {", "BC\0\0", "module asm \"bogus\"", "x" * 5000,
     "define void @slw_check_args() {\n ret void\n}"],
)  # fmt: skip
def test_imported_ir_that_cannot_be_compiled(text):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: tir.call_pure_extern("float32", "f", a[i]), name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].pragma(b.op.axis[0], "import_llvm", text)
    with pytest.raises(SlipwayError):
        tvm.build(schedule, [a, b], "llvm")(None, None)
