"""vision.proposal against the definition, box by box, in float64."""

import math

import numpy as np
import pytest

import slipway
from slipway import relay, te, topi
from slipway.errors import TypeInferenceError

BASE = {
    "scales": (0.5,), "ratios": (0.5,), "feature_stride": 16, "iou_loss": False,
    "rpn_min_size": 16, "threshold": 0.7, "rpn_pre_nms_top_n": 200, "rpn_post_nms_top_n": 4,
}  # fmt: skip


def boxes_of(scores, deltas, info, o):
    """Return (score, x1, y1, x2, y2) of a picture's places and anchors, in their order."""
    count, (_, height, width) = len(o["scales"]) * len(o["ratios"]), scores.shape
    stride, found = o["feature_stride"], []
    for h in range(height):
        for w in range(width):
            for k in range(count):
                ratio, scale = o["ratios"][k // len(o["scales"])], o["scales"][k % len(o["scales"])]
                side = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
                size = side * scale, math.floor(side * ratio + 0.5) * scale
                center = [0.5 * (stride - 1) + stride * n for n in (w, h)]
                d = deltas[4 * k : 4 * k + 4, h, w]
                if o["iou_loss"]:
                    low = [c - 0.5 * (s - 1) + v for c, s, v in zip(center, size, d, strict=False)]
                    high = [
                        c + 0.5 * (s - 1) + v for c, s, v in zip(center, size, d[2:], strict=False)
                    ]
                else:
                    middle = [c + v * s for c, s, v in zip(center, size, d, strict=False)]
                    extent = [s * math.exp(v) for s, v in zip(size, d[2:], strict=False)]
                    low = [m - 0.5 * (e - 1) for m, e in zip(middle, extent, strict=True)]
                    high = [m + 0.5 * (e - 1) for m, e in zip(middle, extent, strict=True)]
                edge = info[1] - 1, info[0] - 1
                box = [max(min(v, e), 0) for v, e in zip([*low, *high], edge * 2, strict=True)]
                inside = h < int(info[0] / stride) and w < int(info[1] / stride)
                score, minimum = (
                    scores[count + k, h, w] if inside else -1,
                    info[2] * o["rpn_min_size"],
                )
                if min(box[2] - box[0], box[3] - box[1]) + 1 < minimum:
                    box = [v + minimum / 2 * (-1 if n < 2 else 1) for n, v in enumerate(box)]
                    score = -1
                found.append((score, *box))
    return found


def overlap(a, b):
    common = math.prod(max(0, min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1) for i in (0, 1))
    area = [math.prod(x[i + 2] - x[i] + 1 for i in (0, 1)) for x in (a, b)]
    return common / (sum(area) - common)


def wanted(scores, deltas, info, o):
    out = []
    for n in range(len(scores)):
        every = boxes_of(scores[n], deltas[n].astype("float64"), info[n], o)
        every = [b[1:] for b in sorted(every, key=lambda b: -b[0])]
        if o["rpn_pre_nms_top_n"] > 0:
            every = every[: o["rpn_pre_nms_top_n"]]
        kept = []
        for box in every:
            if all(overlap(box, other) <= o["threshold"] for other in kept):
                kept.append(box)
        out += [[n, *kept[i % len(kept)]] for i in range(o["rpn_post_nms_top_n"])]
    return np.array(out)


def given(batch, count, height, width, seed):
    rng = np.random.default_rng(seed)
    scores = rng.permutation(batch * 2 * count * height * width).astype("float32")
    scores = (scores / scores.size).reshape(batch, 2 * count, height, width)
    deltas = rng.normal(0, 0.6, (batch, 4 * count, height, width)).astype("float32")
    return scores, deltas, np.array([[48, 70, 1], [33, 48, 0.5]][:batch], "float32")


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {}, {"iou_loss": True, "rpn_min_size": 4}, {"threshold": 0.3, "rpn_pre_nms_top_n": 9},
        {"scales": (0.5, 1, 2), "ratios": (0.5, 1), "rpn_pre_nms_top_n": -1, "rpn_min_size": 8,
         "rpn_post_nms_top_n": 30},
    ],
)  # fmt: skip
def test_proposals(batch, options):
    o = BASE | options
    arrays = given(batch, len(o["scales"]) * len(o["ratios"]), 3, 4, 5)
    inputs = [relay.var(n, shape=a.shape) for n, a in zip("abc", arrays, strict=True)]
    func = relay.Function(inputs, relay.vision.proposal(*inputs, **o))
    found = relay.create_executor("graph", slipway.IRModule.from_expr(func)).evaluate()(*arrays)
    np.testing.assert_allclose(found.numpy(), wanted(*arrays, o), rtol=1e-4, atol=1e-3)


def test_as_a_tensor_expression():
    arrays = given(1, 1, 3, 4, 7)
    inputs = [te.placeholder(a.shape, name=n) for n, a in zip("abc", arrays, strict=True)]
    made = topi.vision.rcnn.proposal(*inputs, **BASE)
    func = slipway.build(te.create_schedule(made.op), [*inputs, made], target="llvm")
    out = slipway.nd.empty((4, 5))
    func(*(slipway.nd.array(a) for a in arrays), out)
    np.testing.assert_allclose(out.numpy(), wanted(*arrays, BASE), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": (1, 2)}, "cls_prob"),
        ({"threshold": -1}, "threshold"),
        ({"scales": (0,)}, "scales"),
    ],
)
def test_what_is_refused(options, message):
    inputs = [
        relay.var(n, shape=s) for n, s in (("a", (1, 2, 3, 4)), ("b", (1, 4, 3, 4)), ("c", (1, 3)))
    ]
    with pytest.raises(TypeInferenceError, match=message):
        relay.vision.proposal(*inputs, **(BASE | options))
