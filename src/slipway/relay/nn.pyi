"""What type checkers see of slipway.relay.nn; written by tools/stubs.py."""

from slipway.relay.ops.image.regions import deformable_conv2d as deformable_conv2d
from slipway.relay.ops.image.regions import deformable_im2col as deformable_im2col
from slipway.relay.ops.image.resize import upsampling as upsampling
from slipway.relay.ops.image.resize import upsampling3d as upsampling3d
from slipway.relay.ops.nn.activation import leaky_relu as leaky_relu
from slipway.relay.ops.nn.activation import prelu as prelu
from slipway.relay.ops.nn.activation import relu as relu
from slipway.relay.ops.nn.attention import attention as attention
from slipway.relay.ops.nn.attention import attention_bias as attention_bias
from slipway.relay.ops.nn.bits import bitserial_conv2d as bitserial_conv2d
from slipway.relay.ops.nn.bits import bitserial_dense as bitserial_dense
from slipway.relay.ops.nn.block_dense import block_dense as block_dense
from slipway.relay.ops.nn.block_dense import block_take as block_take
from slipway.relay.ops.nn.cached_attention import cached_attention as cached_attention
from slipway.relay.ops.nn.cached_attention import sloped_cached_attention as sloped_cached_attention
from slipway.relay.ops.nn.cached_conv import cached_conv1d as cached_conv1d
from slipway.relay.ops.nn.conv import conv1d as conv1d
from slipway.relay.ops.nn.conv import conv2d as conv2d
from slipway.relay.ops.nn.conv import conv3d as conv3d
from slipway.relay.ops.nn.conv_transpose import conv1d_transpose as conv1d_transpose
from slipway.relay.ops.nn.conv_transpose import conv2d_transpose as conv2d_transpose
from slipway.relay.ops.nn.conv_transpose import conv3d_transpose as conv3d_transpose
from slipway.relay.ops.nn.correlation import correlation as correlation
from slipway.relay.ops.nn.dense import batch_matmul as batch_matmul
from slipway.relay.ops.nn.dense import bias_add as bias_add
from slipway.relay.ops.nn.dense import dense as dense
from slipway.relay.ops.nn.dense import matmul as matmul
from slipway.relay.ops.nn.expert_dense import expert_dense as expert_dense
from slipway.relay.ops.nn.float_parts import float_parts as float_parts
from slipway.relay.ops.nn.loss import cross_entropy as cross_entropy
from slipway.relay.ops.nn.loss import cross_entropy_with_logits as cross_entropy_with_logits
from slipway.relay.ops.nn.loss import fast_softmax as fast_softmax
from slipway.relay.ops.nn.loss import nll_loss as nll_loss
from slipway.relay.ops.nn.norm import batch_norm as batch_norm
from slipway.relay.ops.nn.norm import dropout as dropout
from slipway.relay.ops.nn.norm import dropout as dropout_raw
from slipway.relay.ops.nn.norm import group_norm as group_norm
from slipway.relay.ops.nn.norm import instance_norm as instance_norm
from slipway.relay.ops.nn.norm import l2_normalize as l2_normalize
from slipway.relay.ops.nn.norm import layer_norm as layer_norm
from slipway.relay.ops.nn.norm import lrn as lrn
from slipway.relay.ops.nn.pad import pad as pad
from slipway.relay.ops.nn.pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from slipway.relay.ops.nn.pool import adaptive_avg_pool2d as adaptive_avg_pool2d
from slipway.relay.ops.nn.pool import adaptive_avg_pool3d as adaptive_avg_pool3d
from slipway.relay.ops.nn.pool import adaptive_max_pool1d as adaptive_max_pool1d
from slipway.relay.ops.nn.pool import adaptive_max_pool2d as adaptive_max_pool2d
from slipway.relay.ops.nn.pool import adaptive_max_pool3d as adaptive_max_pool3d
from slipway.relay.ops.nn.pool import avg_pool1d as avg_pool1d
from slipway.relay.ops.nn.pool import avg_pool2d as avg_pool2d
from slipway.relay.ops.nn.pool import avg_pool3d as avg_pool3d
from slipway.relay.ops.nn.pool import global_avg_pool1d as global_avg_pool1d
from slipway.relay.ops.nn.pool import global_avg_pool2d as global_avg_pool2d
from slipway.relay.ops.nn.pool import global_avg_pool3d as global_avg_pool3d
from slipway.relay.ops.nn.pool import global_max_pool1d as global_max_pool1d
from slipway.relay.ops.nn.pool import global_max_pool2d as global_max_pool2d
from slipway.relay.ops.nn.pool import global_max_pool3d as global_max_pool3d
from slipway.relay.ops.nn.pool import max_pool1d as max_pool1d
from slipway.relay.ops.nn.pool import max_pool2d as max_pool2d
from slipway.relay.ops.nn.pool import max_pool3d as max_pool3d
from slipway.relay.ops.nn.pool_grad import avg_pool2d_grad as avg_pool2d_grad
from slipway.relay.ops.nn.pool_grad import max_pool2d_grad as max_pool2d_grad
from slipway.relay.ops.nn.rotary import rotary_embedding as rotary_embedding
from slipway.relay.ops.nn.softmax import log_softmax as log_softmax
from slipway.relay.ops.nn.softmax import softmax as softmax
from slipway.relay.ops.nn.space import batch_to_space_nd as batch_to_space_nd
from slipway.relay.ops.nn.space import depth_to_space as depth_to_space
from slipway.relay.ops.nn.space import space_to_batch_nd as space_to_batch_nd
from slipway.relay.ops.nn.space import space_to_depth as space_to_depth
from slipway.relay.ops.nn.sparse import sparse_add as sparse_add
from slipway.relay.ops.nn.sparse import sparse_dense as sparse_dense
from slipway.relay.ops.nn.sparse import sparse_transpose as sparse_transpose
from slipway.relay.ops.nn.spread import bitpack as bitpack
from slipway.relay.ops.nn.spread import dilate as dilate
from slipway.relay.ops.nn.spread import fifo_buffer as fifo_buffer
from slipway.relay.ops.nn.spread import mirror_pad as mirror_pad
from slipway.relay.ops.packed.block_dense import contrib_block_dense as contrib_block_dense
from slipway.relay.ops.packed.blocked import contrib_dense_pack as contrib_dense_pack
from slipway.relay.ops.packed.blocked_conv import contrib_conv1d_nchwc as contrib_conv1d_nchwc
from slipway.relay.ops.packed.blocked_conv import contrib_conv2d_nchwc as contrib_conv2d_nchwc
from slipway.relay.ops.packed.blocked_conv import contrib_conv3d_nchwc as contrib_conv3d_nchwc
from slipway.relay.ops.packed.blocked_conv import contrib_depthwise_conv1d_nchwc as contrib_depthwise_conv1d_nchwc
from slipway.relay.ops.packed.blocked_conv import contrib_depthwise_conv2d_nchwc as contrib_depthwise_conv2d_nchwc
from slipway.relay.ops.packed.blocked_conv import contrib_depthwise_conv3d_nchwc as contrib_depthwise_conv3d_nchwc
from slipway.relay.ops.packed.columns import contrib_column_sum as contrib_column_sum
from slipway.relay.ops.packed.conv_by_size import contrib_conv2d_nchwc_by_size as contrib_conv2d_nchwc_by_size
from slipway.relay.ops.packed.dot_pairs import contrib_conv1d_pairs as contrib_conv1d_pairs
from slipway.relay.ops.packed.dot_pairs import contrib_conv2d_pairs as contrib_conv2d_pairs
from slipway.relay.ops.packed.dot_pairs import contrib_conv3d_pairs as contrib_conv3d_pairs
from slipway.relay.ops.packed.dot_pairs import contrib_dense_pairs as contrib_dense_pairs
from slipway.relay.ops.packed.expert_dense import contrib_expert_dense as contrib_expert_dense
from slipway.relay.ops.packed.interleave import contrib_interleave as contrib_interleave
from slipway.relay.ops.packed.winograd import contrib_conv2d_winograd_nchwc as contrib_conv2d_winograd_nchwc
from slipway.relay.ops.packed.winograd import contrib_winograd_weight as contrib_winograd_weight
from slipway.relay.ops.packed.winograd_frames import contrib_conv3d_winograd_nchwc as contrib_conv3d_winograd_nchwc
from slipway.relay.ops.packed.winograd_images import contrib_winograd_image as contrib_winograd_image
from slipway.relay.ops.packed.winograd_images import contrib_winograd_tiles as contrib_winograd_tiles
from slipway.relay.ops.tensor.shape import batch_flatten as batch_flatten

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "attention",
    "attention_bias",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool2d_grad",
    "avg_pool3d",
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "bitpack",
    "bitserial_conv2d",
    "bitserial_dense",
    "block_dense",
    "block_take",
    "cached_attention",
    "cached_conv1d",
    "contrib_block_dense",
    "contrib_column_sum",
    "contrib_conv1d_nchwc",
    "contrib_conv1d_pairs",
    "contrib_conv2d_nchwc",
    "contrib_conv2d_nchwc_by_size",
    "contrib_conv2d_pairs",
    "contrib_conv2d_winograd_nchwc",
    "contrib_conv3d_nchwc",
    "contrib_conv3d_pairs",
    "contrib_conv3d_winograd_nchwc",
    "contrib_dense_pack",
    "contrib_dense_pairs",
    "contrib_depthwise_conv1d_nchwc",
    "contrib_depthwise_conv2d_nchwc",
    "contrib_depthwise_conv3d_nchwc",
    "contrib_expert_dense",
    "contrib_interleave",
    "contrib_winograd_image",
    "contrib_winograd_tiles",
    "contrib_winograd_weight",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "correlation",
    "cross_entropy",
    "cross_entropy_with_logits",
    "deformable_conv2d",
    "deformable_im2col",
    "dense",
    "depth_to_space",
    "dilate",
    "dropout",
    "dropout_raw",
    "expert_dense",
    "fast_softmax",
    "fifo_buffer",
    "float_parts",
    "global_avg_pool1d",
    "global_avg_pool2d",
    "global_avg_pool3d",
    "global_max_pool1d",
    "global_max_pool2d",
    "global_max_pool3d",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_grad",
    "max_pool3d",
    "mirror_pad",
    "nll_loss",
    "pad",
    "prelu",
    "relu",
    "rotary_embedding",
    "sloped_cached_attention",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_dense",
    "sparse_transpose",
    "upsampling",
    "upsampling3d",
]
