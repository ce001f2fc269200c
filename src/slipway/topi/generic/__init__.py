"""Schedules for any CPU, under classic TVM's names (a facade)."""

from __future__ import annotations

from slipway.topi.generic import nn
from slipway.topi.generic.nn import (
    schedule_adaptive_pool,
    schedule_batch_matmul,
    schedule_batch_norm,
    schedule_broadcast,
    schedule_conv1d_ncw,
    schedule_conv1d_nwc,
    schedule_conv2d_hwcn,
    schedule_conv2d_nchw,
    schedule_conv2d_NCHWc,
    schedule_conv2d_NCHWc_int8,
    schedule_conv2d_nhwc,
    schedule_conv3d_ncdhw,
    schedule_conv3d_ndhwc,
    schedule_dense,
    schedule_depthwise_conv2d_nchw,
    schedule_depthwise_conv2d_nhwc,
    schedule_elemwise,
    schedule_group_conv2d_nchw,
    schedule_group_conv2d_nhwc,
    schedule_injective,
    schedule_matmul,
    schedule_pool,
    schedule_reduce,
    schedule_softmax,
)

__all__ = [
    "nn",
    "schedule_adaptive_pool",
    "schedule_batch_matmul",
    "schedule_batch_norm",
    "schedule_broadcast",
    "schedule_conv1d_ncw",
    "schedule_conv1d_nwc",
    "schedule_conv2d_NCHWc",
    "schedule_conv2d_NCHWc_int8",
    "schedule_conv2d_hwcn",
    "schedule_conv2d_nchw",
    "schedule_conv2d_nhwc",
    "schedule_conv3d_ncdhw",
    "schedule_conv3d_ndhwc",
    "schedule_dense",
    "schedule_depthwise_conv2d_nchw",
    "schedule_depthwise_conv2d_nhwc",
    "schedule_elemwise",
    "schedule_group_conv2d_nchw",
    "schedule_group_conv2d_nhwc",
    "schedule_injective",
    "schedule_matmul",
    "schedule_pool",
    "schedule_reduce",
    "schedule_softmax",
]

globals().update({name: vars(nn)[name] for name in vars(nn) if name.startswith("schedule_")})
