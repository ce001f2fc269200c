"""Layers of neural networks as tensor expressions (a facade: the code lies beside it).

What only graphs need is made of their operators, and looked up on first use.
"""

from __future__ import annotations

import importlib
import typing

from slipway.topi.explained import explain_all, explained
from slipway.topi.nn.activation import (
    batch_norm,
    leaky_relu,
    prelu,
    relu,
    scale_shift_nchw,
    scale_shift_nchwc,
    scale_shift_nhwc,
    sigmoid,
)
from slipway.topi.nn.bitserial import (
    binarize_pack,
    binary_dense,
    bitpack,
    bitserial_conv2d_nchw,
    bitserial_conv2d_nhwc,
    bitserial_dense,
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
from slipway.topi.nn.depthwise import (
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
)
from slipway.topi.nn.layers import batch_matmul, dense, flatten, log_softmax, matmul, softmax
from slipway.topi.nn.padding import dilate, pad
from slipway.topi.nn.pooling import (
    adaptive_pool,
    global_pool,
    pool,
    pool1d,
    pool2d,
    pool3d,
)
from slipway.topi.nn.pooling_gradient import pool_grad
from slipway.topi.nn.utils import get_pad_tuple, get_pad_tuple3d
from slipway.topi.nn.winograd import (
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
)
from slipway.topi.sparse.products import (
    sparse_add,
    sparse_dense,
    sparse_dense_sp_lhs,
    sparse_dense_sp_rhs,
    sparse_transpose,
)

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "batch_norm",
    "binarize_pack",
    "binary_dense",
    "bitpack",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "conv",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv2d",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "dense",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "flatten",
    "get_pad_tuple",
    "get_pad_tuple3d",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "pad",
    "pool",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
    "prelu",
    "relu",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "sigmoid",
    "softmax",
    "sparse_add",
    "sparse_dense",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
]

explain_all(globals(), __all__)

_OF_GRAPHS = "slipway.relay.as_topi.nn"
_HOMES = {"SQNN_CODE_TO_DTYPE": _OF_GRAPHS, "SQNN_DTYPE_TO_CODE": _OF_GRAPHS}  # of constants


def __getattr__(name: str) -> typing.Any:
    if not name.startswith("_"):
        found = importlib.import_module(_OF_GRAPHS)
        if name in found.__all__:
            return explained(getattr(found, name))
    missing = importlib.import_module("slipway.classic.names").missing
    raise AttributeError(missing("slipway.topi.nn", name, __dir__()))


def __dir__() -> list[str]:
    return sorted([*__all__, *importlib.import_module(_OF_GRAPHS).__all__])
