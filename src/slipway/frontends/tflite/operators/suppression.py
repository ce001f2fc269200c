"""NON_MAX_SUPPRESSION_V4 and V5: the best boxes that do not overlap, greedily.

Unrolled as in `detection`: each step takes the box of the largest score.  V5 may lower the scores
of what overlaps in place of dropping it (soft suppression); that is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.frontends.tflite.operators.detection import DROPPED, MAX_DETECTIONS, selected
from slipway.relay.op_registry import const


@converter("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(node: NodeView) -> Any:
    """Inputs: boxes (N, 4) as corners, scores (N,), how many, the thresholds."""
    node.need_dtype("float32")
    count = int(node.constant(2).reshape(-1)[0])
    overlap = float(node.constant(3).reshape(-1)[0])
    lowest = float(node.constant(4).reshape(-1)[0])
    soft = node.kind.endswith("V5")
    if soft and float(node.constant(5).reshape(-1)[0]) != 0.0:
        raise node.unsupported("soft suppression (a sigma above 0) is not supported")
    if not 0 < count <= MAX_DETECTIONS:
        raise node.unsupported(f"it selects {count} boxes; it must be 1 to {MAX_DETECTIONS}")
    total = node.shape()[0]
    columns = [
        relay.reshape(relay.strided_slice(node[0], [0, i], [total, i + 1]), (total,))
        for i in range(4)
    ]
    low = [relay.minimum(columns[i], columns[i + 2]) for i in (0, 1)]
    high = [relay.maximum(columns[i], columns[i + 2]) for i in (0, 1)]
    dropped = const(DROPPED, "float32")
    live = relay.where(relay.greater(node[1], const(lowest, "float32")), node[1], dropped)
    positions, scores = selected([*low, *high], live, count, overlap, total)
    valid = relay.greater(scores, dropped)
    amount = relay.sum(relay.cast(valid, "int32"), 0)
    picked = relay.where(valid, positions, const(np.int32(0), "int32"))
    if not soft:
        return [picked, amount]
    return [picked, relay.where(valid, scores, const(0.0, "float32")), amount]
