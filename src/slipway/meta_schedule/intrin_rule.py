"""`MultiLevelTilingWithIntrin` (classic): tiles whose innermost loops a tensor intrinsic does.

before: ``for i: for j: for k: block C``
after:  ``for tiles of i, j, k outside: for ii (16): for ki (4): block C``, annotated with the name
        of the intrinsic, which `postproc.RewriteTensorize` lets do the loops ii and ki.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.blocks.tensor_intrin import BlockIntrin
from slipway.ir import ops
from slipway.meta_schedule.rule import counted_by, is_plain, leaf_of, nest_of, tried
from slipway.meta_schedule.tiling_rule import MultiLevelTiling

# Of a block: the intrinsic that does its innermost loops, and the one that begins its sums.
AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
FILL = "meta_schedule.auto_tensorize_init"


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles what a registered intrinsic computes: `intrin_name` is `tir.TensorIntrin.register`'s.

    The other parameters are `MultiLevelTiling`'s.  A block whose loops the intrinsic's do not
    divide, or that computes something else, is left to the rules behind this one.
    """

    def __init__(
        self, intrin_name: str, structure: str = "SSRSRS", *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(structure, *args, **kwargs)
        self.intrin = BlockIntrin.get(intrin_name)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedules with the block tiled around the intrinsic."""
        found = leaf_of(sch, block)
        if found is None or not is_plain(sch, block):
            return [sch]
        for inner in _matching(sch, block, self.intrin):
            around = tried(sch, partial(_set_apart, block=block, inner=inner))
            if around is None:
                continue
            around.annotate(block, AUTO_TENSORIZE, self.intrin.name)
            if tried(around, partial(_done, name=block.name)) is not None:
                return super().apply(around, block)
        return [sch]

    def _tiles(
        self, sch: Schedule, block: BlockRV
    ) -> tuple[list[tuple[LoopRV, str]], list[LoopRV]]:
        """Return the loops to be tiled, and those of the intrinsic, which stay innermost."""
        nest, count = nest_of(sch, block), len(loops_of(self.intrin))
        return nest[:-count], [loop for loop, _ in nest[-count:]]

    def _is_tiled(self, sch: Schedule, block: BlockRV) -> bool:
        """Return whether the block is one that this rule tiles."""
        return AUTO_TENSORIZE in dict(sch.get(block).annotations)


def loops_of(intrin: BlockIntrin) -> list[tuple[int, str]]:
    """Return the lengths of an intrinsic's loops with what each counts, "data" or "reduce"."""
    body = intrin.desc.body
    block = tree.leaf_blocks(body)[-1]
    kinds = dict(counted_by(block))
    loops = tree.own_loops(body, block)
    return [(ops.as_int(loop.extent) or 0, kinds.get(loop.loop_var, "data")) for loop in loops]


def tensorize(sch: Schedule, block: BlockRV) -> BlockRV | None:
    """Let the intrinsic that a block is annotated with do its loops; return where its sums begin.

    None where they begin nowhere else, or an intrinsic begins them.  Raises ScheduleError where one
    cannot.
    """
    found = dict(sch.get(block).annotations)
    intrin = BlockIntrin.get(str(found[AUTO_TENSORIZE]))
    for mark in {AUTO_TENSORIZE, FILL} & found.keys():
        sch.unannotate(block, mark)
    count, nest = len(loops_of(intrin)), nest_of(sch, block)
    inner, begun = nest[-count][0], None
    if sch.get(block).init is not None:
        first = next((loop for loop, kind in nest[:-count] if kind == "reduce"), inner)
        begun = sch.decompose_reduction(block, first)
    sch.tensorize(inner, intrin.name)
    if begun is not None and FILL in found:
        fill = BlockIntrin.get(str(found[FILL]))
        sch.tensorize(sch.get_loops(begun)[-len(loops_of(fill))], fill.name)
        return None
    return begun


def _done(sch: Schedule, name: str) -> None:
    """Let the intrinsic do a block, which decomposing gives another name."""
    tensorize(sch, sch.get_block(name))


def around(
    sch: Schedule, block: BlockRV, intrin: BlockIntrin
) -> Iterator[Callable[[Schedule], None]]:
    """Yield the ways to put an intrinsic's loops inside of a block's, each a step to be tried."""
    for inner in _matching(sch, block, intrin):
        yield partial(_set_apart, block=block, inner=inner)


def _set_apart(sch: Schedule, block: BlockRV, inner: Sequence[tuple[int, int]]) -> None:
    """Split the loops `inner`, each a number of a loop and a length, and put these inside."""
    loops, apart = sch.get_loops(block), []
    for number, length in inner:
        loops[number], kept = sch.split(loops[number], [None, length])
        apart.append(kept)
    sch.reorder(*loops[min(number for number, _ in inner) :], *apart)


def _matching(
    sch: Schedule, block: BlockRV, intrin: BlockIntrin
) -> Iterator[list[tuple[int, int]]]:
    """The choices of loops of a block for an intrinsic's, which are of the kind and divide them.

    Of the loops around this block alone.
    """
    nest, wanted = nest_of(sch, block), loops_of(intrin)
    nodes = [sch.get(loop) for loop, _ in nest]
    lengths = [ops.as_int(node.extent) or 0 for node in nodes]
    own = [n for n, node in enumerate(nodes) if len(tree.leaf_blocks(node.body)) == 1]
    for chosen in permutations(reversed(own), len(wanted)):
        fits = all(
            kind == nest[number][1] and length and lengths[number] % length == 0
            for number, (length, kind) in zip(chosen, wanted, strict=True)
        )
        if fits:
            yield [(number, length) for number, (length, _) in zip(chosen, wanted, strict=True)]
