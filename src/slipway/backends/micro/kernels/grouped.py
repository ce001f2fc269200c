"""Convolutions in groups, of several filters a channel, of several images, in parts (grouped.c).

Images are computed one after the other.  A part of one image is a layer that the families of
kernels compute: the channels of a group, which are taken out of the data, or one filter of each
channel, which reads the data as it lies.  Its results go into memory of their own and from there to
their channels.  That is done for one row of results at a time, so that the memory is for the rows
of a window and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slipway.backends.in_place import Overlap
from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer, geometry, op_name, type_of
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.relay.expr import Call, Function, Var
from slipway.relay.types import TensorType

Array = np.ndarray[Any, Any]
Family = Callable[[str, Function, Layer], LibraryKernel | None]
_ALIGNED = 16
_SCALES = ("bias", "multiplier", "shift")


@dataclass(frozen=True)
class LayerParts:
    """How a layer is divided: `count` parts of so many channels of data and of results.

    Results of a part lie `step` channels apart.  `is_sliced`: each part reads channels of its own.
    """

    count: int
    inputs: int
    outputs: int
    step: int
    is_sliced: bool

    def channels_of(self, part: int) -> slice:
        """Return which results are those of a part."""
        if self.step > 1:
            return slice(part, None, self.step)
        return slice(part * self.outputs, (part + 1) * self.outputs)


def parts_of(layer: Layer) -> LayerParts | None:
    """Return the parts of a layer that no family computes as a whole; None where it has none."""
    data, weight = (type_of(a) for a in layer.sums.args)
    if data.rank != 4:
        return None
    channels, outputs = data.shape[3], type_of(layer.sums).shape[3]
    is_depthwise = op_name(layer.sums) == "qnn.depthwise_conv2d_nhwc"
    if is_depthwise and 1 < channels < outputs:
        return LayerParts(
            outputs // channels, channels, channels, outputs // channels, is_sliced=False
        )
    if op_name(layer.sums) == "qnn.conv2d_nhwc" and layer.sums.attrs.groups > 1:
        count = layer.sums.attrs.groups
        return LayerParts(count, weight.shape[2], outputs // count, 1, is_sliced=True)
    return LayerParts(1, channels, outputs, 1, is_sliced=False) if data.shape[0] > 1 else None


def grouped_kernel(
    name: str, function: Function, layer: Layer, family: Family
) -> LibraryKernel | None:
    """Return the kernel of a layer in parts, each of which is a kernel of `family`."""
    parts = parts_of(layer)
    if parts is None:
        return None
    own, part = _part_of(layer, parts)
    inner = family(f"{name}_part", own, part)
    if inner is None or inner.arrange is None:
        return None
    arrange_part = inner.arrange
    arranged = arrange_part(_example(part))
    if arranged is None:
        return None

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        every = []
        for number in range(parts.count):
            found = arrange_part(_constants_of(constants, parts.channels_of(number)))
            if found is None:
                return None
            every.append(found)
        return {
            outer: np.concatenate([found[number].reshape(-1) for found in every])
            for number, outer in _operands(part, layer).items()
        }

    text, size = _text(name, function, layer, parts, inner, arranged)
    overlaps = _overlaps(layer, _lead_bytes(layer) if parts.count > 1 else _lead_of(inner))
    return LibraryKernel(inner.family, text, size, overlaps, layer, arrange, ("grouped",))


def _overlaps(layer: Layer, lead: int | None) -> tuple[Overlap, ...]:
    """Return how far the results may reach into the data, by what those of one image may."""
    if lead is None:
        return ()
    inputs, outputs, _, _ = geometry(layer)
    more = int(np.prod(outputs)) - int(np.prod(inputs))
    images = type_of(layer.sums.args[0]).shape[0]
    return (Overlap(layer.data, 0, lead + (images - 1) * max(0, more), False),)


def _lead_of(kernel: LibraryKernel) -> int | None:
    return next((overlap.lead_bytes for overlap in kernel.overlaps), None)


def _lead_bytes(layer: Layer) -> int:
    """Return how far below the data the results may begin.

    While a row of results is written, the rows behind it are read, and all after them.
    """
    (height, width, channels), outputs, _, rest = geometry(layer)
    read, written = width * channels, outputs[1] * outputs[2]
    stride, top = rest[0], rest[4]
    first = (min(max(0, y * stride - top), height) for y in range(outputs[0]))
    return max(0, *(int((y + 1) * written - row * read) for y, row in enumerate(first)))


def _part_of(layer: Layer, parts: LayerParts) -> tuple[Function, Layer]:
    """Return one part: its operands are data, weights, and what there is of biases and scales."""
    data, weight = (type_of(a) for a in layer.sums.args)
    x = Var("x", TensorType((1, *data.shape[1:3], parts.inputs), data.dtype))
    w = Var("w", TensorType((*weight.shape[:-1], parts.outputs), weight.dtype))
    params: list[Var] = [x, w]
    operands: dict[str, Any] = {}
    for role in _SCALES:
        if isinstance(getattr(layer, role), int):
            operands[role] = len(params)
            params.append(Var(role, TensorType((parts.outputs,), "int32")))
    sums = Call(layer.sums.op, (x, w), layer.sums.attrs.replace(groups=1))
    bands = parts.count > 1
    part = replace(layer, sums=sums, data=0, weight=1, in_bands=bands, **operands)
    return Function(tuple(params), sums), part


def _constants_of(constants: LayerConstants, channels: slice) -> LayerConstants:
    """Return what belongs to some of the channels."""

    def taken(scale: Array | int) -> Array | int:
        return scale[channels] if isinstance(scale, np.ndarray) and scale.ndim else scale

    return LayerConstants(
        constants.weight[..., channels],
        constants.bias[channels],
        taken(constants.multiplier),
        taken(constants.shift),
    )


def _example(part: Layer) -> LayerConstants:
    """Return constants that every family takes: what it makes of them has the size of any."""
    weight = np.zeros(type_of(part.sums.args[1]).shape, np.int8)
    channels = weight.shape[-1]

    def scale(operand: Any, value: int) -> Array | int:
        return np.full(channels, value, np.int32) if isinstance(operand, int) else value

    return LayerConstants(
        weight,
        np.zeros(channels, np.int32),
        scale(part.multiplier, 1 << 30),
        scale(part.shift, -8),
    )


def _operands(part: Layer, layer: Layer) -> dict[int, int]:
    """Return which operand of the layer has the constants of each one of a part."""
    roles = [role for role in ("weight", *_SCALES) if isinstance(getattr(layer, role), int)]
    return {getattr(part, role): getattr(layer, role) for role in roles}


def _text(
    name: str,
    function: Function,
    layer: Layer,
    parts: LayerParts,
    inner: LibraryKernel,
    arranged: Mapping[int, Array],
) -> tuple[str, int]:
    """Return the kernel, and the bytes of its workspace."""
    part = inner.layer
    assert part is not None
    inputs, outputs, _, _ = geometry(layer)
    named = sorted(_operands(part, layer).items())
    types = {outer: arranged[own].dtype.name for own, outer in named}
    arguments = [
        f"const {types.get(number, 'int8')}_t *p{number}" for number in range(len(function.params))
    ]
    step = " + part * " if parts.count > 1 else ""
    given = [
        f"p{outer}{step}{arranged[own].size}u" if step else f"p{outer}" for own, outer in named
    ]
    scratch = ["workspace"] if inner.workspace_bytes else []
    if parts.count > 1:
        size, lines = _banded(name, layer, parts, inner, [*given, "line", *scratch])
    else:
        size = inner.workspace_bytes
        call = ", ".join([f"p{layer.data}", *given, "out", *scratch])
        lines = [f"(void){name}_part({call});", f"out += {int(np.prod(outputs))};"]
    memory = ", uint8_t *workspace" if size else ""
    images = type_of(layer.sums.args[0]).shape[0]
    text = [
        inner.text,
        f"SLW_KERNEL int32_t {name}({', '.join(arguments)}, int8_t *out{memory}) {{",
        f"  for (int32_t image = 0; image < {images}; ++image) {{",
        *(f"    {line}" for line in lines),
        f"    p{layer.data} += {int(np.prod(inputs))};",
        "  }",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(text), size


def _banded(
    name: str, layer: Layer, parts: LayerParts, inner: LibraryKernel, given: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the loops over rows and parts, and the bytes: a part's, rows of data, results."""
    (height, width, channels), outputs, kernel, rest = geometry(layer)
    data_at = _aligned(inner.workspace_bytes)
    rows = min(height, (kernel[0] - 1) * rest[2] + 1)
    out_at = data_at + (_aligned(rows * width * parts.inputs) if parts.is_sliced else 0)
    taken = ["    const int8_t *rows = from;"]
    if parts.is_sliced:
        taken = [
            f"    int8_t *rows = (int8_t *)workspace + {data_at}u;",
            f"    slw_take(&layer, from + part * {parts.inputs}u, {parts.inputs}u, {channels}u, "
            "rows);",
        ]
    first = parts.outputs if parts.step == 1 else 1
    lines = [
        f"struct slw_layer layer = {name}_part_layer;",
        f"int8_t *line = (int8_t *)workspace + {out_at}u;",
        f"for (int32_t y = 0; y < {outputs[0]}; ++y) {{",
        f"  const int8_t *from = slw_band(&layer, &{name}_part_layer, y, p{layer.data}, "
        f"{channels}u);",
        f"  for (uint32_t part = 0; part < {parts.count}u; ++part) {{",
        *taken,
        f"    (void){name}_part(&layer, rows, {', '.join(given)});",
        f"    slw_put(line, {outputs[1]}u, {parts.outputs}u, {parts.step}u, {outputs[2]}u, "
        f"out + part * {first}u);",
        "  }",
        f"  out += {outputs[1] * outputs[2]};",
        "}",
    ]
    return out_at + _aligned(outputs[1] * parts.outputs), lines


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
