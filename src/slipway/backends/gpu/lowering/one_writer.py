"""Threads that add to one element: refused, since they do so at once and in no order.

``threadIdx.x for t in range(64): B[t // 16] = B[t // 16] + A[t]`` is a sum as a loop.  As threads,
sixteen of them read the same old value, and the last that writes wins.  What a schedule reduces
over threads comes as a loop that says so (`cross_thread.py`); this is about all other loops.

Elements are counted for the first steps of each loop, and where a size that only the caller knows
is in an index, for a small and a large one: what is refused meets with both.  An index that memory
decides is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.node import Node
from slipway.ir.structural import structural_equal
from slipway.ir.visit import children, walk

_POINTS = 1 << 14  # steps that are looked at, of all loops together
_BINARY: dict[type[E.PrimExpr], Callable[[Any, Any], Any]] = {
    E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.FloorDiv: np.floor_divide,
    E.FloorMod: np.mod, E.Min: np.minimum, E.Max: np.maximum, E.EQ: np.equal, E.NE: np.not_equal,
    E.LT: np.less, E.LE: np.less_equal, E.GT: np.greater, E.GE: np.greater_equal,
    E.And: np.logical_and, E.Or: np.logical_or,
}  # fmt: skip
_SIZES = (1, 7919)  # of what only the caller knows: the large one divides nothing
_Axis = tuple[E.Var, E.PrimExpr]  # of threads: its variable and its extent


class _Values(dict[E.Var, Any]):
    """The steps of loops and threads by variable; any other variable is `other`."""

    def __init__(self, other: int) -> None:
        super().__init__()
        self.other = other

    def __missing__(self, var: E.Var) -> int:
        return self.other


@dataclass(frozen=True)
class _Update:
    """A store of what is read from the same element, in its loops and under its conditions."""

    store: S.BufferStore
    loops: tuple[S.For, ...]
    conditions: tuple[E.PrimExpr, ...]
    lets: tuple[tuple[E.Var, E.PrimExpr], ...]


def need_one_writer(
    node: S.Stmt,
    conditions: Iterable[E.PrimExpr],
    threads: Callable[[E.Var], Mapping[str, _Axis]],
    name: str,
) -> None:
    """Raise LoweringError where several threads do `node` and add to one element.

    `threads` says which axes run over memory that their threads have in common: variable, extent.
    """
    for update in _updates(node):
        shared = dict(threads(update.store.buffer.data))
        if shared and (tags := _colliding(update, tuple(conditions), shared)):
            index = ", ".join(map(str, update.store.indices))
            raise LoweringError(
                f"{name}: threads along {', '.join(tags)} read and write one element, "
                f"{update.store.buffer.name}[{index}], at once, and each may lose what another "
                "wrote. Bind a loop whose steps write different elements, or reduce over threads "
                "in a block of one store that is a sum, product, min, max, and or or of the "
                "element and something else (te.sum; rfactor for others)"
            )


def _updates(node: S.Stmt) -> list[_Update]:
    """Return the stores of elements that are read for it before `node` gives them a value."""
    inside = {id(n.buffer.data) for n in walk(node) if isinstance(n, S.Allocate)}
    found: list[_Update] = []
    given: list[S.BufferStore] = []

    def visit(stmt: S.Stmt, loops: Any, conditions: Any, lets: Any) -> None:
        match stmt:
            case S.BufferStore() if id(stmt.buffer.data) not in inside:
                used = (stmt.value, *conditions, *(value for _, value in lets))
                if any(_same_element(stmt, other) for other in given):
                    return
                if any(_reads(part, stmt) for part in used):
                    found.append(_Update(stmt, loops, conditions, lets))
                elif not conditions:
                    given.append(stmt)
            case S.For():
                visit(stmt.body, (*loops, stmt), conditions, lets)
            case S.LetStmt():
                visit(stmt.body, loops, conditions, (*lets, (stmt.var, stmt.value)))
            case S.IfThenElse():
                visit(stmt.then_case, loops, (*conditions, stmt.condition), lets)
                if stmt.else_case is not None:
                    visit(stmt.else_case, loops, (*conditions, E.Not(stmt.condition)), lets)
            case _:
                for child in children(stmt):
                    if isinstance(child, S.Stmt):
                        visit(child, loops, conditions, lets)

    visit(node, (), (), ())
    return found


def _reads(node: Node, store: S.BufferStore) -> bool:
    return any(isinstance(n, E.BufferLoad) and _same_element(n, store) for n in walk(node))


def _same_element(one: E.BufferLoad | S.BufferStore, other: S.BufferStore) -> bool:
    return one.buffer.data is other.buffer.data and structural_equal(one.indices, other.indices)


def _colliding(
    update: _Update, conditions: tuple[E.PrimExpr, ...], threads: Mapping[str, _Axis]
) -> list[str]:
    """Return the axes whose threads meet in one element whatever the sizes are that vary."""
    found = [_meeting(update, conditions, threads, _Values(size)) for size in _SIZES]
    return [tag for tag in threads if all(tag in tags for tags in found)]


def _meeting(
    update: _Update,
    conditions: tuple[E.PrimExpr, ...],
    threads: Mapping[str, _Axis],
    values: _Values,
) -> list[str]:
    """Return the axes whose threads meet in one element, none where no two are seen to."""
    sizes = {tag: _steps(extent) for tag, (_, extent) in threads.items()}
    axes = [(var, ops.const(0), sizes[tag]) for tag, (var, _) in threads.items()]
    axes += [(one.loop_var, one.min, _steps(one.extent)) for one in update.loops]
    while prod(size for *_, size in axes) > _POINTS:
        most = max(size for *_, size in axes)
        axes = [(v, low, most // 2 if size == most else size) for v, low, size in axes]
    shape = [size for *_, size in axes]
    grid = np.indices(shape).reshape(len(axes), -1)
    try:
        for (var, low, _), steps in zip(axes, grid, strict=True):
            values[var] = steps + _evaluated(low, values)
        for var, value in update.lets:
            if not any(isinstance(n, E.BufferLoad | E.Call) for n in walk(value)):
                values[var] = _evaluated(value, values)
        at = [np.broadcast_to(_evaluated(i, values), grid.shape[1:]) for i in update.store.indices]
        runs = np.ones(grid.shape[1:], bool)
        for condition in (*conditions, *update.conditions):
            if not any(n in values for n in walk(condition) if isinstance(n, E.Var)):
                continue
            if not _reads(condition, update.store):  # else the element itself decides: a maximum
                runs &= _evaluated(condition, values)
    except _UnknownError:
        return []
    count = len(threads)
    positions = np.stack(at)[:, runs]
    _, element = np.unique(positions, axis=1, return_inverse=True)
    first = np.full(positions.shape[1], -1)
    who = grid[:count, runs]
    order = np.arange(positions.shape[1])[::-1]
    first[element.reshape(-1)[order]] = order
    differs = who != who[:, first[element.reshape(-1)]]
    return [tag for tag, there in zip(threads, differs, strict=True) if there.any()]


def _steps(extent: E.PrimExpr) -> int:
    """Return how many steps are looked at: of a loop of unknown extent, those that it surely has.

    Raises nothing: a loop that may have none has one here, which others have too.
    """
    known = ops.as_int(extent)
    return 1 if known is None else max(known, 1)


class _UnknownError(Exception):
    """An expression has no value that is known."""


def _evaluated(node: E.PrimExpr, values: _Values) -> Any:
    """Return the value of an integer or a condition.

    Raises _UnknownError where memory or a call decides.
    """
    match node:
        case E.IntImm():
            return node.value
        case E.Var():
            return values[node]
        case E.Cast():
            return _evaluated(node.value, values)
        case E.Not():
            return np.logical_not(_evaluated(node.a, values))
    operation = _BINARY.get(type(node))
    if operation is None:
        raise _UnknownError
    left, right = _evaluated(node.a, values), _evaluated(node.b, values)  # type: ignore[attr-defined]
    with np.errstate(divide="ignore"):  # by a size that is 0 here: no kernel runs then
        return operation(left, right)
