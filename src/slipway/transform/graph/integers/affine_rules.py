"""What operators do to integers that stand for real numbers; `integer_arithmetic` applies it.

A rule takes the call and what is known of its arguments (`Affine` or None), and returns the
result as integers, or None where the operator has to run on real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay.expr import Call, Constant, Expr
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.relay.ops.tensor.reduce import reduced_axes
from slipway.transform.graph.integers.affine import Affine, Array, call_of, constant_of, same_scale

Known = Sequence[Affine | None]
Rule = Callable[[Call, Known], Affine | None]
RULES: dict[str, Rule] = {}
BYTES = ("int8", "uint8")
NOTHING = np.zeros((), np.int32)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: enter the rule of the named operators."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def _factor(found: Affine | None, *kinds: str) -> Affine | None:
    """Return what is multiplied or added: one scale, of a stored dtype, nothing pending."""
    if found is None or not found.uniform or found.dtype not in (kinds or (*BYTES, "int16")):
        return None
    return found.settled()


def _weights(found: Affine | None, axis: int) -> Array | None:
    """Return constant weights less their zero points, in the narrowest dtype that holds them."""
    if found is None or not isinstance(found.value, Constant) or found.dtype not in BYTES:
        return None
    if found.axis % found.rank != axis and not found.uniform:
        return None
    whole = found.value.array.astype(np.int32) - found.shaped(found.zero)
    fits = whole.size == 0 or (whole.min() >= -128 and whole.max() <= 127)
    return whole.astype(np.int8 if fits else np.int16)


def _can_hold(data: Affine, number: int) -> bool:
    """Return whether the stored integers may be `number`: a zero point need not be among them."""
    low, high = dtypes.int_range(data.dtype)
    return low <= number <= high


def _sums_dtype(data: Affine) -> str:
    return "int64" if data.dtype == "int16" else "int32"


def _without_zero_point(total: Expr, data: Affine, weights: Array, axes: Any, dtype: str) -> Any:
    """Take the data's zero point out of sums; channels are the last axis."""
    if not int(data.zero):
        return total
    part = int(data.zero) * weights.astype(np.int64).sum(axis=axes)
    return call_of("subtract", total, const(part.astype(dtype), dtype))


# -- products ------------------------------------------------------------------------------------


@rule("nn.conv2d")
def conv2d(call: Call, known: Known) -> Affine | None:
    """Channels-last sums; the padding holds the data's zero point."""
    attrs: Any = call.attrs
    data = _factor(known[0])
    weights = _weights(known[1], 0)
    if data is None or weights is None or attrs.data_layout + attrs.kernel_layout != "NCHWOIHW":
        return None
    if data.dtype == "int16" and int(data.zero):
        return None
    if any(attrs.padding) and not _can_hold(data, int(data.zero)):
        return None
    dtype = _sums_dtype(data)
    plain = data.channels_last()
    channels, per_group = weights.shape[0], weights.shape[1]
    options = {
        "strides": attrs.strides, "padding": attrs.padding, "dilation": attrs.dilation,
        "pad_value": int(data.zero), "out_dtype": dtype,
    }  # fmt: skip
    if attrs.groups > 1 and per_group == 1:
        kernel, axes = weights[:, 0].transpose(1, 2, 0), (0, 1)
        total = call_of("qnn.depthwise_conv2d_nhwc", plain.value, _constant(kernel), **options)
    else:
        kernel, axes = weights.transpose(2, 3, 1, 0), (0, 1, 2)  # type: ignore[assignment]
        total = call_of(
            "qnn.conv2d_nhwc", plain.value, _constant(kernel), groups=attrs.groups, **options
        )
    total = _without_zero_point(total, data, kernel, axes, dtype)
    return Affine(total, _product_scale(known, channels), NOTHING, axis=1, last=True, sums=True)


def _constant(array: Array) -> Constant:
    return Constant(np.asarray(array, order="C"))


def _product_scale(known: Known, channels: int) -> Array:
    one, other = known
    assert one is not None
    assert other is not None
    scale: Array = one.scale * other.scale
    return scale.reshape(()) if scale.size == 1 and channels != 1 else scale


@rule("nn.dense")
def dense(call: Call, known: Known) -> Affine | None:
    """Rows of data by constant weights (units, depth)."""
    data = _factor(known[0])
    weights = _weights(known[1], 0)
    if data is None or weights is None or (data.dtype == "int16" and int(data.zero)):
        return None
    dtype = _sums_dtype(data)
    kernel = weights.T
    plain = data.channels_second()
    total = call_of("qnn.dense_packed", plain.value, _constant(kernel), dtype)
    total = _without_zero_point(total, data, kernel, 0, dtype)
    scale = _product_scale(known, kernel.shape[1])
    return Affine(total, scale, NOTHING, axis=total.tensor_type.rank - 1, sums=True)


@rule("nn.conv1d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def other_conv(call: Call, known: Known) -> Affine | None:
    """The operator itself, on integers less their zero points."""
    attrs: Any = call.attrs
    transposed = call.op.name.endswith("transpose")
    data = _factor(known[0], *BYTES)
    weights = _weights(known[1], 1 if transposed else 0)
    if data is None or weights is None:
        return None
    if not getattr(attrs, "data_layout", "NC").startswith("NC"):
        return None
    if transposed and attrs.groups != 1 and not known[1].uniform:  # type: ignore[union-attr]
        return None
    operands = (data.channels_second().centered(), const(weights, "int32"))
    total = Call(call.op, operands, attrs.replace(out_dtype=""), call.span)
    scale = _product_scale(known, total.tensor_type.shape[1])
    return Affine(total, scale, NOTHING, axis=1, sums=True)


@rule("nn.batch_matmul")
def batch_matmul(call: Call, known: Known) -> Affine | None:
    """Products of two matrices of activations."""
    sides = [_factor(k, *BYTES) for k in known]
    if None in sides:
        return None
    operands = tuple(s.channels_second().centered() for s in sides if s is not None)
    total = Call(call.op, operands, call.attrs.replace(out_dtype=""), call.span)
    return Affine(total, sides[0].scale * sides[1].scale, NOTHING, sums=True)  # type: ignore[union-attr]


# -- sums ----------------------------------------------------------------------------------------


def _plus_constant(found: Affine, real: Array, sign: int) -> Affine | None:
    """Add real numbers, one or one per channel, to sums."""
    if not found.sums or found.clipped or real.ndim > found.rank:
        return None
    whole = real.reshape((1,) * (found.rank - real.ndim) + real.shape).astype(np.float64) * sign
    whole = np.round(whole / replace(found, last=False).shaped(found.scale))
    shape = replace(found, last=False).value.tensor_type.shape
    if found.last:
        whole = np.moveaxis(whole, 1, -1)
    if any(a not in (1, b) for a, b in zip(whole.shape, shape, strict=True)):
        return None
    if np.abs(whole).max(initial=0) >= 2**31:
        return None
    return replace(found, value=_added(found.value, whole.astype(found.dtype)))


def _added(value: Expr, amount: Array) -> Any:
    """Return value + amount, in one step with a constant that was added before."""
    if isinstance(value, Call) and value.op.name in ("add", "subtract"):
        before, other = value.args
        if isinstance(other, Constant):
            amount = amount + (other.array if value.op.name == "add" else -other.array)
            value = before
    while amount.ndim and amount.shape[0] == 1:
        amount = amount[0]
    return call_of("add", value, Constant(np.asarray(amount, order="C")))


@rule("nn.bias_add")
def bias_add(call: Call, known: Known) -> Affine | None:
    """A bias per channel joins the sums."""
    bias, found = constant_of(call.args[1]), known[0]
    if bias is None or found is None:
        return None
    axis = call.attrs.axis % found.rank
    return _plus_constant(found, bias.reshape(-1, *(1,) * (found.rank - 1 - axis)), 1)


@rule("add", "subtract")
def add(call: Call, known: Known) -> Affine | None:
    """Two tensors, brought to one scale with digits to spare; or sums and a constant."""
    sign = 1 if call.op.name == "add" else -1
    first, second = (constant_of(a) for a in call.args)
    if second is not None and known[0] is not None and known[0].sums:
        return _plus_constant(known[0], second, sign)
    if first is not None and known[1] is not None and known[1].sums and sign == 1:
        return _plus_constant(known[1], first, 1)
    sides = _same_layout([_factor(k) for k in known])
    if sides is None:
        return None
    digits = 15 if "int16" in (sides[0].dtype, sides[1].dtype) else 20
    if digits == 15 and any(int(s.zero) for s in sides):
        return None
    twice = 2.0 * max(float(s.scale) for s in sides)
    if twice == 0.0:
        return None
    shifted = [
        rescale_by(
            call_of("left_shift", s.centered(), const(digits, "int32")),
            float(s.scale) / twice,
            True,
        )
        for s in sides
    ]
    total = call_of(call.op.name, *shifted)
    scale = np.asarray(twice / (1 << digits))
    return Affine(total, scale, NOTHING, last=sides[0].last, sums=True)


def _same_layout(sides: Sequence[Affine | None]) -> list[Affine] | None:
    found = [s for s in sides if s is not None]
    if len(found) != len(sides):
        return None
    if any(f.last for f in found):
        if all(f.rank == found[0].rank for f in found):
            return [f.channels_last() for f in found]
        return [f.channels_second() for f in found]
    return found


@rule("multiply")
def multiply(call: Call, known: Known) -> Affine | None:
    """Products of two tensors; a positive number changes the scale only."""
    for position in (0, 1):
        number, found = constant_of(call.args[position]), known[1 - position]
        if number is not None and number.size == 1 and found is not None:
            value = float(number.reshape(()))
            same = call.tensor_type.shape == call.args[1 - position].tensor_type.shape
            if same and value > 0 and np.isfinite(value):
                low, high = found.low * value, found.high * value
                return replace(found, scale=found.scale * value, low=low, high=high)
    sides = _same_layout([_factor(k) for k in known])
    if sides is None or (sides[0].dtype == "int16") != (sides[1].dtype == "int16"):
        return None
    product = call_of("multiply", *(s.centered() for s in sides))
    return Affine(product, sides[0].scale * sides[1].scale, NOTHING, last=sides[0].last, sums=True)


# -- bounds --------------------------------------------------------------------------------------


@rule("nn.relu", "clip")
def clip(call: Call, known: Known) -> Affine | None:
    """A clip waits for the scale of the result, where its bounds are exact."""
    (found,) = known
    if found is None:
        return None
    low, high = 0.0, np.inf
    if call.op.name == "clip":
        low, high = float(call.attrs.a_min), float(call.attrs.a_max)
    bounds = [min(max(b, low), high) for b in (found.low, found.high)]
    return replace(found, low=bounds[0], high=bounds[1])


@rule("maximum", "minimum")
def extremum(call: Call, known: Known) -> Affine | None:
    """The greater or lesser of tensors of one scale."""
    sides = _same_layout([_factor(k) for k in known])
    if sides is None or not same_scale(sides):
        return None
    return replace(sides[0], value=call_of(call.op.name, *(s.value for s in sides)))


# -- windows -------------------------------------------------------------------------------------


@rule("nn.max_pool2d")
def max_pool(call: Call, known: Known) -> Affine | None:
    """The largest integer is that of the largest number."""
    (found,) = known
    if found is None or found.sums or call.attrs.layout != "NCHW":
        return None
    plain = found.channels_last()
    return replace(
        plain, value=Call(call.op, (plain.value,), call.attrs.replace(layout="NHWC"), call.span)
    )


@rule("nn.avg_pool2d")
def avg_pool(call: Call, known: Known) -> Affine | None:
    """Averages of windows with eight more binary digits."""
    attrs: Any = call.attrs
    found = _factor(known[0], *BYTES)
    counted = attrs.count_include_pad and any(attrs.padding)
    plain = attrs.layout == "NCHW" and not attrs.ceil_mode and set(attrs.dilation) == {1}
    if found is None or counted or not plain:
        return None
    last = found.channels_last()
    wide = call_of("left_shift", last.centered(), const(8, "int32"))
    value = call_of("qnn.avg_pool2d", wide, attrs.pool_size, attrs.strides, attrs.padding)
    return Affine(value, found.scale / 256, NOTHING, last=True, sums=True)


@rule("nn.global_avg_pool2d")
def global_avg_pool(call: Call, known: Known) -> Affine | None:
    """The sum of all positions; their number is part of the scale."""
    if call.attrs.layout != "NCHW":
        return None
    return _mean(known[0], (2, 3), True)


@rule("mean")
def mean(call: Call, known: Known) -> Affine | None:
    """The sum over axes; the number of elements is part of the scale."""
    if known[0] is None:
        return None
    return _mean(known[0], reduced_axes(call.attrs, known[0].rank), call.attrs.keepdims)


def _mean(given: Affine | None, axes: tuple[int, ...], keepdims: bool) -> Affine | None:
    found = _factor(given, *BYTES)
    if found is None or not axes:
        return None
    last = found.last and keepdims
    plain = found if last else found.channels_second()
    positions = axes
    if last:
        positions = tuple(map(found.axis_of, axes))
    count = int(np.prod([plain.value.tensor_type.shape[a] for a in positions]))
    if not 0 < count < 1 << 23:
        return None
    total = call_of("sum", call_of("cast", plain.value, "int32"), positions, keepdims)
    if int(found.zero):
        total = call_of("subtract", total, const(count * int(found.zero), "int32"))
    return Affine(total, found.scale / count, NOTHING, last=last, sums=True)


# -- places --------------------------------------------------------------------------------------


@rule("reshape", "squeeze", "expand_dims", "nn.batch_flatten", "strided_slice", "broadcast_to",
      "tile", "repeat", "reverse", "nn.dropout", "copy")  # fmt: skip
def moved(call: Call, known: Known) -> Affine | None:
    """Elements change places only."""
    (found,) = known
    if found is None or not found.uniform:
        return None
    plain = found.channels_second()
    value = call.with_args((plain.value,))
    if isinstance(plain.value, Constant):
        return None
    return replace(plain, value=value)


@rule("transpose")
def transpose(call: Call, known: Known) -> Affine | None:
    """Axes change places, and with them the axis of the scales."""
    (found,) = known
    if found is None:
        return None
    plain = found.channels_second()
    axes = [a % plain.rank for a in call.attrs.axes] or list(range(plain.rank))[::-1]
    axis = axes.index(plain.axis % plain.rank) if not plain.uniform else 0
    return replace(plain, value=call_of("transpose", plain.value, axes), axis=axis)


@rule("nn.pad")
def pad(call: Call, known: Known) -> Affine | None:
    """The padding holds the integer of its number."""
    attrs: Any = call.attrs
    found = _factor(known[0])
    if found is None:
        return None
    plain = found.channels_second()
    if attrs.pad_mode == "constant":
        position = attrs.pad_value / float(found.scale) + int(found.zero)
        if position != round(position) or not _can_hold(found, round(position)):
            return None
        attrs = attrs.replace(pad_value=float(round(position)))
    return replace(plain, value=Call(call.op, (plain.value,), attrs, call.span))


@rule("image.resize")
def resize(call: Call, known: Known) -> Affine | None:
    """The nearest elements are copies."""
    (found,) = known
    if found is None or not found.uniform or call.attrs.method != "nearest_neighbor":
        return None
    plain = found.channels_second()
    return replace(plain, value=call.with_args((plain.value,)))
