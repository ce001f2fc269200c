"""Panels of weights, prefetched before they are needed.

A panel is what a few blocks of output channels multiply by in a stretch of the sum.  Its lines come
from memory while the first tile waits, and lie in the cache for all tiles after it.  So each tile
prefetches an equal share of the next panel while it works on this one.  A single tile is through
with a panel so soon that its lines would wait for a place among those on their way to the
first-level cache; they go to the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway import te
from slipway.backends.cpu.tile import Tile, vector_registers
from slipway.backends.stages import extent_of
from slipway.relay.dims import usual

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class PanelProgress:
    """How far the work on a panel is: step `step` of `steps` in tile `tile` of `tiles`."""

    tile: Any
    tiles: int
    step: Any
    steps: int


class Steps(NamedTuple):
    """The loop over the lanes of a channel block: one that asks, and `at_once` unrolled in it."""

    asking: te.IterVar
    unrolled: te.IterVar
    at_once: int


def split_steps(stage: te.Stage, lane: te.IterVar, tile: Tile, target: Target) -> Steps:
    """Split the loop `lane` of a reduction into steps that ask and steps that are unrolled.

    LLVM loads the weights of all unrolled steps first, so they need registers beside the sums.
    Engines of WebAssembly unroll loops themselves.
    """
    free = vector_registers(target) - tile.rows * tile.vectors
    unrolls = target.parsed_triple.table != "wasm" and free >= 6
    at_once = gcd(4, extent_of(lane)) if unrolls else 1
    return Steps(*stage.split(lane, factor=at_once), at_once)


def prefetch_next(
    stage: te.Stage,
    kernel: te.Tensor,
    steps: Steps,
    at: PanelProgress,
    position: Callable[[Any], Sequence[Any]],
) -> None:
    """Let each step of `steps.asking` prefetch its share of the next panel's lines.

    `position` gives the indices into `kernel` of a line, from 0 to ``at.steps``, of the next panel.
    """
    tiles = usual(at.tiles)
    first = te.floordiv(at.tile * at.steps + at.step, tiles)
    level = 2 if tiles == 1 else 1
    for more in range(-(-steps.at_once // tiles)):
        stage.prefetch_at(kernel, steps.asking, position(first + more), level)
