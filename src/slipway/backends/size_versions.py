"""Kernels of open sizes in several versions, each for a part of the range.

    n in 1..8   ->   if n < 2:    the kernel of n = 1
                     elif n < 3:  the kernel of n = 2
                     elif n < 4:  the kernel of n = 3
                     elif n < 5:  the kernel of n = 4
                     elif n < 8:  the kernel of n in 5..7, tiles of up to five rows
                     else:        the kernel of n = 8

A tile has no more rows than the lower end of a range allows, so that the last one may overlap the
one before.  Parts end at each of `CUTS`, and neighbours that are scheduled alike are one.

A strategy may give knobs for open sizes (`Strategy.by_size`), each with what it costs as a formula
of them: then each has a schedule for all sizes, or for those of one part, and the cheapest runs.
One alone serves them all.  An operator with two ways (`op_registry.Ways`) has a kernel for each,
which may have versions:

    a convolution of h by w   ->   if 9 * h * w < 36 * ceil(h / 4) * ceil(w / 4) + 40: directly
                                   else: by Winograd's algorithm

One of one tap, whose positions have nothing to do with each other, has versions by their number
(`flat_positions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from slipway.backends.choices import forced_for
from slipway.backends.primitive import ScheduledKernel, schedule_primitive
from slipway.backends.strategy import SizedKnobs
from slipway.backends.ways import ways_of
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import substitute, walk
from slipway.relay import op_registry
from slipway.relay.analysis.flat_positions import flat_positions
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import Function
from slipway.relay.narrowed import narrowed
from slipway.relay.op_registry import OpPattern
from slipway.relay.ops.control import bodies_of
from slipway.relay.types import flatten
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.target import Target

CUTS = (2, 3, 4, 5, 6, 7, 8, 16, 32)  # where parts begin; the last is more rows than any tile has
IMAGE_CUTS = (2, 4, 8, 32)  # of images without a product for each tap: what a last tile repeats
FLAT_CUTS = (2, 4, 8, 12, 16, 32)  # of positions that lie in one row
SMALL_CUTS = (2, 3, 4, 5, 6)  # of a way that computes small images only
_LIGHT = ("nn.contrib_depthwise", "nn.max_pool", "nn.avg_pool")


def _sizes_in(condition: E.PrimExpr) -> list[E.Var]:
    return [e for e in walk(condition) if isinstance(e, E.Var)]


@dataclass(frozen=True)
class Version:
    """A kernel for `low` to `high` of one size, which is `size` in it."""

    low: int
    high: int | None
    size: E.Var | int
    function: Function
    kernel: ScheduledKernel
    table: Sequence[SizedKnobs]  # the knobs that it chooses from when it runs

    @property
    def decisions(self) -> tuple[Any, ...]:
        """What makes its schedule differ from that of another version."""
        choice = self.kernel.choice
        sized = tuple(entry.knobs for entry in self.table)
        return (self.kernel.implementation, sized or (choice and choice.knobs))

    def is_like(self, other: Version) -> bool:
        """Return whether both are scheduled alike."""
        return self.decisions == other.decisions


def size_versions(function: Function, target: Target) -> tuple[E.Var, list[Version]] | None:
    """Return a size that a kernel is to be cut by, and the versions from small to large.

    None where one schedule serves all sizes, or where there is none that is open.
    """
    variables = _variables(function)
    if not variables:
        return None
    whole = schedule_primitive(function, target)
    return _size_versions(function, target, whole, variables)


def _size_versions(
    function: Function,
    target: Target,
    whole: ScheduledKernel,
    variables: Sequence[E.Var],
    cuts: Sequence[int] = (),
) -> tuple[E.Var, list[Version]] | None:
    if op_registry.get(whole.anchor).pattern <= OpPattern.INJECTIVE:
        return None
    table = _table(whole, variables)
    cuts = cuts or (IMAGE_CUTS if whole.anchor.startswith(_LIGHT) else CUTS)
    for variable in variables:
        dim = SymbolDim(variable)
        every = Version(dim.low, dim.high, variable, function, whole, table)
        found = _versions(every, target, variable, cuts)
        if len(found) > 1:
            return variable, found
    return None


def _variables(function: Function) -> list[E.Var]:
    found: dict[E.Var, None] = {}
    for param in function.params:
        for type_ in flatten(param.checked_type):
            for extent in type_.shape:
                # The kernel reads a size where it is an axis of its own.
                if isinstance(extent, SymbolDim) and isinstance(extent.formula, E.SizeVar):
                    found[extent.formula] = None
    return list(found)


def _versions(
    every: Version, target: Target, variable: E.Var, cuts: Sequence[int]
) -> list[Version]:
    """Return the versions that the parts of a range need; `every` is that of the whole range."""
    function = every.function
    parts = _parts(every.low, every.high, cuts)
    ends = {part: _version(function, target, variable, *part) for part in (parts[0], parts[-1])}
    first, last = ends[parts[0]], ends[parts[-1]]
    # Tiles grow with a size: what is alike at both ends is so between them.
    if first.is_like(last) and every.is_like(first):
        return [every]
    found: list[Version] = []
    for low, high in parts:
        made = ends.get((low, high)) or _version(function, target, variable, low, high)
        if found and found[-1].is_like(made):
            joined = _version(function, target, variable, found[-1].low, high)
            if joined.is_like(made):
                found[-1] = joined
                continue
        found.append(made)
    return found


def _parts(low: int, high: int | None, cuts: Sequence[int] = CUTS) -> list[tuple[int, int | None]]:
    """Return the parts of a range, cut at `cuts`, and at `CUTS` before an upper end as small."""
    inside = [cut for cut in cuts if cut > low and (high is None or cut <= high)]
    if cuts is CUTS and high is not None and low < high <= CUTS[-1] and high not in inside:
        inside.append(high)
    starts = [low, *inside]
    return [*((a, b - 1) for a, b in pairwise(starts)), (starts[-1], high)]


def _version(
    function: Function, target: Target, variable: E.Var, low: int, high: int | None
) -> Version:
    size: E.Var | int
    if low == high:
        size = low
    else:
        size = E.SizeVar(variable.name, variable.dtype, low, -1 if high is None else high)
    part = narrowed(function, {variable: size})
    made = schedule_primitive(part, target)
    return Version(low, high, size, part, made, _table(made, _variables(part)))


Lowering = Callable[[Function, ScheduledKernel], PrimFunc]


def in_versions(function: Function, target: Target, lowered: Lowering) -> PrimFunc:
    """Return the loops of a kernel, in versions where its open sizes ask for them.

    ``lowered(function, kernel)`` gives those of a version and its schedule.
    """
    if not target.kind.is_cpu:
        return lowered(function, schedule_primitive(function, target))
    found = ways_of(function)
    if found is not None and isinstance(found.condition, E.IntImm):
        return in_versions(found.one if found.condition.value else found.other, target, lowered)
    if found is not None and set(_variables(function)).issuperset(_sizes_in(found.condition)):
        one = _in_parts(found.one, target, lowered, SMALL_CUTS)
        other = in_versions(found.other, target, lowered)
        frame = _frame(other, function)
        bodies = [_moved(f, frame, {}) for f in (one, other)]
        return frame.with_body(S.IfThenElse(found.condition, *bodies))
    flat = flat_positions(function)
    if flat is None:
        return _in_parts(function, target, lowered)
    made = _in_parts(flat.function, target, lowered, FLAT_CUTS)
    frame = _frame(made, function)
    return frame.with_body(S.LetStmt(flat.count, flat.formula, _moved(made, frame, {})))


def _in_parts(
    function: Function, target: Target, lowered: Lowering, cuts: Sequence[int] = ()
) -> PrimFunc:
    whole = schedule_primitive(function, target)
    if any(bodies_of(expr) for expr in post_order(function.body)):
        return lowered(function, whole)  # the kernels inside have versions of their own
    variables = _variables(function)
    if not variables:
        return lowered(function, whole)
    table = _table(whole, variables)
    if table:  # one entry, too: then it serves the whole range
        return _cheapest_of(table, function, target, lowered)
    found = _size_versions(function, target, whole, variables, cuts)
    if found is None:
        return lowered(function, whole)
    variable, versions = found
    made = [
        _cheapest_of(version.table, version.function, target, lowered)
        if version.table
        else lowered(version.function, version.kernel)
        for version in versions
    ]
    frame = _frame(made[-1], function)
    bodies = [
        _moved(f, frame, {} if isinstance(v.size, int) else {v.size: variable})
        for f, v in zip(made, versions, strict=True)
    ]
    body = bodies[-1]
    for version, smaller in zip(versions[-2::-1], bodies[-2::-1], strict=True):
        assert version.high is not None
        within = ops.less(variable, ops.const(version.high + 1, variable.dtype))
        body = S.IfThenElse(within, smaller, body)
    return frame.with_body(body)


def sized_knobs(function: Function, target: Target) -> Sequence[SizedKnobs]:
    """Return the knobs that a kernel chooses from when it runs; none where a user has chosen."""
    variables = _variables(function)
    return _table(schedule_primitive(function, target), variables) if variables else ()


def _table(made: ScheduledKernel, variables: Sequence[E.Var]) -> Sequence[SizedKnobs]:
    choice = made.choice if variables else None
    if choice is None or choice.strategy.by_size is None or forced_for(choice.problem) is not None:
        return ()
    found = choice.strategy.by_size(choice.problem)
    return found if all(set(variables).issuperset(_sizes_in(k.cost)) for k in found) else ()


def _cheapest_of(
    table: Sequence[SizedKnobs], function: Function, target: Target, lowered: Lowering
) -> PrimFunc:
    """Return a kernel with a schedule for each of the knobs, of which the cheapest runs."""
    made = [lowered(function, schedule_primitive(function, target, e.knobs)) for e in table]
    frame = _frame(made[-1], function)
    bodies = [_moved(f, frame, {}) for f in made]
    body = bodies[-1]
    for number in range(len(table) - 2, -1, -1):
        others = reduce(ops.minimum, [entry.cost for entry in table[number + 1 :]])
        body = S.IfThenElse(ops.less_equal(table[number].cost, others), bodies[number], body)
    return frame.with_body(body)


def _frame(version: PrimFunc, function: Function) -> PrimFunc:
    """Return a version as the function of all of them: its arguments have the whole range."""
    types = [t for p in function.params for t in flatten(p.checked_type)]
    types += flatten(function.body.checked_type)
    pairs = []
    for (handle, buffer), type_ in zip(version.buffer_map, types, strict=True):
        shape = tuple(
            d.formula if isinstance(d, SymbolDim) else ops.const(d, "int32") for d in type_.shape
        )
        pairs.append((handle, buffer.replace(shape=shape)))
    return version.replace(buffer_map=tuple(pairs))  # type: ignore[no-any-return]


def _moved(version: PrimFunc, frame: PrimFunc, sizes: Mapping[E.Var, E.Var]) -> S.Stmt:
    """Return the body of a version on the buffers, and with the `sizes`, of the whole kernel."""
    mapping: dict[Any, Any] = dict(sizes)
    for (_, old), (_, new) in zip(version.buffer_map, frame.buffer_map, strict=True):
        mapping[old] = new
        mapping[old.data] = new.data  # for other views of the memory of an argument
    return substitute(version.body, mapping)  # type: ignore[no-any-return]
