"""Operators of detection networks against what their papers and layers say, in plain loops."""

import numpy as np
import pytest
from runner import check_all

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(9)
V = relay.vision


def boxes(batch, count):
    """Rows of class, score and corners; some classes and scores negative."""
    corners = np.sort(RNG.uniform(0, 3, (batch, count, 2, 2)), 2).reshape(batch, count, 4)
    kind, score = RNG.integers(-1, 3, (batch, count, 1)), RNG.uniform(-0.2, 1, (batch, count, 1))
    return np.concatenate([kind, score, corners], 2).astype("float32")


def valid(data, threshold):
    counts, rows = [], np.full_like(data, -1)
    indices = np.full(data.shape[:2], -1, "int32")
    for n, sample in enumerate(data):
        found = [i for i, row in enumerate(sample) if row[1] > threshold and row[0] >= 0]
        rows[n, : len(found)], indices[n, : len(found)] = sample[found], found
        counts.append(len(found))
    return np.array(counts, "int32"), rows, indices


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def suppressed(data, counts, threshold, every_class=False, most=-1, top=-1):
    """The places that stay, the highest score first."""
    kept = []
    for sample, count in zip(data, counts, strict=True):
        order = sorted(range(count), key=lambda i: -sample[i, 1])[: top if top > 0 else None]
        chosen = []
        for i in order:
            if len(chosen) == most:
                break
            rivals = [j for j in chosen if every_class or sample[i, 0] == sample[j, 0]]
            if not any(overlap(sample[i, 2:], sample[j, 2:]) >= threshold for j in rivals):
                chosen.append(i)
        kept.append(chosen)
    return kept


def suppression():
    data = boxes(2, 12)
    data[:, :, :2] = np.abs(data[:, :, :2])
    counts = np.array([12, 7], "int32")
    names = np.stack([RNG.permutation(50)[:12] for _ in range(2)]).astype("int32")
    for options in ({}, {"force_suppress": True}, {"max_output_size": 3}, {"top_k": 5}):
        kept = suppressed(
            data, counts, 0.3, options.get("force_suppress", False),
            options.get("max_output_size", -1), options.get("top_k", -1),
        )  # fmt: skip
        indices, rows = np.full((2, 12), -1, "int32"), np.full_like(data, -1)
        for n, chosen in enumerate(kept):
            indices[n, : len(chosen)], rows[n, : len(chosen)] = names[n, chosen], data[n, chosen]
        total = np.array([[len(c)] for c in kept], "int32")
        assert total.min() > 1
        yield (
            f"places {options}",
            lambda d, c, i, o=options: V.non_max_suppression(d, c, i, iou_threshold=0.3, **o),
            [data, counts, names], [indices, total],
        )  # fmt: skip
        yield (
            f"rows {options}",
            lambda d, c, i, o=options: V.non_max_suppression(
                d, c, i, iou_threshold=0.3, return_indices=False, invalid_to_bottom=True, **o
            ),
            [data, counts, names], rows,
        )  # fmt: skip


def detection():
    data = boxes(3, 8)
    yield (
        "get_valid_counts", lambda x: V.get_valid_counts(x, 0.3), [data], list(valid(data, 0.3)),
    )  # fmt: skip
    scores = RNG.uniform(0, 1, (2, 4, 5)).astype("float32")
    moves = RNG.standard_normal((2, 20)).astype("float32")
    anchors = np.sort(RNG.uniform(0, 1, (1, 5, 2, 2)), 2).reshape(1, 5, 4).astype("float32")
    rows, counts = np.full((2, 5, 6), -1, "float32"), np.zeros(2, "int32")
    every = np.zeros((2, 5, 4), "float32")
    for n in range(2):
        for a in range(5):
            left, top, right, bottom = anchors[0, a]
            x, y, w, h = moves[n, a * 4 : a * 4 + 4] * np.array([0.1, 0.1, 0.2, 0.2])
            middle = [x * (right - left) + (left + right) / 2,
                      y * (bottom - top) + (top + bottom) / 2]  # fmt: skip
            half = [np.exp(w) * (right - left) / 2, np.exp(h) * (bottom - top) / 2]
            corners = np.subtract(middle, half), np.add(middle, half)
            every[n, a] = np.clip(np.concatenate(corners), 0, 1)
            kind = 1 + scores[n, 1:, a].argmax()
            if scores[n, kind, a] < 0.6:
                continue
            rows[n, counts[n]] = [kind - 1, scores[n, kind, a], *every[n, a]]
            counts[n] += 1
    assert 0 < counts.sum() < 10
    yield (
        "multibox_transform_loc",
        lambda *a: V.multibox_transform_loc(*a, threshold=0.6), [scores, moves, anchors],
        [rows, counts],
    )  # fmt: skip
    best, kept = scores.max(1), scores.argmax(1)
    kept = np.where(best < 0.6, 0, kept)
    yield (
        "multibox_transform_loc, background kept",
        lambda *a: V.multibox_transform_loc(*a, threshold=0.6, keep_background=True)[0],
        [scores, moves, anchors],
        np.concatenate([np.stack([kept, best], 2), every], 2).astype("float32"),
    )
    x = RNG.standard_normal((2, 8, 4, 6)).astype("float32")
    flat = np.zeros_like(x)
    for k, j, i in np.ndindex(8, 4, 6):  # as the C of Darknet counts
        c, o = k % 2, k // 2
        index = (i * 2 + o % 2) + 12 * ((j * 2 + o // 2) + 8 * c)
        flat[:, k, j, i] = x.reshape(2, -1)[:, index]
    yield "yolo_reorg", lambda x: V.yolo_reorg(x, 2), [x], flat.reshape(2, 32, 2, 3)
    regions = np.array(
        [[1, 0, 0, 11, 7], [0, 3.2, 1.8, 9, 4.5], [0, 20, 20, 30, 30], [1, 4, 4, 4, 4]], "float32"
    )
    pooled = np.zeros((4, 8, 2, 3), "float32")
    for r, (n, x1, y1, x2, y2) in enumerate(regions):
        left, top, right, bottom = (int(np.floor(v * 0.5 + 0.5)) for v in (x1, y1, x2, y2))
        high, wide = max(bottom - top + 1, 1) / 2, max(right - left + 1, 1) / 3
        for i, j in np.ndindex(2, 3):
            rows_ = slice(*np.clip([int(np.floor(i * high)) + top,
                                    int(np.ceil((i + 1) * high)) + top], 0, 4))  # fmt: skip
            columns = slice(*np.clip([int(np.floor(j * wide)) + left,
                                      int(np.ceil((j + 1) * wide)) + left], 0, 6))  # fmt: skip
            part = x[int(n), :, rows_, columns]
            pooled[r, :, i, j] = part.max((1, 2)) if part.size else 0
    yield "roi_pool", lambda *a: V.roi_pool(*a, (2, 3), 0.5), [x, regions], pooled


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.long)])
def test_they_compute_what_the_loops_do(target):
    check_all([*suppression(), *detection()], target)


def test_anchors():
    """Two sizes of the first shape, then the first size in the second shape, middle by middle."""
    made = V.multibox_prior(relay.var("x", shape=(1, 3, 2, 4)), (0.5, 0.25), (1, 4))
    found = interpret(made)
    assert found.shape == (1, 2 * 4 * 3, 4)
    middle = found.reshape(2, 4, 3, 4)
    np.testing.assert_allclose((middle[1, 2, :, 0] + middle[1, 2, :, 2]) / 2, 0.625, atol=1e-6)
    np.testing.assert_allclose((middle[1, 2, :, 1] + middle[1, 2, :, 3]) / 2, 0.75, atol=1e-6)
    size = middle[0, 0, :, 2:] - middle[0, 0, :, :2]
    np.testing.assert_allclose(size, [[0.25, 0.5], [0.125, 0.25], [0.5, 0.25]], atol=1e-6)


X = relay.var("x", shape=(1, 3, 4, 6))
D = relay.var("d", shape=(1, 5, 6))
C = relay.var("c", shape=(1,), dtype="int32")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: V.yolo_reorg(X, 2), "'stride' is 2"),
        (lambda: V.roi_pool(X, D, 2, 1.0), r"'rois' must be \(regions, 5\)"),
        (lambda: V.get_valid_counts(X), "'data' must have 3 axes"),
        (lambda: V.get_valid_counts(D, 0, 0, 7), "'score_index'"),
        (lambda: V.multibox_transform_loc(D, D, D), "'anchor' must have shape"),
        (lambda: V.multibox_prior(D), "'data' must have 4 axes"),
        (lambda: V.non_max_suppression(D, C, C, C), "'max_output_size' must be a constant"),
        (lambda: V.non_max_suppression(D, C, C, coord_start=3), "'data'.*too short"),
    ],
)
def test_arguments_that_do_not_fit_are_named(build, words):
    with pytest.raises(TypeInferenceError, match=words):
        build()
