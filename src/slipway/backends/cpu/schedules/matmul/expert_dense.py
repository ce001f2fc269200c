"""Products with the matrices of experts: the loops of block_dense, or dot products of floats."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.matmul.block_dense import BlockKnobs, instruction_of
from slipway.backends.cpu.schedules.matmul.expert_kernel import (
    expert_block_kernel,
    expert_float_kernel,
)
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.tile import vector_registers
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target


def _kind(knobs: BlockKnobs) -> str:
    return "parallel" if knobs.parallel else "serial"


def _rows(problem: Problem) -> int:
    """Return the rows of an expert, were they spread evenly."""
    tokens, each, _ = (usual(d) for d in problem.out_types[0].shape)
    matrices = getattr(problem.attrs, "matrices", 0) or problem.in_types[1].shape[0]
    return int(max(1, tokens * each // matrices))


def _parallel(problem: Problem) -> bool:
    work = prod(usual(d) for d in problem.out_types[0].shape) * problem.in_types[0].shape[2]
    return worth_sharing(work, problem.target)


def _compute_blocks(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: BlockKnobs
) -> list[te.Tensor]:
    attrs: Any = problem.attrs
    entry = instruction_of(attrs, problem.in_types[1], problem.target)
    assert entry is not None  # it applied
    return expert_block_kernel(
        attrs, inputs, problem.out_types[0], entry, knobs.tile, _kind(knobs),
        vector_lanes(problem.target, "float32"),
    )  # fmt: skip


def _default_blocks(problem: Problem) -> BlockKnobs:
    """Tiles of the rows that an expert has: eight words of weights stay in registers."""
    most = 16 if problem.target.vector_bits >= 512 else 8
    return BlockKnobs(min(most, _rows(problem)), _parallel(problem))


def _space(problem: Problem) -> Space:
    return {"tile": (1, 2, 4, 8), "parallel": (False, True)}


def _cost(problem: Problem, knobs: BlockKnobs) -> float:
    tokens, each, units = (usual(d) for d in problem.out_types[0].shape)
    lanes = vector_lanes(problem.target, "float32")
    depth = problem.in_types[0].shape[2]
    return float(tokens * each * units / lanes * depth * (1 + 1 / knobs.tile))


register_strategy(
    "nn.contrib_expert_dense", name="expert_dense.tile",
    applies=lambda attrs, in_types, target: (
        instruction_of(attrs, in_types[1], target) is not None
    ),
    compute=_compute_blocks, default=_default_blocks, space=_space, cost=_cost,
)(as_they_are(BlockKnobs))  # fmt: skip


def _applies(attrs: Attrs, in_types: Sequence[Any], target: Target) -> bool:
    return in_types[1].dtype == "float32" and target.is_by_llvm


def _default_floats(problem: Problem) -> BlockKnobs:
    """Sums of four outputs of each row, four weights and an element of data in registers."""
    most = 4 if vector_registers(problem.target) >= 32 else 2
    return BlockKnobs(min(most, _rows(problem)), _parallel(problem))


register_strategy(
    "nn.expert_dense", name="expert_dense.rows", applies=_applies,
    compute=lambda problem, inputs, knobs: expert_float_kernel(
        inputs, problem.out_types[0], knobs.tile, _kind(knobs),
        vector_lanes(problem.target, "float32"),
    ),
    default=_default_floats, space=_space, cost=_cost,
)(as_they_are(BlockKnobs))  # fmt: skip
