"""Products with block-quantised weights: tiles of an instruction that multiplies bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir.hardware import HARDWARE
from slipway.relay.dims import usual
from slipway.relay.ops.packed.block_dense import block_dense_kernel

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target


@dataclass(frozen=True)
class BlockKnobs(Knobs):
    """The rows whose sums are in registers together, and whether tasks share the outputs."""

    tile: int
    parallel: bool


def _applies(attrs: Attrs, in_types: Sequence[Any], target: Target) -> bool:
    name = attrs.get_str("instruction")
    return target.kind.name == "llvm" and bool(name) and not HARDWARE[name].missing(target)


def _default(problem: Problem) -> BlockKnobs:
    """Eight words of weights stay in registers, the others hold sums."""
    rows = usual(problem.out_types[0].shape[0])
    most = 16 if problem.target.vector_bits >= 512 else 8
    work = prod(usual(d) for d in problem.out_types[0].shape) * problem.in_types[0].shape[1]
    return BlockKnobs(min(most, max(1, rows)), worth_sharing(work, problem.target))


def _space(problem: Problem) -> Space:
    return {"tile": (1, 2, 4, 6, 8, 12, 16, 20), "parallel": (False, True)}


def _cost(problem: Problem, knobs: BlockKnobs) -> float:
    rows, units = (usual(d) for d in problem.out_types[0].shape)
    depth = problem.in_types[0].shape[1]
    lanes = vector_lanes(problem.target, "float32")
    return rows * units / lanes * depth / 32 * (11 + 16 / knobs.tile) / 2


@register_strategy(
    "nn.contrib_block_dense", name="block_dense.tile", applies=_applies,
    compute=lambda problem, inputs, knobs: block_dense_kernel(
        problem.attrs, inputs, problem.out_types[0], knobs.tile,
        "parallel" if knobs.parallel else "serial", vector_lanes(problem.target, "float32"),
    ),
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_block_dense(
    problem: Problem, outs: Sequence[te.Tensor], product: te.Tensor, knobs: BlockKnobs
) -> te.Schedule:
    """The statements are scheduled already."""
    return schedule_opaque(problem.target, outs)
