"""Schedules of ready-made expressions for any CPU, and for a GPU in the scope of its target.

Injective stages are inlined into what reads them, unless that is a reduction or an output; every
stage that is left runs in parallel over its outermost axis.  All names stand for this one rule.
"""

from __future__ import annotations

from typing import Any

from slipway.target import Target
from slipway.te.operation import ComputeOp
from slipway.te.schedule import Schedule, create_schedule
from slipway.topi import cuda
from slipway.topi.utils import is_injective


def schedule_injective(outs: Any) -> Schedule:
    """Return a schedule of output tensors (one, or a list), for any expression.

    In the scope of a GPU's target it is that of `topi.cuda`, in threads.
    """
    target = Target.current()
    if target is not None and "gpu" in target.keys:
        return cuda.schedule_injective(outs)
    tensors = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    s = create_schedule([t.op for t in tensors])
    for stage in list(s.stages):
        if not isinstance(stage.op, ComputeOp):
            continue
        if is_injective(stage.op) and not stage.is_output:
            stage.compute_inline()
        elif stage.op.axis:
            stage.parallel(stage.op.axis[0])
    return s


def schedule_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    """Return a schedule of pooling, whatever its layout."""
    return schedule_injective(outs)


# The operators of classic TVM's schedules that have no function of their own here.
_OTHERS = """
    argsort argwhere binarize_pack binary_dense bitpack bitserial_conv2d_nchw bitserial_conv2d_nhwc
    bitserial_dense concatenate conv1d_transpose_ncw conv2d_gemm_weight_transform conv2d_nhwc_pack
    conv2d_transpose_nchw conv2d_winograd_weight_transform
    conv2d_winograd_without_weight_transform conv3d_transpose_ncdhw
    conv3d_winograd_weight_transform correlation_nchw deformable_conv2d_nchw
    deformable_conv2d_nhwc depthwise_conv2d_NCHWc dilation2d_nchw dilation2d_nhwc einsum extern
    fast_softmax get_valid_counts group_conv1d_ncw group_conv1d_nwc group_conv2d_transpose_nchw lrn
    lstm multibox_detection multibox_prior multibox_transform_loc nms pool_grad proposal reorg
    roi_align roi_pool sort sparse_conv2d sparse_dense sparse_fill_empty_rows sparse_transpose topk
    unique
"""
globals().update({f"schedule_{name}": schedule_injective for name in _OTHERS.split()})
schedule_broadcast = schedule_elemwise = schedule_injective
schedule_adaptive_pool = schedule_injective
schedule_batch_matmul = schedule_injective
schedule_batch_norm = schedule_injective
schedule_conv1d_ncw = schedule_injective
schedule_conv1d_nwc = schedule_injective
schedule_conv2d_NCHWc = schedule_injective
schedule_conv2d_NCHWc_int8 = schedule_injective
schedule_conv2d_hwcn = schedule_injective
schedule_conv2d_nchw = schedule_injective
schedule_conv2d_nhwc = schedule_injective
schedule_conv3d_ncdhw = schedule_injective
schedule_conv3d_ndhwc = schedule_injective
schedule_dense = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_injective
schedule_depthwise_conv2d_nhwc = schedule_injective
schedule_group_conv2d_nchw = schedule_injective
schedule_group_conv2d_nhwc = schedule_injective
schedule_matmul = schedule_injective
schedule_reduce = schedule_injective
schedule_softmax = schedule_injective
