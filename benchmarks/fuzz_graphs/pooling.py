"""Pools: of windows, adaptive, global."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.products import LETTERS, geometry
from benchmarks.fuzz_graphs.values import need, result


def _pool(attrs, x, average):
    """Window by window, tap by tap, in plain loops over positions."""
    count = len(attrs["pool_size"])
    letters = LETTERS[count]
    layout = attrs["layout"]
    order = [layout.index(c) for c in "NC" + letters]
    back = ["NC".find(c) if c in "NC" else 2 + letters.index(c) for c in layout]
    exact, error = (np.transpose(a, order) for a in (x.exact, x.error))
    size = exact.shape[2:]
    kernel, strides, dilation, padding = (
        attrs[n] for n in ("pool_size", "strides", "dilation", "padding")
    )
    out = []
    for a in range(count):
        room = size[a] + padding[a] + padding[a + count] - (kernel[a] - 1) * dilation[a] - 1
        extent = (-(-room // strides[a]) if attrs["ceil_mode"] else room // strides[a]) + 1
        if attrs["ceil_mode"] and (extent - 1) * strides[a] >= size[a] + padding[a]:
            extent -= 1
        need(room >= 0 and extent > 0)
        out.append(extent)
    made = np.zeros((*exact.shape[:2], *out), np.float64 if x.real else x.exact.dtype)
    errors, sizes = np.zeros(made.shape), np.zeros(made.shape)
    for position in np.ndindex(*out):
        inside, counted = [], 0
        for tap in np.ndindex(*kernel):
            at = [
                p * s - b + t * d
                for p, s, b, t, d in zip(
                    position, strides, padding[:count], tap, dilation, strict=True
                )
            ]
            real = all(0 <= i < n for i, n in zip(at, size, strict=True))
            padded = all(-padding[a] <= i < size[a] + padding[a + count] for a, i in enumerate(at))
            counted += padded if attrs.get("count_include_pad") else real
            if real:
                inside.append(tuple(at))
        need(bool(inside))
        values = np.stack([exact[(..., *at)] for at in inside])
        distances = np.stack([error[(..., *at)] for at in inside])
        if not average:
            made[(..., *position)] = values.max(axis=0)
            errors[(..., *position)] = distances.max(axis=0)
        elif x.real:
            made[(..., *position)] = values.sum(axis=0) / counted
            sizes[(..., *position)] = np.abs(values).sum(axis=0) / counted
            errors[(..., *position)] = distances.sum(axis=0) / counted
        else:
            total = np.asarray(values.astype(object).sum(axis=0), object)
            limit = np.iinfo("uint64" if x.dtype == "uint64" else "int64")
            need(bool(((total >= limit.min) & (total <= limit.max)).all()))  # sums of 64 bits
            made[(..., *position)] = np.where(total < 0, -(-total // counted), total // counted)
            errors[(..., *position)] = np.where(distances.any(axis=0), distances.max(axis=0) + 1, 0)
    found = [np.transpose(a, back) for a in (made, errors, sizes)]
    ulps = (int(np.prod(kernel)) + 6) if average else 0
    return result(found[0], found[1], x.dtype, ulps, found[2] if average else None)


for _count in (1, 2, 3):
    rule(f"nn.max_pool{_count}d")(lambda attrs, x: _pool(attrs, x, False))
    rule(f"nn.avg_pool{_count}d")(lambda attrs, x: _pool(attrs, x, True))


def _adaptive(attrs, x, average, count):
    layout = attrs["layout"]
    wanted = attrs.get("output_size", (1,) * count)
    exact, error, size = x.exact, x.error, np.abs(x.exact.astype(np.float64))
    for letter, out in zip(LETTERS[count], wanted, strict=True):
        axis = layout.index(letter)
        extent = exact.shape[axis]
        need(x.real or not average or len([w for w in wanted if w]) == count)
        parts = [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]

        def over(array, function, axis=axis, parts=parts):
            return np.stack([function(np.take(array, range(*p), axis), axis) for p in parts], axis)

        reduce = np.mean if average else np.max
        exact, error, size = (over(a, reduce) for a in (exact, error, size))
    terms = int(np.prod(x.shape)) // max(int(np.prod(exact.shape[:2])), 1)
    return result(exact, error, x.dtype, terms + 6.0 if average else 0, size)


for _count in (1, 2, 3):
    for _kind, _average in (("max", False), ("avg", True)):
        for _form in ("adaptive", "global"):
            rule(f"nn.{_form}_{_kind}_pool{_count}d")(
                lambda attrs, x, a=_average, c=_count: _adaptive(attrs, x, a, c)
            )


@maker(3)
def pool(d):
    spatial = d.pick([1, 2, 2, 2, 3])
    x = d.of_rank(spatial + 2)
    letters = LETTERS[spatial]
    layout = d.pick(["NC" + letters, "NC" + letters, "N" + letters + "C"])
    shape = d.value(x).shape
    named = [shape[layout.index(c)] for c in letters]
    kind = d.pick(["max", "avg"])
    need(int(np.prod(named)) <= 2000)
    if d.chance(0.35):
        need(d.value(x).real or kind == "max")
        if d.chance(0.5):
            return d.call(f"nn.global_{kind}_pool{spatial}d", x, layout=layout)
        out = tuple(d.int(1, min(e, 5)) for e in named)
        return d.call(f"nn.adaptive_{kind}_pool{spatial}d", x, output_size=out, layout=layout)
    window, strides, dilation, padding = geometry(d, named, spatial)
    padding = tuple(
        min(p, (window[a % spatial] - 1) * dilation[a % spatial]) for a, p in enumerate(padding)
    )
    more = {"count_include_pad": d.chance(0.5)} if kind == "avg" else {}
    return d.call(
        f"nn.{kind}_pool{spatial}d", x, pool_size=window, strides=strides, dilation=dilation,
        padding=padding, layout=layout, ceil_mode=d.chance(0.3), **more,
    )  # fmt: skip
