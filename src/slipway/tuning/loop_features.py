"""What the loops of a candidate do, in numbers that mean the same for every kernel and device.

Vectors of arithmetic, of loads and of stores by kind, steps and branches, how much code there is,
and the bytes that come from beyond each level of the cache.  Each is a count of one call of the
kernel; a model of times learns from their logarithms, and from how those differ from the default's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.visit import children, walk

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.function import PrimFunc
    from slipway.ir.node import Node
    from slipway.target import Target

COUNTS = (
    "arithmetic", "loads", "repeated", "gathered", "stores", "scattered", "steps", "branches",
    "code", "inner", "beyond_l1", "beyond_l2", "allocated", "registers", "tasks", "calls",
)  # fmt: skip
LIKELY = 0.9  # how often a condition is taken to hold: most guard the ends of loops
_ARITHMETIC = (E.BinaryOp, E.CmpOp, E.Select)

# What is touched in a loop, in bytes: by buffer, the variables of the place, and where it begins.
Accesses = dict[tuple[int, frozenset[int], object], float]


@dataclass
class WalkedLoop:
    """A loop while it is walked."""

    variable: E.Var
    extent: float
    times: float  # how often it is entered
    body: Accesses = field(default_factory=dict)
    has_loops: bool = False
    arithmetic: float = 0.0  # of one step, where it has no loops


def loop_features(func: PrimFunc, target: Target) -> dict[str, float]:
    """Return the counts of `COUNTS` for one call of `func`."""
    walker = _Walker(target)
    walker.statement(func.body, 1.0)
    return walker.counts


class _Walker:
    def __init__(self, target: Target) -> None:
        self.bits = float(target.vector_bits or 64)
        self.caches = float(target.core.l1_bytes), float(target.core.l2_bytes)
        self.counts = dict.fromkeys(COUNTS, 0.0)
        self.loops: list[WalkedLoop] = []
        self.sizes: dict[int, float] = {}  # bytes of buffers
        self.variables: dict[int, frozenset[int]] = {}  # of index expressions
        self.local: set[int] = set()  # buffers in registers
        self.rare = 0  # how many branches around are rarely taken: no cache holds what they touch

    # Statements.

    def statement(self, node: Node, times: float) -> None:
        """Count a statement that runs so often."""
        if isinstance(node, S.For):
            self.loop(node, times)
        elif isinstance(node, S.IfThenElse):
            self.counts["branches"] += times
            self.expression(node.condition, times)
            self.statement(node.then_case, times * LIKELY)
            if node.else_case is not None:
                self.rare += 1
                self.statement(node.else_case, times * (1 - LIKELY))
                self.rare -= 1
        elif isinstance(node, S.BufferStore):
            self.expression(node.value, times)
            self.access(node.buffer, node.indices, node.value.dtype, times, is_store=True)
        elif isinstance(node, S.Allocate):
            size = _bytes(node.buffer)
            if node.buffer.scope == "local":
                self.local.add(id(node.buffer.data))
                name, size = "registers", size * 8 / self.bits
            else:
                name = "allocated"
            self.counts[name] = max(self.counts[name], size)
            self.statement(node.body, times)
        elif isinstance(node, S.Stmt):
            for below in children(node):
                self.statement(below, times)
        elif isinstance(node, E.PrimExpr):
            self.expression(node, times)

    def loop(self, node: S.For, times: float) -> None:
        """Count a loop that is entered so often, and what comes from beyond the caches for it."""
        extent = _number(node.extent)
        if self.loops:
            self.loops[-1].has_loops = True
        if node.kind == S.ForKind.PARALLEL:
            self.counts["tasks"] += times * extent
        current = WalkedLoop(node.loop_var, extent, times)
        self.counts["steps"] += times * extent
        self.loops.append(current)
        self.statement(node.body, times * extent)
        self.loops.pop()
        if not current.has_loops:
            share = times * extent * current.arithmetic
            self.counts["inner"] += share * math.log2(1.0 + current.arithmetic)
        self.close(current)

    def close(self, loop: WalkedLoop) -> None:
        """Add the accesses of a loop to the one around it, as all of its steps make them."""
        outside = self.loops[-1].body if self.loops else {}
        identity = id(loop.variable)
        of_step = _working_set(loop.body, self.sizes)
        whole: Accesses = {}
        for key, size in loop.body.items():
            grown = size * loop.extent if identity in key[1] else size
            whole[key] = min(grown, self.sizes[key[0]])
        of_all = _working_set(whole, self.sizes)
        for name, cache in zip(("beyond_l1", "beyond_l2"), self.caches, strict=True):
            if of_step <= cache < of_all:  # all of it comes anew whenever the loop is entered
                self.counts[name] += loop.times * of_all
        for key, size in whole.items():
            outside[key] = max(outside.get(key, 0.0), size)
        if not self.loops:
            for name, cache in zip(("beyond_l1", "beyond_l2"), self.caches, strict=True):
                if of_all <= cache:
                    self.counts[name] += of_all

    # Expressions.

    def expression(self, root: Node, times: float) -> None:
        """Count what a value takes to compute."""
        for node in walk(root):
            if isinstance(node, E.BufferLoad):
                self.access(node.buffer, node.indices, node.dtype, times, is_store=False)
            elif isinstance(node, E.Call):
                self.counts["calls"] += times * self.vectors(node.dtype)
                self.computed(node.dtype, times)
            elif isinstance(node, _ARITHMETIC) and _is_data(node):
                self.computed(node.dtype, times)

    def computed(self, dtype: str, times: float) -> None:
        """Count one operation on values of a type."""
        count = self.vectors(dtype)
        self.counts["arithmetic"] += times * count
        self.counts["code"] += count
        if self.loops:
            self.loops[-1].arithmetic += count

    def vectors(self, dtype: str) -> float:
        """Return how many vectors of the target a value fills."""
        lanes = dtypes.lanes_of(dtype)
        return max(1.0, math.ceil(lanes * dtypes.bits_of(dtype.partition("x")[0]) / self.bits))

    def access(
        self, buffer: Buffer, indices: tuple[E.PrimExpr, ...], dtype: str, times: float,
        *, is_store: bool,
    ) -> None:  # fmt: skip
        """Count a load or store, and note what it touches in the loop around it."""
        if id(buffer.data) in self.local:
            return
        last = indices[-1] if indices else None
        lanes = dtypes.lanes_of(last.dtype) if last is not None else 1
        whole = isinstance(last, E.Ramp) and _number(last.stride) == 1
        if lanes > 1 and not whole:
            self.counts["scattered" if is_store else "gathered"] += times * lanes
        elif is_store:
            self.counts["stores"] += times * self.vectors(dtype)
        else:
            self.counts["loads" if lanes > 1 else "repeated"] += times * self.vectors(dtype)
        if not self.loops or self.rare:
            return
        identity = id(buffer.data)
        self.sizes.setdefault(identity, _bytes(buffer))
        size = lanes * dtypes.bits_of(buffer.dtype) / 8
        variables: frozenset[int] = frozenset().union(*map(self.variables_of, indices))
        key = identity, variables, tuple(map(_first, indices))
        body = self.loops[-1].body
        body[key] = max(body.get(key, 0.0), size)

    def variables_of(self, index: E.PrimExpr) -> frozenset[int]:
        """Return the variables that an index depends on."""
        found = self.variables.get(id(index))
        if found is None:
            found = frozenset(id(n) for n in walk(index) if isinstance(n, E.Var))
            self.variables[id(index)] = found
        return found


def _working_set(accesses: Accesses, sizes: dict[int, float]) -> float:
    of_buffers: dict[int, float] = {}
    for (buffer, _, _), size in accesses.items():
        of_buffers[buffer] = min(of_buffers.get(buffer, 0.0) + size, sizes[buffer])
    return sum(of_buffers.values())


def _first(index: E.PrimExpr) -> object:
    """Return where an index is when all of its variables are 0; what has no number is its own."""
    if isinstance(index, E.IntImm):
        return index.value
    if isinstance(index, E.Var):
        return 0
    if isinstance(index, E.Ramp):
        return _first(index.base)
    if isinstance(index, E.BinaryOp):
        a, b, function = _first(index.a), _first(index.b), _FOLDED.get(type(index))
        if function is not None and isinstance(a, int) and isinstance(b, int):
            return function(a, b)
    return index.dtype, id(index)


_FOLDED: dict[type, Callable[[int, int], int]] = {
    E.Add: operator.add,
    E.Sub: operator.sub,
    E.Mul: operator.mul,
    E.Min: min,
    E.Max: max,
    E.FloorDiv: lambda a, b: a // b if b else 0,
    E.FloorMod: lambda a, b: a % b if b else 0,
}


def _is_data(node: E.PrimExpr) -> bool:
    """Return whether a value is data, not a place: a float, or a vector."""
    return node.dtype.startswith(("float", "bfloat")) or dtypes.lanes_of(node.dtype) > 1


def _number(value: E.PrimExpr) -> float:
    """Return a number, 1 for what is known when the kernel runs."""
    return float(value.value) if isinstance(value, E.IntImm) else 1.0


def _bytes(buffer: Buffer) -> float:
    count = math.prod(_number(extent) for extent in buffer.shape)
    return max(1.0, count * dtypes.bits_of(buffer.dtype) / 8)
