"""Random programs of loops for the laws of loop passes: what a pass makes of one gives its numbers.

A program is more than one nest: statements in sequence, loops whose ends are those of others, one
variable in loops of different ranges, conditions on sums, on remainders and on memory, choices
between loads of which only the chosen one may happen, prefetches, names for values.  Each store has
a region of the result and no element of it twice, to which it adds: neither a step too few nor one
too many goes unnoticed.
"""

import random

import numpy as np

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.transform.loop.cut_loops import HINT

MOST = 7  # steps of a loop
OFFSET, SIZE = 64, 160  # of rows that may be read at any index
COMPARISONS = (E.LT, E.LE, E.GT, E.GE)


class Program:
    """One program, its arguments, and what it computes."""

    def __init__(
        self, seed, *, hints=False, vectors=False, likely=False, parallel=False, dependent=True
    ):
        self.draw = random.Random(seed)
        self.hints, self.vectors, self.likely, self.parallel = hints, vectors, likely, parallel
        self.dependent = dependent
        self.a, self.b = (decl_buffer((SIZE,), name=n) for n in "AB")
        self.table = decl_buffer((SIZE,), "int32", name="Table")
        self.state = decl_buffer((4,), "int32", name="State")
        self.regions, self.exact = 0, []
        self.loops, self.spare = [], [E.Var(n) for n in "ijkl"]
        self.names = []  # of values
        self.in_lanes = False
        self.out = decl_buffer((4096,), name="Out")
        body = self.stmt(3)
        buffers = (self.a, self.b, self.table, self.state, self.out, *self.exact)
        handles = tuple(E.Var(b.name, "handle") for b in buffers)
        self.func = PrimFunc(handles, body, tuple(zip(handles, buffers, strict=True)))
        rng = np.random.default_rng(seed)
        self.given = [
            rng.integers(-8, 9, b.shape[0].value).astype(b.dtype) for b in buffers if b != self.out
        ]
        self.want = self.numbers(self.func)

    def numbers(self, func):
        """Return what a function of these parameters leaves in memory."""
        a, b, table, state, *exact = (x.copy() for x in self.given)
        out = np.full(4096, -7, "float32")
        assert run(func, a, b, table, state, out, *exact) == 0
        return np.concatenate([out, state])

    def check(self, func, stage="flat"):
        """Assert that a function is well-formed and computes the same."""
        verify(func, stage)
        np.testing.assert_array_equal(self.numbers(func), self.want, err_msg=f"{self.func}\n{func}")

    # -- statements --------------------------------------------------------------------------------

    def stmt(self, depth):
        draw = self.draw
        kinds = ["store"] if not depth else ["loop"] * 4 + ["guard"] * 2 + ["sequence", "store"]
        if len(self.loops) == 0 and depth:
            kinds = ["loop", "loop", "sequence"] if depth == 3 else ["loop"]
        kinds += ["let"] if depth else []
        match draw.choice(kinds):
            case "loop" if len(self.loops) < 3:
                return self.loop(depth)
            case "guard":
                other = self.stmt(depth - 1) if draw.random() < 0.25 else None
                return S.IfThenElse(self.condition(), self.stmt(depth - 1), other)
            case "sequence":
                return self.sequence(depth)
            case "let":
                return self.let(depth)
        return self.store()

    def let(self, depth):
        draw, var = self.draw, E.Var("x")
        value = self.sum() if draw.random() < 0.7 else self.table[self.sum() + OFFSET]
        self.names.append(var)
        body = self.stmt(depth - 1)
        if draw.random() < 0.5:
            guard = draw.choice(COMPARISONS)(var, ops.const(draw.randint(-3, 6)))
            body = S.IfThenElse(guard, body, None)
        self.names.pop()
        return S.LetStmt(var, value, body)

    def sequence(self, depth):
        draw = self.draw
        parts = [self.stmt(depth - 1) for _ in range(draw.randint(2, 3))]
        if draw.random() < 0.3 and self.loops:  # conditions that the parts share
            shared = self.condition()
            parts = [S.IfThenElse(shared, p, None) if draw.random() < 0.8 else p for p in parts]
        if draw.random() < 0.2 and not self.in_lanes:
            address = E.Call("handle", "address_of", (self.a[OFFSET + self.sum()],))
            prefetch = S.Evaluate(
                E.Call("int32", "prefetch", (address, *map(ops.const, (0, 3, 1))))
            )
            parts.insert(draw.randint(0, len(parts)), prefetch)
        if draw.random() < 0.2 and not self.in_lanes and not self.parallel:
            position = ops.const(draw.randrange(4))
            parts.append(S.BufferStore(self.state, self.sum(), (position,)))
        return S.seq(parts)

    def loop(self, depth):
        draw = self.draw
        free = [v for v in self.spare if all(v is not known for known, *_ in self.loops)]
        var = draw.choice(free)
        first, extent = ops.const(draw.choice([0, 0, 1, 2])), ops.const(draw.randint(1, MOST))
        around = [v for v, lanes in self.loops if not lanes]
        if around and self.dependent and draw.random() < 0.15:
            first = draw.choice(around)
        if around and self.dependent and draw.random() < 0.15:
            extent = ops.minimum(draw.choice(around), MOST) - draw.choice([0, 0, 1])
            extent = ops.maximum(extent, 0)
        kind = draw.choice([S.ForKind.SERIAL] * 3 + [S.ForKind.UNROLLED])
        if self.parallel and not self.loops and draw.random() < 0.3:
            kind = S.ForKind.PARALLEL
        lanes = self.vectors and not self.in_lanes and draw.random() < (0.7 if depth == 1 else 0.3)
        if lanes:
            kind = S.ForKind.VECTORIZED
            first, extent = ops.const(draw.choice([0, 0, 3])), ops.const(draw.randint(1, 40))
        self.in_lanes |= lanes
        self.loops.append((var, lanes))
        body = self.stmt(depth - 1)
        self.loops.pop()
        self.in_lanes = any(wide for _, wide in self.loops)
        notes = ((HINT, True),) if self.hints and draw.random() < 0.6 else ()
        return S.For(var, first, extent, kind, body, None, notes)

    def store(self):
        """Add a value to an element of a region that no other step has."""
        position, size = ops.const(0), 1
        for var, lanes in self.loops:  # the last one has neighbours
            steps = 43 if lanes else 2 * MOST + 2
            position, size = position * steps + var, size * steps
        if self.regions + size > 4096:  # no room: elements are added to more than once, by one lane
            lanes = [v for v, wide in self.loops if wide]
            position, size = (lanes[0], 43) if lanes else (ops.const(0), 1)
            if self.regions + size > 4096:
                return S.Evaluate(ops.const(0))
        index = position + self.regions
        self.regions += size
        return S.BufferStore(self.out, self.out[index] + self.value(2), (index,))

    # -- expressions -------------------------------------------------------------------------------

    def sum(self):
        """Return a sum of loop variables, at most some fifty from 0."""
        total = ops.const(self.draw.randint(-6, 6))
        for var, lanes in self.loops:
            factor = self.draw.choice([0, 1, 1, -1] if lanes else [0, 0, 1, 1, -1, 2])
            if factor:
                total = total + (var if factor == 1 else var * factor)
        if self.names and self.draw.random() < 0.3:
            total = ops.maximum(ops.minimum(total + self.draw.choice(self.names), 50), -50)
        return total

    def comparison(self):
        draw = self.draw
        kind, left = draw.choice(COMPARISONS), self.sum()
        match draw.randrange(12):
            case 0:
                left = E.FloorDiv(left, ops.const(draw.randint(2, 5)))
            case 1:
                left = E.FloorMod(left, ops.const(draw.randint(2, 5)))
            case 2:
                left = left + self.state[draw.randrange(4)]
            case 3:
                left = self.table[left + OFFSET]
            case 4:
                kind = draw.choice([E.EQ, E.NE])
            case 5:
                left = ops.minimum(left, self.sum())
            case 6 if len(self.loops) > 1:
                left = left + self.loops[0][0] * self.loops[1][0]
        return kind(left, ops.const(draw.randint(-2, 7)))

    def condition(self):
        draw = self.draw
        made = self.comparison()
        match draw.randrange(8):
            case 0 | 1:
                made = E.And(made, self.comparison())
            case 2:
                made = E.Or(made, self.comparison())
            case 3:
                made = E.Not(made)
        if self.likely and draw.random() < 0.6:
            made = E.Call("bool", "likely", (made,))
        return made

    def value(self, depth):
        draw = self.draw
        match draw.randrange(11 if depth else 3):
            case 0:
                return self.a[self.inside()]
            case 1:
                return self.b[self.sum() + OFFSET]
            case 2:
                return ops.const(draw.randint(1, 9) + 0.5, "float32")
            case 3 | 4:
                return self.choice(self.condition(), self.value(depth - 1), self.value(depth - 1))
            case 5 | 6:
                return self.padded()
            case 7:
                yes, no = self.value(depth - 1), self.value(depth - 1)
                return E.Select(self.comparison(), yes, no)
            case 8:
                return self.value(depth - 1) * E.Cast("float32", self.sum())
            case 9:
                var = E.Var("y")
                named = self.sum() if draw.random() < 0.6 else self.table[self.sum() + OFFSET]
                self.names.append(var)
                body = self.value(depth - 1)
                self.names.pop()
                return E.Let(var, named, body)
        build = draw.choice([E.Add, E.Sub, E.Max])
        return build(self.value(depth - 1), self.value(depth - 1))

    def inside(self):
        """Return an index whose lanes lie close together, in some order."""
        position = self.sum()
        match self.draw.randrange(4):
            case 0:
                position = E.FloorDiv(position, ops.const(self.draw.randint(2, 4)))
            case 1:
                position = E.FloorMod(position, ops.const(self.draw.randint(2, 6)))
            case 2:
                position = ops.maximum(position, self.sum())
        return position + OFFSET

    @staticmethod
    def choice(condition, yes, no):
        return E.Call("float32", "if_then_else", (condition, yes, no))

    def padded(self):
        """Return an element of a row in its border: the load must not happen outside of it."""
        size = self.draw.randint(1, 12)
        row = decl_buffer((size,), name=f"Row{len(self.exact)}")
        self.exact.append(row)
        position = self.sum()
        inside = E.And(E.GE(position, ops.const(0)), E.LT(position, ops.const(size)))
        other = ops.const(0.0, "float32") if self.draw.random() < 0.5 else self.b[position + OFFSET]
        return self.choice(inside, row[position], other)
