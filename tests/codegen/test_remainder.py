"""The remainder of floats is exact, in vectors too, wherever the quotient may have been rounded."""

import kernels
import numpy as np
import pytest

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer

N = 1 << 13
TARGETS = ["llvm", "llvm -mcpu=x86-64", "c"]


def quotients_near_whole_numbers(dtype, rng):
    """Multiples of y, rounded, and the numbers beside them; up to what one step takes."""
    digits = 24 if dtype == "float32" else 53
    y = np.ldexp(rng.uniform(1, 2, N), rng.integers(-20, 20, N)).astype(dtype)
    k = np.floor(np.ldexp(rng.uniform(0.5, 1, N), rng.integers(0, digits, N))).astype(dtype)
    x = k * y
    for step, toward in ((1, np.inf), (2, -np.inf), (3, 0)):
        x[step::4] = np.nextafter(x[step::4], dtype(toward))
    return x * rng.choice([-1, 1], N).astype(dtype), y * rng.choice([-1, 1], N).astype(dtype)


def any_bits(dtype, rng):
    word = f"uint{np.dtype(dtype).itemsize * 8}"
    return [rng.integers(0, np.iinfo(word).max, N, word).view(dtype) for _ in range(2)]


def denormal(dtype, rng):
    smallest = np.nextafter(dtype(0), dtype(1))
    return [rng.integers(1, 1 << 12, N).astype(dtype) * smallest for _ in range(2)]


def special(dtype, rng):
    """Mostly small quotients, with one odd pair in some vectors."""
    x, y = (rng.uniform(-9, 9, N).astype(dtype) for _ in range(2))
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-30, 6.0, -6.0]
    pairs = np.array([(a, b) for a in odd for b in (*odd, 3.0)], dtype)
    at = np.arange(len(pairs)) * 37
    x[at], y[at] = pairs.T
    return x, y


def function(dtype):
    """out0 by single elements, out1 by vectors."""
    buffers = [decl_buffer((N,), dtype, name) for name in ("x", "y", "out0", "out1")]
    loops = []
    for out, lanes in zip(buffers[2:], (1, 512 // dtypes.bits_of(dtype)), strict=True):
        i = E.Var("i")
        at = kernels.ramp(i * lanes, lanes) if lanes > 1 else i
        store = S.BufferStore(out, E.Mod(buffers[0][at], buffers[1][at]), (at,))
        loops.append(kernels.loop(i, N // lanes, store))
    return kernels.prim_func("remainder", buffers, S.SeqStmt(tuple(loops)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype, target):
    functions, _, _ = kernels.load({"remainder": function(np.dtype(dtype).name)}, target)
    for seed, draw in enumerate((quotients_near_whole_numbers, any_bits, denormal, special)):
        x, y = draw(dtype, np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            want = np.fmod(x, y)
        outs = [np.empty(N, dtype) for _ in range(2)]
        functions["remainder"](x, y, *outs)
        for got in outs:
            same = (got == want) & (np.signbit(got) == np.signbit(want))
            same |= np.isnan(got) & np.isnan(want)
            k = int(np.argmin(same))
            assert same.all(), f"{draw.__name__}: {x[k]} % {y[k]} = {got[k]}, not {want[k]}"
