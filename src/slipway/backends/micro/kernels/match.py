"""Which hand-written kernels may compute a fused function on a target, the best first."""

from __future__ import annotations

from functools import partial

from slipway.backends.micro.kernels.addition import match_addition
from slipway.backends.micro.kernels.dsp import dsp_kernel, wide_kernel
from slipway.backends.micro.kernels.dsp_folded import folded_kernel, folded_line_kernel
from slipway.backends.micro.kernels.dsp_pairs import pairs_kernel, pairs_line_kernel
from slipway.backends.micro.kernels.grouped import Family, grouped_kernel, parts_of
from slipway.backends.micro.kernels.halfwords import halfwords_kernel
from slipway.backends.micro.kernels.joining import match_joining
from slipway.backends.micro.kernels.layer import match_chain, match_layer, scale_step, type_of
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.backends.micro.kernels.mve import mve_kernel
from slipway.backends.micro.kernels.product import match_product
from slipway.backends.micro.kernels.scalar import scalar_kernel
from slipway.backends.micro.kernels.wish import wanted_kernels
from slipway.relay.expr import Function
from slipway.target import Target


def match_kernel(name: str, function: Function, target: Target) -> list[LibraryKernel]:
    """Return the kernels that compute a fused function, the best for the target first."""
    joining = match_joining(name, function)
    if joining is not None:
        return [joining]
    has_vectors = "mve" in target.features
    if has_vectors:  # elsewhere the loops of the schedule take as few instructions
        found = match_addition(name, function) or match_product(name, function)
        if found is not None:
            return [found]
    layer = match_layer(function)
    if layer is None:
        return _halfwords(name, function, target)
    if scale_step(function, layer) is None:
        return []
    in_parts = not layer.kind
    if in_parts and parts_of(layer) is None:
        return []
    if any(type_of(a).dtype != "int8" for a in layer.sums.args):
        return []
    families: list[Family] = [dsp_kernel]  # takes every layer
    has_pairs = _has_pairs(target) and not has_vectors
    if has_vectors:
        families.insert(0, mve_kernel)
    elif has_pairs:
        families[:0] = [folded_line_kernel, folded_kernel, pairs_line_kernel, pairs_kernel]
    else:
        families.insert(0, scalar_kernel)
    make = partial(grouped_kernel, name, function, layer) if in_parts else None
    made = [make(f) if make is not None else f(name, function, layer) for f in families]
    kernels = [kernel for kernel in made if kernel is not None]
    wide = wide_kernel(name, function, layer) if has_pairs and not in_parts else None
    return wanted_kernels(layer.sums, target, kernels, [wide] if wide is not None else [])


def _halfwords(name: str, function: Function, target: Target) -> list[LibraryKernel]:
    """Return the kernel of a layer with 16 bits in its data or results, or that rounds once."""
    layer = match_chain(function)
    if layer is None:
        return []
    core = "mve" if "mve" in target.features else "dsp" if _has_pairs(target) else "scalar"
    kernel = halfwords_kernel(name, function, layer, core)
    return [] if kernel is None else wanted_kernels(layer.sums, target, [kernel], [])


def _has_pairs(target: Target) -> bool:
    """Return whether one instruction makes two products of 16 bits; an unnamed Arm core counts."""
    is_arm = target.parsed_triple.table == "arm"
    return is_arm and ("dsp" in target.features or not target.mcpu)
