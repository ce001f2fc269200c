"""Division of integers has a result for every divisor, and costs nothing where that is known."""

import itertools
import re

import kernels
import numpy as np
import pytest

from slipway.compiler.emit import build_module
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.interpreter.interpret import run
from slipway.ir.ops import const
from slipway.target import Target

NODES = {E.FloorDiv: np.floor_divide, E.FloorMod: np.mod, E.Mod: np.fmod}
LANES = 4


def function(node, dtype, count, divisor=None):
    """c[i] = node(a[i], b[i]) in vectors; `divisor` makes the second operand of b[i]."""
    a, b, c = (decl_buffer((count,), dtype, name) for name in "abc")
    i = E.Var("i")
    at = kernels.ramp(i * LANES, LANES)
    value = node(a[at], b[at] if divisor is None else divisor(b[at]))
    loop = kernels.loop(i, count // LANES, S.BufferStore(c, value, (at,)))
    return kernels.prim_func("divide", [a, b, c], loop)


def text(node, divisor, target="llvm -opt-level=0"):
    compiled = build_module({"divide": function(node, "int32", 64, divisor)}, Target(target))
    return compiled.get_source("ll" if target.startswith("llvm") else "c")


def pairs(dtype):
    """Every pair of values near zero and near the ends of the range."""
    info = np.iinfo(dtype)
    values = sorted({v for c in (0, info.min, info.max) for v in range(c - 2, c + 3)})
    values = [v for v in values if info.min <= v <= info.max]
    left, right = zip(*itertools.product(values, values), strict=True)
    return np.resize(np.array(left, dtype), 64 * 3), np.resize(np.array(right, dtype), 64 * 3)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("node", NODES)
def test_every_divisor_gives_numpys_result(node, dtype):
    a, b = pairs(dtype)
    func = function(node, dtype, len(a))
    with np.errstate(all="ignore"):
        want = NODES[node](a, b)
    for target in ("llvm -opt-level=1", "c -opt-level=1"):
        found = np.full(len(a), 99, dtype)
        kernels.load({"divide": func}, target)[0]["divide"](a, b, found)
        np.testing.assert_array_equal(found, want, target)
    found = np.full(len(a), 99, dtype)
    run(func, a, b, found)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("node", [E.Div, *NODES])
@pytest.mark.parametrize(
    "divisor",
    [
        lambda y: const(7, y.dtype),
        lambda y: const(-7, y.dtype),
        lambda y: E.Max(y, const(1, y.dtype)),
        lambda y: E.Min(y, const(-2, y.dtype)),
    ],
    ids=["7", "-7", "at least 1", "at most -2"],
)
def test_a_divisor_known_to_be_harmless_is_not_looked_at(node, divisor):
    assert not guards(node, divisor)


@pytest.mark.parametrize("node", [E.Div, *NODES])
def test_an_unknown_divisor_is(node):
    assert guards(node, None)


def guards(node, divisor):
    """The comparisons of divisors in LLVM IR (of vectors) and in C (in the loop over lanes)."""
    code = text(node, divisor, "c -opt-level=0")
    loop = code[code.index("for (") :].split("\n}")[0]
    return re.findall(r"icmp eq <.*", text(node, divisor)) + re.findall(r".*== .*", loop)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("node", [E.Div, *NODES])
def test_vectors_are_divided_as_vectors_on_x86(node, dtype):
    """Its only division of vectors is that of floats, which is exact for these."""
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, 4096, dtype, endpoint=True) for _ in range(2))
    b[::3] = rng.integers(1, 100, len(b[::3]), dtype)
    func, target = function(node, dtype, len(a)), Target("llvm -opt-level=1")
    code = build_module({"divide": func}, target).get_source("ll")
    if target.parsed_triple.table == "x86":
        assert "fdiv <" in code
        assert not re.findall(r"s(?:div|rem) <", code)
    found = np.empty_like(a)
    kernels.load({"divide": func}, "llvm -opt-level=1")[0]["divide"](a, b, found)
    with np.errstate(all="ignore"):
        want = (a / b.astype("float64")).astype("int64") if node is E.Div else NODES[node](a, b)
    np.testing.assert_array_equal(found[b != 0], want.astype(dtype)[b != 0])
