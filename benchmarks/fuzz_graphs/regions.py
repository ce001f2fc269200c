"""Features read at real positions, and boxes that others cover.

Positions and boxes are leaves, so that what they choose is known.  A position that a rounding
could move past an edge leaves its result open; boxes whose overlap lies at the threshold are not
drawn.
"""

import itertools

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import Node, rule
from benchmarks.fuzz_graphs.values import UNIT, Value, leaf, need, result

MARGIN = 1e-3  # of an edge, where a rounding may decide


def _sample(plane, position, size, clamped):
    """Return (weights, flat indices) of the four elements around a position; none outside."""
    found = []
    for x, extent in zip(position, size, strict=True):
        if clamped:
            if x < -1 or x > extent:
                return []
            x = min(max(x, 0.0), extent - 1.0)
        low = int(np.floor(x))
        pair = [(low, 1 - (x - low)), (low + 1, x - low)]
        found.append([(i, w) for i, w in pair if 0 <= i < extent])
    return [(wy * wx, plane[..., y, x]) for (y, wy), (x, wx) in itertools.product(*found)]


def _steepest(plane):
    """How much a value changes with one element of position, at most."""
    return 4 * np.abs(plane).max(axis=(-2, -1), initial=0.0)


@rule("vision.roi_align")
def _roi_align(attrs, x, rois):
    need(rois.certain)
    size, bins = x.shape[2:], attrs["pooled_size"]
    ratio, shift = attrs["sample_ratio"], 0.5 if attrs["aligned"] else 0.0
    shape = (rois.shape[0], x.shape[1], *bins)
    made, errors, sizes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    unit = UNIT["float64" if {x.dtype, rois.dtype} == {"float64"} else "float32"]
    for number, row in enumerate(rois.exact):
        sample = int(row[0])
        plane, distance = x.exact[sample], x.error[sample]
        first = [c * attrs["spatial_scale"] - shift for c in (row[2], row[1])]
        last = [c * attrs["spatial_scale"] - shift for c in (row[4], row[3])]
        extent = [b - a for a, b in zip(first, last, strict=True)]
        if not attrs["aligned"]:
            extent = [max(e, 1.0) for e in extent]
        for index in np.ndindex(*bins):
            at = (number, slice(None), *index)
            parts = []
            for tap in np.ndindex(ratio, ratio):
                position = [
                    first[a] + (index[a] + (tap[a] + 0.5) / ratio) * extent[a] / bins[a]
                    for a in (0, 1)
                ]
                limits = [(-1.0, float(n)) for n in size]
                distances = [abs(p - e) for p, es in zip(position, limits, strict=True) for e in es]
                if min(distances) < MARGIN:
                    errors[at] = np.inf
                wrong = 16 * unit * (max(size) + max(map(abs, (*first, *last))))
                errors[at] += wrong * _steepest(plane) / (ratio * ratio)
                values = _sample(plane, position, size, True)
                spread = _sample(distance, position, size, True)
                errors[at] += sum(w * v for w, v in spread) / (ratio * ratio)
                sizes[at] += sum(w * np.abs(v) for w, v in values) / (ratio * ratio)
                if attrs["mode"] == "max":
                    values = [w * v for w, v in values]
                    inside = values and np.stack([*values, *[0 * values[0]] * (4 - len(values))])
                    parts.append(np.max(inside, axis=0) if len(inside) else np.zeros(x.shape[1]))
                else:
                    parts.append(sum((w * v for w, v in values), np.zeros(x.shape[1])))
            stacked = np.stack(parts)
            made[at] = stacked.max(axis=0) if attrs["mode"] == "max" else stacked.mean(axis=0)
    if attrs["mode"] == "max":  # not an average: any one sample's error is the result's
        errors, sizes = errors * ratio * ratio, sizes * ratio * ratio
    return result(made, errors, x.dtype, 8.0 + ratio * ratio, sizes)


@rule("nn.deformable_im2col")
def _im2col(attrs, x, offset, mask):
    need(offset.certain)
    batch, channels, *size = x.shape
    kernel, groups = attrs["kernel_size"], attrs["groups"]
    window, share = kernel[0] * kernel[1], channels // groups
    out = offset.shape[2:]
    moves = offset.exact.reshape(batch, groups, window, 2, *out)
    factors, doubt = (a.reshape(batch, groups, window, *out) for a in (mask.exact, mask.error))
    shape = (batch, channels, window, *out)
    made, errors, sizes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    unit = UNIT["float64" if x.dtype == "float64" else "float32"]
    for n, g, k, *at in np.ndindex(batch, groups, window, *out):
        tap = (k // kernel[1], k % kernel[1])
        position = [
            at[a] * attrs["strides"][a] + tap[a] * attrs["dilation"][a] - attrs["padding"][a]
            + moves[(n, g, k, a, *at)] for a in (0, 1)
        ]  # fmt: skip
        rows = slice(g * share, (g + 1) * share)
        plane, index = x.exact[n, rows], (n, rows, k, *at)
        factor = factors[(n, g, k, *at)]
        cut = attrs["cut"] and min(position) < 0
        values = [] if cut else _sample(plane, position, size, False)
        spread = [] if cut else _sample(x.error[n, rows], position, size, False)
        none = np.zeros(share)
        plain = sum((w * v for w, v in values), none)
        made[index] = plain * factor
        sizes[index] = sum((w * np.abs(v) for w, v in values), none) * abs(factor)
        wrong = 16 * unit * (max(size) + max(map(abs, position))) * _steepest(plane)
        errors[index] = (sum((w * v for w, v in spread), none) + wrong) * abs(factor)
        errors[index] += (np.abs(plain) + errors[index]) * doubt[(n, g, k, *at)]
        if attrs["cut"] and min(map(abs, position)) < MARGIN:
            errors[index] = np.inf
    flat = [a.reshape(batch, channels, window, out[0] * out[1]) for a in (made, errors, sizes)]
    return result(flat[0], flat[1], x.dtype, 8.0, flat[2])


def _overlap(one, other, threshold):
    """Return the overlap of two boxes as a part of both, which must not lie at the threshold."""
    low = [max(min(one[a], one[a + 2]), min(other[a], other[a + 2])) for a in (0, 1)]
    high = [min(max(one[a], one[a + 2]), max(other[a], other[a + 2])) for a in (0, 1)]
    common = np.prod([max(h - b, 0.0) for b, h in zip(low, high, strict=True)])
    both = sum(abs(b[2] - b[0]) * abs(b[3] - b[1]) for b in (one, other)) - common
    need(both > 0)
    need(abs(common / both - threshold) > MARGIN, "an overlap at the threshold")
    return common / both


@rule("vision.suppress_boxes")
def _suppress(attrs, rows, valid, order):
    need(rows.certain and valid.certain and order.certain)
    made = np.full(rows.shape, -1.0)
    positions = np.full(order.shape, -1, "int32")
    first, kind, threshold = attrs["coord_start"], attrs["id_index"], attrs["iou_threshold"]
    for n, ranks in enumerate(order.exact):
        most = min(int(valid.exact[n]), len(ranks))
        most = min(most, attrs["top_k"]) if attrs["top_k"] > 0 else most
        stays = []
        for rank, position in enumerate(ranks[:most]):
            row = rows.exact[n, position]
            if row[attrs["score_index"]] > 0:
                if len(stays) == attrs["max_output_size"]:
                    continue
                rivals = stays
                if kind >= 0:
                    rivals = [r for r in stays if r[kind] >= 0]
                    rivals = [r for r in rivals if attrs["any_class"] or r[kind] == row[kind]]
                corners = slice(first, first + 4)
                if any(_overlap(r[corners], row[corners], threshold) > threshold for r in rivals):
                    continue
                stays.append(row)
            elif len(stays) == attrs["max_output_size"]:
                continue
            made[n, rank], positions[n, rank] = row, position
    return [Value(made, np.zeros(made.shape), rows.dtype), leaf(positions)]


@rule("vision.select_boxes")
def _select(attrs, boxes, scores, most, overlap, minimum):
    need(all(v.certain for v in (boxes, scores, most, overlap, minimum)))
    batch, classes, count = scores.shape
    found = []
    for n, k in np.ndindex(batch, classes):
        chosen = []
        for box in np.argsort(-scores.exact[n, k], kind="stable"):
            if len(chosen) >= most.exact or not scores.exact[n, k, box] > minimum.exact:
                break
            corners, limit = boxes.exact[n], float(overlap.exact)
            if not any(_overlap(corners[box], corners[o], limit) > limit for o in chosen):
                chosen.append(int(box))
        found += [(n, k, box) for box in chosen]
    room = batch * classes * (min(attrs["limit"], count) if attrs["limit"] else count)
    rows = np.full((room, 3), -1, "int64")
    rows[: len(found)] = np.array(found, "int64").reshape(-1, 3)
    return [leaf(rows), leaf(np.array([len(found)], "int64"))]


# -- makers ------------------------------------------------------------------------------------


def _input(d, array):
    return d.append(Node("const" if d.chance(0.4) else "input", array=np.asarray(array)))


@maker(0.8)
def roi_align(d):
    x = d.of_rank(4, real=True)
    batch, _, *size = d.value(x).shape
    need(min(batch, *size) > 0)
    count, scale = d.int(1, 4), d.pick([1.0, 0.5, 0.25])
    rows = [d.rng.integers(0, batch, count)]
    corners = [d.rng.uniform(-0.3, n + 0.3, (2, count)) / scale for n in (size[1], size[0])]
    corners = [np.sort(c, axis=0) if d.chance(0.8) else c for c in corners]
    rows += [corners[0][0], corners[1][0], corners[0][1], corners[1][1]]
    rois = np.stack(rows, 1).astype(d.pick(["float32", d.value(x).dtype]))
    return d.call(
        "vision.roi_align", x, _input(d, rois), pooled_size=(d.int(1, 3), d.int(1, 3)),
        spatial_scale=scale, sample_ratio=d.int(1, 3), mode=d.pick(["avg", "avg", "max"]),
        aligned=d.chance(0.5),
    )  # fmt: skip


@maker(0.8)
def deformable(d):
    x = d.of_rank(4, real=True)
    value = d.value(x)
    batch, channels, *size = value.shape
    need(0 < value.exact.size <= 2000)
    attrs = {
        "kernel_size": (d.int(1, 3), d.int(1, 3)), "strides": (d.int(1, 2), d.int(1, 2)),
        "padding": tuple(d.int(0, 2) for _ in range(4)), "dilation": (d.int(1, 2), d.int(1, 2)),
    }  # fmt: skip
    out = []
    for a in (0, 1):
        span = (attrs["kernel_size"][a] - 1) * attrs["dilation"][a] + 1
        room = size[a] + attrs["padding"][a] + attrs["padding"][a + 2] - span
        need(room >= 0)
        out.append(room // attrs["strides"][a] + 1)
    need(out[0] * out[1] <= 150)
    groups = d.pick([g for g in (1, 2, 3) if channels % g == 0])
    window = attrs["kernel_size"][0] * attrs["kernel_size"][1]
    offset = d.leaf((batch, 2 * groups * window, *out), value.dtype)
    mask = d.leaf((batch, groups * window, *out), value.dtype, 0.0, 1.0)
    return d.call(
        "nn.deformable_im2col", x, offset, mask, **attrs, groups=groups, cut=d.chance(0.3)
    )


def _boxes(d, shape):
    """Boxes whose corners are eighths, in either order."""
    middle = d.rng.integers(0, 40, (*shape, 2))
    sides = d.rng.integers(1, 25, (*shape, 2))
    boxes = np.concatenate([middle, middle + sides], -1) / 8
    swapped = d.rng.random(shape) < 0.1
    boxes[swapped] = boxes[swapped][..., [2, 3, 0, 1]]
    return boxes


@maker(0.6)
def suppress(d):
    batch, count = d.int(1, 3), d.int(1, 20)
    dtype = d.pick(["float32", "float32", "float16", "float64"])
    classes = d.chance(0.6)
    columns = [d.rng.integers(-8, 80, (batch, count, 1)) / 8, _boxes(d, (batch, count))]
    if classes:
        columns.insert(0, d.rng.integers(-1, 3, (batch, count, 1)))
    rows = np.concatenate(columns, -1).astype(dtype)
    order = d.rng.permuted(np.tile(np.arange(count, dtype="int32"), (batch, 1)), axis=1)
    valid = d.rng.integers(0, count + 2, batch).astype("int32")
    return d.call(
        "vision.suppress_boxes", *(_input(d, a) for a in (rows, valid, order)),
        max_output_size=d.pick([-1, 1, 3]), iou_threshold=d.pick([0.217, 0.5, 0.713]),
        any_class=d.chance(0.4), top_k=d.pick([-1, -1, 7]), coord_start=1 + classes,
        score_index=int(classes), id_index=0 if classes else -1,
    )  # fmt: skip


@maker(0.6)
def select(d):
    batch, classes, count = d.int(1, 2), d.int(1, 3), d.int(1, 16)
    scores = d.rng.uniform(0, 1, (batch, classes, count)).astype("float32")
    arrays = [
        _boxes(d, (batch, count)).astype("float32"), scores, np.array(d.int(0, count), "int64"),
        np.array(d.pick([0.217, 0.5, 0.713]), "float32"), np.array(d.pick([0.0, 0.4]), "float32"),
    ]  # fmt: skip
    limit = d.pick([0, int(arrays[2]) or 1])
    return d.call("vision.select_boxes", *(_input(d, a) for a in arrays), limit=limit)
