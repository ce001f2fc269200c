"""IntegerProducts: products of integers less their zero points become products of stored bytes.

    nn.dense(cast(%x, int32) - z, w)   ->  qnn.dense_packed(%x, w) - z * sum(w)
    nn.conv2d(cast(%x, int32) - z, w)  ->  qnn.conv2d_nhwc(%x, w, pad_value=z) - z * sum(w)
    nn.batch_matmul(%a, %b)            ->  the product in float32, where it holds every sum

for bytes %x, constant weights that are bytes once their own zero points are taken off, and a zero
point that may be computed.  The sums are the same integers.  This is what importers make of ONNX's
QLinearConv and MatMulInteger, what `relay.quantize` writes, and what a graph says that was
written by hand.  Convolutions run channels last, and what follows them lies as they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import rewrite
from slipway.transform.graph.convert_layout import change_layouts

BYTES = ("int8", "uint8")
SUMS = "int32"
EXACT_IN_FLOAT32 = 2**24  # integers up to it
MOST_PARTS = 16  # of a product's depth, each of which float32 holds
VIEWS = ("reshape", "transpose", "expand_dims", "squeeze", "broadcast_to", "strided_slice")
NHWC, HWIO, HWOI = "NHWC", "HWIO", "HWOI"


@dataclass(frozen=True)
class Stored:
    """Integers as `value` less `zero`, a scalar; None for nothing."""

    value: Any
    zero: Expr | None = None

    @property
    def known_zero(self) -> int | None:
        """The zero point, None where it is computed."""
        if self.zero is None:
            return 0
        return int(self.zero.array.reshape(())) if isinstance(self.zero, Constant) else None

    def bounds(self) -> tuple[int, int] | None:
        """Return the smallest and largest value, None where the zero point may be anything."""
        low, high = dtypes.int_range(self.value.tensor_type.dtype)
        zeros = (0, 0) if self.zero is None else _range_of_scalar(self.zero)
        return None if zeros is None else (low - zeros[1], high - zeros[0])

    @property
    def can_pad(self) -> bool:
        """Whether the zero point is surely a number that the bytes can hold."""
        low, high = dtypes.int_range(self.value.tensor_type.dtype)
        zeros = (0, 0) if self.zero is None else _range_of_scalar(self.zero)
        return zeros is not None and low <= zeros[0] and zeros[1] <= high


def _range_of_scalar(zero: Any) -> tuple[int, int] | None:
    """Return what a zero point can be: a constant, or bytes made wider; None for anything."""
    while is_call_of(zero, "cast", "reshape", "squeeze", "expand_dims"):
        if zero.tensor_type.dtype in BYTES:
            break
        zero = zero.args[0]
        if not dtypes.is_integral(zero.tensor_type.dtype):
            return None
    if isinstance(zero, Constant):
        value = int(zero.array.reshape(()))
        return value, value
    dtype = zero.tensor_type.dtype
    return dtypes.int_range(dtype) if dtype in BYTES else None


def _holds(dtype: str, found: Stored) -> bool:
    """Whether the values stay as they are in `dtype`; int32 wraps as the sums of products do."""
    if dtype == SUMS:
        return True
    low, high = dtypes.int_range(dtype)
    bounds = found.bounds()
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


def integer_products(function: Function) -> Function:
    """Return a typed `function` with its products of bytes in the form of the packed kernels."""
    on_bytes: Function = rewrite(function, _on_bytes)
    if on_bytes is not function:
        on_bytes = rewrite(change_layouts(on_bytes, _channels_last), _stored_sums)
    return on_bytes


def call_of(name: str, *args: Any, **options: Any) -> Any:
    """Call an operator."""
    return op_registry.make(name)(*args, **options)


# -- operands become bytes -----------------------------------------------------------------------


def _on_bytes(expr: Any) -> Expr | None:
    if not is_call_of(expr, "nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul"):
        return None
    if expr.type is None or expr.tensor_type.dtype != SUMS:
        return None
    with op_registry.span(expr.span):
        if expr.op.name == "nn.batch_matmul":
            return _in_float32(expr)
        data, weight = _stored(expr.args[0]), expr.args[1]
        if data is None or not isinstance(weight, Constant):
            return None
        if expr.op.name == "nn.dense":
            return _dense(data, weight)
        if expr.op.name == "nn.conv1d":
            return _as_conv2d(expr, data, weight)
        return _convolution(expr, data, weight)


def _stored(expr: Any, depth: int = 8) -> Stored | None:
    """Return integers as bytes less a zero point; None where they are something else."""
    if expr.tensor_type.dtype in BYTES:
        return Stored(expr)
    if depth == 0 or not isinstance(expr, Call):
        return None
    if is_call_of(expr, "cast"):
        source: Any = expr.args[0]
        if expr.tensor_type.dtype not in ("int16", "int32"):
            return None
        if source.tensor_type.dtype in BYTES:
            return Stored(source)
        found = _stored(source, depth - 1)
        return found if found is not None and _holds(expr.tensor_type.dtype, found) else None
    if is_call_of(expr, "subtract"):
        left, zero = expr.args
        found = _stored(left, depth - 1)
        if found is None or found.zero is not None or zero.tensor_type.size != 1:
            return None
        if zero.tensor_type.rank > left.tensor_type.rank:
            return None
        if isinstance(zero, Constant):
            less = Stored(found.value, const(zero.array.reshape(()), SUMS))
        else:
            less = Stored(found.value, call_of("reshape", call_of("cast", zero, SUMS), ()))
        return less if _holds(expr.tensor_type.dtype, less) else None
    if is_call_of(expr, *VIEWS) and len(expr.args) == 1:
        found = _stored(expr.args[0], depth - 1)
        if found is None:
            return None
        return Stored(Call(expr.op, (found.value,), expr.attrs, expr.span), found.zero)
    return None


def _bytes_of(weight: Constant) -> np.ndarray[Any, Any] | None:
    """Return weights in the narrowest signed dtype that holds them: int8, int16 or None."""
    array = weight.array
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for dtype in ("int8", "int16"):
        bounds = np.iinfo(dtype)
        if bounds.min <= low and high <= bounds.max:
            return np.asarray(array, dtype)
    return None


def _less_zero(total: Any, data: Stored, sums: np.ndarray[Any, Any]) -> Any:
    """Take the zero point, so many times as the weights sum to, out of sums of stored bytes."""
    if data.zero is None or data.known_zero == 0:
        return total
    known = data.known_zero
    if known is not None:
        return call_of("subtract", total, const((known * sums).astype(SUMS)))
    return call_of("subtract", total, call_of("multiply", const(sums.astype(SUMS)), data.zero))


def _dense(data: Stored, weight: Constant) -> Expr | None:
    """Weights of unsigned bytes less a zero point need nine bits: eight, and what all have more."""
    wide = weight.array.astype(np.int64)
    low, high = (int(wide.min()), int(wide.max())) if wide.size else (0, 0)
    more = 0
    if not (low >= -128 and high <= 127):
        if high - low > 255:
            return None
        more = high - 127 if high > 127 else low + 128
    kernel = (wide - more).astype(np.int8)
    total = call_of("qnn.dense_packed", data.value, Constant(_packed(kernel.T)), SUMS)
    if more:
        rows = call_of("sum", call_of("cast", data.value, SUMS), -1, keepdims=True)
        total = call_of("add", total, call_of("multiply", rows, const(more, SUMS)))
    return _less_zero(total, data, wide.sum(axis=1))  # type: ignore[no-any-return]


def _packed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(array, order="C")


def _as_conv2d(call: Call, data: Stored, weight: Constant) -> Expr | None:
    """One axis is an image of height 1."""
    attrs: Any = call.attrs
    if (attrs.data_layout, attrs.kernel_layout) != ("NCW", "OIW"):
        return None
    left, right = attrs.padding
    image = call_of("expand_dims", data.value, 2)
    made = call_of(
        "nn.conv2d", image, Constant(weight.array[:, :, None].astype(np.int32)),
        strides=(1, *attrs.strides), padding=(0, left, 0, right),
        dilation=(1, *attrs.dilation), groups=attrs.groups, out_dtype=SUMS,
    )  # fmt: skip
    found = _convolution(made, Stored(image, data.zero), made.args[1])
    return None if found is None else call_of("squeeze", found, [2])


def _convolution(call: Any, data: Stored, weight: Constant) -> Expr | None:
    """The convolution of stored bytes, whose padding is their zero point."""
    attrs: Any = call.attrs
    kernel = _bytes_of(weight)
    if kernel is None or attrs.data_layout not in ("NCHW", NHWC):
        return None
    channels = attrs.data_layout.index("C")
    depthwise = attrs.groups > 1 and attrs.groups == data.value.tensor_type.shape[channels]
    if attrs.kernel_layout not in ("OIHW", HWIO, *([HWOI] if depthwise else [])):
        return None
    if attrs.out_layout not in ("", attrs.data_layout):
        return None
    value, padding = data.value, tuple(attrs.padding)
    if any(padding) and data.known_zero != 0:
        if not data.can_pad:
            return None  # a border of -1 in unsigned bytes would be one of 255
        value = _padded(data, attrs.data_layout, padding)
        padding = (0, 0, 0, 0)
    plain = attrs.replace(out_dtype=SUMS, padding=padding)
    total = op_registry.get("nn.conv2d")(value, Constant(_packed(kernel)), attrs=plain)
    # Over windows of one channel, O and I together are the output channels.
    kept = "OI" if depthwise else "O"
    over = tuple(a for a, letter in enumerate(attrs.kernel_layout) if letter not in kept)
    sums = kernel.astype(np.int64).sum(axis=over).reshape(-1)
    shape = [1] * 4
    shape[channels] = sums.size
    return _less_zero(total, data, sums.reshape(shape))  # type: ignore[no-any-return]


def _padded(data: Stored, layout: str, padding: Sequence[int]) -> Any:
    """Return the bytes with their zero point around them; less one that is computed, they wrap."""
    top, left, bottom, right = padding
    amounts = [(0, 0)] * 4
    amounts[layout.index("H")], amounts[layout.index("W")] = (top, bottom), (left, right)
    known = data.known_zero
    if known is not None:
        return call_of("nn.pad", data.value, amounts, float(known))
    zero = call_of("cast", data.zero, data.value.tensor_type.dtype)
    less = call_of("subtract", data.value, zero)
    return call_of("add", call_of("nn.pad", less, amounts, 0.0), zero)


# -- products of two computed matrices -----------------------------------------------------------


def _in_float32(call: Any) -> Expr | None:
    """Integers whose sums float32 holds exactly are multiplied as such; in parts if too deep."""
    sides = [_stored(a) for a in call.args]
    if any(s is None for s in sides):
        return None
    bounds = [s.bounds() for s in sides if s is not None]
    most = [max(abs(b[0]), abs(b[1])) for b in bounds if b is not None]
    if len(most) < len(sides):
        return None  # nobody knows how large its numbers are
    axes = (1 if call.attrs.transpose_a else 2, 2 if call.attrs.transpose_b else 1)
    depth = call.args[0].tensor_type.shape[axes[0]]
    part = EXACT_IN_FLOAT32 // max(most[0] * most[1], 1)
    count = -(-depth // max(part, 1))
    if count > MOST_PARTS:
        return None
    attrs = call.attrs.replace(out_dtype="")
    total: Any = None
    for start in range(0, depth, -(-depth // max(count, 1))):
        end = min(depth, start + -(-depth // count))
        operands = [
            call_of("cast", _between(a, axis, start, end), "float32")
            for a, axis in zip(call.args, axes, strict=True)
        ]
        product = op_registry.get("nn.batch_matmul")(*operands, attrs=attrs, span=call.span)
        whole = call_of("cast", product, SUMS)
        total = whole if total is None else call_of("add", total, whole)
    return total  # type: ignore[no-any-return]


def _between(value: Any, axis: int, start: int, end: int) -> Any:
    shape = value.tensor_type.shape
    if (start, end) == (0, shape[axis]):
        return value
    return call_of("strided_slice", value, [start], [end], [1], axes=[axis])


# -- convolutions lie channels last --------------------------------------------------------------


def _is_of_bytes(call: Any) -> bool:
    return (
        is_call_of(call, "nn.conv2d")
        and call.attrs.out_dtype == SUMS
        and call.args[0].tensor_type.dtype in BYTES
        and isinstance(call.args[1], Constant)
        and call.args[1].array.dtype in (np.int8, np.int16)
    )


def _channels_last(call: Call, operands: Sequence[Expr]) -> Expr | None:
    if not _is_of_bytes(call):
        return None
    attrs: Any = call.attrs
    kernel = attrs.kernel_layout
    wanted = HWIO if kernel != HWOI else HWOI
    if attrs.data_layout == NHWC and kernel == wanted:
        return None
    changed = attrs.replace(data_layout=NHWC, kernel_layout=wanted, out_layout="")
    return Call(call.op, tuple(operands), changed, call.span)


def _stored_sums(expr: Any) -> Expr | None:
    """Return a convolution of bytes, channels last, as sums of what is stored."""
    if not (is_call_of(expr, "nn.conv2d") and expr.attrs.data_layout == NHWC):
        return None
    data, weight = expr.args
    kernel = _kernel(weight, expr.attrs.kernel_layout)
    if kernel is None or data.tensor_type.dtype not in BYTES or expr.attrs.out_dtype != SUMS:
        return None
    attrs: Any = expr.attrs
    padding, pad_value = tuple(attrs.padding), 0
    around = None if any(padding) else _around(data)
    if around is not None:
        data, padding, pad_value = around
    options = {
        "strides": attrs.strides, "padding": padding, "dilation": attrs.dilation,
        "pad_value": pad_value, "out_dtype": SUMS,
    }  # fmt: skip
    with op_registry.span(expr.span):
        if attrs.groups > 1 and attrs.groups == data.tensor_type.shape[3]:
            taps = kernel.reshape(*kernel.shape[:2], -1)
            return call_of("qnn.depthwise_conv2d_nhwc", data, Constant(_packed(taps)), **options)  # type: ignore[no-any-return]
        return call_of(  # type: ignore[no-any-return]
            "qnn.conv2d_nhwc", data, Constant(_packed(kernel)), groups=attrs.groups, **options
        )


def _around(data: Any) -> tuple[Expr, tuple[int, ...], int] | None:
    """Return what a padded image, channels last, is made of: an image, its padding and value."""
    layout, padded = NHWC, data
    if is_call_of(data, "layout_transform") and data.attrs.dst_layout == NHWC:
        layout, padded = data.attrs.src_layout, data.args[0]
    if not is_call_of(padded, "nn.pad") or padded.attrs.pad_mode != "constant":
        return None
    widths = dict(zip(layout, padded.attrs.pad_width, strict=True))
    if any(tuple(widths[letter]) != (0, 0) for letter in "NC"):
        return None
    low, high = dtypes.int_range(data.tensor_type.dtype)
    if not low <= padded.attrs.pad_value <= high:
        return None
    (top, bottom), (left, right) = widths["H"], widths["W"]
    image = padded.args[0]
    if layout != NHWC:
        image = call_of("layout_transform", image, layout, NHWC)
    return image, (top, left, bottom, right), int(padded.attrs.pad_value)


def _kernel(weight: Any, layout: str) -> np.ndarray[Any, Any] | None:
    """Return constant weights, which may be on their way to `layout`."""
    if isinstance(weight, Constant):
        return weight.array
    if is_call_of(weight, "layout_transform") and isinstance(weight.args[0], Constant):
        source, target = weight.attrs.src_layout, weight.attrs.dst_layout
        if target == layout:
            return weight.args[0].array.transpose([source.index(a) for a in target])
    return None
