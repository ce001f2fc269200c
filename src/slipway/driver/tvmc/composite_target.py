"""``tvmc.composite_target``: the libraries that a target may name before the last kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.compiler.accelerators.libraries import (
    partition_for_arm_compute_lib,
    partition_for_bnns,
    partition_for_cmsisnn,
    partition_for_dnnl,
)
from slipway.driver.tvmc.extensions import backends
from slipway.driver.tvmc.model import TVMCException
from slipway.errors import did_you_mean
from slipway.ir.function import IRModule

__all__ = ["get_codegen_by_target", "get_codegen_names"]

_PIPELINES: dict[str, tuple[str, Callable[..., IRModule]]] = {
    "bnns": ("", partition_for_bnns),
    "cmsis-nn": ("relay.ext.cmsisnn.options", partition_for_cmsisnn),
    "compute-library": ("", partition_for_arm_compute_lib),
    "dnnl": ("", partition_for_dnnl),
}


def get_codegen_names() -> list[str]:
    """Return the names of libraries, and of loaded accelerators, that a target may begin with."""
    return [*_PIPELINES, *backends()]


def get_codegen_by_target(name: str) -> dict[str, Any]:
    """Return what a library's name stands for: `config_key` of its options and `pass_pipeline`."""
    if name in backends():
        return {"config_key": None, "pass_pipeline": backends()[name].partition}
    if name not in _PIPELINES:
        known = get_codegen_names()
        raise TVMCException(
            f"Composite target {name} is not defined in TVMC; there are {', '.join(known)}."
            f"{did_you_mean(name, known)}"
        )
    key, pipeline = _PIPELINES[name]
    return {"config_key": key or None, "pass_pipeline": pipeline}
