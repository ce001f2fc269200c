"""Tensorize: replace a loop and all loops inside it by one tensor intrinsic.

The loops inside must compute what the intrinsic declares: their ranges and the formula, with the
start of each region taken off, are compared with the intrinsic's own; a difference is a
ScheduleError that shows both.  Then each buffer of the intrinsic is bound to its region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.arith.interval import Interval, interval_of, union
from slipway.arith.linear import Atom, Linear
from slipway.errors import ScheduleError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad, Reduce, Var
from slipway.ir.structural import structural_equal
from slipway.ir.visit import substitute
from slipway.te.compute_nest import ComputeNest
from slipway.te.operation import loads_in
from slipway.te.rewrite import replace_nodes, rewrite
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor
from slipway.te.tensor_intrin import TensorIntrin

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike
    from slipway.ir.node import Node
    from slipway.te.lowering import Lowering


def find_tensorized(stage: Stage) -> IterVar | None:
    """Return the axis that the schedule tensorizes, or None."""
    for axis, mark in stage.iter_var_attrs.items():
        if mark.tensor_intrin is not None:
            return axis
    return None


def tensorized_stage(lowering: Lowering, stage: Stage) -> S.Stmt:
    """Return the statement of a stage with a tensorized axis."""
    return _Tensorized(lowering, stage).statement()


class _Tensorized:
    def __init__(self, lowering: Lowering, stage: Stage) -> None:
        self.builder = ComputeNest(lowering, stage)
        self.lowering = lowering
        self.an = lowering.an
        self.stage = stage
        self.nest = self.builder.nest
        axis = find_tensorized(stage)
        assert axis is not None
        self.axis = axis
        self.intrin: TensorIntrin = stage.iter_var_attrs[axis].tensor_intrin
        self.depth = next(i for i, x in enumerate(self.nest.loops) if x.axis is axis)
        self.inner: dict[Atom, Interval] = {
            x.atom: (self.an.constant(0), x.extent.shifted(-1))
            for x in self.nest.loops[self.depth :]
            if x.atom is not None
        }

    def fail(self, why: str) -> ScheduleError:
        return ScheduleError(
            f"cannot tensorize stage {self.stage.name!r} at axis {self.axis.name!r} with "
            f"{self.intrin.name!r}: {why}"
        )

    def statement(self) -> S.Stmt:
        guards = self.builder._guards()
        if any(not atoms.isdisjoint(self.inner) for _, atoms in guards):
            raise self.fail(
                "its loops need a boundary check. Choose split factors that divide the extents"
            )
        starts = self._match_axes()
        self._verify(starts)
        mapping = self._bind_buffers(starts)
        loops = self.nest.loops
        begin = next((i for i, x in enumerate(loops[: self.depth]) if x.reduces), None)
        if begin is None:
            body = self._part(self.intrin.body, "body", mapping)
            return self.builder.wrap(body, 0, self.depth, guards)
        update = self._part(self.intrin.reduce_update, "update", mapping)
        inside = {x.atom for x in loops[begin : self.depth] if x.atom is not None}
        outer = [g for g in guards if g[1].isdisjoint(inside)]
        inner = [g for g in guards if not g[1].isdisjoint(inside)]
        if self.intrin.reduce_init is None:
            first = ops.all_of(
                [ops.equal(x.var, 0) for x in loops[begin : self.depth] if x.reduces and x.atom]
            )
            whole = self._part(self.intrin.body, "body", mapping)
            stmt = self.builder.wrap(S.IfThenElse(first, whole, update), begin, self.depth, inner)
            return self.builder.wrap(stmt, 0, begin, outer)
        reset = self._part(self.intrin.reduce_init, "reset", mapping)
        for loop in reversed(loops[begin : self.depth]):
            if not loop.reduces and loop.atom is not None:
                var = Var(loop.var.name + ".init", loop.var.dtype)
                reset = self.builder.loop(loop, substitute(reset, {loop.var: var}), var)
        steps = self.builder.wrap(update, begin, self.depth, inner)
        parts = [reset, steps]
        if self.intrin.reduce_finish is not None:
            if any(not x.reduces and x.atom for x in loops[begin : self.depth]):
                raise self.fail(
                    "it holds its sums until the reduction ends: no other loop may lie between "
                    "its reduction loops and the intrinsic"
                )
            parts.append(self._part(self.intrin.reduce_finish, "finish", mapping))
        return self.builder.wrap(S.seq(parts), 0, begin, outer)

    def _part(self, stmt: S.Stmt | None, what: str, mapping: dict[Any, Any]) -> S.Stmt:
        if stmt is None:
            raise self.fail(
                f"reduction loops are left outside, and the intrinsic declares no {what}. Return "
                "(body, reset, update) from its function, or tensorize further out"
            )
        return substitute(stmt, mapping)  # type: ignore[no-any-return]

    # -- the axes --

    def _match_axes(self) -> dict[Any, PrimExpr]:
        """Map the stage's axis variables to (start of its region) + (the intrinsic's axis)."""
        an, found = self.an, {}
        own, other = self.stage.op, self.intrin.op
        self.regions: dict[Atom, Interval] = {}
        for mine, theirs, kind in (
            (own.axis, other.axis, "data"),
            (own.reduce_axis, other.reduce_axis, "reduction"),
        ):
            extra = len(mine) - len(theirs)
            if extra < 0:
                raise self.fail(f"it has {len(theirs)} {kind} axes, the stage only {len(mine)}")
            partners: list[IterVar | None] = [None] * extra + list(theirs)
            for axis, partner in zip(mine, partners, strict=True):
                atom = an.var_atom(axis.var)
                inside = interval_of(an, self.nest.values[atom], self.inner)
                if inside is None:
                    raise self.fail(f"the range of axis {axis.name!r} inside it has no bound")
                low, high = inside
                extent = an.recombine(high.minus(low)).shifted(1)
                want = an.constant(1) if partner is None else an.linear(partner.extent)
                if extent.key != want.key:
                    raise self.fail(
                        f"axis {axis.name!r} runs {extent.to_expr()} steps inside, the intrinsic "
                        f"takes {want.to_expr()}. Split that axis by {want.to_expr()} and put the "
                        "inner loop inside the tensorized one"
                    )
                start = an.to_expr(low)
                self.regions[atom] = inside
                found[axis.var] = start if partner is None else ops.add(start, partner.var)
        return found

    # -- the formula --

    def _verify(self, starts: dict[Any, PrimExpr]) -> None:
        """Compare the stage's formula, region starts taken off, with the intrinsic's."""
        inputs = self._inputs()
        if len(inputs) != len(self.intrin.inputs):
            raise self.fail(
                f"the stage reads {len(inputs)} tensors, the intrinsic {len(self.intrin.inputs)}"
            )
        self.input_starts = {t: self._region_start(t) for t in inputs}
        partner = dict(zip(inputs, self.intrin.inputs, strict=True))
        an = self.an

        def localise(node: Node) -> Any:
            if not isinstance(node, ProducerLoad) or node.producer not in partner:
                return None
            theirs = partner[node.producer]
            lows = self.input_starts[node.producer]
            extra = len(lows) - theirs.ndim
            if extra < 0 or node.producer.dtype != theirs.dtype:
                raise self.fail(
                    f"input {node.producer.name!r} ({node.producer.dtype}, {len(lows)} dimensions) "
                    f"does not fit its {theirs.name!r} ({theirs.dtype}, {theirs.ndim} dimensions)"
                )
            local = [
                an.to_expr(an.recombine(an.linear(i).minus(low)))
                for i, low in zip(node.indices, lows, strict=True)
            ]
            if any(not (isinstance(i, E.IntImm) and i.value == 0) for i in local[:extra]):
                raise self.fail(f"input {node.producer.name!r} varies in a leading dimension")
            return ProducerLoad(theirs, tuple(local[extra:]))

        def canonical(node: Node) -> Any:
            if isinstance(node, ProducerLoad):
                return ProducerLoad(node.producer, tuple(an.simplify(i) for i in node.indices))
            return None

        for axis in (*self.intrin.op.axis, *self.intrin.op.reduce_axis):
            assert axis.dom is not None
            an.bind_range(axis.var, axis.dom)
        for mine, theirs in zip(self.builder.body, self.intrin.op.body, strict=True):
            local = rewrite(replace_nodes(mine, starts), localise)
            wanted = rewrite(theirs, canonical)
            if not _same_formula(local, wanted):
                raise self.fail(
                    f"the formulas differ. The stage computes {_formula(local)}; the intrinsic "
                    f"computes {_formula(wanted)}"
                )

    def _inputs(self) -> list[Tensor]:
        found: dict[Tensor, None] = {}
        for body in self.builder.body:
            for load in loads_in(body):
                found.setdefault(load.producer)
        return list(found)

    def _region_start(self, tensor: Tensor) -> list[Linear]:
        """The tensor index at which the region that the intrinsic reads begins."""
        an = self.an
        region: list[Interval] | None = None
        for body in self.builder.body:
            for load in loads_in(body):
                if load.producer is not tensor:
                    continue
                read = [interval_of(an, an.linear(i), self.regions) for i in load.indices]
                if any(r is None for r in read):
                    raise self.fail(f"what it reads of {tensor.name!r} has no bound")
                pairs: list[Interval] = read  # type: ignore[assignment]
                region = (
                    pairs
                    if region is None
                    else [union(an, a, b) for a, b in zip(region, pairs, strict=True)]
                )
        assert region is not None
        return [low for low, _ in region]

    # -- the memory --

    def _bind_buffers(self, starts: dict[Any, PrimExpr]) -> dict[Any, Any]:
        an = self.an
        mapping: dict[Any, Any] = {}
        inputs = list(self.input_starts)
        for tensor, declared in zip(inputs, self.intrin.buffers, strict=False):
            self._bind(tensor, self.input_starts[tensor], declared, mapping)
        lows = [self.regions[an.var_atom(a.var)][0] for a in self.stage.op.axis]
        outputs = self.intrin.buffers[len(inputs) :]
        for tensor, declared in zip(self.stage.op.outputs, outputs, strict=True):
            self._bind(tensor, lows, declared, mapping)
        return mapping

    def _bind(
        self, tensor: Tensor, starts: list[Linear], declared: Buffer, mapping: dict[Any, Any]
    ) -> None:
        """Make `declared` a view of the tensor's storage that begins at `starts`."""
        an = self.an
        storage = self.lowering.storage[tensor]
        real = storage.buffer
        if storage.mins is not None:
            starts = [
                an.recombine(s.minus(low)) for s, low in zip(starts, storage.mins, strict=True)
            ]
        strides = _strides_of(an, real)
        offset = an.constant(0)
        for start, stride in zip(starts, strides, strict=True):
            offset = offset.plus(an.multiply(start, stride))
        if real.elem_offset is not None:
            offset = offset.plus(an.linear(real.elem_offset))
        index = an.to_expr(an.recombine(offset))
        extra = len(strides) - len(declared.shape)
        for want, have, dim in zip(declared.strides, strides[extra:], declared.shape, strict=True):
            if isinstance(want, Var):
                mapping[want] = an.to_expr(have)
            elif not an.can_prove_equal(want, an.to_expr(have)) and ops.as_int(dim) != 1:
                raise self.fail(
                    f"buffer {declared.name!r} needs stride {want}, but {tensor.name!r} has "
                    f"{have.to_expr()} there. Change the layout (cache_read packs it) or declare "
                    "the stride as a variable"
                )
        if isinstance(declared.elem_offset, Var):
            mapping[declared.elem_offset] = index
        factor = declared.offset_factor
        if factor > 1:
            step, remainder = an.linear(index).modular()
            if (step % factor or remainder % factor) if step else remainder % factor:
                raise self.fail(
                    f"buffer {declared.name!r} needs an offset divisible by {factor}, but it is "
                    f"{index}"
                )
        view = Buffer(
            declared.name,
            real.data,
            real.dtype,
            declared.shape,
            tuple(an.to_expr(s) for s in strides[extra:]),
            index,
            real.scope,
        )
        mapping[declared] = view
        mapping[declared.data] = real.data


def _strides_of(an: Any, buffer: Buffer) -> list[Linear]:
    if buffer.strides:
        return [an.linear(s) for s in buffer.strides]
    step, found = an.constant(1), []
    for extent in reversed(buffer.shape):
        found.append(step)
        step = an.multiply(step, an.linear(extent))
    return found[::-1]


def _same_formula(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, Reduce) != isinstance(theirs, Reduce):
        return False
    if not isinstance(mine, Reduce):
        return structural_equal(mine, theirs, map_free_vars=True)
    return structural_equal(
        (mine.source, mine.condition), (theirs.source, theirs.condition), map_free_vars=True
    ) and structural_equal(mine.combiner, theirs.combiner)


def _formula(body: PrimExprLike) -> str:
    return str(body.source[0]) if isinstance(body, Reduce) else str(body)
