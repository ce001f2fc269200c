"""Attention to a cache, and the rotation before it: loops that are written in vectors."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.tile import vector_registers
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.ops.nn.cached_conv import cached_conv
from slipway.relay.ops.nn.cached_kernel import cached_attention_kernel
from slipway.relay.ops.nn.rotary import rotary

_OTHERS = 2  # registers beside those of sums: a vector of values, and a row's weight for all of it


@dataclass(frozen=True)
class RotaryKnobs(Knobs):
    """The lanes of the vectors that heads are rotated in."""

    lanes: int


@dataclass(frozen=True)
class CachedKnobs(Knobs):
    """The lanes of vectors, the rows whose scores are made together, tasks for heads."""

    lanes: int
    tile: int
    parallel: bool


def _lanes(problem: Problem) -> int:
    if not problem.target.is_by_llvm:  # the C compiler makes the vectors
        return 1
    return vector_lanes(problem.target, "float32")


def _rotary_space(problem: Problem) -> Space:
    return {"lanes": (1, 4, 8, 16)}


def _rotary_cost(problem: Problem, knobs: RotaryKnobs) -> float:
    rows, heads, size = (usual(d) for d in problem.out_types[0].shape)
    return float(rows * heads * size * 2 / knobs.lanes)


register_strategy(
    "nn.rotary_embedding", name="rotary.vectors",
    compute=lambda problem, inputs, knobs: rotary(
        problem.attrs, list(inputs), problem.out_types[0], knobs.lanes
    ),
    default=lambda problem: RotaryKnobs(_lanes(problem)), space=_rotary_space, cost=_rotary_cost,
)(as_they_are(RotaryKnobs))  # fmt: skip


def _default(problem: Problem) -> CachedKnobs:
    """Four rows where there are so many: a group's heads are rows of one position."""
    rows, heads, _ = problem.out_types[0].shape
    count = usual(rows) * (heads // problem.in_types[3].shape[0])
    tile = 4 if count >= 4 else 2 if count >= 2 else 1
    return CachedKnobs(_lanes(problem), tile, problem.in_types[3].shape[0] > 1)


def _space(problem: Problem) -> Space:
    return {"lanes": (1, 4, 8, 16), "tile": (1, 2, 4, 6), "parallel": (False, True)}


def _cost(problem: Problem, knobs: CachedKnobs) -> float:
    rows, heads, size = (usual(d) for d in problem.out_types[0].shape)
    slots = problem.in_types[4].shape[1]
    return float(rows * heads * size * slots / knobs.lanes * (1 + 1 / knobs.tile))


register_strategy(
    "nn.cached_attention", "nn.sloped_cached_attention", name="attention.cached",
    compute=lambda problem, inputs, knobs: cached_attention_kernel(
        problem.attrs, inputs, problem.out_types[0], knobs.lanes, knobs.tile,
        vector_registers(problem.target) - _OTHERS, "parallel" if knobs.parallel else "serial",
    ),
    default=_default, space=_space, cost=_cost,
)(as_they_are(CachedKnobs))  # fmt: skip


register_strategy(
    "nn.cached_conv1d", name="cached_conv.vectors",
    compute=lambda problem, inputs, knobs: cached_conv(
        list(inputs), problem.out_types[0], knobs.lanes
    ),
    default=lambda problem: RotaryKnobs(_lanes(problem)), space=_rotary_space,
    cost=lambda problem, knobs: float(usual(problem.out_types[0].size) / knobs.lanes),
)(as_they_are(RotaryKnobs))  # fmt: skip
