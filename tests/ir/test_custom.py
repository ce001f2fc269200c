"""Intrinsics of the user's own: declared, lowered by rules, run on both generators."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi
from slipway.errors import CodegenError, LoweringError
from slipway.ir import custom


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    monkeypatch.setattr(custom, "_RULES", {})
    monkeypatch.setattr(custom, "INTRINSICS", dict(custom.INTRINSICS))


def program(formula):
    a = te.placeholder((9,), name="A")
    b = te.compute((9,), lambda i: formula(a[i]), name="B")
    return te.create_schedule(b.op), [a, b]


def result(formula, target):
    x = np.linspace(1, 3, 9).astype("float32")
    got = tvm.nd.array(np.zeros(9, "float32"))
    s, args = program(formula)
    s[args[1]].vectorize(args[1].op.axis[0])
    tvm.build(s, args, target)(tvm.nd.array(x), got)
    return x, got.numpy()


def mylog(x):
    return tvm.tir.call_intrin(x.dtype, "tir.mylog", x)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_intrinsic_of_ones_own(target):
    tvm.ir.register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)

    @tvm.ir.register_intrin_lowering("tir.mylog", target=target)
    def rule(call):
        assert isinstance(call, tvm.tir.Call)
        return te.log(call.args[0]) * 2.0

    x, got = result(mylog, target)
    np.testing.assert_allclose(got, 2 * np.log(x), rtol=1e-6)


def test_a_rule_for_every_target_and_a_better_one():
    tvm.ir.register_intrin_lowering("tir.exp", f=lambda call: call.args[0])
    tvm.ir.register_intrin_lowering("tir.exp", target="c", f=lambda call: call.args[0] * 3.0)
    for target, factor in (("llvm", 1), ("c", 3)):
        x, got = result(te.exp, target)
        np.testing.assert_allclose(got, x * factor, rtol=1e-6)
    tvm.ir.register_intrin_lowering("tir.exp", level=99, f=lambda call: call.args[0] + 1.0)
    tvm.ir.register_intrin_lowering("tir.exp", level=5, f=lambda call: call.args[0] - 1.0)
    x, got = result(te.exp, "llvm")
    np.testing.assert_allclose(got, x + 1, rtol=1e-6)


def test_wrong_rules_are_errors():
    tvm.ir.register_intrin_lowering("tir.mylog", f=lambda call: te.const(1, "int32"))
    with pytest.raises(LoweringError, match="must return an expression of type float32"):
        result(mylog, "llvm")
    with pytest.raises(LoweringError, match="registered already"):
        tvm.ir.register_intrin_lowering("tir.mylog", f=lambda call: None)
    with pytest.raises(LoweringError, match="only TCallEffectKind"):
        tvm.ir.register_op_attr("nn.conv2d", "TOpPattern", 1)


@pytest.mark.parametrize(
    ("name", "intrinsic", "count"),
    [("__expf", "exp", 1), ("logf", "log", 1), ("__powf", "pow", 2), ("fabsf", "fabs", 1)],
)
def test_functions_of_cuda_are_intrinsics_in_its_kernels(name, intrinsic, count):
    def kernel(formula):
        s, args = program(formula)
        stage = s[args[1]]
        stage.bind(stage.fuse(*stage.op.axis), te.thread_axis("threadIdx.x"))
        return tvm.build(s, args, "cuda", name="f").imported_modules[0].get_source()

    by_name = kernel(lambda x: tvm.tir.call_pure_extern("float32", name, *[x] * count))
    assert by_name == kernel(lambda x: tvm.tir.call_intrin("float32", intrinsic, *[x] * count))
    custom.register_intrin_lowering(
        "tir.sigmoid", "cuda", f=lambda c: tvm.tir.call_pure_extern("float32", name, c.args[0])
    )
    if count == 1:
        assert by_name == kernel(tvm.te.sigmoid)
    with pytest.raises(CodegenError, match="cannot call 'tanpif'"):
        kernel(lambda x: tvm.tir.call_pure_extern("float32", "tanpif", x))


def test_the_operator_of_a_call_has_a_name_as_scripts_read_it():
    x = te.var("x", "float32")
    call = te.exp(x)
    assert (call.op, call.op.name) == ("exp", "tir.exp")
    assert tvm.ir.load_json(tvm.ir.save_json(call)).op.name == "tir.exp"
    assert topi.tanh(te.placeholder((4,))).op.body[0].op.name == "tir.tanh"
