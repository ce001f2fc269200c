"""The state of a schedule while steps are added to it: its stages, and the loops of each.

A `StateObject` holds steps, a `State` is what a script edits.  Lengths of loops are known where a
step says them, and everywhere after `ComputeDAG.infer_bound_from_state`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slipway import te
from slipway.auto_scheduler.steps import MARKS, Replay, Step
from slipway.errors import TuningError
from slipway.ir.expr import IntImm, IterVar, Range
from slipway.te.operation import Operation
from slipway.te.primitives.relations import Fuse, Split
from slipway.te.primitives.state import INLINE, ROOT
from slipway.te.stage import Stage
from slipway.tuning.space import Candidate

if TYPE_CHECKING:
    from slipway.auto_scheduler.compute_dag import ComputeDAG

Lengths = Mapping[IterVar, int]


@dataclass(frozen=True)
class Iterator:
    """One loop: its name, its range where that is known, and how it is marked."""

    name: str
    range: Range | None = field(compare=False)  # the same loop, whether it is known or not
    iter_kind: str
    annotation: int
    axis: IterVar

    @property
    def length(self) -> int | None:
        """The number of steps, where it is known."""
        if self.range is None:
            return None
        return int(self.range.extent)  # type: ignore[call-overload, no-any-return]


StageKey = te.Tensor | Operation | int  # how a script names a stage
LoopKey = Iterator | int


class StageState:
    """One stage: its operation, its loops, and where it is computed."""

    ROOT, INLINED, ITER = 0, 1, 2

    def __init__(self, stage: Stage, axes: Sequence[IterVar], known: Lengths) -> None:
        self.op = stage.op
        self.op_type = 0 if isinstance(stage.op, te.PlaceholderOp) else 1
        self.compute_at = {ROOT: self.ROOT, INLINE: self.INLINED}.get(stage.attach_type, self.ITER)
        self.iters = [_iterator(stage, axis, known) for axis in axes]

    def __repr__(self) -> str:
        return f"Stage({self.op.name}, {[i.name for i in self.iters]})"


class StateObject:
    """Steps on a graph; it never changes."""

    def __init__(
        self, dag: ComputeDAG, steps: Sequence[Step], lengths: Lengths | None = None
    ) -> None:
        self.dag, self.transform_steps = dag, list(steps)
        self.candidate: Candidate | None = None  # of the sketches, where it is one
        self._lengths = lengths
        self._replay: Replay | None = None

    @property
    def replay(self) -> Replay:
        """The schedule that the steps make; not to be changed."""
        if self._replay is None:
            self._replay = self.dag.replay(self.transform_steps)
        return self._replay

    @property
    def stages(self) -> list[StageState]:
        """The stages in the steps' numbering."""
        known = self._lengths or lengths_said(self.replay)
        at = zip(self.replay.stages, self.replay.axes, strict=True)
        return [StageState(stage, axes, known) for stage, axes in at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateObject) and self.transform_steps == other.transform_steps

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        lines = []
        inputs = [s.op.name for s in self.stages if s.op_type == 0]
        lines.append(f"Placeholder: {', '.join(inputs)}")
        for stage in self.stages:
            if stage.op_type == 0 or stage.compute_at == StageState.INLINED:
                continue
            for depth, loop in enumerate(stage.iters):
                mark = MARKS[loop.annotation] if loop.annotation else "for"
                extent = loop.range.extent if loop.range is not None else None
                said = f"(0,{extent})" if extent is not None else "(None)"
                lines.append(f"{'  ' * depth}{mark} {loop.name} {said}")
            lines.append(f"{'  ' * len(stage.iters)}{stage.op.name} = ...")
        return "\n".join(lines) + "\n"


def _lengths_in(replay: Replay, older: Replay, lengths: Lengths) -> Lengths:
    """Return lengths of the loops of `older` as those of the same loops of another replay."""
    pairs = zip(older.axes, replay.axes, strict=True)
    same = [pair for olds, news in pairs for pair in zip(olds, news, strict=True)]
    return {new: lengths[old] for old, new in same if old in lengths}


class State:
    """A schedule under construction, step by step (classic)."""

    ANNOTATION_TRANS_TABLE: ClassVar[dict[str, int]] = {
        name: number for number, name in enumerate(MARKS)
    }

    def __init__(self, state_object: StateObject | State, dag: ComputeDAG) -> None:
        self.compute_dag = dag
        self._replay = dag.replay(state_object.transform_steps)
        self._lengths: Lengths | None = None
        if lengths := state_object._lengths:
            given = state_object
            older = given._replay if isinstance(given, State) else given.replay
            self._lengths = _lengths_in(self._replay, older, lengths)
        # Operations and loops of the states that this one is a copy of, and what they are here.
        self._same: dict[Any, Any] = {}
        if isinstance(state_object, State):
            self._take_over(state_object)

    def _take_over(self, older: State) -> None:
        """Know the operations and loops of a state of the same steps as one's own."""
        mine, other = older._replay, self._replay
        positions = {id(stage): n for n, stage in enumerate(mine.stages)}
        # Operations that cache reads and writes replaced are those of their stages, too.
        found: dict[Any, Any] = {
            op: other.stages[positions[id(stage)]].op
            for op, stage in mine.schedule.stage_map.items()
            if id(stage) in positions
        }
        for axes, others in zip(mine.axes, other.axes, strict=True):
            found.update(zip(axes, others, strict=True))
        self._same = found | {old: found[now] for old, now in older._same.items() if now in found}

    @property
    def state_object(self) -> StateObject:
        """The steps so far."""
        made = StateObject(self.compute_dag, self._replay.steps)
        if self._lengths:
            made._lengths = _lengths_in(made.replay, self._replay, self._lengths)
        return made

    @property
    def transform_steps(self) -> list[Step]:
        """The steps so far."""
        return list(self._replay.steps)

    @property
    def stages(self) -> list[StageState]:
        """The stages in the steps' numbering."""
        known = self._lengths or lengths_said(self._replay)
        at = zip(self._replay.stages, self._replay.axes, strict=True)
        return [StageState(stage, axes, known) for stage, axes in at]

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.op for stage in self._replay.stages]

    def __getitem__(self, key: StageKey) -> StageState:
        return self.stages[self.number_of(key)]

    def number_of(self, key: StageKey) -> int:
        """Return the number of a stage, given by itself, its operation, its tensor or its number.

        Raises TuningError where there is none.
        """
        if isinstance(key, int):
            if 0 <= key < len(self._replay.stages):
                return key
        else:
            op = key.op if isinstance(key, te.Tensor) else key
            stage = self._replay.schedule.stage_map.get(self._same.get(op, op))
            for number, known in enumerate(self._replay.stages):
                if known is stage:
                    return number
        names = ", ".join(s.name for s in self._replay.stages)
        raise TuningError(f"{key!r} is no stage of this state, which has: {names}")

    def _loops(self, stage: int, loops: Sequence[LoopKey]) -> list[int]:
        axes = self._replay.axes[stage]
        found = []
        for loop in loops:
            axis = loop.axis if isinstance(loop, Iterator) else None
            axis = self._same.get(axis, axis)
            numbers = [n for n, a in enumerate(axes) if a is axis]
            if isinstance(loop, int):
                numbers = [loop]
            if not numbers:
                names = ", ".join(a.name for a in axes)
                raise TuningError(
                    f"{getattr(loop, 'name', loop)!r} is no loop of the stage "
                    f"{self._replay.stages[stage].name!r} any more, which has: {names}"
                )
            found += numbers
        return found

    def _do(self, step: Step) -> Any:
        self._lengths = None
        return self._replay.do(step)

    def _iterator(self, stage: int, axis: IterVar) -> Iterator:
        return _iterator(self._replay.stages[stage], axis, lengths_said(self._replay))

    # Steps.

    def _mark(self, stage: StageKey, iterator: LoopKey, name: str) -> Iterator:
        if name not in MARKS:
            raise TuningError(f"{name!r} is no thread: {', '.join(MARKS[4:-1])}")
        number = self.number_of(stage)
        (loop,) = self._loops(number, [iterator])
        self._do(["AN", number, loop, MARKS.index(name)])
        return self._iterator(number, self._replay.axes[number][loop])

    def bind(self, stage: StageKey, iterator: LoopKey, thread_name: str) -> Iterator:
        """Let each step of a loop be one thread, or a virtual one ("vthread")."""
        return self._mark(stage, iterator, thread_name)

    def parallel(self, stage: StageKey, iterator: LoopKey) -> Iterator:
        """Share the steps of a loop among threads."""
        return self._mark(stage, iterator, "parallel")

    def unroll(self, stage: StageKey, iterator: LoopKey, max_unroll: int | None = None) -> Iterator:
        """Unroll a loop, one of at most `max_unroll` steps where that is said."""
        number = self.number_of(stage)
        (loop,) = self._loops(number, [iterator])
        known = self._iterator(number, self._replay.axes[number][loop])
        if max_unroll and known.length is not None and known.length > max_unroll:
            return known
        return self._mark(stage, iterator, "unroll")

    def vectorize(self, stage: StageKey, iterator: LoopKey) -> Iterator:
        """Run the steps of a loop as lanes of vectors."""
        return self._mark(stage, iterator, "vectorize")

    def fuse(self, stage: StageKey, iters: Sequence[LoopKey]) -> Iterator:
        """Fuse loops that follow each other."""
        number = self.number_of(stage)
        axis = self._do(["FU", number, self._loops(number, iters)])
        return self._iterator(number, axis)

    def pragma(self, stage: StageKey, iterator: LoopKey, pragma: str) -> None:
        """Give a loop a pragma, as "auto_unroll_max_step$64"."""
        number = self.number_of(stage)
        self._do(["PR", number, *self._loops(number, [iterator]), pragma])

    def reorder(self, stage: StageKey, order: Sequence[LoopKey]) -> None:
        """Put all loops of a stage into an order."""
        number = self.number_of(stage)
        self._do(["RE", number, self._loops(number, order)])

    def split(
        self,
        stage: StageKey,
        iterator: LoopKey,
        lengths: Sequence[int | None],
        inner_to_outer: bool = True,
    ) -> list[Iterator]:
        """Split a loop; `lengths` are those of the inner loops, or of the outer ones.

        None is a length that the search chooses, in a sketch that a rule makes.
        """
        number = self.number_of(stage)
        (loop,) = self._loops(number, [iterator])
        length = self._iterator(number, self._replay.axes[number][loop]).length
        given = [None if n is None else int(n) for n in lengths]
        step = ["SP", number, loop, length, given, int(inner_to_outer)]
        return [self._iterator(number, axis) for axis in self._do(step)]

    def follow_split(
        self, stage: StageKey, iterator: LoopKey, src_step_id: int, n_split: int
    ) -> list[Iterator]:
        """Split a loop as an earlier step split another."""
        number = self.number_of(stage)
        step = ["FSP", number, *self._loops(number, [iterator]), src_step_id, n_split]
        return [self._iterator(number, axis) for axis in self._do(step)]

    def follow_fused_split(
        self, stage: StageKey, iterator: LoopKey, src_step_ids: Sequence[int], level: int,
        factor_or_nparts: bool,
    ) -> list[Iterator]:  # fmt: skip
        """Split a loop by the product of one length of several earlier splits."""
        number, sources = self.number_of(stage), list(src_step_ids)
        loops = self._loops(number, [iterator])
        step = ["FFSP", number, *loops, sources, level, int(factor_or_nparts)]
        return [self._iterator(number, axis) for axis in self._do(step)]

    def storage_align(self, stage: StageKey, iterator: LoopKey, factor: int, offset: int) -> None:
        """Pad the storage of a stage along a loop."""
        number = self.number_of(stage)
        self._do(["SA", number, *self._loops(number, [iterator]), factor, offset])

    def compute_at(self, stage: StageKey, target_stage: StageKey, target_iter: LoopKey) -> None:
        """Compute a stage inside a loop of another."""
        target = self.number_of(target_stage)
        loops = self._loops(target, [target_iter])
        self._do(["CA", self.number_of(stage), target, *loops])

    def compute_inline(self, stage: StageKey) -> None:
        """Compute each element where it is read."""
        self._do(["CI", self.number_of(stage)])

    def compute_root(self, stage: StageKey) -> None:
        """Compute a stage in loops of its own."""
        self._do(["CR", self.number_of(stage)])

    def cache_read(
        self, stage: StageKey, scope_name: str, reader_stages: Sequence[StageKey]
    ) -> Operation:
        """Let stages read another through a copy, whose operation is returned."""
        readers = [self.number_of(reader) for reader in reader_stages]
        op: Operation = self._do(["CHR", self.number_of(stage), scope_name, readers])
        return op

    def cache_write(self, stage: StageKey, scope_name: str) -> Operation:
        """Compute a stage in a scope and copy it out; the operation that computes is returned."""
        op: Operation = self._do(["CHW", self.number_of(stage), scope_name])
        return op

    def rfactor(self, stage: StageKey, iterator: LoopKey, factor_iter_id: int) -> Operation:
        """Reduce in parts, one for each step of a reduction loop; their operation is returned."""
        number = self.number_of(stage)
        loops = self._loops(number, [iterator])
        op: Operation = self._do(["RF", number, *loops, factor_iter_id])
        return op

    def copy(self) -> State:
        """Return a state of its own with the same steps."""
        return State(self, self.compute_dag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.transform_steps == other.transform_steps

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self.state_object)


def _iterator(stage: Stage, axis: IterVar, known: Lengths) -> Iterator:
    attr = stage.iter_var_attrs.get(axis)
    mark = 0
    if attr is not None:
        thread = attr.bind_thread.thread_tag if attr.bind_thread is not None else ""
        word = {"unrolled": "unroll", "vectorized": "vectorize", "parallel": "parallel"}.get(
            str(attr.kind), "none"
        )
        mark = MARKS.index(thread) if thread in MARKS else MARKS.index(word)
    length = known.get(axis)
    where = None if length is None else Range.of(length)
    return Iterator(axis.name, where, axis.kind, mark, axis)


def lengths_said(replay: Replay) -> dict[IterVar, int]:
    """Return the lengths of loops that the graph and the splits say.

    A stage that is computed inside of another's loop computes a part, whose size they do not say.
    """
    known: dict[IterVar, int] = {}
    for stage in replay.stages:
        if stage.attach_type not in (ROOT, INLINE):
            continue
        for axis in stage.op.root_iter_vars:
            if axis.dom is not None and isinstance(axis.dom.extent, IntImm):
                known[axis] = int(axis.dom.extent)
        for relation in stage.relations:
            if isinstance(relation, Split) and relation.parent in known:
                size, parent = relation.factor, known[relation.parent]
                other = relation.nparts
                given = size if size is not None else other
                if isinstance(given, IntImm):
                    length = int(given)
                    quotient = -(-parent // length)
                    inner, outer = (length, quotient) if size is not None else (quotient, length)
                    known[relation.inner], known[relation.outer] = inner, outer
                    for axis in replay.unchosen & {relation.inner, relation.outer}:
                        del known[axis]
            elif isinstance(relation, Fuse) and {
                relation.outer, relation.inner
            } <= known.keys():  # fmt: skip
                known[relation.fused] = known[relation.outer] * known[relation.inner]
    return known


__all__ = ["Iterator", "StageState", "State", "StateObject", "lengths_said"]
