"""Which fused functions are a quantised layer that the hand-written kernels compute.

The pattern is what importers make of a quantised layer::

    cast(clip(add(rescale(add(sums(data, weight), bias), multiplier, shift), zero), low, high))

with sums a convolution, a depthwise convolution or a product; a bias or a zero point that is 0
leaves no addition, and the bias of a single channel is a constant of the function.  Of 16-bit data
the sums are cast to 64 bits before the bias.  Everything must match; whatever does not keeps its
generated loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var


@dataclass(frozen=True)
class Layer:
    """The pieces of a matched function; parameters are operand numbers.

    `in_bands`: the kernel is told at each call which of the rows it computes (`kernels.grouped`).
    `is_once`: the sums are rounded a single time.  `is_widened`: they are cast to 64 bits before
    the bias.
    """

    sums: Call
    data: int
    weight: int
    bias: Any  # operand number, or ("constant", value)
    multiplier: Any  # as the bias
    shift: Any
    zero: int
    low: int
    high: int
    in_bands: bool = False
    is_once: bool = False
    is_widened: bool = False

    @property
    def kind(self) -> str:
        """What the sums are: "convolution", "depthwise" or "product"; "" when it is none of them.

        A product is of one row: several are the pixels of a convolution.  A depthwise convolution
        of one channel is a convolution with that many outputs.
        """
        data, weight = (type_of(a) for a in self.sums.args)
        match op_name(self.sums):
            case "qnn.conv2d_nhwc" if self.sums.attrs.groups == 1 and data.shape[0] == 1:
                return "convolution"
            case "qnn.depthwise_conv2d_nhwc" if data.shape[0] == 1:
                if data.shape[3] == 1:
                    return "convolution"
                return "depthwise" if weight.shape[2] == data.shape[3] else ""
            case "qnn.dense_packed" if data.size == weight.shape[0]:
                return "product"
            case "qnn.dense_packed":  # each row is a pixel
                return "convolution"
            case _:
                return ""

    @property
    def depth(self) -> int:
        """Elements of the data behind one sum."""
        weight = type_of(self.sums.args[1])
        return int(np.prod(weight.shape[:-1]))


def op_name(expr: Expr) -> str:
    """Return the operator's name; "" for what is not a call of one."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def type_of(expr: Expr) -> Any:
    """Return the expression's type, which in these patterns is a TensorType."""
    return expr.checked_type


def number_of(expr: Expr) -> int | None:
    """Return a constant of one element; None for anything else."""
    if isinstance(expr, Constant) and expr.array.size == 1:
        return int(expr.array.reshape(-1)[0])
    return None


_CHAIN = (
    ("cast", "cast"),
    ("clip", "clip"),
    ("zero", "add"),
    ("rescale", "qnn.rescale"),
    ("bias", "add"),
    ("widened", "cast"),
)
_MAY_LACK = ("zero", "bias", "widened")


def match_layer(function: Function) -> Layer | None:
    """Return the layer of int8 data and results that the function is; None where it is none."""
    layer = match_chain(function)
    if (
        layer is None
        or layer.is_once
        or layer.is_widened
        or type_of(function.body).dtype != "int8"
        or type_of(layer.sums).dtype != "int32"
    ):
        return None
    return layer


def match_chain(function: Function) -> Layer | None:
    """Walk down the chain from the cast; None at the first thing that is different."""
    params = {id(p): i for i, p in enumerate(function.params)}

    def operand(expr: Expr) -> int | None:
        return params.get(id(expr)) if isinstance(expr, Var) else None

    expr: Expr = function.body
    chain: dict[str, Call] = {}
    for role, wanted in _CHAIN:
        if op_name(expr) != wanted:
            if role in _MAY_LACK:
                continue
            return None
        assert isinstance(expr, Call)
        chain[role] = expr
        expr = expr.args[0]
    clip, rescale = chain["clip"], chain["rescale"]
    if not isinstance(expr, Call) or len(expr.args) != 2:
        return None
    data, weight = (operand(a) for a in expr.args)
    zero = number_of(chain["zero"].args[1]) if "zero" in chain else 0
    if None in (data, weight, zero):
        return None

    def scale(argument: Expr) -> Any:
        number = number_of(argument)
        return ("constant", number) if number is not None else operand(argument)

    multiplier, shift = scale(rescale.args[1]), scale(rescale.args[2])
    bias = scale(chain["bias"].args[1]) if "bias" in chain else ("constant", 0)
    if None in (multiplier, shift, bias):
        return None
    assert data is not None
    assert weight is not None
    assert zero is not None
    return Layer(
        expr, data, weight, bias, multiplier, shift, zero,
        int(clip.attrs.a_min), int(clip.attrs.a_max),
        is_once=rescale.attrs.once, is_widened="widened" in chain,
    )  # fmt: skip


def scale_step(function: Function, layer: Layer) -> int | None:
    """Return 0 for one multiplier, 1 for one per channel, None for anything else."""
    channels = type_of(function.body).shape[-1]
    bias = layer.bias
    if isinstance(bias, int) and type_of(function.params[bias]).shape != (channels,):
        return None
    if isinstance(layer.multiplier, tuple) and isinstance(layer.shift, tuple):
        return 0
    if isinstance(layer.multiplier, int) and isinstance(layer.shift, int):
        shapes = {type_of(function.params[i]).shape for i in (layer.multiplier, layer.shift)}
        return 1 if shapes == {(channels,)} else None
    return None


def geometry(layer: Layer) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Return (height, width, channels) in and out, kernel, and (stride, dilation, padding)."""
    data, weight = (type_of(a) for a in layer.sums.args)
    out = type_of(layer.sums)
    if op_name(layer.sums) == "qnn.dense_packed":
        depth, units = weight.shape
        rows = data.size // max(depth, 1)
        return (1, rows, depth), (1, rows, units), (1, 1), (1, 1, 1, 1, 0, 0)
    attrs = layer.sums.attrs
    top, left = attrs.padding[:2]
    return (
        tuple(data.shape[1:]),
        tuple(out.shape[1:]),
        tuple(weight.shape[:2]),
        (*attrs.strides, *attrs.dilation, top, left),
    )
