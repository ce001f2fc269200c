"""Schedule rules (classic): what `PostOrderApply` does to each block of a function.

``rule.apply(sch, block)`` returns schedules: the given one where the rule has nothing to do, or
copies with steps.  Those of a processor are `ScheduleRule.create("llvm")`, of GPUs
`ScheduleRule.create("cuda")` and the like; a script's own derive from `PyScheduleRule`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, Schedule
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import TuningError
from slipway.ir.expr import Call
from slipway.ir.visit import walk
from slipway.meta_schedule.fragment_rule import MultiLevelTilingTensorCore
from slipway.meta_schedule.intrin_rule import MultiLevelTilingWithIntrin
from slipway.meta_schedule.rule import (
    LONG,
    RULES,
    ScheduleRule,
    is_spatial,
    kinds_of,
    leaf_of,
    lengths_of,
    nest_of,
    reduces,
    tried,
)
from slipway.meta_schedule.thread_rules import AutoBind, CrossThreadReduction
from slipway.meta_schedule.tiling_rule import MultiLevelTiling, ReuseType
from slipway.runtime.packed_func import get_global_func

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

FEW_POINTS = 64  # fewer results than these: a long sum is cut into parts
# Annotations of blocks: what is done to their loops when all lengths are known.
PARALLEL = "meta_schedule.parallel"
VECTORIZE = "meta_schedule.vectorize"
UNROLL = "meta_schedule.unroll_explicit"


__all__ = [
    "AddRFactor", "ApplyCustomRule", "AutoBind", "AutoInline", "CrossThreadReduction",
    "InlineConstantScalars", "MultiLevelTiling", "MultiLevelTilingTensorCore",
    "MultiLevelTilingWithIntrin", "ParallelizeVectorizeUnroll", "PyScheduleRule",
    "RandomComputeLocation", "ReuseType", "ScheduleRule", "create",
]  # fmt: skip

create = ScheduleRule.create


class PyScheduleRule(ScheduleRule):
    """A rule of a script's own: it has `apply(sch, block)`."""


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
        if calls and any(reduces(sch, reader) for reader in readers):
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
        spatial, reduced = lengths_of(found, "data"), lengths_of(found, "reduce")
        if math.prod(spatial) >= FEW_POINTS or math.prod(reduced) < LONG:
            return [sch]

        def cut(copy: Schedule) -> None:
            loops = [loop for loop, kind in nest_of(copy, block) if kind == "reduce"]
            loop = copy.fuse(*loops) if len(loops) > 1 else loops[0]
            _, inner = copy.split(loop, copy.sample_perfect_tile(loop, 2, self.most or 16))
            copy.rfactor(inner, len(spatial))

        made = tried(sch, cut)
        return [sch] if made is None else [made, sch]


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


def _of_processors() -> list[ScheduleRule]:
    return [
        ApplyCustomRule(), AutoInline(), AddRFactor(), MultiLevelTiling("SSRSRS"),
        RandomComputeLocation(), ParallelizeVectorizeUnroll(),
    ]  # fmt: skip


def _of_gpus() -> list[ScheduleRule]:
    tiles = MultiLevelTiling(
        "SSSRRSRS", ["blockIdx.x", "vthread.x", "threadIdx.x"], 64, [1, 2, 4],
        ReuseType("may", [4], "shared"), ReuseType("must", [3], "local"),
    )  # fmt: skip
    unroll = ParallelizeVectorizeUnroll(-1, -1, [0, 16, 64, 512])
    return [ApplyCustomRule(), AutoInline(), CrossThreadReduction(), tiles, AutoBind(), unroll]


RULES.update(dict.fromkeys(("llvm", "c"), _of_processors))
RULES.update(dict.fromkeys(("cuda", "rocm", "opencl", "vulkan", "metal", "webgpu"), _of_gpus))


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
