"""The names that classic TVM's modules for one kind of processor share: `topi.x86`, `topi.cuda`.

Classic TVM has a computation and a schedule for each operator and kind of processor.  Here the
computation is one: ``topi.cuda.conv2d_nchw`` is `topi.nn.conv2d_nchw`, and the further ways to
compute it (by Winograd, in blocks, by matrix units) are names of it too.  A schedule takes any
expression: a module has one, under the names of all operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.lazy import MissingName, by_module, load

COMPUTED = {
    "slipway.topi": (
        "argsort argwhere concatenate cumprod cumsum invert_permutation scatter scatter_add "
        "scatter_nd searchsorted sort sparse_reshape stft topk transpose unique"
    ),
    "slipway.topi.nn": (
        "batch_matmul bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense conv1d_ncw "
        "conv1d_nwc conv1d_transpose_ncw conv2d_NCHWc conv2d_NCHWc_int8 conv2d_hwcn conv2d_nchw "
        "conv2d_nhwc conv2d_transpose_nchw conv3d_ncdhw conv3d_ndhwc conv3d_transpose_ncdhw "
        "correlation_nchw deformable_conv2d_nchw deformable_conv2d_nhwc dense "
        "depthwise_conv2d_NCHWc depthwise_conv2d_nchw depthwise_conv2d_nhwc group_conv1d_ncw "
        "group_conv1d_nwc group_conv2d_nchw sparse_dense"
    ),
    "slipway.topi.vision": (
        "all_class_non_max_suppression get_valid_counts non_max_suppression proposal roi_align_nchw"
    ),
    "slipway.topi.vision.ssd": "multibox_detection multibox_prior multibox_transform_loc",
}
# Further ways to compute what topi.nn has under the name before the dash.
WAYS = """
    batch_matmul - batch_matmul_int8 batch_matmul_tensorcore
    conv2d_nchw - conv2d_nchw_int8 conv2d_nchw_spatial_pack conv2d_nchw_winograd
    conv2d_nhwc - conv2d_nhwc_spatial_pack conv2d_nhwc_tensorcore conv2d_nhwc_winograd_direct
    conv2d_nhwc - conv2d_nhwc_winograd_tensorcore
    conv3d_ncdhw - conv3d_ncdhw_winograd
    conv3d_ndhwc - conv3d_ndhwc_tensorcore
    dense - dense_int8 dense_large_batch dense_nopack dense_small_batch dense_tensorcore
    depthwise_conv2d_nchw - depthwise_conv2d_nchw_spatial_pack
    depthwise_conv2d_nhwc - compute_depthwise_conv2d_nhwc
    group_conv2d_nchw - group_conv2d_nchw_int8 group_conv2d_nchw_spatial_pack
"""
SCHEDULED = """
    adaptive_pool argsort argwhere avgpool_1d_ncw avgpool_2d_nchw batch_matmul batch_matmul_int8
    batch_matmul_tensorcore batch_norm binarize_pack binary_dense bitpack bitserial_conv2d_nchw
    bitserial_conv2d_nhwc bitserial_dense broadcast concatenate conv1d_ncw conv1d_nwc
    conv1d_transpose_ncw conv2d_NCHWc conv2d_NCHWc_int8 conv2d_gemm_weight_transform conv2d_hwcn
    conv2d_nchw conv2d_nchw_int8 conv2d_nchw_spatial_pack conv2d_nchw_winograd conv2d_nhwc
    conv2d_nhwc_direct conv2d_nhwc_pack conv2d_nhwc_pack_int8 conv2d_nhwc_spatial_pack
    conv2d_nhwc_tensorcore conv2d_nhwc_winograd_direct conv2d_nhwc_winograd_tensorcore
    conv2d_transpose_nchw conv2d_winograd_weight_transform conv2d_winograd_without_weight_transform
    conv3d_ncdhw conv3d_ncdhw_winograd conv3d_ndhwc conv3d_ndhwc_tensorcore conv3d_transpose_ncdhw
    conv3d_winograd_weight_transform correlation_nchw deformable_conv2d_nchw deformable_conv2d_nhwc
    dense dense_int8 dense_large_batch dense_nopack dense_pack dense_small_batch dense_tensorcore
    depthwise_conv2d_NCHWc depthwise_conv2d_backward_input_nhwc
    depthwise_conv2d_backward_weight_nhwc depthwise_conv2d_nchw depthwise_conv2d_nchw_spatial_pack
    depthwise_conv2d_nhwc dilation2d_nchw dilation2d_nhwc einsum elemwise extern fast_softmax
    get_valid_counts group_conv1d_ncw group_conv1d_nwc group_conv2d_nchw group_conv2d_nchw_int8
    group_conv2d_nhwc group_conv2d_transpose_nchw lrn lstm matmul matmul_default maxpool_1d_nwc
    maxpool_2d_nhwc multibox_detection multibox_prior multibox_transform_loc nms pool pool_grad
    proposal reduce reorg roi_align roi_pool scan scatter scatter_add softmax sort sparse_conv2d
    sparse_dense sparse_dense_padded sparse_fill_empty_rows sparse_transpose stft topk transpose
    unique
"""


def _places() -> dict[str, str]:
    """Return name of a computation -> "module:name" of what it stands for."""
    found = by_module(COMPUTED)
    for line in WAYS.strip().splitlines():
        (plain,), ways = (part.split() for part in line.split(" - "))
        found |= dict.fromkeys(ways, f"slipway.topi.nn:{plain}")
    return found


_PLACES = _places()
_SCHEDULED = frozenset(SCHEDULED.split())


def shared(
    module: str, schedule: Callable[[Any], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module whose schedule of any expression is given."""
    names = sorted([*_PLACES, *(f"schedule_{name}" for name in _SCHEDULED)])

    def get(name: str) -> Any:
        if name.startswith("schedule_") and name.removeprefix("schedule_") in _SCHEDULED:
            return schedule
        if name in _PLACES:
            return load(_PLACES[name])
        raise MissingName(module, name, names)

    return get, lambda: names
