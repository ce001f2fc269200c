"""Random expressions of every kind, and their values at all points at once, by NumPy."""

import itertools
import random

import numpy as np

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.buffer import decl_buffer

X, Y, N = E.Var("x"), E.Var("y"), E.SizeVar("n")
FLAG, REAL = E.Var("flag", "bool"), E.Var("real", "float32")
SPANS = {X: range(-4, 5), Y: range(3), N: range(5)}  # n is 0 or more to the Analyzer, and no more
TABLE, SMALL = decl_buffer((97,), "int32", name="table"), decl_buffer((97,), "uint8", name="small")
_CELLS = {"table": np.arange(97) * 37 % 23 - 11, "small": np.arange(97) * 53 % 256}
_GRID = list(itertools.product(*SPANS.values(), (0, 1)))
POINTS = {v: np.array(c) for v, c in zip((X, Y, N, FLAG), zip(*_GRID, strict=True), strict=True)}
POINTS[REAL] = POINTS[X] * 0.5 + POINTS[Y]
COMPARISONS = {
    E.LT: np.less, E.LE: np.less_equal, E.GT: np.greater, E.GE: np.greater_equal,
    E.EQ: np.equal, E.NE: np.not_equal,
}  # fmt: skip


def analyzer():
    an = Analyzer()
    an.bind(X, -4, 4)
    an.bind(Y, 0, 2)
    return an


def quotient(a, b):
    """Divide towards zero."""
    return np.abs(a) // np.abs(b) * np.where((a < 0) == (b < 0), 1, -1)


_BINARY = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.Min: np.minimum, E.Max: np.maximum,
    E.FloorDiv: np.floor_divide, E.FloorMod: np.mod, E.And: np.logical_and, E.Or: np.logical_or,
    E.Mod: lambda a, b: a - b * quotient(a, b), **COMPARISONS,
}  # fmt: skip
_CALLS = {
    "likely": lambda a: a, "if_then_else": np.where, "shift_left": np.left_shift,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
}  # fmt: skip


def value(node, points=POINTS):
    """Return the values of an expression at `points`, in rows of lanes where it is a vector."""
    if isinstance(node, (E.IntImm, E.FloatImm)):
        return np.full(len(points[X]), node.value)
    if isinstance(node, E.Var):
        return points[node]
    if isinstance(node, E.BufferLoad):
        return _CELLS[node.buffer.name][value(node.indices[0], points) % 97]
    if isinstance(node, E.Call):
        return _CALLS[node.op](*(value(a, points) for a in node.args))
    if isinstance(node, E.Select):
        parts = (value(p, points) for p in (node.condition, node.true_value, node.false_value))
        return np.where(*parts)
    if isinstance(node, E.Not):
        return ~value(node.a, points).astype(bool)
    if isinstance(node, E.Cast):
        whole = node.dtype.startswith("int") and node.value.dtype.startswith("float")
        inner = value(node.value, points)
        return np.trunc(inner).astype(int) if whole else inner * 1
    if isinstance(node, E.Ramp):
        base, stride = value(node.base, points), value(node.stride, points)
        return base[:, None] + stride[:, None] * np.arange(node.num_lanes)
    if isinstance(node, E.Broadcast):
        return np.repeat(value(node.value, points)[:, None], node.num_lanes, axis=1)
    a, b = value(node.a, points), value(node.b, points)
    if isinstance(node, E.Div):
        return a / b if node.dtype.startswith("float") else quotient(a, b)
    return _BINARY[type(node)](a, b)


class Draw:
    """Draws expressions."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, low=-9, high=9):
        return ops.const(self.random.randint(low, high))

    def whole(self, depth, symbols=(X, Y, N)):
        """Return an integer expression."""
        if not depth or self.random.random() < 0.1:
            return self.pick(*symbols, *symbols, self.number())

        def inner():
            return self.whole(depth - 1, symbols)

        match self.random.randrange(18):
            case 0 | 1 | 2 | 3:
                return self.pick(E.Add, E.Sub)(inner(), inner())
            case 4 | 5:
                return E.Mul(inner(), ops.const(self.pick(-6, -3, -2, -1, 2, 3, 4, 8)))
            case 6 | 7 | 8 | 9:
                divisor = ops.const(self.pick(-6, -3, -2, -1, 1, 2, 3, 4, 6, 12))
                return self.pick(E.FloorDiv, E.FloorMod, E.Div, E.Mod)(inner(), divisor)
            case 10:
                divisor = self.pick(Y + 1, Y + 4, N + 1)
                return self.pick(E.FloorDiv, E.FloorMod, E.Div, E.Mod)(inner(), divisor)
            case 11 | 12:
                return self.pick(E.Min, E.Max)(inner(), inner())
            case 13:
                return E.Mul(self.pick(*symbols), self.pick(*symbols) + self.number(-2, 2))
            case 14:
                return E.Select(self.truth(depth - 1), inner(), inner())
            case 15:
                return E.Call("int32", "if_then_else", (self.truth(depth - 1), inner(), inner()))
            case 16:
                op, other = self.pick(("shift_left", 2), ("bitwise_and", 6), ("bitwise_or", 4))
                return E.Call("int32", op, (inner(), ops.const(other)))
        load = self.pick(TABLE, SMALL)[inner()]
        return E.Cast("int32", self.pick(load, self.truth(depth - 1), self.real(depth - 1)))

    def truth(self, depth):
        """Return a condition."""
        if not depth:
            return self.pick(FLAG, FLAG, ops.TRUE, ops.FALSE)
        match self.random.randrange(8):
            case 0 | 1 | 2 | 3:
                kind = self.pick(*COMPARISONS)
                return kind(self.whole(depth - 1), self.whole(depth - 1))
            case 4:
                return self.pick(*COMPARISONS)(self.real(depth - 1), self.real(depth - 1))
            case 5:
                return self.pick(E.And, E.Or)(self.truth(depth - 1), self.truth(depth - 1))
            case 6:
                return E.Not(self.truth(depth - 1))
        return E.Call("bool", "likely", (self.truth(depth - 1),))

    def real(self, depth):
        """Return a float32 expression whose values are halves."""
        if not depth:
            return self.pick(REAL, REAL, ops.const(self.random.randint(-2, 3), "float32"))
        first, second = self.real(depth - 1), self.real(depth - 1)
        match self.random.randrange(8):
            case 0 | 1 | 2 | 3 | 4:
                return self.pick(E.Add, E.Sub, E.Mul, E.Min, E.Max)(first, second)
            case 5:
                return E.Select(self.truth(depth - 1), first, second)
            case 6:
                return E.Call("float32", "if_then_else", (self.truth(depth - 1), first, second))
        return E.Cast("float32", self.whole(depth - 1))

    def vector(self, depth):
        """Return four lanes of integers."""
        if not depth:
            lanes = E.Ramp(self.whole(1), self.pick(self.number(-2, 2), Y), 4)
            return self.pick(lanes, E.Broadcast(self.whole(1), 4))
        first, second = self.vector(depth - 1), self.vector(depth - 1)
        if self.random.random() < 0.2:
            truth = E.Broadcast(self.truth(1), 4)
            return E.Select(truth, first, second)
        return self.pick(E.Add, E.Sub, E.Mul, E.Min, E.Max)(first, second)

    def sum(self, symbols=(X, Y, N)):
        """Return a sum of products of symbols."""
        total = self.number()
        for symbol in symbols:
            total = E.Add(total, E.Mul(symbol, ops.const(self.pick(-8, -3, -1, 0, 1, 2, 4, 6, 12))))
        return total
