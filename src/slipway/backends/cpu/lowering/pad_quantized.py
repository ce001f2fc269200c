"""Channels of integer products that fill no vectors get zeros beside them until they do.

    255 filters  ->  strided_slice(256 filters, the last one zeros)
    8 groups of 13 filters on 13 channels  ->  8 groups of 16 on 16; 8 groups of 2 on 2  ->  1 of 16

The slice then moves below the elementwise operators that follow, so that requantisation stays in
the product's kernel, and into the next product, whose weights get zeros for channels that are none.
A depthwise convolution of one channel with several filters is an ordinary one.
Without vectors of channels an instruction on several products cannot be used at all, which costs
more than ten times what is multiplied with zeros here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.ir.hardware import HardwareIntrinsic
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function, Op
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

Array = np.ndarray[Any, Any]

CONV, DENSE, DEPTHWISE = "qnn.conv2d_nhwc", "qnn.dense_packed", "qnn.depthwise_conv2d_nhwc"
RESCALES = ("qnn.rescale", "qnn.contrib_rescale_high")  # by the factors of channels
SHORTER = 1.9  # so many steps of vectors that channels fill are worth one of others, with padding
POOLS = ("nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d")


def pad_quantized(function: Function, instructions: list[HardwareIntrinsic]) -> Function:
    """Return `function` with the channels of its integer products padded for `instructions`."""
    columns = sorted({(i.columns, i.depth) for i in instructions if not i.taps and i.rows == 0})
    if not columns:
        return function
    return _PadChannels(columns).run(function)


@dataclass(frozen=True)
class Grouping:
    """How a product's groups are computed: `together` of them as one, with so many channels."""

    together: int
    inputs: int
    outputs: int


def grouping(
    inputs: int, outputs: int, groups: int, columns: list[tuple[int, int]]
) -> Grouping | None:
    """Return the grouping of groups of `inputs` by `outputs` channels that takes fewest steps.

    Of equals that with the fewest filters, then that which joins most.  None where the channels
    fill vectors as they are, and those are not much shorter than the padded ones; `columns` are the
    filters and channels of an instruction each.
    """
    found = []
    for together in (t for t in range(1, groups + 1) if groups % t == 0):
        for wide, deep in columns:
            vectors, steps = -(-together * outputs // wide), -(-together * inputs // deep)
            joined = Grouping(
                together,
                together * inputs if together == groups else steps * deep,
                vectors * wide,
            )
            parts = groups // together
            found.append((parts * vectors * steps, parts * joined.outputs, -together, joined))
    fewest, _, _, best = min(found, key=lambda entry: entry[:3])
    filled = [
        groups * outputs // wide * -(-inputs // deep)
        for wide, deep in columns
        if outputs % wide == 0 and (groups == 1 or inputs % deep == 0)
    ]
    return None if filled and min(filled) <= SHORTER * fewest else best


@dataclass(frozen=True)
class _Padded:
    """A tensor with more channels than are wanted: which of the wanted is each; 0 for the others.

    `keep`: where the wanted are; `groups` of as many, each followed by padding.
    """

    source: Expr
    fill: Array
    keep: Array
    groups: int

    def of(self, source: Expr) -> _Padded:
        """Return another tensor with the same channels."""
        return _Padded(source, self.fill, self.keep, self.groups)

    def wanted(self) -> Expr:
        """Return the wanted channels alone."""
        make = op_registry.make
        shape = self.source.tensor_type.shape
        each, padded = len(self.keep) // self.groups, shape[-1] // self.groups
        apart = self.source
        if self.groups > 1:
            apart = make("reshape")(apart, (*shape[:-1], self.groups, padded))
        extents = apart.tensor_type.shape
        cut: Expr = make("strided_slice")(apart, (0,) * len(extents), (*extents[:-1], each))
        if self.groups > 1:
            cut = make("reshape")(cut, (*shape[:-1], len(self.keep)))
        return cut


class _PadChannels:
    def __init__(self, columns: list[tuple[int, int]]) -> None:
        self.columns = columns
        self.padded: dict[int, _Padded] = {}
        self.keep: list[Expr] = []  # whose ids are in the table

    def run(self, function: Function) -> Function:
        return rewrite(function, self.rule)  # type: ignore[no-any-return]

    def rule(self, expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        with op_registry.span(expr.span):
            if is_call_of(expr, CONV, DENSE, DEPTHWISE):
                return self._product(expr)
            made = None
            if op_registry.is_pointwise(expr) or is_call_of(expr, *RESCALES):
                made = self._sunk(expr)
            elif _keeps_channels(expr):
                made = self._over(expr)
            return self._noted(made) if made is not None else None

    def _noted(self, padded: _Padded) -> Expr:
        made = padded.wanted()
        self.padded[id(made)] = padded
        self.keep.append(made)
        return made

    def _sunk(self, call: Call) -> _Padded | None:
        """Return an elementwise call on all channels; None where an operand has no padding."""
        known = next((self.padded[id(a)] for a in call.args if id(a) in self.padded), None)
        if known is None or call.tensor_type.shape[-1] != len(known.keep):
            return None
        args: list[Expr] = []
        for argument in call.args:
            own, type_ = self.padded.get(id(argument)), argument.tensor_type
            if own is not None and np.array_equal(own.keep, known.keep):
                args.append(own.source)
            elif type_.rank == 0 or type_.shape[-1] == 1:
                args.append(argument)
            elif isinstance(argument, Constant):
                args.append(Constant(np.asarray(argument.array[..., known.fill], order="C")))
            else:
                return None
        made = Call(call.op, tuple(args), call.attrs, call.span)
        return known.of(made)

    def _over(self, call: Call) -> _Padded | None:
        """Return windows over an image on all its channels."""
        known = self.padded.get(id(call.args[0]))
        if known is None:
            return None
        return known.of(Call(call.op, (known.source,), call.attrs, call.span))

    def _product(self, call: Call) -> Expr | None:
        data, weight = call.args
        if not isinstance(weight, Constant) or data.tensor_type.dtype not in ("int8", "uint8"):
            return None
        attrs: Any = call.attrs
        known = self.padded.get(id(data))
        if is_call_of(call, DEPTHWISE):
            if data.tensor_type.shape[-1] != 1 or weight.array.shape[-1] == 1:
                return self._depthwise(call, known, weight.array)
            weight = Constant(np.asarray(weight.array[:, :, None]))  # all filters read one channel
            call = op_registry.get(CONV)(data, weight, attrs=attrs, span=call.span)
            return self._product(call) or call
        grouped = is_call_of(call, CONV) and attrs.groups > 1
        kernel = weight.array
        read = data
        if known is not None and not grouped:
            read, kernel = known.source, _spread(kernel, known, -2)
        if grouped:
            return self._groups(call, kernel)
        wanted = grouping(kernel.shape[-2], kernel.shape[-1], 1, self.columns)
        if wanted is None:
            return (
                None if read is data else Call(call.op, (read, Constant(kernel)), attrs, call.span)
            )
        outputs = kernel.shape[-1]
        widths = [(0, 0)] * (kernel.ndim - 1) + [(0, wanted.outputs - outputs)]
        full = Constant(np.pad(kernel, widths))
        made = Call(call.op, (read, full), attrs, call.span)
        fill = np.where(np.arange(wanted.outputs) < outputs, np.arange(wanted.outputs), 0)
        return self._noted(_Padded(made, fill, np.arange(outputs), 1))

    def _depthwise(self, call: Call, known: _Padded | None, kernel: Array) -> Expr | None:
        """Return the depthwise convolution of the padding too, by zeros."""
        if known is None or kernel.shape[-1] != len(known.keep):
            return None
        full = Constant(_spread(kernel, known, -1))
        return self._noted(known.of(Call(call.op, (known.source, full), call.attrs, call.span)))

    def _groups(self, call: Call, kernel: Array) -> Expr | None:
        data, attrs = call.args[0], call.attrs
        kh, kw, inputs, filters = kernel.shape
        groups = attrs.groups
        outputs = filters // groups
        wanted = grouping(inputs, outputs, groups, self.columns)
        if wanted is None or any(map(is_open, data.tensor_type.shape)):
            return None
        parts, many = groups // wanted.together, wanted.together
        full = np.zeros((kh, kw, wanted.inputs, parts, wanted.outputs), kernel.dtype)
        for group in range(groups):
            part, at = divmod(group, many)
            own = kernel[..., group * outputs : (group + 1) * outputs]
            rows = slice(at * inputs, (at + 1) * inputs)
            full[:, :, rows, part, at * outputs : (at + 1) * outputs] = own
        weight = Constant(full.reshape(kh, kw, wanted.inputs, -1))
        read = _apart(data, parts, wanted.inputs)
        made = Call(call.op, (read, weight), attrs.replace(groups=parts), call.span)
        position = np.arange(parts * wanted.outputs)
        inside = position % wanted.outputs
        is_wanted = inside < many * outputs
        fill = np.where(is_wanted, position // wanted.outputs * many * outputs + inside, 0)
        if is_wanted.all():
            return made
        return self._noted(_Padded(made, fill, position[is_wanted], parts))


def _keeps_channels(call: Call) -> bool:
    """Return whether a call treats each channel, which lie last, for itself."""
    attrs: Any = call.attrs
    if is_call_of(call, "nn.pad"):
        return tuple(attrs.pad_width[-1]) == (0, 0) and attrs.pad_mode == "constant"
    return is_call_of(call, *POOLS) and attrs.layout == "NHWC"


def _spread(kernel: Array, known: _Padded, axis: int) -> Array:
    """Return a kernel with zeros for the channels along `axis` that are padding."""
    shape = list(kernel.shape)
    shape[axis] = len(known.fill)
    full = np.zeros(shape, kernel.dtype)
    np.moveaxis(full, axis, 0)[known.keep] = np.moveaxis(kernel, axis, 0)
    return full


def _apart(data: Expr, groups: int, channels: int) -> Expr:
    """Return data (N, H, W, C) with the channels of each group padded to `channels`."""
    *image, whole = data.tensor_type.shape
    each = whole // groups
    if each == channels:
        return data
    make = op_registry.make
    parts = make("reshape")(data, (*image, groups, each))
    widths = (*((0, 0) for _ in range(len(image) + 1)), (0, channels - each))
    made: Expr = make("reshape")(make("nn.pad")(parts, widths), (*image, groups * channels))
    return made
