"""``tvmc.composite_target``: the compilers that a target may name before the last kind."""

from __future__ import annotations

from collections.abc import Callable

from slipway.compiler.accelerators.libraries import (
    partition_for_arm_compute_lib,
    partition_for_bnns,
    partition_for_cmsisnn,
    partition_for_dnnl,
)
from slipway.ir.function import IRModule

# Targets of TVM that take parts of a model for a library, with what does so.
_LIBRARIES: dict[str, Callable[..., IRModule]] = {
    "bnns": partition_for_bnns,
    "cmsis-nn": partition_for_cmsisnn,
    "compute-library": partition_for_arm_compute_lib,
    "dnnl": partition_for_dnnl,
}


def get_codegen_names() -> list[str]:
    """Return the names of libraries that a target may begin with."""
    return list(_LIBRARIES)


def partition_of(name: str) -> Callable[..., IRModule]:
    """Return what takes the parts of a model for the library `name`."""
    return _LIBRARIES[name]
