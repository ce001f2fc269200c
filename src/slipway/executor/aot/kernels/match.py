"""Which hand-written kernels may compute a fused function on a target, the best first."""

from __future__ import annotations

from slipway.executor.aot.kernels.dsp import dsp_kernel
from slipway.executor.aot.kernels.layer import match_layer, scale_step, type_of
from slipway.executor.aot.kernels.library import LibraryKernel
from slipway.executor.aot.kernels.mve import mve_kernel
from slipway.relay.expr import Function
from slipway.target import Target


def match_kernel(name: str, function: Function, target: Target) -> list[LibraryKernel]:
    """Return the kernels that compute a fused function, the best for the target first."""
    layer = match_layer(function)
    if layer is None or not layer.kind or scale_step(function, layer) is None:
        return []
    if any(type_of(a).dtype != "int8" for a in layer.sums.args):
        return []
    families = [mve_kernel] if "mve" in target.features else []
    found = [family(name, function, layer) for family in (*families, dsp_kernel)]
    return [kernel for kernel in found if kernel is not None]
