"""Schedule rules (classic): what `PostOrderApply` does to each block of a function.

``rule.apply(sch, block)`` returns schedules: the given one where the rule has nothing to do, or
copies with steps.  Those of a processor are `ScheduleRule.create("llvm")`; a script's own derive
from `PyScheduleRule`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.errors import NotAvailableError, ScheduleError, TuningError
from slipway.ir import ops
from slipway.ir.expr import BufferLoad, Call, IterVar, Var
from slipway.ir.stmt import Block
from slipway.ir.visit import walk
from slipway.runtime.packed_func import get_global_func
from slipway.target import Target

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

FEW_POINTS = 64  # fewer results than these: a long sum is cut into parts
LONG = 64
# Annotations of blocks: what is done to their loops when all lengths are known.
PARALLEL = "meta_schedule.parallel"
VECTORIZE = "meta_schedule.vectorize"
UNROLL = "meta_schedule.unroll_explicit"


class ScheduleRule:
    """What is done to one block."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Be told what the search is for."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule, or copies of it with steps for the block."""
        raise NotImplementedError(f"{type(self).__name__} has no apply(sch, block)")

    def clone(self) -> ScheduleRule:
        """Return the rule: it keeps nothing of a search."""
        return self

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """Return the rules of a kind of target."""
        if kind not in ("llvm", "c"):
            raise NotAvailableError(
                f"there are no schedule rules for {kind!r}: those here are for processors "
                "('llvm'); give PostOrderApply(sch_rules=[...]) your own, or a ScheduleFn"
            )
        return [
            ApplyCustomRule(), AutoInline(), AddRFactor(), MultiLevelTiling("SSRSRS"),
            RandomComputeLocation(), ParallelizeVectorizeUnroll(),
        ]  # fmt: skip

    @staticmethod
    def of_target(target: Target) -> list[ScheduleRule]:
        """Return the rules for a target."""
        return ScheduleRule.create("llvm" if target.kind.is_cpu else target.kind.name)


class PyScheduleRule(ScheduleRule):
    """A rule of a script's own: it has `apply(sch, block)`."""


@dataclass(frozen=True)
class ReuseType:
    """Whether a tile is computed in memory of its own, "no", "may" or "must", inside which loops.

    Levels count the tiles of the structure from the outside, from one on.
    """

    req: str = "may"
    levels: Sequence[int] = (1, 2)
    scope: str = "global"


class ApplyCustomRule(ScheduleRule):
    """Calls the function that a block's annotation "schedule_rule" names, with (sch, block)."""

    def __init__(self) -> None:
        self._keys: tuple[str, ...] = ("cpu",)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        if context.target is not None:
            self._keys = (*map(str, context.target.keys), context.target.kind.name)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return what the function makes.  Raises TuningError where none is registered."""
        name = dict(getattr(sch.get(block), "annotations", ())).get("schedule_rule")
        name = getattr(name, "value", name)
        if name in (None, "None"):
            return [sch]
        known = [f"meta_schedule.{key}.{name}" for key in self._keys] + [str(name)]
        for called in known:
            function = get_global_func(called, allow_missing=True)
            if function is not None:
                made = function(sch, block)
                return [made] if isinstance(made, Schedule) else list(made)
        raise TuningError(
            f"the block {block.name!r} asks for the schedule rule {name!r}: register_func a "
            f"function of (sch, block) as one of {', '.join(map(repr, known))}"
        )


class AutoInline(ScheduleRule):
    """Computes cheap elements where they are read.

    What calls a function, as an exponential, is computed once, unless one block alone reads it.
    """

    def __init__(
        self,
        into_producer: bool = False,
        into_consumer: bool = True,
        inline_const_tensor: bool = True,
        disallow_if_then_else: bool = True,
        require_injective: bool = True,
        require_ordered: bool = True,
        disallow_op: Sequence[str] | None = None,
    ) -> None:
        del into_producer, inline_const_tensor, require_injective, require_ordered
        self.into_consumer, self.is_plain = into_consumer, disallow_if_then_else
        self.disallowed = set(disallow_op or ())

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule with the block inlined, where that is possible and cheap."""
        found = leaf_of(sch, block)
        if found is None or not self.into_consumer or not is_spatial(found):
            return [sch]
        calls = {f"tir.{node.name}" for node in walk(found.body) if isinstance(node, Call)}
        readers = sch.get_consumers(block)
        if not readers or calls & self.disallowed or (calls and len(readers) > 1):
            return [sch]
        if calls and any(_reduces(sch, reader) for reader in readers):
            return [sch]
        return [tried(sch, lambda copy: copy.compute_inline(block)) or sch]


class InlineConstantScalars(ScheduleRule):
    """Does nothing: constants are folded by the loop passes."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule."""
        del block
        return [sch]


class AddRFactor(ScheduleRule):
    """Cuts a long sum of few results into parts that are summed at once."""

    def __init__(self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = 64) -> None:
        del max_jobs_per_core
        self.most = max_innermost_factor or 0

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule as it is, and with the sum in parts."""
        found = leaf_of(sch, block)
        if found is None or is_spatial(found) or "" in kinds_of(sch, block):
            return [sch]
        spatial, reduced = _lengths(found, "data"), _lengths(found, "reduce")
        if math.prod(spatial) >= FEW_POINTS or math.prod(reduced) < LONG:
            return [sch]

        def cut(copy: Schedule) -> None:
            loops = [loop for loop, kind in nest_of(copy, block) if kind == "reduce"]
            loop = copy.fuse(*loops) if len(loops) > 1 else loops[0]
            _, inner = copy.split(loop, copy.sample_perfect_tile(loop, 2, self.most or 16))
            copy.rfactor(inner, len(spatial))

        made = tried(sch, cut)
        return [sch] if made is None else [made, sch]


class MultiLevelTiling(ScheduleRule):
    """Tiles what reads elements again and again; "S" and "R" of the structure are levels of loops.

    The tile is computed where the block that reads it is, if that reads each element once, or in
    memory of its own.
    """

    def __init__(
        self,
        structure: str = "SSRSRS",
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = 64,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = ReuseType(),
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        if tile_binds is not None or reuse_read is not None:
            raise NotAvailableError(
                "MultiLevelTiling here is for processors: tile_binds and reuse_read, which are for "
                "GPUs, are not there; write the steps in a ScheduleFn"
            )
        if not structure or set(structure) - {"S", "R"}:
            raise TuningError(f"the structure {structure!r} is not of the letters S and R")
        del vector_load_lens
        self.structure, self.most = structure, max_innermost_factor or 0
        self.reuse, self.filter = reuse_write, filter_fn

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedules with the block tiled, computed in each of the levels."""
        found = leaf_of(sch, block)
        if found is None or not is_plain(sch, block):
            return [sch]
        wanted = self.filter(sch, block) if self.filter is not None else _reuses(found)
        if not wanted:
            return [sch]
        made: list[Schedule] = []
        reuse = self.reuse
        if reuse is not None and reuse.req != "no":
            for level in reuse.levels:
                one = tried(sch, partial(self._tiled, block=block, level=level))
                made += [] if one is None else [one]
        if not made or reuse is None or reuse.req != "must":
            one = tried(sch, partial(self._tiled, block=block, level=0))
            made += [] if one is None else [one]
        return made or [sch]

    def _tiled(self, sch: Schedule, block: BlockRV, level: int) -> None:
        """Tile, and compute the tile in level `level` of what reads it; 0: in place."""
        copied = None
        if level:
            readers = sch.get_consumers(block)
            if len(readers) == 1 and _follows(sch, block, readers[0]):
                copied = readers[0]
            else:
                copied = sch.cache_write(block, 0, self.reuse.scope if self.reuse else "global")
        levels: list[list[LoopRV]] = [[] for _ in self.structure]
        for loop, kind in nest_of(sch, block):
            letter = "S" if kind == "data" else "R"
            own = [n for n, each in enumerate(self.structure) if each == letter]
            if not own:
                raise ScheduleError(f"the structure {self.structure} has no level {letter}")
            factors = sch.sample_perfect_tile(loop, len(own), self.most or 64)
            for n, part in zip(own, sch.split(loop, factors), strict=True):
                levels[n].append(part)
        sch.reorder(*[loop for each in levels for loop in each])
        if copied is not None:
            spatial = [each for each, letter in zip(levels, self.structure, strict=True)
                       if letter == "S" and each]  # fmt: skip
            if level > len(spatial):
                raise ScheduleError(f"the structure {self.structure} has no level {level}")
            sch.reverse_compute_at(copied, spatial[level - 1][-1])


class RandomComputeLocation(ScheduleRule):
    """Lets what is neither inlined nor tiled be computed anywhere that it can be."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule with the block at a sampled place."""
        found = leaf_of(sch, block)
        if found is None or not is_spatial(found) or not sch.get_consumers(block):
            return [sch]
        if len(sch.get_loops(block)) != len(found.axes):
            return [sch]  # it is inside of another's loops already
        made = tried(sch, lambda copy: copy.compute_at(block, copy.sample_compute_location(block)))
        return [made or sch]


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Gives outer loops to threads, makes inner ones vectors, unrolls between.

    How far it unrolls is sampled; the loops are marked when all lengths are known, by
    `postproc.RewriteParallelVectorizeUnroll`.  -1 for the jobs of a core or the longest vector, and
    no steps to unroll, leave that out.
    """

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 64,
        unroll_max_steps: Sequence[int] = (0, 16, 64, 512),
        unroll_explicit: bool = True,
    ) -> None:
        del unroll_explicit
        self.jobs, self.vector, self._cores = max_jobs_per_core, max_vectorize_extent, 1
        self.unroll = [int(n) for n in unroll_max_steps or ()]

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        if context.target is not None:
            self._cores = max(1, context.target.num_cores)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule with its blocks annotated; the root stands for the function."""
        if block.name != tree.ROOT:
            return [sch]
        copy = sch.copy()
        share = [1.0 / len(self.unroll)] * len(self.unroll) if self.unroll else []
        steps = copy.sample_categorical(self.unroll, share) if self.unroll else None
        for one in tree.leaf_blocks(copy.func.body):
            made = copy.get_block(one.name)
            if self.jobs != -1:
                copy.annotate(made, PARALLEL, self.jobs * self._cores)
            if self.vector > 1:
                copy.annotate(made, VECTORIZE, self.vector)
            if steps is not None:
                copy.annotate(made, UNROLL, steps)
        return [copy]


# What a rule asks about a block.


def leaf_of(sch: Schedule, block: BlockRV) -> Block | None:
    """Return a block that computes; None for one that holds others, as the root does."""
    found: Block = sch.get(block)
    return found if found.name != tree.ROOT and len(tree.blocks_of(found)) == 1 else None


def is_spatial(block: Block) -> bool:
    """Return whether all axes of a block are of data."""
    return all(axis.kind == "data" for axis in block.axes)


def is_plain(sch: Schedule, block: BlockRV) -> bool:
    """Return whether each loop of a block counts one of its axes, as before any step."""
    loops = [loop.loop_var for loop in tree.own_loops(sch.func.body, sch.get(block))]
    return bool(loops) and loops == list(sch.get(block).bindings)


def kinds_of(sch: Schedule, block: BlockRV) -> list[str]:
    """Return what each loop of a block counts, "data" or "reduce"; "" is nothing of the block's."""
    kinds, found = dict(counted_by(sch.get(block))), tree.own_loops(sch.func.body, sch.get(block))
    return [kinds.get(loop.loop_var, "") for loop in found]


def nest_of(sch: Schedule, block: BlockRV) -> list[tuple[LoopRV, str]]:
    """Return the loops of a block with what each counts."""
    return list(zip(sch.get_loops(block), kinds_of(sch, block), strict=True))


def counted_by(block: Block) -> list[tuple[Var, str]]:
    """Return the loop variables of a block's bindings, "reduce" where one counts a reduction."""
    found: dict[Var, str] = {}
    for axis, value in zip(block.axes, block.bindings, strict=True):
        for node in walk(value):
            if isinstance(node, Var):
                kind = "data" if axis.kind == "data" else "reduce"
                found[node] = "reduce" if found.get(node) == "reduce" else kind
    return list(found.items())


def _lengths(block: Block, kind: str) -> list[int]:
    return [_length(axis) for axis in block.axes if axis.kind == kind]


def _length(axis: IterVar) -> int:
    return 1 if axis.dom is None else ops.as_int(axis.dom.extent) or 1


def _reuses(block: Block) -> bool:
    """Return whether a reduction reads something that does not depend on an axis of data."""
    if is_spatial(block):
        return False
    mine = {a.var for a in block.axes if a.kind == "data" and _length(a) != 1}
    stored = set(tree.written(block))
    loads = [n for n in walk(block.body) if isinstance(n, BufferLoad) and n.buffer not in stored]
    return any(mine - {v for i in load.indices for v in walk(i) if isinstance(v, Var)}
               for load in loads)  # fmt: skip


def _reduces(sch: Schedule, block: BlockRV) -> bool:
    found = leaf_of(sch, block)
    return found is None or not is_spatial(found)


def _follows(sch: Schedule, block: BlockRV, reader: BlockRV) -> bool:
    """Return whether a block reads each element of another's result once, at its own place."""
    found = leaf_of(sch, reader)
    if found is None or not is_spatial(found):
        return False
    (made, *more), axes = tree.written(sch.get(block)), [axis.var for axis in found.axes]
    loads = [n for n in walk(found.body) if isinstance(n, BufferLoad) and n.buffer is made]
    return not more and bool(loads) and all(list(load.indices) == axes for load in loads)


def tried(sch: Schedule, act: Callable[[Schedule], Any]) -> Schedule | None:
    """Return a copy of a schedule with steps, None where they cannot be taken."""
    copy = sch.copy()
    try:
        act(copy)
    except ScheduleError:
        return None
    return copy
