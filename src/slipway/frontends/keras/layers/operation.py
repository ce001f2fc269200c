"""Operations of ``keras.ops`` that a functional model calls between its layers."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import ACTIVATIONS
from slipway.frontends.keras.layers.merge import operands

UNARY = {
    "Absolute": relay.abs, "Ceil": relay.ceil, "Cos": relay.cos, "Erf": relay.erf,
    "Exp": relay.exp, "Floor": relay.floor, "Log": relay.log, "Negative": relay.negative,
    "Rsqrt": relay.rsqrt, "Sigmoid": relay.sigmoid, "Sign": relay.sign, "Sin": relay.sin,
    "Sqrt": relay.sqrt, "Tanh": relay.tanh, "Relu": relay.nn.relu,
    "Relu6": ACTIVATIONS["relu6"], "HardSigmoid": ACTIVATIONS["hard_sigmoid"],
    "HardSilu": ACTIVATIONS["hard_silu"], "Silu": ACTIVATIONS["silu"],
    "Softplus": ACTIVATIONS["softplus"],
    "Square": lambda x: relay.multiply(x, x),
}  # fmt: skip
REDUCTIONS = {"Max": relay.max, "Mean": relay.mean, "Min": relay.min, "Sum": relay.sum}


@converter(*UNARY)
def _unary(view: LayerView) -> Any:
    return UNARY[type(view.layer).__name__](view.data)


@converter(*REDUCTIONS)
def _reduction(view: LayerView) -> Any:
    axis = view.option("axis")
    axes = list(axis) if isinstance(axis, list | tuple) else axis
    reduce = REDUCTIONS[type(view.layer).__name__]
    return reduce(view.data, axis=axes, keepdims=bool(view.option("keepdims", False)))


@converter("Transpose")
def _transpose(view: LayerView) -> Any:
    return relay.transpose(view.data, view.option("axes"))


@converter("ExpandDims")
def _expand_dims(view: LayerView) -> Any:
    return relay.expand_dims(view.data, int(view.option("axis")))


@converter("Squeeze")
def _squeeze(view: LayerView) -> Any:
    axis = view.option("axis")
    return relay.squeeze(view.data, [axis] if isinstance(axis, int) else axis)


@converter("Cast")
def _cast(view: LayerView) -> Any:
    return relay.cast(view.data, str(view.option("dtype")))


@converter("Matmul")
def _matmul(view: LayerView) -> Any:
    a, b = operands(view)
    ranks = [len(x.tensor_type.shape) for x in (a, b)]
    if ranks == [2, 2]:
        return relay.nn.matmul(a, b)
    if ranks == [3, 3]:
        return relay.nn.batch_matmul(a, b, transpose_b=False)
    raise view.unsupported(f"it multiplies tensors of {ranks[0]} and {ranks[1]} dimensions")


@converter("GetItem")
def _get_item(view: LayerView) -> Any:
    """``x[:, 1:5, ..., None, -1]``: slices, numbers, new axes."""
    key = view.given["args"][1]
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if any(not isinstance(p, int | slice | None) and p is not Ellipsis for p in parts):
        raise view.unsupported(f"it takes {key!r}, and slices and numbers are supported")
    whole = [slice(None)] * (len(view.shape) - taken)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[at : at + 1] = whole
    begin: list[int] = []
    end: list[int] = []
    strides: list[int] = []
    gone: list[int] = []
    new: list[int] = []
    axis = 0
    for position, part in enumerate(parts):
        if part is None:
            new.append(position - len(gone))
            continue
        extent = int(view.shape[axis])
        if isinstance(part, int):
            part = slice(part % extent, part % extent + 1)
            gone.append(axis)
        start, stop, step = part.indices(extent)
        if step < 0:
            raise view.unsupported(f"it takes {key!r}, backwards")
        begin, end, strides = [*begin, start], [*end, stop], [*strides, step]
        axis += 1
    made = relay.strided_slice(view.data, begin, end, strides)
    made = relay.squeeze(made, gone) if gone else made
    for position in new:
        made = relay.expand_dims(made, position)
    return made
