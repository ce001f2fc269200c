"""Which fused functions the hand-written kernels compute, and how their weights are arranged.

The pattern is what importers make of a quantised layer::

    cast(clip(add(rescale(add(sums(data, weight), bias), multiplier, shift), zero), low, high))

with sums a convolution, a depthwise convolution or a product.  Everything must match; whatever
does not keeps its generated loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from slipway.executor.aot.program import Overlap
from slipway.executor.in_place import window_lead_bytes
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var

Array = np.ndarray[Any, Any]
Pack = Callable[[Array], Array]
_MOST = 65535  # sizes are 16 bits in struct slw_layer
_POINTER_BYTES = 8  # of the largest target


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


@dataclass(frozen=True)
class LibraryKernel:
    """A kernel in C: its definition, its workspace, and what it asks of its operands."""

    text: str
    workspace_bytes: int
    overlap: Overlap | None
    layer: _Layer
    pack: Pack  # the arrangement of the weights

    def prepare(self, operands: Sequence[Array | None]) -> dict[int, Array] | None:
        """Return the constants as the kernel wants them, by operand.

        The kernel's arithmetic needs sums below 2^30.  A channel whose sums may be larger must
        have a constant output, as the dead channels of pruned models do; its weights and scale are
        replaced by ones that give that output.  None: this layer cannot use the kernel.
        """
        layer = self.layer
        weight, bias = operands[layer.weight], operands[layer.bias]
        if weight is None or bias is None:
            return None
        products = 128 * np.abs(weight.astype(np.int64)).reshape(-1, weight.shape[-1]).sum(axis=0)
        large = products + np.abs(bias.astype(np.int64)) >= 1 << 30
        if not large.any():
            return {layer.weight: self.pack(weight)}
        if not isinstance(layer.multiplier, int) or not isinstance(layer.shift, int):
            return None
        multiplier, shift = operands[layer.multiplier], operands[layer.shift]
        if multiplier is None or shift is None:
            return None
        weight, bias, multiplier, shift = (a.copy() for a in (weight, bias, multiplier, shift))
        for c in np.flatnonzero(large):
            ends = {
                _output(
                    int(bias[c]) + sign * int(products[c]), int(multiplier[c]), int(shift[c]), layer
                )
                for sign in (-1, 1)
            }
            if len(ends) != 1:
                return None
            weight[..., c] = 0
            bias[c], multiplier[c], shift[c] = 4 * (ends.pop() - layer.zero), 1 << 30, -1
        return {
            layer.weight: self.pack(weight),
            layer.bias: bias,
            layer.multiplier: multiplier,
            layer.shift: shift,
        }


def _output(total: int, multiplier: int, shift: int, layer: _Layer) -> int:
    """Requantise one sum in exact arithmetic, as the reference kernels do."""
    total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    total = (total << max(shift, 0)) + (1 << 31)
    total = total % (1 << 32) - (1 << 31)
    value = (total * multiplier + (1 << 30)) >> 31
    right = max(-shift, 0)
    mask = (1 << right) - 1
    value = (value >> right) + ((value & mask) > (mask >> 1) + (value < 0)) + layer.zero
    return max(layer.low, min(layer.high, value))


@lru_cache(maxsize=1)
def helper_text() -> str:
    """Return the C functions that the kernels call."""
    text = resources.files("slipway.executor.aot.kernels").joinpath("int8.c").read_text()
    return (
        "#if defined(__GNUC__)\n#define SLW_SHARED __attribute__((noinline, unused))\n"
        "#else\n#define SLW_SHARED\n#endif\n" + text
    )


def match_kernel(name: str, function: Function) -> LibraryKernel | None:
    """Return the library's kernel for a fused function, or None."""
    layer = _match(function)
    if layer is None:
        return None
    data, weight = (_type(a) for a in layer.sums.args)
    if data.dtype != "int8" or weight.dtype != "int8" or _scale_step(function, layer) is None:
        return None
    match _op_name(layer.sums):
        case "qnn.conv2d_nhwc" if layer.sums.attrs.groups == 1 and data.shape[0] == 1:
            return _convolution(name, function, layer, weight.shape, _pack_convolution)
        case "qnn.depthwise_conv2d_nhwc" if data.shape[0] == 1:
            if data.shape[3] == 1:  # one input channel: a convolution with that many outputs
                shape = (*weight.shape[:2], 1, weight.shape[2])
                return _convolution(name, function, layer, shape, _pack_convolution)
            if weight.shape[2] == data.shape[3]:
                return _depthwise(name, function, layer)
        case "qnn.dense_packed" if data.size == weight.shape[0]:
            return _convolution(name, function, layer, (1, 1, *weight.shape), _pack_convolution)
        case _:
            pass
    return None


# -- matching ----------------------------------------------------------------------------------


def _op_name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _type(expr: Expr) -> Any:
    """The expression's type, which in these patterns is a TensorType."""
    return expr.checked_type


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
        or _type(cast_call).dtype != "int8"
        or rescale.attrs.once
        or _type(expr).dtype != "int32"
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
    channels = _type(function.body).shape[-1]
    if _type(function.params[layer.bias]).shape != (channels,):
        return None
    if isinstance(layer.multiplier, tuple) and isinstance(layer.shift, tuple):
        return 0
    if isinstance(layer.multiplier, int) and isinstance(layer.shift, int):
        shapes = {_type(function.params[i]).shape for i in (layer.multiplier, layer.shift)}
        return 1 if shapes == {(channels,)} else None
    return None


# -- emission ----------------------------------------------------------------------------------


def _pack_convolution(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[K][O] to [O / 2][K / 4][2][4], both filled up with zeros."""
    rows = np.ascontiguousarray(weight.reshape(-1, weight.shape[-1]).T)
    units, depth = rows.shape
    full = np.pad(rows, ((0, units % 2), (0, -depth % 4)))
    pairs = full.reshape(full.shape[0] // 2, 2, full.shape[1] // 4, 4)
    return np.ascontiguousarray(pairs.transpose(0, 2, 1, 3))


def _pack_depthwise(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[kH][kW][C] int8 to [C / 4][kH * kW][4] int16 with each four channels as 0, 2, 1, 3."""
    flat = weight.reshape(-1, weight.shape[-1])
    full = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4)))
    rows = full.reshape(len(flat), -1, 4)[:, :, [0, 2, 1, 3]]
    return np.ascontiguousarray(rows.transpose(1, 0, 2).astype(np.int16))


def _geometry(layer: _Layer) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Return (height, width, channels) in and out, kernel, and (stride, dilation, padding)."""
    data, weight = (_type(a) for a in layer.sums.args)
    out = _type(layer.sums)
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
    name: str,
    function: Function,
    layer: _Layer,
    helper: str,
    weight_type: str,
    inputs: tuple[int, ...] | None = None,
) -> str | None:
    """Return the kernel: a constant description of the layer, and the call."""
    shape, outputs, kernel, rest = _geometry(layer)
    inputs = inputs or shape
    pad_value = getattr(layer.sums.attrs, "pad_value", 0)
    numbers = (*inputs, *outputs, *kernel, *rest, pad_value, layer.zero, layer.low, layer.high)
    if max(numbers) > _MOST or layer.low < -128 or layer.high > 127:
        return None
    clips = int(layer.low > -128 or layer.high < 127)
    words = []
    for index, param in enumerate(function.params):
        ty = _type(param).dtype
        words.append(f"const {weight_type if index == layer.weight else ty + '_t'} *p{index}")
    scratch = "" if "dense" in helper else ", uint8_t *workspace"
    lines = [
        f"SLW_KERNEL int32_t {name}({', '.join(words)}, int8_t *out{scratch}) {{",
        "  static const struct slw_layer layer = {",
        f"    {', '.join(map(str, numbers))}, {_scale_step(function, layer)}, {clips}}};",
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
        f"  {helper}(&layer, p{layer.data}, (const uint32_t *)(const void *)p{layer.weight}, "
        f"&scales, out, {'workspace' if scratch else '0'});",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _convolution(
    name: str, function: Function, layer: _Layer, weight_shape: tuple[int, ...], pack: Pack
) -> LibraryKernel | None:
    depth = int(np.prod(weight_shape[:3]))
    inputs, outputs, _, _ = _geometry(layer)
    # One row times a matrix needs no gathering, when the row is the whole input.
    is_row = depth % 4 == 0 and depth == int(np.prod(inputs)) and outputs[0] == outputs[1] == 1
    helper = "slw_dense_int8" if is_row else "slw_conv_int8"
    text = _definition(
        name, function, layer, helper, "int8_t", inputs=(1, 1, depth) if is_row else None
    )
    if text is None:
        return None
    size = 0 if is_row else 5 * (-(-depth // 4) * 4)
    # A product writes its first outputs while it still reads the whole row: no overlap there.
    overlap = None if is_row else _overlap(layer, 2)
    return LibraryKernel(text, size, overlap, layer, pack)


def _depthwise(name: str, function: Function, layer: _Layer) -> LibraryKernel | None:
    text = _definition(name, function, layer, "slw_depthwise_int8", "int16_t")
    if text is None:
        return None
    data, weight = (_type(a) for a in layer.sums.args)
    channels = data.shape[3]
    taps = weight.shape[0] * weight.shape[1]
    size = -(-channels // 16) * 16 + _POINTER_BYTES * taps
    return LibraryKernel(text, size, _overlap(layer, 0), layer, _pack_depthwise)


def _overlap(layer: _Layer, pixels_at_once: int) -> Overlap:
    inputs, outputs, _, rest = _geometry(layer)
    strides, pads = (rest[0], rest[1]), (rest[4], rest[5])
    lead = window_lead_bytes(inputs, outputs, strides, pads, pixels_at_once=pixels_at_once)
    return Overlap(layer.data, 0, lead, False)
