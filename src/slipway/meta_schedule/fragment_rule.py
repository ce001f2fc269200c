"""`MultiLevelTilingTensorCore` (classic): products whose operands and sums lie in fragments.

before: ``for i: for j: for k: block C``
after:  ``for tiles of i, j: fill C's fragment; for tiles of k: load A's, load B's, multiply them;
        store C's``, each of the four by the intrinsic that a group names for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.blocks.tensor_intrin import BlockIntrin
from slipway.errors import NotAvailableError, ScheduleError, TuningError
from slipway.meta_schedule.intrin_rule import (
    AUTO_TENSORIZE,
    FILL,
    MultiLevelTilingWithIntrin,
    around,
    tensorize,
)
from slipway.meta_schedule.rule import ScheduleRule, tried
from slipway.meta_schedule.tiling_rule import ReuseType

KEYS = ("init", "load_a", "load_b", "compute", "store")


class MultiLevelTilingTensorCore(ScheduleRule):
    """Tiles a product for each group of intrinsics that computes it.

    A group names a registered intrinsic for each of "init", "load_a", "load_b", "compute" and
    "store"; fragments lie in the scopes of the buffers that "compute" declares.  The other
    parameters are `MultiLevelTiling`'s.
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        structure: str = "SSSRRSRS",
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        use_software_pipeline: bool = False,
    ) -> None:
        if use_software_pipeline:
            raise NotAvailableError(
                "MultiLevelTilingTensorCore(use_software_pipeline=True): copies stand before the "
                "products that read them, and run no step ahead; leave it out"
            )
        self.rules = [
            _OfGroup(
                group, structure, tile_binds, max_innermost_factor, vector_load_lens,
                reuse_read, reuse_write,
            )
            for group in intrin_groups
        ]  # fmt: skip

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedules of all groups that compute the block; else the given one."""
        made = [one for rule in self.rules for one in rule.apply(sch, block) if one is not sch]
        return made or [sch]


class _OfGroup(MultiLevelTilingWithIntrin):
    """The tiles of one group."""

    def __init__(self, group: Mapping[str, str], structure: str, *args: Any) -> None:
        missing = [key for key in KEYS if key not in group]
        if missing:
            raise TuningError(
                f"a group of intrinsics has no {missing[0]!r}: it names one for each of "
                f"{', '.join(KEYS)}"
            )
        super().__init__(str(group["compute"]), structure, *args)
        if "R" not in structure.lstrip("R") or structure.startswith("R"):
            raise TuningError(
                f"the structure {structure!r}: fragments need a level S and a level R inside of it"
            )
        self.fill, load_a, load_b, self.store = (
            BlockIntrin.get(str(group[key])) for key in ("init", "load_a", "load_b", "store")
        )
        self.loads = (load_a, load_b)
        declared = [buffer for _, buffer in self.intrin.desc.buffer_map]
        written = set(tree.written(self.intrin.desc.body))
        self.scopes = [buffer.scope for buffer in declared if buffer not in written]
        self.sums = next((buffer.scope for buffer in declared if buffer in written), "global")

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedules through fragments; the given one where there are none."""
        made = super().apply(sch, block)
        through = [one for one in made if one is not sch and FILL in marks_of(one, block)]
        return through or [sch]

    def _copies(self, sch: Schedule, block: BlockRV) -> list[BlockRV]:
        if len(tree.read(sch.get(block))) != len(self.loads):
            raise ScheduleError(f"block {block.name!r} is no product of two tensors")
        out = sch.cache_write(block, 0, self.sums)
        return [out, *(sch.cache_read(block, n, scope) for n, scope in enumerate(self.scopes))]

    def _place(
        self, sch: Schedule, block: BlockRV, levels: Sequence[Sequence[LoopRV]],
        copies: Sequence[BlockRV],
    ) -> None:  # fmt: skip
        """Sums stay in their fragment for all steps; operands are loaded for a tile of each."""
        sums = [n for n, letter in enumerate(self.structure) if letter == "R"]
        out, *operands = copies
        sch.reverse_compute_at(out, levels[sums[0] - 1][-1])
        _annotate(sch, out, self.store)
        for copy, load in zip(operands, self.loads, strict=True):
            sch.compute_at(copy, levels[sums[min(1, len(sums) - 1)]][-1])
            _annotate(sch, copy, load)
        sch.annotate(block, FILL, self.fill.name)
        if tried(sch, partial(_done, name=block.name)) is None:
            raise ScheduleError(f"{self.intrin.name!r} does not compute block {block.name!r}")


def marks_of(sch: Schedule, block: BlockRV) -> dict[str, Any]:
    """Return the annotations of a block."""
    return dict(sch.get(block).annotations)


def _annotate(sch: Schedule, block: BlockRV, intrin: BlockIntrin) -> None:
    """Put the loops of an intrinsic inside of a block's.  Raises ScheduleError where none fit."""
    for set_apart in around(sch, block, intrin):
        made = tried(sch, partial(_with_intrin, block=block, set_apart=set_apart, intrin=intrin))
        if made is not None and tried(made, partial(_done, name=block.name)) is not None:
            _with_intrin(sch, block, set_apart, intrin)
            return
    raise ScheduleError(f"{intrin.name!r} does not compute block {block.name!r}")


def _with_intrin(sch: Schedule, block: BlockRV, set_apart: Any, intrin: BlockIntrin) -> None:
    set_apart(sch)
    sch.annotate(block, AUTO_TENSORIZE, intrin.name)


def _done(sch: Schedule, name: str) -> None:
    tensorize(sch, sch.get_block(name))
