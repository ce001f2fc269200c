"""Elementary functions, and an intrinsic of one's own with a rule that says how to compute it."""

import math

import numpy as np

import slipway as tvm
from slipway import te

n = 1000
x = np.linspace(0.05, 0.95, n).astype("float32")
A = te.placeholder((n,), name="A")

CASES = {
    "exp": (te.exp, np.exp),
    "log": (te.log, np.log),
    "tanh": (te.tanh, np.tanh),
    "sigmoid": (te.sigmoid, lambda v: 1 / (1 + np.exp(-v))),
    "erf": (te.erf, np.vectorize(math.erf)),
    "sqrt": (te.sqrt, np.sqrt),
    "sin": (te.sin, np.sin),
    "cos": (te.cos, np.cos),
    "floor": (te.floor, np.floor),
    "round": (te.round, np.round),
}
for name, (function, reference) in CASES.items():
    B = te.compute((n,), lambda i, f=function: f(A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])  # the functions are generated code: they run in vector lanes
    func = tvm.build(s, [A, B], target="llvm")
    out = tvm.nd.array(np.zeros(n, "float32"))
    func(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), reference(x), rtol=2e-6, atol=1e-7, err_msg=name)
    print(f"{name:8} largest error {np.abs(out.numpy() - reference(x)).max():.1e}")

# An intrinsic of one's own: declared, given a rule for a kind of target, and called by its name.
tvm.ir.register_op_attr("tir.softplus", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)


@tvm.ir.register_intrin_lowering("tir.softplus", target="llvm")
def softplus(call):
    return te.log1p(te.exp(call.args[0]))


B = te.compute((n,), lambda i: tvm.tir.call_intrin("float32", "tir.softplus", A[i]), name="B")
s = te.create_schedule(B.op)
s[B].vectorize(B.op.axis[0])
out = tvm.nd.array(np.zeros(n, "float32"))
tvm.build(s, [A, B], target="llvm")(tvm.nd.array(x), out)
np.testing.assert_allclose(out.numpy(), np.log1p(np.exp(x)), rtol=2e-6)
