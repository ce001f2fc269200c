"""Detection: prior boxes, suppression, regions."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter
from slipway.frontends.mxnet.operators.slices import cut


@converter("_contrib_MultiBoxPrior", "MultiBoxPrior")
def _prior(node: NodeView) -> Any:
    return relay.vision.multibox_prior(
        node.data, tuple(node.floats("sizes", [1.0])), tuple(node.floats("ratios", [1.0])),
        tuple(node.floats("steps", [-1.0, -1.0])), tuple(node.floats("offsets", [0.5, 0.5])),
        node.flag("clip"),
    )  # fmt: skip


@converter("_contrib_MultiBoxDetection", "MultiBoxDetection")
def _detection(node: NodeView) -> Any:
    made = relay.vision.multibox_transform_loc(
        node[0], node[1], node[2], node.flag("clip", True), node.real("threshold", 0.01),
        tuple(node.floats("variances", [0.1, 0.1, 0.2, 0.2])),
    )  # fmt: skip
    return relay.vision.non_max_suppression(
        made[0], made[1], None, -1, node.real("nms_threshold", 0.5),
        node.flag("force_suppress"), node.integer("nms_topk", -1), return_indices=False,
    )  # fmt: skip


@converter("_contrib_box_nms", "_contrib_box_non_maximum_suppression", "_npx_box_nms")
def _suppression(node: NodeView) -> Any:
    """Boxes that are kept come first by their score, the rest is -1."""
    if node.integer("background_id", -1) != -1:
        raise node.unsupported("it has a background_id")
    formats = {node.text(n, "corner") for n in ("in_format", "out_format")}
    if formats != {"corner"}:
        raise node.unsupported("its boxes are not given by their corners")
    class_at, score_at = node.integer("id_index", -1), node.integer("score_index", 1)
    flat = relay.reshape(node.data, (-1, *node.shape[-2:]))
    counts = relay.vision.get_valid_counts(flat, node.real("valid_thresh", 0.0), class_at, score_at)
    made = relay.vision.non_max_suppression(
        counts[1], counts[0], counts[2], -1, node.real("overlap_thresh", 0.5),
        node.flag("force_suppress") or class_at < 0, node.integer("topk", -1),
        node.integer("coord_start", 2), score_at, class_at,
        return_indices=False, invalid_to_bottom=True,
    )  # fmt: skip
    return [relay.reshape(made, node.shape), relay.zeros((*node.shape[:-1], 1), node.dtype)]


@converter("_contrib_box_decode")
def _decode(node: NodeView) -> Any:
    """Boxes from their differences to anchors, as corners."""
    data, anchors = node.inputs
    factors = [node.real(f"std{i}", 1.0) for i in range(4)]
    moves = [cut(data, 2, i, i + 1) for i in range(4)]
    sides = [cut(anchors, 2, i, i + 1) for i in range(4)]
    half, limit = node.const(0.5), node.real("clip", -1.0)
    if node.text("format", "center") == "corner":
        sizes = [relay.subtract(sides[i + 2], sides[i]) for i in range(2)]
        middles = [relay.add(sides[i], relay.multiply(sizes[i], half)) for i in range(2)]
    else:
        middles, sizes = sides[:2], sides[2:]
    low, high = [], []
    for i in range(2):
        move = relay.multiply(moves[i], node.const(factors[i]))
        position = relay.add(relay.multiply(move, sizes[i]), middles[i])
        growth = relay.multiply(moves[i + 2], node.const(factors[i + 2]))
        if limit > 0:
            growth = relay.minimum(growth, node.const(limit))
        reach = relay.multiply(relay.multiply(relay.exp(growth), sizes[i]), half)
        low.append(relay.subtract(position, reach))
        high.append(relay.add(position, reach))
    return relay.concatenate([*low, *high], axis=-1)


@converter("_contrib_ROIAlign")
def _roi_align(node: NodeView) -> Any:
    if node.flag("position_sensitive"):
        raise node.unsupported("it is position_sensitive")
    return relay.vision.roi_align(
        node.data, node[1], tuple(node.ints("pooled_size")), node.real("spatial_scale", 1.0),
        node.integer("sample_ratio", -1), aligned=node.flag("aligned"),
    )  # fmt: skip


@converter("ROIPooling")
def _roi_pool(node: NodeView) -> Any:
    return relay.vision.roi_pool(
        node.data, node[1], tuple(node.ints("pooled_size")), node.real("spatial_scale", 1.0)
    )


@converter("_contrib_Proposal", "_contrib_MultiProposal")
def _proposal(node: NodeView) -> Any:
    if node.flag("output_score"):
        raise node.unsupported("its scores are asked for")
    return relay.vision.proposal(
        node[0], node[1], node[2], tuple(node.floats("scales", [4, 8, 16, 32])),
        tuple(node.floats("ratios", [0.5, 1, 2])), node.integer("feature_stride", 16),
        node.real("threshold", 0.7), node.integer("rpn_pre_nms_top_n", 6000),
        node.integer("rpn_post_nms_top_n", 300), node.integer("rpn_min_size", 16),
        node.flag("iou_loss"),
    )  # fmt: skip
