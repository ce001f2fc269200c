"""``topi.vision``: what detectors need after their convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.ops.image import detection, regions
from slipway.relay.ops.vision import counts, multibox, proposals, suppression
from slipway.relay.over_tensors import over_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor

__all__ = [
    "all_class_non_max_suppression", "get_valid_counts", "multibox_detection", "multibox_prior",
    "multibox_transform_loc", "non_max_suppression", "proposal", "reorg", "roi_align_nchw",
    "roi_align_nhwc", "roi_pool_nchw",
]  # fmt: skip


def get_valid_counts(
    data: Tensor, score_threshold: float = 0, id_index: int = 0, score_index: int = 1
) -> Any:
    """Return (counts, boxes with the valid ones first, where they came from)."""
    return over_tensors(counts.get_valid_counts)(data, score_threshold, id_index, score_index)


def non_max_suppression(
    data: Tensor, valid_count: Any, indices: Tensor, max_output_size: Any = -1,
    iou_threshold: float = 0.5, force_suppress: bool = False, top_k: int = -1,
    coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:  # fmt: skip
    """Drop boxes that overlap a better one."""
    return over_tensors(suppression.non_max_suppression)(
        data, valid_count, indices, max_output_size, iou_threshold, force_suppress, top_k,
        coord_start, score_index, id_index, return_indices, invalid_to_bottom,
    )  # fmt: skip


def all_class_non_max_suppression(
    boxes: Tensor, scores: Any, max_output_boxes_per_class: Any, iou_threshold: Any,
    score_threshold: Any,
) -> Any:  # fmt: skip
    """Select boxes class by class, as ONNX's operator does."""
    return over_tensors(detection.all_class_non_max_suppression)(
        boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold
    )


def proposal(
    cls_prob: Tensor, bbox_pred: Tensor, im_info: Tensor, scales: Sequence[float],
    ratios: Sequence[float], feature_stride: int, threshold: float, rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool,
) -> Any:  # fmt: skip
    """Return the best regions of a region proposal network."""
    return over_tensors(proposals.proposal)(
        cls_prob, bbox_pred, im_info, scales, ratios, feature_stride, threshold,
        rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss,
    )  # fmt: skip


def multibox_prior(
    data: Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Any:
    """Return the anchors of each place of a feature map."""
    return over_tensors(multibox.multibox_prior)(data, sizes, ratios, steps, offsets, clip)


def multibox_transform_loc(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False,
) -> Any:  # fmt: skip
    """Return (boxes of class, score and corners; how many are valid)."""
    return over_tensors(multibox.multibox_transform_loc)(
        cls_prob, loc_pred, anchor, clip, threshold, variances, keep_background
    )


def multibox_detection(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01,
    nms_threshold: float = 0.5, force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1,
) -> Any:  # fmt: skip
    """Return the boxes that are left of `multibox_transform_loc` after suppression."""

    def detect(cls_prob: Any, loc_pred: Any, anchor: Any) -> Any:
        boxes, valid = multibox.multibox_transform_loc(
            cls_prob, loc_pred, anchor, clip, threshold, variances
        )
        return suppression.non_max_suppression(
            boxes, valid, None, -1, nms_threshold, force_suppress, nms_topk,
            return_indices=False,
        )  # fmt: skip

    return over_tensors(detect)(cls_prob, loc_pred, anchor)


def roi_align_nchw(
    data: Tensor, rois: Tensor, pooled_size: Extents, spatial_scale: float,
    mode: str | int, sample_ratio: int = -1,
) -> Any:  # fmt: skip
    """Pool regions of images, sampled between pixels."""
    return over_tensors(regions.roi_align)(
        data, rois, pooled_size, spatial_scale, sample_ratio, "NCHW", _mode(mode)
    )


def roi_align_nhwc(
    data: Tensor, rois: Tensor, pooled_size: Extents, spatial_scale: float,
    mode: str | int, sample_ratio: int = -1,
) -> Any:  # fmt: skip
    """Pool regions of images with the channels last."""
    return over_tensors(regions.roi_align)(
        data, rois, pooled_size, spatial_scale, sample_ratio, "NHWC", _mode(mode)
    )


def _mode(mode: str | bytes | int) -> str:
    if isinstance(mode, int):  # as classic TVM counts them
        return ("avg", "max")[mode]
    return mode.decode() if isinstance(mode, bytes) else mode


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Extents, spatial_scale: float) -> Any:
    """Pool regions of whole pixels by their maximum."""
    return over_tensors(counts.roi_pool)(data, rois, pooled_size, spatial_scale)


def reorg(data: Tensor, stride: int) -> Any:
    """Move blocks of pixels into channels, as YOLO does."""
    return over_tensors(counts.yolo_reorg)(data, stride)
