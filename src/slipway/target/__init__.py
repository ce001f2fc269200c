"""Targets: what a program is compiled for (see `slipway.target.target.Target`)."""

from slipway.target.kinds import TargetKind, list_kinds
from slipway.target.models import arm_cpu, cuda, hexagon, intel_graphics, mali, micro, riscv_cpu
from slipway.target.tags import list_tags, register_tag
from slipway.target.target import Target, create

__all__ = [
    "Target",
    "TargetKind",
    "arm_cpu",
    "create",
    "cuda",
    "hexagon",
    "intel_graphics",
    "list_kinds",
    "list_tags",
    "mali",
    "micro",
    "register_tag",
    "riscv_cpu",
]
