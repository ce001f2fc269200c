"""Which fused functions the hand-written kernels compute, and how their weights are arranged.

The pattern is what importers make of a quantised layer::

    cast(clip(add(rescale(add(sums(data, weight), bias), multiplier, shift), zero), low, high))

with sums a convolution, a depthwise convolution or a product.  Everything must match; whatever
does not keeps its generated loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from slipway.executor.aot.program import Overlap
from slipway.executor.in_place import window_lead_bytes
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var

Pack = Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]
_MOST = 65535  # sizes are 16 bits in struct slw_layer
_POINTER_BYTES = 8  # of the largest target


@dataclass(frozen=True)
class LibraryKernel:
    """A kernel in C: its definition, its workspace, and what it asks of its operands.

    `packs` maps an operand to the arrangement that its constant needs; `weight_dtype` is the
    packed constant's.
    """

    text: str
    workspace_bytes: int
    packs: dict[int, Pack]
    overlap: Overlap


@lru_cache(maxsize=1)
def helper_text() -> str:
    """Return the C functions that the kernels call."""
    text = resources.files("slipway.executor.aot.kernels").joinpath("int8.c").read_text()
    return (
        "#if defined(__GNUC__)\n#define SLW_SHARED __attribute__((noinline, unused))\n"
        "#else\n#define SLW_SHARED\n#endif\n" + text
    )


@dataclass(frozen=True)
class _Layer:
    """The pieces of a matched function; parameters are operand numbers."""

    sums: Call
    data: int
    weight: int
    bias: int
    multiplier: Any  # operand number, or a constant
    shift: Any
    zero: int
    low: int
    high: int


def match_kernel(name: str, function: Function) -> LibraryKernel | None:
    """Return the library's kernel for a fused function, or None."""
    layer = _match(function)
    if layer is None:
        return None
    data, weight = (a.checked_type for a in layer.sums.args)
    if data.dtype != "int8" or weight.dtype != "int8" or _scale_step(function, layer) is None:
        return None
    match _op_name(layer.sums):
        case "qnn.conv2d_nhwc" if layer.sums.attrs.groups == 1 and data.shape[0] == 1:
            return _convolution(name, function, layer, weight.shape, _pack_convolution)
        case "qnn.depthwise_conv2d_nhwc" if data.shape[0] == 1:
            if data.shape[3] == 1:  # one input channel: a convolution with that many outputs
                shape = (*weight.shape[:2], 1, weight.shape[2])
                return _convolution(name, function, layer, shape, _pack_convolution)
            if weight.shape[2] == data.shape[3] and data.shape[3] % 4 == 0:
                return _depthwise(name, function, layer)
        case "qnn.dense_packed" if data.size == weight.shape[0]:
            return _convolution(name, function, layer, (1, 1, *weight.shape), _pack_convolution)
        case _:
            pass
    return None


# -- matching ----------------------------------------------------------------------------------


def _op_name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _number(expr: Expr) -> int | None:
    if isinstance(expr, Constant) and expr.array.size == 1:
        return int(expr.array.reshape(-1)[0])
    return None


def _match(function: Function) -> _Layer | None:
    """Walk down the chain from the cast; None at the first thing that is different."""
    params = {id(p): i for i, p in enumerate(function.params)}

    def operand(expr: Expr) -> int | None:
        return params.get(id(expr)) if isinstance(expr, Var) else None

    cast = function.body
    chain = []
    expr: Expr = cast
    for wanted in ("cast", "clip", "add", "qnn.rescale", "add"):
        if _op_name(expr) != wanted:
            return None
        assert isinstance(expr, Call)
        chain.append(expr)
        expr = expr.args[0]
    cast_call, clip, add_zero, rescale, add_bias = chain
    if not isinstance(expr, Call) or len(expr.args) != 2:
        return None
    data, weight = (operand(a) for a in expr.args)
    bias = operand(add_bias.args[1])
    zero = _number(add_zero.args[1])
    if (
        None in (data, weight, bias, zero)
        or cast_call.checked_type.dtype != "int8"
        or rescale.attrs.once
        or expr.checked_type.dtype != "int32"
    ):
        return None

    def scale(argument: Expr) -> Any:
        number = _number(argument)
        return ("constant", number) if number is not None else operand(argument)

    multiplier, shift = scale(rescale.args[1]), scale(rescale.args[2])
    if multiplier is None or shift is None:
        return None
    assert data is not None
    assert weight is not None
    assert bias is not None
    assert zero is not None
    return _Layer(
        expr, data, weight, bias, multiplier, shift, zero,
        int(clip.attrs.a_min), int(clip.attrs.a_max),
    )  # fmt: skip


def _scale_step(function: Function, layer: _Layer) -> int | None:
    """Return 0 for one multiplier, 1 for one per channel, None for anything else."""
    channels = function.body.checked_type.shape[-1]
    if function.params[layer.bias].checked_type.shape != (channels,):
        return None
    if isinstance(layer.multiplier, tuple) and isinstance(layer.shift, tuple):
        return 0
    if isinstance(layer.multiplier, int) and isinstance(layer.shift, int):
        shapes = {function.params[i].checked_type.shape for i in (layer.multiplier, layer.shift)}
        return 1 if shapes == {(channels,)} else None
    return None


# -- emission ----------------------------------------------------------------------------------


def _pack_convolution(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[..., O] to [O][K], with K filled up to a multiple of 4 with zeros."""
    rows = np.ascontiguousarray(weight.reshape(-1, weight.shape[-1]).T)
    padded = -(-rows.shape[1] // 4) * 4
    return np.pad(rows, ((0, 0), (0, padded - rows.shape[1])))


def _pack_depthwise(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[kH][kW][C] int8 to [kH * kW][C] int16 with each four channels as 0, 2, 1, 3."""
    rows = weight.reshape(-1, weight.shape[-1] // 4, 4)[:, :, [0, 2, 1, 3]]
    return np.ascontiguousarray(rows.reshape(-1, weight.shape[-1]).astype(np.int16))


def _geometry(layer: _Layer) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Return (height, width, channels) in and out, kernel, and (stride, dilation, padding)."""
    data, weight = (a.checked_type for a in layer.sums.args)
    out = layer.sums.checked_type
    if _op_name(layer.sums) == "qnn.dense_packed":
        return (1, 1, data.size), (1, 1, out.size), (1, 1), (1, 1, 1, 1, 0, 0)
    attrs = layer.sums.attrs
    top, left = attrs.padding[:2]
    return (
        tuple(data.shape[1:]),
        tuple(out.shape[1:]),
        tuple(weight.shape[:2]),
        (*attrs.strides, *attrs.dilation, top, left),
    )


def _definition(
    name: str, function: Function, layer: _Layer, helper: str, weight_type: str
) -> str | None:
    """Return the kernel: a constant description of the layer, and the call."""
    inputs, outputs, kernel, rest = _geometry(layer)
    pad_value = getattr(layer.sums.attrs, "pad_value", 0)
    numbers = (*inputs, *outputs, *kernel, *rest, pad_value, layer.zero, layer.low, layer.high)
    if max(numbers) > _MOST or layer.low < -128 or layer.high > 127:
        return None
    words = []
    for index, param in enumerate(function.params):
        ty = param.checked_type.dtype
        words.append(f"const {weight_type if index == layer.weight else ty + '_t'} *p{index}")
    lines = [
        f"SLW_KERNEL int32_t {name}({', '.join(words)}, int8_t *out, uint8_t *workspace) {{",
        "  static const struct slw_layer layer = {",
        f"    {', '.join(map(str, numbers))}, {_scale_step(function, layer)}}};",
    ]
    scales = [f"p{layer.bias}"]
    for word, value in (("multiplier", layer.multiplier), ("shift", layer.shift)):
        if isinstance(value, tuple):
            lines.append(f"  static const int32_t {word} = {value[1]};")
            scales.append(f"&{word}")
        else:
            scales.append(f"p{value}")
    lines += [
        f"  struct slw_scales scales = {{{', '.join(scales)}}};",
        f"  {helper}(&layer, p{layer.data}, "
        + (
            f"(const uint32_t *)(const void *)p{layer.weight}"
            if "depth" in helper
            else f"p{layer.weight}"
        )
        + ", &scales, out, workspace);",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _convolution(
    name: str, function: Function, layer: _Layer, weight_shape: tuple[int, ...], pack: Pack
) -> LibraryKernel | None:
    text = _definition(name, function, layer, "slw_conv_int8", "int8_t")
    if text is None:
        return None
    padded = -(-int(np.prod(weight_shape[:3])) // 4) * 4
    return LibraryKernel(text, 5 * padded, {layer.weight: pack}, _overlap(layer, 2))


def _depthwise(name: str, function: Function, layer: _Layer) -> LibraryKernel | None:
    text = _definition(name, function, layer, "slw_depthwise_int8", "int16_t")
    if text is None:
        return None
    data, weight = (a.checked_type for a in layer.sums.args)
    channels = data.shape[3]
    taps = weight.shape[0] * weight.shape[1]
    size = -(-channels // 16) * 16 + _POINTER_BYTES * taps
    return LibraryKernel(text, size, {layer.weight: _pack_depthwise}, _overlap(layer, 0))


def _overlap(layer: _Layer, pixels_at_once: int) -> Overlap:
    inputs, outputs, _, rest = _geometry(layer)
    lead = window_lead_bytes(inputs, outputs, rest[:2], rest[4:6], pixels_at_once=pixels_at_once)
    return Overlap(layer.data, 0, lead, False)
