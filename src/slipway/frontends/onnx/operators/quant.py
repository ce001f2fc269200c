"""Quantisation: QuantizeLinear, DequantizeLinear and the integer operators.

The integer operators subtract zero points in int32, so they are exact; a result in real numbers
is scaled in float32 and rounded to even, as ONNX defines it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.few_bits import dequantised
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.frontends.onnx.operators.conv import padding_of
from slipway.frontends.open_padding import surrounded
from slipway.frontends.product import product_of
from slipway.relay.expr import Constant
from slipway.relay.ops.build import scalar
from slipway.relay.ops.qnn.affine import STORED
from slipway.relay.ops.tensor.small_types import FORMATS
from slipway.relay.types import ANY

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def along_axis(node: NodeView, value: Expr, axis: int) -> Any:
    """Return a scale or zero point shaped to broadcast against input 0."""
    shape, target = value.tensor_type.shape, node.type().shape
    block = node.attr("block_size", 0)
    if (block or shape not in ((), (1,))) and not -len(target) <= axis < len(target):
        raise node.unsupported(f"its axis is {axis}, where its input has {len(target)}")
    if block:
        axis %= len(target)
        value = relay.repeat(value, block, axis)
        if value.tensor_type.shape != target:
            ends = list(target)
            value = relay.strided_slice(value, [0] * len(ends), ends)
        return value
    if len(shape) == 0:
        return value
    if shape == (1,):
        return relay.reshape(value, ())
    if len(shape) != 1:
        raise node.unsupported(f"scales of shape {shape}")
    if target[axis] is not ANY and target[axis] != shape[0]:
        raise node.unsupported(f"it has {shape[0]} scales for {target[axis]} elements of its axis")
    view = [1] * len(target)
    view[axis % len(target)] = shape[0]
    return relay.reshape(value, view)


def quantized(value: Expr, scale: Any, zero: Any, dtype: str) -> Any:
    """Return saturate(round(value / scale) + zero) in `dtype`."""
    low, high = dtypes.int_range(dtype)
    kind = value.tensor_type.dtype
    scaled = relay.round(relay.divide(value, scale))
    if zero is not None:
        scaled = relay.add(scaled, relay.cast(zero, kind))
    return relay.cast(relay.clip(scaled, low, high), dtype)


def _affine_args(node: NodeView, axis: int, dtype: str) -> tuple[Any, Any, int] | None:
    """Return (scale, zero point, axis) for `qnn.quantize`, or None for what it does not cover.

    It covers constant, positive float32 scales, one for all or one per index of `axis`.
    """
    scale, zero = node.input(1), node.optional(2)
    known = isinstance(scale, Constant) and (zero is None or isinstance(zero, Constant))
    if not known or dtype not in STORED or node.attr("block_size", 0):
        return None
    if scale.tensor_type.dtype != "float32" or scale.tensor_type.rank > 1:
        return None
    factors = scale.array  # type: ignore[attr-defined]
    zeros = np.zeros_like(factors, np.int32) if zero is None else zero.array  # type: ignore[attr-defined]
    if factors.size == 1:
        factors, zeros = factors.reshape(()), zeros.reshape(())
    elif not -node.rank() <= axis < node.rank() or factors.size != node.type().shape[axis]:
        return None
    if zeros.shape != factors.shape or not (factors > 0).all():
        return None
    return Constant(factors), Constant(zeros.astype(np.int32)), axis


@converter("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize_linear(node: NodeView) -> Any:
    """Real numbers to integers, one scale for all, per axis or per block."""
    axis = node.attr("axis", 1)
    if node.attr("precision", 0):
        raise node.unsupported("precision is set")
    zero = node.optional(2)
    code = node.attr("output_dtype", 0)
    if zero is not None:
        dtype = zero.tensor_type.dtype
    else:
        dtype = dtype_of(node, code) if code else "uint8"
    x, scale = node.input(0), node.input(1)
    affine = _affine_args(node, axis, dtype)
    if affine is not None and x.tensor_type.dtype == "float32":
        return relay.qnn.op.quantize(x, *affine, out_dtype=dtype)
    scale = along_axis(node, scale, axis)
    zero = None if zero is None else along_axis(node, zero, axis)
    if scale.tensor_type.dtype != "float32":
        scale = relay.cast(scale, "float32")
    if x.tensor_type.dtype != "float32":
        x = relay.cast(x, "float32")
    if dtype in FORMATS:  # its zero point is zero
        return relay.cast(relay.divide(x, scale), dtype, bool(node.attr("saturate", 1)))
    if not dtypes.is_integral(dtype):
        raise node.unsupported(f"quantises to {dtype}")
    return quantized(x, scale, zero, dtype)


def _kept_in_blocks(node: NodeView, axis: int) -> Any:
    """Return a constant matrix with a scale for each block, kept in few bits, where that can be."""
    size, given = node.attr("block_size", 0), [node.optional(i) for i in range(3)]
    if not size or any(g is not None and not isinstance(g, Constant) for g in given):
        return None
    values, scales, zeros = (g.array if isinstance(g, Constant) else None for g in given)
    if values is None or scales is None or values.ndim != 2 or scales.dtype != np.float32:
        return None
    if zeros is None:
        zeros = np.zeros(scales.shape, np.int32)
    values, zeros = values.astype(np.int32), zeros.astype(np.int32)
    if axis % 2 == 0:
        values, scales, zeros = values.T, scales.T, zeros.T
    rows, columns = values.shape
    if not scales.shape == zeros.shape == (rows, -(-columns // size)):
        return None
    made = dequantised(values, scales, zeros, size)
    return made if made is None or axis % 2 else relay.transpose(made, (1, 0))


@converter("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize_linear(node: NodeView) -> Any:
    """Integers to real numbers."""
    axis = node.attr("axis", 1)
    affine = _affine_args(node, axis, node.type().dtype)
    if affine is not None:
        return relay.qnn.op.dequantize(node.input(0), *affine)
    kept = _kept_in_blocks(node, axis)
    if kept is not None:
        return kept
    x, scale = node.input(0), along_axis(node, node.input(1), axis)
    dtype = scale.tensor_type.dtype
    if x.tensor_type.dtype in FORMATS:
        return relay.multiply(relay.cast(x, dtype), scale)
    if not dtypes.is_integral(x.tensor_type.dtype):
        raise node.unsupported(f"dequantises {x.tensor_type.dtype}")
    whole = relay.cast(x, "int32")
    if node.has(2):
        whole = relay.subtract(whole, relay.cast(along_axis(node, node.input(2), axis), "int32"))
    return relay.multiply(relay.cast(whole, dtype), scale)


def in_own_range(x: Expr) -> tuple[Any, Any, Any]:
    """Return data as uint8, with scale and zero point, of its range and 0; zeros have scale 1."""
    dtype = x.tensor_type.dtype
    zero = scalar(0, dtype)
    high = relay.maximum(relay.max(x), zero)
    low = relay.minimum(relay.min(x), zero)
    scale = relay.divide(relay.subtract(high, low), scalar(255, dtype))
    scale = relay.where(relay.equal(scale, zero), scalar(1, dtype), scale)
    point = relay.clip(relay.round(relay.divide(relay.negative(low), scale)), 0, 255)
    point = relay.cast(point, "uint8")
    return quantized(x, scale, point, "uint8"), scale, point


@converter("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: NodeView) -> Any:
    """uint8 with scale and zero point from the data's own range (which includes 0)."""
    return [*in_own_range(node.input(0))]


def centred(node: NodeView, index: int, zero_index: int, axis: int | None = None) -> Any:
    """Return an integer input less its zero point, in int32."""
    whole = relay.cast(node.input(index), "int32")
    zero = node.optional(zero_index)
    if zero is None:
        return whole
    zero = relay.cast(zero, "int32")
    shape = zero.tensor_type.shape
    if shape == (1,):
        zero = relay.reshape(zero, ())
    elif len(shape) == 1 and axis is not None:
        view = [1] * node.rank(index)
        view[axis] = shape[0]
        zero = relay.reshape(zero, view)
    return relay.subtract(whole, zero)


@converter("MatMulInteger", "com.microsoft.MatMulInteger16")
def matmul_integer(node: NodeView) -> Any:
    """The product of integer matrices in 32 bits, which those of 8 bits fit into."""
    rows = node.rank(0) - 2 if node.rank(0) > 1 else None
    return product_of(centred(node, 0, 2, rows), centred(node, 1, 3, node.rank(1) - 1))


def _requantized(node: NodeView, total: Any, scales: tuple[Any, Any, Any], zero: Any) -> Any:
    """Return an int32 sum scaled by a * b / y, with the zero point of y."""
    real = relay.cast(total, "float32")
    factor = relay.divide(relay.multiply(scales[0], scales[1]), scales[2])
    low, high = dtypes.int_range(zero.tensor_type.dtype)
    scaled = relay.round(relay.multiply(real, factor))
    scaled = relay.add(scaled, relay.cast(zero, "float32"))
    return relay.cast(relay.clip(scaled, low, high), zero.tensor_type.dtype)


def scalar_of(value: Expr) -> Any:
    """Return a scale or zero point: a vector of one as a scalar, one for each column as it is."""
    return relay.reshape(value, ()) if value.tensor_type.shape == (1,) else value


@converter("QLinearMatMul")
def qlinear_matmul(node: NodeView) -> Any:
    """A * b of quantised matrices, requantised."""
    a, b = centred(node, 0, 2, max(node.rank(0) - 2, 0)), centred(node, 3, 5, node.rank(3) - 1)
    scales = [node.input(1), node.input(4), node.input(6)]
    if any(s.tensor_type.dtype != "float32" for s in scales):
        scales = [relay.cast(s, "float32") for s in scales]
    if scales[0].tensor_type.shape not in ((), (1,)):
        scales[0] = relay.expand_dims(scales[0], 1)
    first, second, third = (scalar_of(s) for s in scales)
    return _requantized(node, product_of(a, b), (first, second, third), scalar_of(node.input(7)))


def _integer_conv(node: NodeView, data: Expr, weight: Any) -> Any:
    kernel = weight.tensor_type.shape[2:]
    count = len(kernel)
    if count not in (1, 2, 3):
        raise node.unsupported(f"convolves {count} spatial axes; 1 to 3 are served")
    ones = (1,) * count
    strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    size = data.tensor_type.shape[2:]
    padding = padding_of(node, size, kernel, strides, dilation)
    data, padding = surrounded(data, padding, range(2, 2 + count))
    function = (relay.nn.conv1d, relay.nn.conv2d, relay.nn.conv3d)[count - 1]
    return function(data, weight, strides, padding, dilation, node.attr("group", 1))


@converter("ConvInteger")
def conv_integer(node: NodeView) -> Any:
    """The exact convolution of integers."""
    return _integer_conv(node, centred(node, 0, 2), centred(node, 1, 3, 0))


@converter("QLinearConv")
def qlinear_conv(node: NodeView) -> Any:
    """The convolution of quantised data, with an int32 bias, requantised."""
    total = _integer_conv(node, centred(node, 0, 2), centred(node, 3, 5, 0))
    if node.has(8):
        total = relay.nn.bias_add(total, node.input(8))
    weight_scale = scalar_of(node.input(4))
    if weight_scale.tensor_type.rank == 1:
        spatial = total.tensor_type.rank - 2
        weight_scale = relay.expand_dims(weight_scale, 1, spatial)
    scales = (scalar_of(node.input(1)), weight_scale, scalar_of(node.input(6)))
    return _requantized(node, total, scales, scalar_of(node.input(7)))
