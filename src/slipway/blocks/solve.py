"""Which axes of a block belong to an element that it uses: its indices, solved for the axes.

``B[vi * 16 + vj, vk]`` at element [y0, y1]: vi = y0 // 16, vj = y0 % 16, vk = y1.
``B[v // 16, v % 16]``:                       v = y0 * 16 + y1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.arith.analyzer import Analyzer
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, Range, Var
from slipway.ir.visit import substitute, walk

if TYPE_CHECKING:
    from slipway.ir import stmt as S

Found = dict[Var, PrimExpr]


def solved(
    axes: Sequence[IterVar], indices: Sequence[PrimExpr], shape: Sequence[PrimExpr], what: str
) -> tuple[list[Var], Found, PrimExpr]:
    """Return (y, values, condition): each axis in terms of an element y, and which elements fit.

    Raises ScheduleError, with `what` in front, where an element does not tell the axes.
    """
    an = Analyzer()
    sizes: dict[Var, int] = {}
    for axis in axes:
        size = ops.as_int(axis.extent)
        if size is None or axis.dom is None or ops.as_int(axis.dom.min) != 0:
            raise ScheduleError(f"{what}: axis {axis.name!r} has no known extent from 0 on")
        sizes[axis.var] = size
        an.bind(axis.var, 0, size - 1)
    element = [Var(f"y{n}", index.dtype) for n, index in enumerate(indices)]
    extents = []
    for var, size in zip(element, map(ops.as_int, shape), strict=True):
        if size is None:
            raise ScheduleError(f"{what}: the buffer has a dimension that is not known")
        extents.append(size)
        an.bind(var, 0, size - 1)
    simple = [an.simplify(index) for index in indices]
    ones: Found = {v: ops.const(0, v.dtype) for v, size in sizes.items() if size == 1}
    wanted = {v: size for v, size in sizes.items() if size != 1}
    values = _by_index(an, simple, element, wanted) or _in_order(
        an, simple, element, wanted, extents
    )
    if values is None:
        shown = ", ".join(map(str, simple))
        raise ScheduleError(
            f"{what}: its axes cannot be told from an element [{shown}], as they can from "
            "[i * 16 + j] and [i // 16, i % 16]"
        )
    return element, ones | values, _condition(an, simple, element, extents, wanted, values)


def where_on_axes(block: S.Block, loops: Sequence[S.For], what: str) -> PrimExpr:
    """Return the condition under which a block runs, said of its axes instead of `loops`.

    Raises ScheduleError, with `what` in front, where its axes do not tell the loops.
    """
    an = Analyzer()
    for axis in block.axes:
        if axis.dom is not None:
            an.bind_range(axis.var, axis.dom)
    own = {axis.var for axis in block.axes}

    def of_loops(condition: PrimExpr) -> bool:
        return any(isinstance(n, Var) and n not in own for n in walk(condition))

    named: dict[Any, Any] = {v: a.var for a, v in zip(block.axes, block.bindings, strict=True)}
    condition: PrimExpr = an.simplify(substitute(block.predicate, named))
    if not of_loops(condition):
        return condition
    what = f"{what}, which runs where {block.predicate}"
    around = Analyzer()
    axes = []
    for loop in loops:
        axes.append(IterVar(Range(loop.min, loop.extent), loop.loop_var, "data"))
        around.bind_range(loop.loop_var, Range(loop.min, loop.extent))
    highs = [around.bounds(around.simplify(value))[1] for value in block.bindings]
    if not all(isinstance(high, int) for high in highs):
        raise ScheduleError(f"{what}: its axes have no known bounds in the loops around it")
    shape = [ops.const(int(high) + 1) for high in highs]
    element, found, _ = solved(axes, block.bindings, shape, what)
    there: dict[Any, Any] = dict(zip(element, (a.var for a in block.axes), strict=True))
    told: dict[Any, Any] = {v: substitute(value, there) for v, value in found.items()}
    condition = an.simplify(substitute(block.predicate, told))
    if of_loops(condition):
        raise ScheduleError(f"{what}: its axes do not tell that condition")
    return condition


def _variables(index: PrimExpr, wanted: dict[Var, int]) -> list[Var]:
    return [v for v in wanted if any(n is v for n in walk(index))]


def _by_index(
    an: Analyzer, indices: list[PrimExpr], element: list[Var], wanted: dict[Var, int]
) -> Found | None:
    """Solve each index for its own axes, and several of one axis for that; None: they mix."""
    values: Found = {}
    parts: dict[Var, list[tuple[PrimExpr, Var]]] = {}
    for index, var in zip(indices, element, strict=True):
        own = _variables(index, wanted)
        found = _digits(an, index, {v: wanted[v] for v in own}, var)
        if found is None and len(own) == 1:
            parts.setdefault(own[0], []).append((index, var))
        elif found is None or values.keys() & found.keys():
            return None
        else:
            values |= found
    for axis, of_axis in parts.items():
        whole: PrimExpr = ops.const(0, axis.dtype)
        again: PrimExpr = whole
        for index, var in of_axis:
            low, high = an.bounds(index)
            if low != 0 or high == float("inf"):
                return None
            whole = ops.add(ops.mul(whole, int(high) + 1), var)
            again = ops.add(ops.mul(again, int(high) + 1), index)
        if axis in values or not an.can_prove_equal(again, axis):
            return None
        values[axis] = whole
    return values if values.keys() == wanted.keys() else None


def _in_order(
    an: Analyzer, indices: list[PrimExpr], element: list[Var], wanted: dict[Var, int],
    extents: list[int],
) -> Found | None:  # fmt: skip
    """Solve the position of the element in its buffer, row by row, for the axes."""
    position: PrimExpr = ops.const(0)
    there: PrimExpr = ops.const(0)
    for index, var, extent in zip(indices, element, extents, strict=True):
        low, high = an.bounds(index)
        if low < 0 or high >= extent:
            return None
        position = ops.add(ops.mul(position, extent), index)
        there = ops.add(ops.mul(there, extent), var)
    found = _digits(an, an.simplify(position), wanted, there)
    return found if found is not None and found.keys() == wanted.keys() else None


def _digits(an: Analyzer, index: PrimExpr, wanted: dict[Var, int], value: PrimExpr) -> Found | None:
    """Return axes as digits of `value`, where `index` is a sum of them, each with its weight.

    The lightest has weight 1, each other one the product of the extents of the lighter ones.
    """
    zeros: dict[Any, PrimExpr] = {v: ops.const(0, v.dtype) for v in wanted}
    first = ops.as_int(an.simplify(substitute(index, zeros)))
    if first is None:
        return None
    weights: dict[Var, int] = {}
    total: PrimExpr = ops.const(first)
    for v in wanted:
        there = ops.as_int(an.simplify(substitute(index, zeros | {v: ops.const(1, v.dtype)})))
        if there is None or there <= first:
            return None
        weights[v] = there - first
        total = ops.add(total, ops.mul(v, weights[v]))
    if not an.can_prove_equal(total, index):
        return None
    value = ops.sub(value, first) if first else value
    found: Found = {}
    step = 1
    order = sorted(wanted, key=weights.__getitem__)
    for v in order:
        if weights[v] != step:
            return None
        digit = value if step == 1 else ops.floordiv(value, step)
        found[v] = digit if v is order[-1] else ops.floormod(digit, wanted[v])
        step *= wanted[v]
    return found


def _condition(
    an: Analyzer, indices: list[PrimExpr], element: list[Var], extents: list[int],
    wanted: dict[Var, int], values: Found,
) -> PrimExpr:  # fmt: skip
    """Return where an element is one that the axes reach."""
    condition: PrimExpr = ops.TRUE
    for index, var, extent in zip(indices, element, extents, strict=True):
        if not _variables(index, wanted) and extent != 1:
            condition = ops.logical_and(condition, ops.equal(var, index))
    for axis, size in wanted.items():
        value = an.simplify(values[axis])
        if an.bounds(value)[0] < 0:
            condition = ops.logical_and(condition, ops.greater_equal(value, 0))
        if an.bounds(value)[1] >= size:
            condition = ops.logical_and(condition, ops.less(value, ops.const(size, value.dtype)))
    for index, var, extent in zip(indices, element, extents, strict=True):
        own = _variables(index, wanted)
        if len(own) == 1 and an.bounds(index)[1] < extent - 1 and index is not own[0]:
            end = ops.const(int(an.bounds(index)[1]) + 1, var.dtype)
            condition = ops.logical_and(condition, ops.less(var, end))
    return condition
