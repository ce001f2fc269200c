"""NumPy references for ready-made expressions, under classic TVM's names (a facade)."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.topi.testing.convolution": (
            "conv2d_hwcn_python conv2d_nchw_python conv2d_nhwc_python "
            "depthwise_conv2d_python_nchw depthwise_conv2d_python_nhwc dilate_python "
            "log_softmax_python softmax_python"
        ),
        "slipway.topi.testing.schedules": (
            "compare_numpy_tvm dispatch get_broadcast_schedule get_conv2d_nchw_implement "
            "get_elemwise_schedule get_injective_schedule get_reduce_schedule"
        ),
        "slipway.topi.testing.arrays": (
            "batch_matmul batch_norm dense gather_nd_python gather_python l2_normalize_python "
            "lrn_python matrix_set_diag nll_loss one_hot searchsorted_ref sequence_mask "
            "slice_axis_python strided_set_python strided_slice_python"
        ),
        "slipway.topi.testing.windows": (
            "adaptive_pool batch_to_space_nd_python conv1d_ncw_python conv1d_transpose_ncw_python "
            "conv2d_transpose_nchw_python conv2d_transpose_nhwc_python conv3d_ncdhw_python "
            "conv3d_ndhwc_python conv3d_transpose_ncdhw_python correlation_nchw_python "
            "deformable_conv2d_nchw_python deformable_conv2d_nhwc_python depth_to_space_python "
            "group_conv1d_ncw_python pool_grad_nchw poolnd_python space_to_batch_nd_python "
            "space_to_depth_python"
        ),
        "slipway.topi.testing.images": (
            "affine_grid_python bilinear_resize_python crop_and_resize_python "
            "grid_sample_nchw_python grid_sample_python reorg_python resize1d_python "
            "resize2d_python resize3d_python roi_align_nchw_python roi_align_nhwc_python "
            "roi_pool_nchw_python upsampling_python"
        ),
    }
)
__getattr__, __dir__ = offer(__name__, _HOMES)
