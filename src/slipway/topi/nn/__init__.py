"""Layers of neural networks as tensor expressions (a face: the code lies beside it)."""

from slipway.topi.nn.activation import (
    batch_norm,
    leaky_relu,
    prelu,
    relu,
    scale_shift_nchw,
    scale_shift_nhwc,
    sigmoid,
)
from slipway.topi.nn.convolution import (
    conv,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from slipway.topi.nn.depthwise import depthwise_conv2d_nchw, depthwise_conv2d_nhwc
from slipway.topi.nn.layers import batch_matmul, dense, flatten, log_softmax, softmax
from slipway.topi.nn.padding import dilate, pad
from slipway.topi.nn.pooling import adaptive_pool, global_pool, pool, pool2d
from slipway.topi.products import matmul

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "batch_norm",
    "conv",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv2d",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "dense",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "flatten",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "pad",
    "pool",
    "pool2d",
    "prelu",
    "relu",
    "scale_shift_nchw",
    "scale_shift_nhwc",
    "sigmoid",
    "softmax",
]
