"""Kernels of layers with 16 bits in their data or results, or that round once (halfwords.c).

Data of 16 bits and weights of 8, as 16x8 files have them; int8 data whose results keep 16 bits, as
the gates of a recurrent layer and the features of an SVDF do; products that are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.backends.in_place import Overlap, window_lead_bytes
from slipway.backends.micro.kernels.constants import LayerConstants, packed_channels, packed_rows
from slipway.backends.micro.kernels.dsp import EVEN_ODD
from slipway.backends.micro.kernels.layer import Layer, geometry, scale_step, type_of
from slipway.backends.micro.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    description,
    is_direct,
)
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
_UNITS = {"scalar": 1, "dsp": 4, "mve": 8}  # elements of a window that stand beside each other
_STEP = 4  # elements that the loops of any core take at once, at least
_DTYPES = ("int8", "int16")
TWICE, ONCE, SHORT = range(3)  # as in halfwords.c


def halfwords_kernel(
    name: str, function: Function, layer: Layer, core: str
) -> LibraryKernel | None:
    """Return the kernel of a matched function; None for a layer that it does not compute."""
    data, weight = (type_of(a) for a in layer.sums.args)
    result = type_of(function.body).dtype
    if (
        not layer.kind
        or scale_step(function, layer) is None
        or data.dtype not in _DTYPES
        or result not in _DTYPES
        or weight.dtype != "int8"
        or type_of(layer.sums).dtype != "int32"
        or not layer.depth
        or (data.dtype == "int16" and getattr(layer.sums.attrs, "pad_value", 0))
    ):
        return None
    rule = ONCE if layer.is_once else SHORT if layer.is_widened else TWICE
    unit = 1 if layer.kind == "depthwise" else _UNITS[core]
    size = _workspace_bytes(layer, unit)
    text = _definition(name, function, layer, (max(unit, _STEP), rule), has_workspace=size > 0)
    if text is None:
        return None

    def arrange(constants: LayerConstants) -> dict[int, Array]:
        bias = np.pad(constants.bias, (0, -len(constants.bias) % 4)).astype(np.int32)
        multiplier = constants.multiplier
        if rule == SHORT and isinstance(multiplier, np.ndarray):
            multiplier = short_multiplier(multiplier)
        weight = _packed(constants.weight, layer, unit)
        return LayerConstants(weight, bias, multiplier, constants.shift).by_operand(layer)

    return LibraryKernel(
        f"halfwords_{core}",
        text,
        size,
        _overlaps(function, layer),
        layer,
        arrange,
        settle=_settle,
    )


def short_multiplier(multiplier: Any) -> Array:
    """Return multipliers of 31 bits rounded to 15, as TFLite has them for sums of 64 bits."""
    wide = np.asarray(multiplier, np.int64)
    short = np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)
    return np.asarray(short, np.int32)


def _packed(weight: Array, layer: Layer, unit: int) -> Array:
    if layer.kind == "depthwise":
        return packed_channels(weight, 4)
    packed = packed_rows(weight, 4, unit, multiple=max(unit, _STEP))
    return np.asarray(packed[..., EVEN_ODD] if unit == _UNITS["dsp"] else packed, order="C")


def _workspace_bytes(layer: Layer, unit: int) -> int:
    data = type_of(layer.sums.args[0])
    element = dtypes.bytes_of(data.dtype)
    if layer.kind == "depthwise":
        return POINTER_BYTES * layer.depth + element * int(data.shape[3])
    step = max(unit, _STEP)
    if element == 2 and is_direct(layer) and layer.depth % step == 0:
        return 0
    return (2 if element == 2 else 3) * (-(-layer.depth // step) * step)


def _overlaps(function: Function, layer: Layer) -> tuple[Overlap, ...]:
    """Return how far the results may reach into the data: one pixel is read after another.

    Nothing where its elements have another size, and of one row, which is read to the end.
    """
    data, result = type_of(layer.sums.args[0]).dtype, type_of(function.body).dtype
    inputs, outputs, _, rest = geometry(layer)
    if data != result or layer.kind == "product":
        return ()
    lead = window_lead_bytes(
        inputs,
        outputs,
        (rest[0], rest[1]),
        (rest[4], rest[5]),
        element_bytes=dtypes.bytes_of(data),
        pixels_at_once=1,
        interleaved=True,
    )
    return (Overlap(layer.data, 0, lead, False),)


def _settle(layer: Layer, operands: Sequence[Array | None]) -> LayerConstants | None:
    """Return the constants; None where a sum may be too large for 32 bits, or a shift too far."""

    def value(number: Any) -> Array | int | None:
        return operands[number] if isinstance(number, int) else int(number[1])

    weight, bias = operands[layer.weight], value(layer.bias)
    multiplier, shift = value(layer.multiplier), value(layer.shift)
    if weight is None or bias is None or multiplier is None or shift is None:
        return None
    if isinstance(bias, int):
        bias = np.full(weight.shape[-1], bias, np.int64)
    low, high = dtypes.int_range(type_of(layer.sums.args[0]).dtype)
    wide = weight.astype(np.int64).reshape(-1, weight.shape[-1])
    added = bias.astype(np.int64)
    largest = max(-low, high) * np.abs(wide).sum(axis=0) + np.abs(added)
    twice = not (layer.is_once or layer.is_widened)
    left = np.maximum(np.asarray(shift, np.int64), 0) if twice else 0
    limit, ends = (1 << 30, (-30, 30)) if twice else (1 << 31, (-30, 14))
    shifts = np.asarray(shift)
    if (largest << left).max() >= limit or shifts.min() < ends[0] or shifts.max() > ends[1]:
        return None
    return LayerConstants(weight, added, multiplier, shift)


def _definition(
    name: str, function: Function, layer: Layer, how: tuple[int, int], *, has_workspace: bool
) -> str | None:
    """Return the kernel: constant descriptions of the layer, and the call of its function."""
    data, result = type_of(layer.sums.args[0]).dtype, type_of(function.body).dtype
    element = dtypes.bytes_of(data)
    described = description(function, layer, element_bytes=element)
    if described is None:
        return None
    arguments = []
    for index, param in enumerate(function.params):
        ty = "int32" if index == layer.bias else type_of(param).dtype
        arguments.append(f"const {ty}_t *p{index}")
    numbers = f"{element}u, {dtypes.bytes_of(result)}u, {how[0]}u, {how[1]}u"
    scratch = ", uint8_t *workspace" if has_workspace else ""
    parameters = f"{', '.join(arguments)}, {result}_t *out{scratch}"
    lines = [
        f"SLW_KERNEL int32_t {name}({parameters}) {{",
        *(f"  {line}" for line in described),
        f"  static const struct slw_halfwords how = {{{numbers}}};",
    ]
    scales = []
    for word in ("bias", "multiplier", "shift"):
        value = getattr(layer, word)
        if not isinstance(value, tuple):
            scales.append(f"p{value}")
            continue
        number, count = value[1], 1
        if word == "bias":
            count = -(-geometry(layer)[1][2] // 4) * 4
        elif word == "multiplier" and how[1] == SHORT:
            number = int(short_multiplier(number))
        lines.append(f"  static const int32_t {word}[] = {{{', '.join([str(number)] * count)}}};")
        scales.append(word)
    helper = "depthwise" if layer.kind == "depthwise" else "conv"
    lines += [
        f"  struct slw_scales scales = {{{', '.join(scales)}}};",
        f"  slw_{helper}_halfwords(&layer, &how, p{layer.data}, p{layer.weight}, &scales, out, "
        f"{'workspace' if has_workspace else 'NULL'});",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)
