"""Every expression node, exact intrinsic and dtype, on every CPU code generator, against NumPy."""

import kernels
import numpy as np
import pytest

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.intrin import INTRINSICS
from slipway.ir.ops import cast, const

N, LANES = 64, 8
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
ALL = [*INTS, *FLOATS]
TARGETS = ["llvm -opt-level=1", "llvm -mcpu=x86-64 -opt-level=1", "c -opt-level=1"]


def sample(dtype, seed, small=False, nonzero=False):
    """Return N test values: for integers the whole range, or [-100, 100] where `small`."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, N).astype(bool)
    if dtypes.is_float(dtype):
        values = (rng.standard_normal(N) * 10).astype(dtype)
        values[:6] = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5]
    else:
        low, high = dtypes.int_range(dtype)
        if small:
            low, high = max(low, -100), min(high, 100)
        values = rng.integers(low, high, N, dtype=dtype, endpoint=True)
        if not small:
            values[:2] = [low, high]
    if nonzero:
        values[values == 0] = 3
    return values


class Case:
    """One elementwise function: how it is built, fed and checked."""

    def __init__(self, name, build, inputs, out, reference):
        self.name = name
        self.build, self.inputs, self.out, self.reference = build, inputs, out, reference


CASES: list[Case] = []


def add(name, build, inputs, out, reference):
    CASES.append(Case(name.replace(" ", "_"), build, inputs, out, reference))


def c_div(a, b):
    a, b = a.astype(object), b.astype(object)
    q = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where(b == 0, 0, np.where((a < 0) != (b < 0), -q, q))


def c_mod(a, b):
    return np.where(b == 0, 0, a.astype(object) - c_div(a, b) * b)


def floor_div(a, b):
    return np.where(b == 0, 0, a.astype(object) // np.where(b == 0, 1, b.astype(object)))


def floor_mod(a, b):
    return np.where(b == 0, 0, a.astype(object) % np.where(b == 0, 1, b.astype(object)))


def wrapped(values, dtype):
    """Exact integers as the dtype holds them."""
    bits = dtypes.bits_of(dtype)
    return (values & ((1 << bits) - 1)).astype("uint64").astype(f"uint{bits}").view(dtype)


with np.errstate(all="ignore"):
    for t in ALL:
        a, b = sample(t, 1), sample(t, 2)
        for node, ref in [(E.Add, np.add), (E.Sub, np.subtract), (E.Mul, np.multiply)]:
            add(f"{node.__name__}_{t}", node, [a, b], t, ref)
        for node, ref in [(E.Min, np.minimum), (E.Max, np.maximum)]:
            add(f"{node.__name__}_{t}", node, [a, b], t, ref)
        for node in [E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE]:
            ref = getattr(np, {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal",
                               "GT": "greater", "GE": "greater_equal"}[node.__name__])  # fmt: skip
            low = sample(t, 3, small=True)
            add(f"{node.__name__}_{t}", node, [low, low[::-1].copy()], "bool", ref)
        add(
            f"Select_{t}",
            lambda x, y: E.Select(E.LT(x, y), E.Add(x, y), E.Sub(x, y)),
            [a, b], t, lambda x, y: np.where(x < y, x + y, x - y),
        )  # fmt: skip
        add(
            f"if_then_else_{t}",
            lambda x, y: E.Call(x.dtype, "if_then_else", (E.LT(x, y), E.Max(x, y), y)),
            [a, b], t, lambda x, y: np.where(x < y, np.maximum(x, y), y),
        )  # fmt: skip
    for t in FLOATS:
        a, b = sample(t, 4), sample(t, 5, nonzero=True)
        add(f"Div_{t}", E.Div, [a, b], t, np.divide)
    for t in INTS:
        a, b = sample(t, 4), sample(t, 5, small=True)
        a[2:10] = [*[dtypes.int_range(t)[0]] * 4, 7, dtypes.int_range(t)[1], 0, a[9]]
        b[2:10] = [0, dtypes.int_range(t)[1], 1, 0, 0, 0, 0, 0]
        if dtypes.is_int(t):
            b[[3, 5, 10]] = -1
        add(f"Div_{t}", E.Div, [a, b], t, lambda x, y, t=t: wrapped(c_div(x, y), t))
        add(f"Mod_{t}", E.Mod, [a, b], t, lambda x, y, t=t: wrapped(c_mod(x, y), t))
        for c in {"int8": (0, -1), "int32": (0, -7), "int64": (-1,), "uint32": (0,)}.get(t, ()):
            exact = {E.Div: c_div, E.Mod: c_mod, E.FloorDiv: floor_div, E.FloorMod: floor_mod}
            for node, ref in exact.items():
                add(f"{node.__name__}_{t}_by_{c % 100}",
                    lambda x, c=c, n=node: n(x, const(c, x.dtype)), [a], t,
                    lambda x, c=c, t=t, f=ref: wrapped(f(x, np.full(N, c, t)), t))  # fmt: skip
        add(f"FloorDiv_{t}", E.FloorDiv, [a, b], t, lambda x, y, t=t: wrapped(floor_div(x, y), t))
        add(f"FloorMod_{t}", E.FloorMod, [a, b], t, lambda x, y, t=t: wrapped(floor_mod(x, y), t))
        for c in (8, 7):
            add(f"FloorDiv{c}_{t}", lambda x, c=c: E.FloorDiv(x, const(c, x.dtype)), [a], t,
                lambda x, c=c: x // x.dtype.type(c))  # fmt: skip
            add(f"FloorMod{c}_{t}", lambda x, c=c: E.FloorMod(x, const(c, x.dtype)), [a], t,
                lambda x, c=c: x % x.dtype.type(c))  # fmt: skip
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            add(f"{op}_{t}", lambda x, y, op=op: E.Call(x.dtype, op, (x, y)), [a, b], t,
                getattr(np, op))  # fmt: skip
        add(f"bitwise_not_{t}", lambda x: E.Call(x.dtype, "bitwise_not", (x,)), [a], t, np.invert)
        shifts = np.arange(N).astype(t) % dtypes.bits_of(t)
        for op, ref in [("shift_left", np.left_shift), ("shift_right", np.right_shift)]:
            add(f"{op}_{t}", lambda x, y, op=op: E.Call(x.dtype, op, (x, y)),
                [a, shifts.astype(t)], t, ref)  # fmt: skip
        if t == "int32":
            add("multiply_high", lambda x, y: E.Call(x.dtype, "multiply_high", (x, y)), [a, b], t,
                INTRINSICS["multiply_high"].reference)  # fmt: skip
            add("multiply_high_1234567891",
                lambda x: E.Call(x.dtype, "multiply_high", (x, const(1234567891, x.dtype))), [a], t,
                lambda x: INTRINSICS["multiply_high"].reference(x, 1234567891))  # fmt: skip
        for op in ("popcount", "clz", "abs"):
            add(f"{op}_{t}", lambda x, op=op: E.Call(x.dtype, op, (x,)), [a], t,
                INTRINSICS[op].reference)  # fmt: skip
    for source in [*ALL, "bool"]:
        for target in [*ALL, "bool"]:
            values = sample(source, 6, small=dtypes.is_float(target) or dtypes.is_float(source))
            if dtypes.is_float(source) and dtypes.is_uint(target):
                values = np.abs(values)
            add(f"cast_{source}_{target}", lambda x, target=target: cast(
                x, dtypes.with_lanes(target, x.lanes)), [values], target,
                lambda x, target=target: x.astype(target))  # fmt: skip
    for half in ("float16", "bfloat16"):
        h = sample("float32", 7)
        h[6:12] = [1e-7, 3e-5, 70000.0, -1e-8, 65519.0, 5.96e-8]
        add(f"through_{half}", lambda x, half=half: cast(
            cast(x, dtypes.with_lanes(half, x.lanes)), dtypes.with_lanes("float32", x.lanes)),
            [h], "float32", lambda x, half=half: kernels.round_to(x, half))  # fmt: skip
        add(f"through_{half}_64", lambda x, half=half: cast(
            cast(x, dtypes.with_lanes(half, x.lanes)), dtypes.with_lanes("float64", x.lanes)),
            [h.astype("float64") * 1.000000001], "float64",
            lambda x, half=half: kernels.round_to(x, half))  # fmt: skip
    g = sample("float16", 8)
    g2 = sample("float16", 9, nonzero=True)
    for node, ref in [
        (E.Add, np.add),
        (E.Mul, np.multiply),
        (E.Div, np.divide),
        (E.Max, np.maximum),
    ]:
        add(f"{node.__name__}_float16", node, [g, g2], "float16", ref)
    add("LT_float16", E.LT, [g, g2], "bool", np.less)
    add("sqrt_float16", lambda x: E.Call(x.dtype, "sqrt", (x,)), [np.abs(g)], "float16", np.sqrt)
    for t in FLOATS:
        a, b = sample(t, 10), sample(t, 11)
        big = a.copy()
        big[8:16] = [1e9, -1e9, 2.0**24 + 1, 8388609.0, 0.49999997, -0.49999997, 1e30, -2.5]
        for op in ("floor", "ceil", "trunc", "round", "nearbyint", "fabs"):
            add(f"{op}_{t}", lambda x, op=op: E.Call(x.dtype, op, (x,)), [big], t,
                INTRINSICS[op].reference)  # fmt: skip
        odd = a.copy()
        odd[:3] = [np.inf, -np.inf, np.nan]
        for op in ("isnan", "isinf", "isfinite"):
            add(f"{op}_{t}", lambda x, op=op: E.Call(dtypes.with_lanes("bool", x.lanes), op, (x,)),
                [odd], "bool", INTRINSICS[op].reference)  # fmt: skip
        add(f"sqrt_{t}", lambda x: E.Call(x.dtype, "sqrt", (x,)), [np.abs(a)], t, np.sqrt)
        add(f"copysign_{t}", lambda x, y: E.Call(x.dtype, "copysign", (x, y)), [a, b], t,
            np.copysign)  # fmt: skip
        add(
            f"fma_{t}", lambda x, y: E.Call(x.dtype, "fma", (x, y, x)), [a, b], t, kernels.exact_fma
        )
        add(f"Mod_{t}", E.Mod, [big, sample(t, 12, nonzero=True)], t, np.fmod)
        word = f"int{dtypes.bits_of(t)}"
        add(f"reinterpret_{t}", lambda x, word=word: E.Call(
            dtypes.with_lanes(word, x.lanes), "reinterpret", (x,)), [a], word,
            lambda x, word=word: x.view(word))  # fmt: skip
        nan = a.copy()
        nan[::3] = np.nan
        nan[1:4] = [-np.inf, np.inf, -0.0]
        for node, ref in [(E.Max, np.maximum), (E.Min, np.minimum)]:
            word = f"{node.__name__}_nan_{t}"
            add(f"{word}_left", node, [nan, b], t, ref)
            add(f"{word}_right", node, [b, nan], t, ref)
            add(f"{word}_both", node, [nan, nan[::-1].copy()], t, ref)
            for bound in (0.0, np.inf):
                like = np.dtype(t).type(bound)
                name = f"{word}_{bound}".replace(".", "p")
                add(f"{name}_first", lambda x, n=node, c=bound: n(const(c, x.dtype), x), [nan], t,
                    lambda x, f=ref, c=like: f(c, x))  # fmt: skip
                add(f"{name}_second", lambda x, n=node, c=bound: n(x, const(c, x.dtype)), [nan], t,
                    lambda x, f=ref, c=like: f(x, c))  # fmt: skip
    p, q = sample("bool", 13), sample("bool", 14)
    add("And", E.And, [p, q], "bool", np.logical_and)
    add("Or", E.Or, [p, q], "bool", np.logical_or)
    add("Not", E.Not, [p], "bool", np.logical_not)
    x32, y32 = sample("int32", 15), sample("int32", 16)
    for q_bits, s_bits in ((31, 0), (31, -7), (31, 3), (20, 25)):
        add(f"q_multiply_shift_{q_bits}_{s_bits + 100}", lambda x, y, q=q_bits, s=s_bits: E.Call(
            x.dtype, "q_multiply_shift", (x, y, const(q, x.dtype), const(s, x.dtype))),
            [x32, y32 >> 8 if s_bits > 0 else y32], "int32",
            lambda x, y, q=q_bits, s=s_bits: INTRINSICS["q_multiply_shift"].reference(x, y, q, s),
            )  # fmt: skip


def function(case):
    """out0 by single elements, out1 by vectors."""
    types = [str(v.dtype) for v in case.inputs]
    buffers = [decl_buffer((N,), t, f"in{k}") for k, t in enumerate(types)]
    outs = [decl_buffer((N,), case.out, f"out{k}") for k in range(2)]
    loops = []
    for out, lanes in zip(outs, (1, LANES), strict=True):
        i = E.Var("i")
        at = kernels.ramp(i * lanes, lanes) if lanes > 1 else i
        value = case.build(*(b[at] for b in buffers))
        loops.append(kernels.loop(i, N // lanes, S.BufferStore(out, value, (at,))))
    return kernels.prim_func(case.name, [*buffers, *outs], S.SeqStmt(tuple(loops)))


@pytest.mark.parametrize("target", TARGETS)
def test_all_cases(target):
    functions, _, _ = kernels.load({case.name: function(case) for case in CASES}, target)
    wrong = []
    for case in CASES:
        outs = [np.zeros(N, case.out) for _ in range(2)]
        functions[case.name](*case.inputs, *outs)
        with np.errstate(all="ignore"):
            want = np.asarray(case.reference(*case.inputs)).astype(case.out)
        for out, lanes in zip(outs, (1, LANES), strict=True):
            same = (out == want) | ((out != out) & (want != want))
            if not same.all():
                k = int(np.argmin(same))
                arguments = [v[k] for v in case.inputs]
                wrong.append(f"{case.name} x{lanes}: f({arguments}) = {out[k]}, not {want[k]}")
    assert not wrong, "\n".join(wrong)
