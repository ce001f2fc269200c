"""What type checkers see of slipway.topi.nn; written by tools/stubs.py."""

from slipway.relay.as_topi.convolution import conv1d_transpose_ncw as conv1d_transpose_ncw
from slipway.relay.as_topi.convolution import conv2d_NCHWc as conv2d_NCHWc
from slipway.relay.as_topi.convolution import conv2d_NCHWc_int8 as conv2d_NCHWc_int8
from slipway.relay.as_topi.convolution import conv2d_transpose_nchw as conv2d_transpose_nchw
from slipway.relay.as_topi.convolution import conv3d_transpose_ncdhw as conv3d_transpose_ncdhw
from slipway.relay.as_topi.convolution import deformable_conv2d_nchw as deformable_conv2d_nchw
from slipway.relay.as_topi.convolution import deformable_conv2d_nhwc as deformable_conv2d_nhwc
from slipway.relay.as_topi.convolution import depthwise_conv2d_NCHWc as depthwise_conv2d_NCHWc
from slipway.relay.as_topi.convolution import group_conv1d_ncw as group_conv1d_ncw
from slipway.relay.as_topi.convolution import group_conv1d_nwc as group_conv1d_nwc
from slipway.relay.as_topi.convolution import group_conv2d_transpose_nchw as group_conv2d_transpose_nchw
from slipway.relay.as_topi.nn import SQNN_CODE_TO_DTYPE as SQNN_CODE_TO_DTYPE
from slipway.relay.as_topi.nn import SQNN_DTYPE_TO_CODE as SQNN_DTYPE_TO_CODE
from slipway.relay.as_topi.nn import adaptive_pool3d as adaptive_pool3d
from slipway.relay.as_topi.nn import batch_to_space_nd as batch_to_space_nd
from slipway.relay.as_topi.nn import correlation_nchw as correlation_nchw
from slipway.relay.as_topi.nn import depth_to_space as depth_to_space
from slipway.relay.as_topi.nn import fast_softmax as fast_softmax
from slipway.relay.as_topi.nn import fifo_buffer as fifo_buffer
from slipway.relay.as_topi.nn import layout_transform as layout_transform
from slipway.relay.as_topi.nn import lrn as lrn
from slipway.relay.as_topi.nn import mirror_pad as mirror_pad
from slipway.relay.as_topi.nn import nll_loss as nll_loss
from slipway.relay.as_topi.nn import simulated_dequantize as simulated_dequantize
from slipway.relay.as_topi.nn import simulated_quantize as simulated_quantize
from slipway.relay.as_topi.nn import space_to_batch_nd as space_to_batch_nd
from slipway.relay.as_topi.nn import space_to_depth as space_to_depth
from slipway.relay.as_topi.nn import upsampling as upsampling
from slipway.relay.as_topi.nn import upsampling3d as upsampling3d
from slipway.topi.nn.activation import batch_norm as batch_norm
from slipway.topi.nn.activation import leaky_relu as leaky_relu
from slipway.topi.nn.activation import prelu as prelu
from slipway.topi.nn.activation import relu as relu
from slipway.topi.nn.activation import scale_shift_nchw as scale_shift_nchw
from slipway.topi.nn.activation import scale_shift_nchwc as scale_shift_nchwc
from slipway.topi.nn.activation import scale_shift_nhwc as scale_shift_nhwc
from slipway.topi.nn.activation import sigmoid as sigmoid
from slipway.topi.nn.bitserial import binarize_pack as binarize_pack
from slipway.topi.nn.bitserial import binary_dense as binary_dense
from slipway.topi.nn.bitserial import bitpack as bitpack
from slipway.topi.nn.bitserial import bitserial_conv2d_nchw as bitserial_conv2d_nchw
from slipway.topi.nn.bitserial import bitserial_conv2d_nhwc as bitserial_conv2d_nhwc
from slipway.topi.nn.bitserial import bitserial_dense as bitserial_dense
from slipway.topi.nn.convolution import conv as conv
from slipway.topi.nn.convolution import conv1d_ncw as conv1d_ncw
from slipway.topi.nn.convolution import conv1d_nwc as conv1d_nwc
from slipway.topi.nn.convolution import conv2d as conv2d
from slipway.topi.nn.convolution import conv2d_hwcn as conv2d_hwcn
from slipway.topi.nn.convolution import conv2d_nchw as conv2d_nchw
from slipway.topi.nn.convolution import conv2d_nhwc as conv2d_nhwc
from slipway.topi.nn.convolution import conv3d_ncdhw as conv3d_ncdhw
from slipway.topi.nn.convolution import conv3d_ndhwc as conv3d_ndhwc
from slipway.topi.nn.convolution import group_conv2d_nchw as group_conv2d_nchw
from slipway.topi.nn.convolution import group_conv2d_nhwc as group_conv2d_nhwc
from slipway.topi.nn.depthwise import depthwise_conv2d_backward_input_nhwc as depthwise_conv2d_backward_input_nhwc
from slipway.topi.nn.depthwise import depthwise_conv2d_backward_weight_nhwc as depthwise_conv2d_backward_weight_nhwc
from slipway.topi.nn.depthwise import depthwise_conv2d_nchw as depthwise_conv2d_nchw
from slipway.topi.nn.depthwise import depthwise_conv2d_nhwc as depthwise_conv2d_nhwc
from slipway.topi.nn.layers import batch_matmul as batch_matmul
from slipway.topi.nn.layers import dense as dense
from slipway.topi.nn.layers import flatten as flatten
from slipway.topi.nn.layers import log_softmax as log_softmax
from slipway.topi.nn.layers import matmul as matmul
from slipway.topi.nn.layers import softmax as softmax
from slipway.topi.nn.padding import dilate as dilate
from slipway.topi.nn.padding import pad as pad
from slipway.topi.nn.pooling import adaptive_pool as adaptive_pool
from slipway.topi.nn.pooling import global_pool as global_pool
from slipway.topi.nn.pooling import pool as pool
from slipway.topi.nn.pooling import pool1d as pool1d
from slipway.topi.nn.pooling import pool2d as pool2d
from slipway.topi.nn.pooling import pool3d as pool3d
from slipway.topi.nn.pooling_gradient import pool_grad as pool_grad
from slipway.topi.nn.utils import get_pad_tuple as get_pad_tuple
from slipway.topi.nn.utils import get_pad_tuple3d as get_pad_tuple3d
from slipway.topi.nn.winograd import conv2d_winograd_nhwc as conv2d_winograd_nhwc
from slipway.topi.nn.winograd import conv2d_winograd_nhwc_without_weight_transform as conv2d_winograd_nhwc_without_weight_transform
from slipway.topi.nn.winograd import conv2d_winograd_weight_transform as conv2d_winograd_weight_transform
from slipway.topi.sparse.products import sparse_add as sparse_add
from slipway.topi.sparse.products import sparse_dense as sparse_dense
from slipway.topi.sparse.products import sparse_dense_sp_lhs as sparse_dense_sp_lhs
from slipway.topi.sparse.products import sparse_dense_sp_rhs as sparse_dense_sp_rhs
from slipway.topi.sparse.products import sparse_transpose as sparse_transpose

__all__ = [
    "SQNN_CODE_TO_DTYPE",
    "SQNN_DTYPE_TO_CODE",
    "adaptive_pool",
    "adaptive_pool3d",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "binarize_pack",
    "binary_dense",
    "bitpack",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "conv",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "correlation_nchw",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "dense",
    "depth_to_space",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "fast_softmax",
    "fifo_buffer",
    "flatten",
    "get_pad_tuple",
    "get_pad_tuple3d",
    "global_pool",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "layout_transform",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "mirror_pad",
    "nll_loss",
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
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_dense",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
    "upsampling",
    "upsampling3d",
]
