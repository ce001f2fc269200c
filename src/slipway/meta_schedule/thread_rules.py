"""Rules for GPUs (classic): which loops are blocks and threads, and sums of several threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway.backends.gpu.limits import most_threads
from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.ir import ops
from slipway.ir.stmt import For, ForKind
from slipway.meta_schedule.rule import (
    LONG,
    ScheduleRule,
    is_plain,
    is_spatial,
    leaf_of,
    lengths_of,
    nest_of,
    reuses,
    tried,
)

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

EXTENTS = (32, 64, 128, 256, 512, 1024)
FEW_RESULTS = 4096  # of what reuses elements: more are tiled
BLOCK, THREAD = "blockIdx.x", "threadIdx.x"


class _ThreadRule(ScheduleRule):
    """A rule with numbers of threads, of which the target allows some."""

    def __init__(self, thread_extents: Sequence[int] | None = None) -> None:
        self.extents = [int(n) for n in thread_extents or EXTENTS]

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        if context.target is not None and not context.target.kind.is_cpu:
            most = most_threads(context.target)
            self.extents = [n for n in self.extents if n <= most] or [most]


class AutoBind(_ThreadRule):
    """Gives the loops of data of a block that no thread runs to blocks and threads.

    How many threads a block has is sampled.
    """

    def __init__(
        self, max_threadblocks: int = 256, thread_extents: Sequence[int] | None = None
    ) -> None:
        super().__init__(thread_extents)
        self.most_blocks = max_threadblocks

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule with the block's outer loops bound."""
        if leaf_of(sch, block) is None or BLOCK in tags_of(sch, block):
            return [sch]
        return [tried(sch, lambda copy: self.bind(copy, block)) or sch]

    def bind(self, sch: Schedule, block: BlockRV) -> None:
        """Bind the outer loops of a block of `sch` itself."""
        outer, has_threads = _outer_data(sch, block), THREAD in tags_of(sch, block)
        if not outer:
            loops = sch.get_loops(block)
            unit = sch.add_unit_loop(loops[0] if loops else block)
            sch.bind(unit, BLOCK)
            if not has_threads:
                inside = sch.get_loops(block)[1:]
                sch.bind(sch.add_unit_loop(inside[0] if inside else block), THREAD)
            return
        loop = sch.fuse(*outer) if len(outer) > 1 else outer[0]
        if has_threads:
            sch.bind(loop, BLOCK)
            return
        length = ops.as_int(sch.get(loop).extent) or 1
        fitting = [n for n in self.extents if n <= length] or [length]
        threads = fitting[0]
        if len(fitting) > 1:
            share = [1.0 / len(fitting)] * len(fitting)
            threads = sch.sample_categorical(fitting, share)
        if length > self.most_blocks * max(fitting):
            again, blocks, inner = sch.split(loop, [None, self.most_blocks, threads])
            sch.reorder(blocks, inner, again)
        else:
            blocks, inner = sch.split(loop, [None, threads])
        sch.bind(blocks, BLOCK)
        sch.bind(inner, THREAD)


class CrossThreadReduction(_ThreadRule):
    """Lets the threads of a block sum parts of a result: of a long sum, or of few results."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule as it is, and with the sum shared."""
        found = leaf_of(sch, block)
        if found is None or is_spatial(found) or not is_plain(sch, block):
            return [sch]
        results = math.prod(lengths_of(found, "data"))
        steps = math.prod(lengths_of(found, "reduce"))
        fitting = [n for n in self.extents if n <= steps]
        if steps < LONG or not fitting or (reuses(found) and results > min(steps, FEW_RESULTS)):
            return [sch]

        def share(copy: Schedule) -> None:
            data = [loop for loop, kind in nest_of(copy, block) if kind == "data"]
            summed = [loop for loop, kind in nest_of(copy, block) if kind == "reduce"]
            copy.reorder(*data, *summed)
            loop = copy.fuse(*summed) if len(summed) > 1 else summed[0]
            threads = fitting[0]
            if len(fitting) > 1:
                threads = copy.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))
            copy.bind(copy.split(loop, [None, threads])[1], THREAD)

        made = tried(sch, share)
        return [sch] if made is None else [made, sch]


def tags_of(sch: Schedule, block: BlockRV) -> list[str]:
    """Return what the loops around a block are bound to."""
    around = tree.own_loops(sch.func.body, sch.get(block))
    return [loop.thread.thread_tag for loop in around if loop.thread is not None]


def _outer_data(sch: Schedule, block: BlockRV) -> list[LoopRV]:
    """Return the outermost loops of a block that can be fused: of data, one inside the other."""
    found: list[LoopRV] = []
    for loop, kind in nest_of(sch, block):
        node = sch.get(loop)
        if kind != "data" or node.kind != ForKind.SERIAL or ops.as_int(node.extent) is None:
            break
        found.append(loop)
        if not isinstance(node.body, For):
            break
    return found
