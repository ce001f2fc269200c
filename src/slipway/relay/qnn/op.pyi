"""What type checkers see of slipway.relay.qnn.op; written by tools/stubs.py."""

from collections.abc import Sequence
from slipway.relay.expr import Call
from slipway.relay.expr import ExprLike
from slipway.relay.expr import Extents
from slipway.relay.ops.packed.qnn_depthwise_packed import contrib_depthwise_packed as contrib_depthwise_packed
from slipway.relay.ops.packed.qnn_packed import contrib_conv2d_packed as contrib_conv2d_packed
from slipway.relay.ops.packed.qnn_winograd import contrib_conv2d_winograd as contrib_conv2d_winograd
from slipway.relay.ops.qnn.affine import dequantize as dequantize
from slipway.relay.ops.qnn.affine import quantize as quantize
from slipway.relay.ops.qnn.conv import conv2d_nhwc as conv2d_nhwc
from slipway.relay.ops.qnn.conv import dense_packed as dense_packed
from slipway.relay.ops.qnn.conv import depthwise_conv2d_nhwc as depthwise_conv2d_nhwc
from slipway.relay.ops.qnn.pool import avg_pool2d as avg_pool2d
from slipway.relay.ops.qnn.rescale import rescale as rescale
from slipway.relay.ops.qnn.rescale_high import contrib_rescale_high as contrib_rescale_high
from slipway.relay.ops.qnn.softmax import leading_zeros as leading_zeros
from slipway.relay.ops.qnn.softmax import normalize as normalize
from slipway.relay.ops.qnn.softmax import reciprocal as reciprocal
from slipway.relay.ops.qnn.table import lookup as lookup
from slipway.relay.ops.qnn.words import contrib_words as contrib_words
from slipway.relay.qnn.config import RequantizeConfig as RequantizeConfig
from slipway.relay.qnn.config import current_requantize_config as current_requantize_config
from slipway.relay.qnn.config import requantize_config as requantize_config
from slipway.relay.qnn.simulated import simulated_dequantize as simulated_dequantize
from slipway.relay.qnn.simulated import simulated_quantize as simulated_quantize
from slipway.relay.qnn.unary import leaky_relu as leaky_relu
import typing

__all__ = [
    "RequantizeConfig",
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "concatenate",
    "contrib_conv2d_packed",
    "contrib_conv2d_winograd",
    "contrib_depthwise_packed",
    "contrib_rescale_high",
    "contrib_words",
    "conv2d",
    "conv2d_nhwc",
    "conv2d_transpose",
    "current_requantize_config",
    "dense",
    "dense_packed",
    "depthwise_conv2d_nhwc",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leading_zeros",
    "leaky_relu",
    "log",
    "lookup",
    "mul",
    "normalize",
    "quantize",
    "reciprocal",
    "requantize",
    "requantize_config",
    "rescale",
    "rsqrt",
    "rsqrt_multiplier",
    "rsqrt_shift",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "sqrt",
    "subtract",
    "tanh",
]

def abs(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def add(lhs: ExprLike, rhs: ExprLike, lhs_scale: ExprLike, lhs_zero_point: ExprLike, rhs_scale: ExprLike, rhs_zero_point: ExprLike, output_scale: ExprLike, output_zero_point: ExprLike, lhs_axis: int = ..., rhs_axis: int = ...) -> typing.Any: ...
def batch_matmul(x: ExprLike, y: ExprLike, x_zero_point: ExprLike, y_zero_point: ExprLike, x_scale: ExprLike, y_scale: ExprLike, out_dtype: str = ...) -> typing.Any: ...
def concatenate(data: Sequence[typing.Any], input_scales: Sequence[typing.Any], input_zero_points: Sequence[typing.Any], output_scale: ExprLike, output_zero_point: ExprLike, axis: int) -> typing.Any: ...
def conv2d(data: ExprLike, kernel: ExprLike, input_zero_point: ExprLike, kernel_zero_point: ExprLike, input_scale: ExprLike, kernel_scale: ExprLike, kernel_size: Extents, channels: int, strides: Extents = ..., padding: Extents = ..., dilation: Extents = ..., groups: int = ..., data_layout: str = ..., kernel_layout: str = ..., out_layout: str = ..., out_dtype: str = ...) -> typing.Any: ...
def conv2d_transpose(data: ExprLike, weight: ExprLike, input_zero_point: ExprLike, kernel_zero_point: ExprLike, input_scale: ExprLike, kernel_scale: ExprLike, strides: Extents = ..., padding: Extents = ..., dilation: Extents = ..., groups: int = ..., channels: int | None = ..., kernel_size: Extents | None = ..., data_layout: str = ..., kernel_layout: str = ..., out_layout: str = ..., output_padding: Extents = ..., out_dtype: str = ...) -> typing.Any: ...
def dense(data: ExprLike, weight: ExprLike, input_zero_point: ExprLike, kernel_zero_point: ExprLike, input_scale: ExprLike, kernel_scale: ExprLike, units: int | None = ..., out_dtype: str = ...) -> typing.Any: ...
def erf(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def exp(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def hardswish(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def log(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def mul(lhs: ExprLike, rhs: ExprLike, lhs_scale: ExprLike, lhs_zero_point: ExprLike, rhs_scale: ExprLike, rhs_zero_point: ExprLike, output_scale: ExprLike, output_zero_point: ExprLike, lhs_axis: int = ..., rhs_axis: int = ...) -> typing.Any: ...
def requantize(data: ExprLike, input_scale: ExprLike, input_zero_point: ExprLike, output_scale: ExprLike, output_zero_point: ExprLike, axis: int = ..., rounding: str | None = ..., compute_dtype: str | None = ..., out_dtype: str = ...) -> typing.Any: ...
def rsqrt(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def rsqrt_multiplier(data: ExprLike) -> Call: ...
def rsqrt_shift(data: ExprLike) -> Call: ...
def sigmoid(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def sqrt(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
def subtract(lhs: ExprLike, rhs: ExprLike, lhs_scale: ExprLike, lhs_zero_point: ExprLike, rhs_scale: ExprLike, rhs_zero_point: ExprLike, output_scale: ExprLike, output_zero_point: ExprLike, lhs_axis: int = ..., rhs_axis: int = ...) -> typing.Any: ...
def tanh(x: typing.Any, scale: typing.Any, zero_point: typing.Any, output_scale: typing.Any, output_zero_point: typing.Any) -> typing.Any: ...
