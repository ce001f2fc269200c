"""The elementary functions keep their stated error bounds, at every special value too."""

import ctypes
import ctypes.util

import kernels
import numpy as np
import pytest

import slipway as tvm
from slipway import dtypes, te
from slipway.codegen.math import ulp_bound
from slipway.codegen.math.table import functions
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.intrin import INTRINSICS

N, VECTOR_BITS = 1 << 14, 512
TARGETS = ["llvm", "llvm -mcpu=x86-64", "c"]
TWO_ARGUMENTS = ("pow", "atan2")
# Where most samples are taken from; a quarter are any bit pattern at all.
RANGES = {
    "exp": (-110, 95), "exp2": (-155, 130), "exp10": (-50, 40), "expm1": (-50, 95),
    "sinh": (-95, 95), "cosh": (-95, 95), "sigmoid": (-110, 110), "tanh": (-20, 20),
    "erf": (-7, 7), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1),
    "sin": (-1e5, 1e5), "cos": (-1e5, 1e5), "tan": (-1e5, 1e5),
}  # fmt: skip
REFERENCE = {
    "exp10": lambda x: np.power(np.longdouble(10), x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": INTRINSICS["erf"].reference,
    "pow": np.power, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


def samples(op, dtype, seed):
    rng = np.random.default_rng(seed)
    bits = 32 if dtype == "float32" else 64
    anything = rng.integers(0, 2**bits, N // 4, dtype=f"uint{bits}").view(dtype)
    low, high = RANGES.get(op, (-1000, 1000))
    even = rng.uniform(low, high, N // 2).astype(dtype)
    small = rng.uniform(-2, 2, N // 4).astype(dtype)
    x = np.concatenate([anything, even, small])
    x[:12] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-30, -1e-30]
    if op in ("sin", "cos", "tan"):
        x = np.where(np.abs(x) < (4e8 if bits == 32 else 1.6e6), x, np.fmod(x, 1000)).astype(dtype)
    return x


def function(op, dtype, length=N):
    count = 2 if op in TWO_ARGUMENTS else 1
    buffers = [decl_buffer((length,), dtype, name) for name in "xyz"[: count + 1]]
    i = E.Var("i")
    lanes = VECTOR_BITS // dtypes.bits_of(dtype)
    at = kernels.ramp(i * lanes, lanes)
    value = E.Call(buffers[-1][at].dtype, op, tuple(b[at] for b in buffers[:-1]))
    body = S.BufferStore(buffers[-1], value, (at,))
    return kernels.prim_func(op, buffers, kernels.loop(i, length // lanes, body))


def error_in_ulp(op, got, args):
    """Return (largest error, where) over finite results; special values must be equal."""
    wide = [a.astype(np.longdouble) for a in args]
    if op == "erf":
        exact = REFERENCE[op](args[0].astype("float64")).astype(np.longdouble)
    else:
        exact = REFERENCE.get(op, getattr(np, op, None))(*wide)
    rounded = exact.astype(got.dtype)
    finite = np.isfinite(rounded) & np.isfinite(got)
    special = (np.isnan(rounded) & np.isnan(got)) | (rounded == got)
    wrong = np.nonzero(~finite & ~special)[0]
    assert not len(wrong), [(a[wrong[0]], got[wrong[0]], rounded[wrong[0]]) for a in args]
    error = np.abs(got.astype(np.longdouble) - exact) / np.spacing(np.abs(rounded))
    error = np.where(finite, error, 0)
    return float(error.max()), [float(a[int(error.argmax())]) for a in args]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_bounds(target, dtype):
    compiled, _, _ = kernels.load({op: function(op, dtype) for op in functions()}, target)
    over = []
    # np.longdouble has 64 bits of fraction here: enough to judge float64 to about 0.001 ulp.
    for op in functions():
        with np.errstate(all="ignore"):
            args = [samples(op, dtype, k) for k in range(2 if op in TWO_ARGUMENTS else 1)]
            if op == "pow":
                args[1] = (args[1] / 100).astype(dtype)
                args[1][12::3] = np.rint(args[1][12::3])
            out = np.zeros(N, dtype)
            compiled[op](*args, out)
            worst, where = error_in_ulp(op, out, args)
        slack = 2.0 if op == "erf" and dtype == "float64" else 0.01  # the reference's own error
        if worst > ulp_bound(op, dtype) + slack:
            over.append(f"{op}({where}) is off by {worst:.3f} ulp, not {ulp_bound(op, dtype)}")
    assert not over, "\n".join(over)


@pytest.mark.parametrize(
    ("target", "bound"), [("llvm", 4.5), ("llvm -mcpu=x86-64", 4.5), ("llvm -strict=1", 2.5)]
)
def test_one_plus_erf_is_one_quotient_unless_strict(target, bound):
    """As exact as a sum of about 1 needs, in units of 2^-24; below 0 more than the sum itself."""
    buffers = [decl_buffer((N,), "float32", name) for name in "xy"]
    i = E.Var("i")
    at = kernels.ramp(i * 16, 16)
    one = E.Broadcast(E.FloatImm("float32", 1.0), 16)
    value = E.Add(one, E.Call("float32x16", "erf", (buffers[0][at],)))
    body = S.BufferStore(buffers[1], value, (at,))
    func = kernels.prim_func("f", buffers, kernels.loop(i, N // 16, body))
    compiled, _, _ = kernels.load({"f": func}, target)
    x = np.linspace(-4.5, 4.5, N).astype("float32")
    x[:9] = [0.0, -0.0, 4.0, -4.0, np.inf, -np.inf, 1e30, -1e30, np.nan]
    out = np.zeros(N, "float32")
    compiled["f"](x, out)
    assert out[:8].tolist() == [1, 1, 2, 0, 2, 0, 2, 0]
    assert np.isnan(out[8])
    error = np.abs(out.astype("float64") - (1 + REFERENCE["erf"](x.astype("float64"))))[9:]
    assert error.max() < bound * 2.0**-24
    assert (out[9:] >= 0).all()
    if "strict" not in target:
        assert error[x[9:] < -2.5].max() < 0.75 * 2.0**-24


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("exponent", [0.5, -0.5, -1.0, 2.0, 3.0])
def test_constant_powers_are_those_of_c(target, exponent):
    """Roots, inverses and products have C's signs, zeros and infinities; NumPy's are sqrt's."""
    c_pow = ctypes.CDLL(ctypes.util.find_library("m")).pow
    c_pow.restype, c_pow.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    for dtype, tolerance in (("float32", 2e-7), ("float64", 4e-16)):
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 4.0, -4.0, 1e-45, 1e38, 3e-39]
        drawn = np.random.default_rng(0).random(52) * 10
        x = np.concatenate([edges, drawn]).astype(dtype)
        a = te.placeholder(x.shape, dtype, name="a")
        b = te.compute(x.shape, lambda i, a=a, t=dtype: te.power(a[i], te.const(exponent, t)))
        schedule = te.create_schedule(b.op)
        schedule[b].vectorize(schedule[b].split(b.op.axis[0], 8)[1])
        found = tvm.nd.empty(x.shape, dtype)
        tvm.build(schedule, [a, b], target)(tvm.nd.array(x), found)
        with np.errstate(all="ignore"):
            wanted = np.array([c_pow(float(value), exponent) for value in x]).astype(dtype)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=1e-45)
        signs = np.signbit(found.numpy()) == np.signbit(wanted)
        assert (signs | np.isnan(wanted)).all()
