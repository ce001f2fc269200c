"""What type checkers see of slipway.relay.qnn; written by tools/stubs.py."""

from slipway.relay.expr import Call
from slipway.relay.expr import ExprLike
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
from slipway.relay.qnn import op as op
from slipway.relay.qnn import transform as transform
from slipway.relay.qnn.op import add as add
from slipway.relay.qnn.op import batch_matmul as batch_matmul
from slipway.relay.qnn.op import concatenate as concatenate
from slipway.relay.qnn.op import conv2d as conv2d
from slipway.relay.qnn.op import conv2d_transpose as conv2d_transpose
from slipway.relay.qnn.op import dense as dense
from slipway.relay.qnn.op import mul as mul
from slipway.relay.qnn.op import requantize as requantize
from slipway.relay.qnn.op import subtract as subtract

__all__ = [
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
    "dense",
    "dense_packed",
    "depthwise_conv2d_nhwc",
    "dequantize",
    "leading_zeros",
    "lookup",
    "mul",
    "normalize",
    "op",
    "quantize",
    "reciprocal",
    "requantize",
    "rescale",
    "rsqrt_multiplier",
    "rsqrt_shift",
    "subtract",
    "transform",
]

def rsqrt_multiplier(data: ExprLike) -> Call: ...
def rsqrt_shift(data: ExprLike) -> Call: ...
