"""Products with block-quantised weights: tiles of an instruction that multiplies bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.lowering.pack_blocks import instruction_for
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.matmul.block_kernel import block_dense_kernel
from slipway.backends.cpu.schedules.matmul.float_block_kernel import float_block_kernel
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.tile import fmas_in_flight
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir.hardware import HardwareIntrinsic
from slipway.relay.dims import usual

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target


@dataclass(frozen=True)
class BlockKnobs(Knobs):
    """The rows whose sums are in registers together, and whether tasks share the outputs."""

    tile: int
    parallel: bool


def _applies(attrs: Attrs, in_types: Sequence[Any], target: Target) -> bool:
    return _is_exact(attrs) or instruction_of(attrs, in_types[1], target) is not None


def _is_exact(attrs: Any) -> bool:
    return bool(attrs.exact)


def instruction_of(attrs: Any, weight: Any, target: Target) -> HardwareIntrinsic | None:
    """Return the instruction that weights were packed for."""
    entry = instruction_for(attrs.bits, target)
    if entry is None or weight.shape[3] != 4 * attrs.bits * entry.columns:
        return None
    fits = attrs.bits < 8 or attrs.signed == (entry.b_dtype == "int8")
    return entry if fits else None


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: BlockKnobs) -> list[te.Tensor]:
    kind = "parallel" if knobs.parallel else "serial"
    if _is_exact(problem.attrs):
        return float_block_kernel(
            problem.attrs, inputs, problem.out_types[0], knobs.tile, kind,
            fmas_in_flight(problem.target),
        )  # fmt: skip
    entry = instruction_of(problem.attrs, problem.in_types[1], problem.target)
    assert entry is not None  # it applied
    lanes = vector_lanes(problem.target, "float32")
    return block_dense_kernel(
        problem.attrs, inputs, problem.out_types[0], entry, knobs.tile, kind, lanes
    )


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
    return float(rows * units / lanes * depth / 32 * (11 + 16 / knobs.tile) / 2)


register_strategy(
    "nn.contrib_block_dense", name="block_dense.tile", applies=_applies,
    compute=_compute,
    default=_default, space=_space, cost=_cost,
)(as_they_are(BlockKnobs))  # fmt: skip
