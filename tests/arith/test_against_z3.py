"""What the Analyzer says of random expressions is so for all integers: z3 finds no other.

test_random_expressions.py asks at some points, near 0; here ranges are wide, and sizes have no end.
"""

import random

import pytest
import z3
from random_expressions import COMPARISONS, SMALL, TABLE, Draw, N, X, Y

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF
from slipway.ir import expr as E
from slipway.ir import ops

PARTS = range(8)
ENDS = {X: (-4, 4), Y: (0, 2)}
WIDE = {X: (-100_000, 3_000_017), Y: (0, 4095)}
_LOADS = {name: z3.Function(name, z3.IntSort(), z3.IntSort()) for name in (TABLE.name, SMALL.name)}
_KINDS = {
    E.LT: lambda a, b: a < b, E.LE: lambda a, b: a <= b, E.GT: lambda a, b: a > b,
    E.GE: lambda a, b: a >= b, E.EQ: lambda a, b: a == b, E.NE: lambda a, b: a != b,
}  # fmt: skip


class Whole(Draw):
    """Draws expressions without real numbers."""

    def real(self, depth):
        return ops.const(self.random.randint(-2, 3), "float32")


class Meaning:
    """Expressions as z3 understands them, and what must hold for them to mean anything."""

    def __init__(self, ends):
        self.variables = {v: z3.Int(v.name) for v in (X, Y, N)}
        self.flag = z3.Bool("flag")
        self.given = [self.variables[N] >= 0]
        for v, (low, high) in ends.items():
            self.given += [self.variables[v] >= low, self.variables[v] <= high]

    def _floored(self, a, b):
        if z3.is_int_value(b):  # z3's remainder is never negative
            return a / b if b.as_long() > 0 else (-a) / (-b)
        return z3.If(b > 0, a / b, (-a) / (-b))

    def _truncated(self, a, b):
        size = z3.If(a < 0, -a, a) / z3.If(b < 0, -b, b)
        return z3.If((a < 0) == (b < 0), size, -size)

    def of(self, node):
        """Return a z3 expression."""
        if isinstance(node, E.IntImm):
            return z3.BoolVal(bool(node.value)) if node.dtype == "bool" else z3.IntVal(node.value)
        if isinstance(node, E.FloatImm):
            return z3.RealVal(node.value)
        if isinstance(node, E.Var):
            return self.flag if node.dtype == "bool" else self.variables[node]
        if isinstance(node, E.BufferLoad):
            found = _LOADS[node.buffer.name](self.of(node.indices[0]))
            ends = (0, 255) if node.dtype == "uint8" else (-(2**31), 2**31 - 1)
            self.given += [found >= ends[0], found <= ends[1]]
            return found
        if isinstance(node, E.Cast):
            inner = self.of(node.value)
            if z3.is_bool(inner):
                return z3.If(inner, z3.IntVal(1), z3.IntVal(0))
            return z3.ToInt(inner) if z3.is_real(inner) else inner  # whole numbers only
        if isinstance(node, E.Not):
            return z3.Not(self.of(node.a))
        if isinstance(node, (E.Select, E.Call)):
            return self._call(node)
        a, b = self.of(node.a), self.of(node.b)
        return self._binary(type(node), a, b)

    def _call(self, node):
        if isinstance(node, E.Select):
            return z3.If(*(self.of(p) for p in (node.condition, node.true_value, node.false_value)))
        args = [self.of(a) for a in node.args]
        if node.op == "if_then_else":
            return z3.If(*args)
        if node.op == "likely":
            return args[0]
        a, b = args[0], node.args[1].value
        if node.op == "shift_left":
            return a * 2**b
        bits = [(a / 2**n) % 2 * 2**n for n in range(b.bit_length()) if b >> n & 1]
        return sum(bits) if node.op == "bitwise_and" else a + b - sum(bits)

    def _binary(self, kind, a, b):
        if kind in _KINDS:
            return _KINDS[kind](a, b)
        if kind in (E.FloorDiv, E.FloorMod, E.Div, E.Mod):
            self.given.append(b != 0)
            quotient = (self._floored if kind in (E.FloorDiv, E.FloorMod) else self._truncated)(
                a, b
            )
            return quotient if kind in (E.FloorDiv, E.Div) else a - b * quotient
        return {
            E.Add: lambda: a + b, E.Sub: lambda: a - b, E.Mul: lambda: a * b,
            E.Min: lambda: z3.If(a < b, a, b), E.Max: lambda: z3.If(a < b, b, a),
            E.And: lambda: z3.And(a, b), E.Or: lambda: z3.Or(a, b),
        }[kind]()  # fmt: skip

    def refuted(self, claim):
        """Return values for which a claim does not hold, None where there are none, or "?"."""
        solver = z3.Solver()
        solver.set("rlimit", 400_000)  # steps, not time: the same answer on every machine
        solver.add(*self.given, z3.Not(claim))
        answer = solver.check()
        return solver.model() if answer == z3.sat else None if answer == z3.unsat else "?"


def analyzer(ends):
    an = Analyzer()
    for v, (low, high) in ends.items():
        an.bind(v, low, high)
    return an


class Asked:
    """Counts how much z3 could decide: a test that decides little says little."""

    def __init__(self):
        self.decided = self.tally = 0

    def holds(self, meaning, claim, words):
        found = meaning.refuted(claim)
        self.tally += 1
        self.decided += found != "?"
        assert found in (None, "?"), f"{words}\nwhere {found}"

    def enough(self):
        assert self.decided >= 0.7 * self.tally, f"{self.decided} of {self.tally}"


def draws(part, count=25):
    for seed in range(part * count, (part + 1) * count):
        yield Whole(7000 + seed), random.Random(seed).choice((ENDS, WIDE))


@pytest.mark.parametrize("part", PARTS)
def test_simplified_expressions_are_the_same(part):
    tally = Asked()
    for draw, ends in draws(part):
        an = analyzer(ends)
        for expr in (draw.whole(3), draw.truth(3)):
            made, meaning = an.simplify(expr), Meaning(ends)
            if made is not expr:
                claim = meaning.of(expr) == meaning.of(made)
                tally.holds(meaning, claim, f"{expr}\n{made}\n{ends}")
    tally.enough()


@pytest.mark.parametrize("part", PARTS)
def test_bounds_and_divisors_hold(part):
    tally = Asked()
    for draw, ends in draws(part):
        an, expr, meaning = analyzer(ends), draw.whole(3), Meaning(ends)
        what = meaning.of(expr)
        low, high = an.bounds(expr)
        modulus, rest = an.modular_set(expr)
        claims = [] if low == -INF else [what >= int(low)]
        claims += [] if high == INF else [what <= int(high)]
        claims += [what == rest] if not modulus else [what % modulus == rest] * (modulus > 1)
        for claim in claims:
            tally.holds(meaning, claim, f"{expr}: {claim}\n{ends}")
    tally.enough()


@pytest.mark.parametrize("part", PARTS)
def test_verdicts_are_right(part):
    tally = Asked()
    for draw, ends in draws(part):
        an, a = analyzer(ends), draw.whole(2)
        b = draw.pick(draw.whole(2), draw.number(), E.FloorDiv(a, ops.const(2)), a + Y - 1)
        for kind in COMPARISONS:
            verdict, meaning = an.simplify(kind(a, b)), Meaning(ends)
            if isinstance(verdict, E.IntImm):
                claim = meaning.of(kind(a, b)) == bool(verdict.value)
                tally.holds(meaning, claim, f"{kind(a, b)}: {verdict}\n{ends}")
    tally.enough()


def open_extent(draw, size):
    """Return how many steps a loop over an open size may have."""
    k = draw.pick(2, 3, 4, 8)
    return draw.pick(
        size,
        size * k,
        size + draw.number(0, 5),
        E.FloorDiv(size, ops.const(k)),
        E.FloorDiv(size + (k - 1), ops.const(k)),
        E.Max(size - k, ops.const(1)),
        E.Min(size, ops.const(k * 4)),
        E.FloorDiv(size - draw.number(0, 3), ops.const(k)) + 1,
    )


@pytest.mark.parametrize("part", PARTS)
def test_verdicts_on_loops_with_open_ends_are_right(part):
    """What `bind_range` states of a loop, and the comparisons that guards are made of."""
    tally, verdicts = Asked(), 0
    for draw, _ in draws(part, 60):
        an, meaning = Analyzer(), Meaning({})
        for loop in (X, Y):
            extent = open_extent(draw, N)
            an.bind_range(loop, E.Range(ops.const(0), extent))
            meaning.given += [meaning.variables[loop] >= 0]
            meaning.given += [meaning.variables[loop] < meaning.of(extent)]
        k, low, high = draw.pick(1, 2, 3, 4, 8), draw.number(-3, 8), draw.number(-3, 8)
        index = draw.pick(
            X * k + low,
            X * k + Y + low,
            E.Min(X * k, N - k) + low,
            E.FloorDiv(X, draw.pick(ops.const(k), N + 1)) + low,
            E.FloorMod(X * k + Y, draw.pick(ops.const(k), N + 1)),
            E.Max(X - k, Y) + low,
            X * (N + 1) + Y,
            E.FloorDiv(X * k + Y, ops.const(k)),
        )
        limit = draw.pick(N, N * k, N + high, (N + high) * (N + 1), open_extent(draw, N), N * 2)
        for kind in COMPARISONS:
            verdict = an.simplify(kind(index, limit))
            if isinstance(verdict, E.IntImm):
                verdicts += 1
                claim = meaning.of(kind(index, limit)) == bool(verdict.value)
                tally.holds(meaning, claim, f"{kind(index, limit)}: {verdict}\n{meaning.given}")
    tally.enough()
    assert verdicts > 20


def test_a_wrong_claim_is_refuted():
    """The oracle can say no: lower bounds that are too high by one."""
    refuted = 0
    for draw, ends in draws(0):
        an, expr, meaning = analyzer(ends), draw.whole(2), Meaning(ends)
        low, high = an.bounds(expr)
        if -INF < low < high:
            found = meaning.refuted(meaning.of(expr) > int(low))
            refuted += found not in (None, "?")
    assert refuted >= 8
