"""The passes that make kernels of a model for a GPU: the plain ones, where matrix units take part.

Products of float16 and bfloat16 are summed in float32. Matrix units take their operands as they
are; elsewhere they are widened before.  Attention becomes one operator where it is one kernel, but
not in a model whose products are on matrix units, which that kernel does not use.

A join is fused with its neighbours however many tensors it has, up to what a kernel takes: a launch
costs more than to look in which part an element lies, and no loop here copies a part by itself.

A transposed convolution becomes a convolution, for which there are tiles: a thread that gathers one
of its pixels asks of every tap whether it falls on the image.
"""

from __future__ import annotations

from typing import Any

from slipway.backends.gpu.half_weights import half_weights
from slipway.backends.gpu.images import in_texels, takes_images, with_images
from slipway.backends.gpu.joins import joined_reductions
from slipway.backends.gpu.limits import most_tensors
from slipway.backends.gpu.row_joins import joined_rows
from slipway.backends.gpu.schedules.attention import serves
from slipway.backends.gpu.schedules.matrix import OPERATORS, applies
from slipway.backends.gpu.transposed_weights import transposed_weights
from slipway.backends.gpu.warps import runs_in_step
from slipway.backends.gpu.winograd import winograd_convolutions
from slipway.relay.expr import Call, Function
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.graph.attention.fuse_attention import fuse_attention
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.conv.subpixel_conv import subpixel_conv
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.pipeline import (
    MIDDLE,
    OPENING,
    WIDEN_PRODUCTS,
    ending,
    setting_pass,
)
from slipway.transform.graph.precision.widen_products import WIDE, widen_products
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.split_joins import MOST, split_joins
from slipway.transform.manager import Pass, Setting


def _widen(function: Function, setting: Setting) -> Function:
    target = setting.target
    if target is None:
        return widen_products(function)
    return widen_products(function, lambda call: is_on_matrix_units(call, target))


def is_on_matrix_units(call: Call, target: Target) -> bool:
    """Return whether the target's matrix units add a product of narrow floats in float32."""
    attrs: Any = call.attrs
    if not hasattr(attrs, "out_dtype"):
        return False
    types = [argument.tensor_type for argument in call.args]
    return call.op.name in OPERATORS and applies(attrs.replace(out_dtype=WIDE), types, target)


def _attention(function: Function, setting: Setting) -> Function:
    target = setting.target
    assert target is not None
    calls = (e for e in post_order(function) if isinstance(e, Call))
    fast = target.kind.name in (
        "cuda",
        "rocm",
    )  # their matrix units multiply more than its threads do
    if fast and any(
        c.op.name == "nn.batch_matmul" and is_on_matrix_units(c, target) for c in calls
    ):
        return function
    fused = fuse_attention(function, lambda rows, size: serves(rows, size, target))
    return eliminate_common_subexpr(fold_constant(simplify_expr(fused)))


def _subpixel(function: Function, setting: Setting) -> Function:
    made = subpixel_conv(function)
    return made if made is function else fold_constant(simplify_expr(made))


def _winograd(function: Function, setting: Setting) -> Function:
    made = winograd_convolutions(function)
    return made if made is function else fold_constant(made)


def _columns(function: Function, setting: Setting) -> Function:
    made = transposed_weights(function)
    return made if made is function else fold_constant(made)


def _joins(function: Function, setting: Setting) -> Function:
    assert setting.target is not None
    return joined_reductions(function, setting.target)


def _splits(function: Function, setting: Setting) -> Function:
    assert setting.target is not None
    return split_joins(function, most_tensors(setting.target) - 1)


def _rows(function: Function, setting: Setting) -> Function:
    assert setting.target is not None
    return joined_rows(function, setting.target)


def _halves(function: Function, setting: Setting) -> Function:
    assert setting.target is not None
    return half_weights(function, setting.target)


def _images(function: Function, setting: Setting) -> Function:
    assert setting.target is not None
    return with_images(function, setting.target)


def _has_images(setting: Setting) -> bool:
    return setting.target is not None and takes_images(setting.target)


def _in_step(setting: Setting) -> bool:
    return setting.target is not None and runs_in_step(setting.target)


PASSES: tuple[Pass, ...] = (
    *OPENING,
    setting_pass(WIDEN_PRODUCTS.name, _widen),
    *MIDDLE,
    setting_pass("FuseAttention", _attention, _in_step),
    setting_pass("SubpixelConv", _subpixel),
    setting_pass("TexelLayout", lambda function, _: in_texels(function), _has_images),
    setting_pass("WinogradConv", _winograd, exact=False),
    setting_pass("TransposeWeights", _columns, lambda setting: not _in_step(setting)),
    setting_pass("SplitJoins", _splits),
    *ending(wide=MOST, most_tensors=most_tensors),
    setting_pass("JoinReductions", _joins, exact=False),
    setting_pass("JoinRows", _rows, lambda setting: not _has_images(setting), exact=False),
    setting_pass("HalfWeights", _halves, lambda setting: not _has_images(setting)),
    setting_pass("PlaceImages", _images, _has_images),
)
