"""`MultiLevelTiling` (classic): tiles for registers and caches, or for blocks and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.errors import ScheduleError, TuningError
from slipway.meta_schedule.rule import (
    ScheduleRule,
    follows,
    is_plain,
    leaf_of,
    nest_of,
    reuses,
    tried,
)

# Of a block that copies: how many elements a thread brings at once (`RewriteCooperativeFetch`).
COOPERATIVE = "meta_schedule.cooperative_fetch"


@dataclass(frozen=True)
class ReuseType:
    """Whether a tile is computed in memory of its own, "no", "may" or "must", inside which loops.

    Levels count the tiles of the structure from the outside, from one on.
    """

    req: str = "may"
    levels: Sequence[int] = (1, 2)
    scope: str = "global"


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
        if not structure or set(structure) - {"S", "R"}:
            raise TuningError(f"the structure {structure!r} is not of the letters S and R")
        self.structure, self.most = structure, max_innermost_factor or 0
        self.reuse, self.filter = reuse_write, filter_fn
        self.binds, self.reuse_read = list(tile_binds or ()), reuse_read
        self.vectors = [int(n) for n in vector_load_lens or (1,)]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedules with the block tiled, computed in each of the levels."""
        if not self._is_tiled(sch, block):
            return [sch]
        made: list[Schedule] = []
        for read in _levels_of(self.reuse_read):
            for level in _levels_of(self.reuse):
                one = tried(sch, partial(self._tiled, block=block, level=level, read=read))
                made += [] if one is None else [one]
        if not made:
            one = tried(sch, partial(self._tiled, block=block, level=0, read=0))
            made += [] if one is None else [one]
        return made or [sch]

    def _is_tiled(self, sch: Schedule, block: BlockRV) -> bool:
        """Return whether the block is one that this rule tiles."""
        found = leaf_of(sch, block)
        if found is None or not is_plain(sch, block):
            return False
        return self.filter(sch, block) if self.filter is not None else reuses(found)

    def _tiles(
        self, sch: Schedule, block: BlockRV
    ) -> tuple[list[tuple[LoopRV, str]], list[LoopRV]]:
        """Return the loops to be tiled, and those that stay inside of all tiles."""
        return nest_of(sch, block), []

    def _tiled(self, sch: Schedule, block: BlockRV, level: int, read: int) -> None:
        """Tile, and compute the tile in level `level` of what reads it; 0: in place.

        What is read comes by memory of its own inside of level `read`; 0: it does not.
        """
        copied, scope = None, self.reuse.scope if self.reuse else "global"
        if level:
            readers = sch.get_consumers(block)
            if len(readers) == 1 and follows(sch, block, readers[0]):
                copied = readers[0]
                if scope != "global":
                    sch.set_scope(block, 0, scope)
            else:
                copied = sch.cache_write(block, 0, scope)
        copies = self._copies(sch, block)
        levels: list[list[LoopRV]] = [[] for _ in self.structure]
        nest, kept = self._tiles(sch, block)
        for loop, kind in nest:
            letter = "S" if kind == "data" else "R"
            own = [n for n, each in enumerate(self.structure) if each == letter]
            if not own:
                raise ScheduleError(f"the structure {self.structure} has no level {letter}")
            factors = sch.sample_perfect_tile(loop, len(own), self.most or 64)
            for n, part in zip(own, sch.split(loop, factors), strict=True):
                levels[n].append(part)
        sch.reorder(*[loop for each in levels for loop in each], *kept)
        self._bind(sch, levels)
        self._place(sch, block, levels, copies)
        if copied is not None:
            spatial = [each for each, letter in zip(levels, self.structure, strict=True)
                       if letter == "S" and each]  # fmt: skip
            if level > len(spatial):
                raise ScheduleError(f"the structure {self.structure} has no level {level}")
            sch.reverse_compute_at(copied, spatial[level - 1][-1])
        if read:
            reading = [(copy, 0) for copy in copies[1:]]
            self._fetch(sch, reading or _reads(sch, block), levels[read - 1][-1])

    def _copies(self, sch: Schedule, block: BlockRV) -> list[BlockRV]:
        """Return the blocks by which a tile's result, and then what it reads, are copied."""
        del sch, block
        return []

    def _place(
        self, sch: Schedule, block: BlockRV, levels: Sequence[Sequence[LoopRV]],
        copies: Sequence[BlockRV],
    ) -> None:  # fmt: skip
        """Put these copies into the tile's loops."""

    def _bind(self, sch: Schedule, levels: list[list[LoopRV]]) -> None:
        """Give the outer levels of data to blocks and threads."""
        spatial = [n for n, letter in enumerate(self.structure) if letter == "S"]
        for n, thread in zip(spatial, self.binds, strict=False):
            loops = levels[n]
            levels[n] = [sch.fuse(*loops) if len(loops) > 1 else loops[0]]
            sch.bind(levels[n][0], thread)

    def _fetch(self, sch: Schedule, reading: Sequence[tuple[BlockRV, int]], loop: LoopRV) -> None:
        """Bring what blocks read into memory of its own, which all threads fill together."""
        scope = self.reuse_read.scope if self.reuse_read else "shared"
        share = [1.0 / len(self.vectors)] * len(self.vectors)
        for block, number in reading:
            copy = sch.cache_read(block, number, scope)
            sch.compute_at(copy, loop)
            if self.binds:
                vector = sch.sample_categorical(self.vectors, share)
                sch.annotate(copy, COOPERATIVE, vector)


def _reads(sch: Schedule, block: BlockRV) -> list[tuple[BlockRV, int]]:
    """Return each of a block's inputs by its number."""
    return [(block, number) for number in range(len(tree.read(sch.get(block))))]


def _levels_of(reuse: ReuseType | None) -> list[int]:
    """Return the levels in which a copy may be, 0 for none."""
    if reuse is None or reuse.req == "no":
        return [0]
    return [*reuse.levels, *([0] if reuse.req == "may" else [])]
