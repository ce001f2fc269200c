"""Targets: what a program is compiled for (see `slipway.target.target.Target`)."""

from slipway.target import codegen, datatype
from slipway.target.generic import (
    GenericFunc,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from slipway.target.kinds import TargetKind, list_kinds
from slipway.target.models import (
    arm_cpu,
    bifrost,
    cuda,
    hexagon,
    intel_graphics,
    mali,
    micro,
    riscv_cpu,
    rocm,
    vta,
)
from slipway.target.tags import list_tags, register_tag
from slipway.target.target import Target, create

current_target = Target.current

__all__ = [
    "GenericFunc",
    "Target",
    "TargetKind",
    "arm_cpu",
    "bifrost",
    "codegen",
    "create",
    "cuda",
    "current_target",
    "datatype",
    "generic_func",
    "get_native_generic_func",
    "hexagon",
    "intel_graphics",
    "list_kinds",
    "list_tags",
    "mali",
    "micro",
    "override_native_generic_func",
    "register_tag",
    "riscv_cpu",
    "rocm",
    "vta",
]
