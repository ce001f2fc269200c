"""Operators that put elements elsewhere: views, transposes, slices, joins, repeats, padding."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import Value, leaf, moved, need


@rule("reshape")
def _reshape(attrs, x):
    return moved(x, lambda a: a.reshape(attrs["newshape"]))


@rule("nn.batch_flatten")
def _flatten(attrs, x):
    return moved(x, lambda a: a.reshape(a.shape[0], int(np.prod(a.shape[1:]))))


@rule("squeeze")
def _squeeze(attrs, x):
    axis = attrs["axis"]
    return moved(x, lambda a: np.squeeze(a, None if axis is None else tuple(axis)))


@rule("expand_dims")
def _expand_dims(attrs, x):
    rank = x.exact.ndim
    axis = attrs["axis"] % (rank + 1)
    shape = (*x.shape[:axis], *(1,) * attrs["num_newaxis"], *x.shape[axis:])
    return moved(x, lambda a: a.reshape(shape))


@rule("transpose")
def _transpose(attrs, x):
    return moved(x, lambda a: np.transpose(a, attrs["axes"]))


@rule("reverse")
def _reverse(attrs, x):
    return moved(x, lambda a: np.flip(a, attrs["axis"]))


@rule("strided_slice")
def _strided_slice(attrs, x):
    index = [slice(None)] * x.exact.ndim
    for axis, begin, end, step in zip(
        attrs["axes"], attrs["begin"], attrs["end"], attrs["strides"], strict=True
    ):
        index[axis] = slice(begin, None if step < 0 and end < -x.shape[axis] else end, step)
    return moved(x, lambda a: a[tuple(index)])


@rule("split")
def _split(attrs, x):
    cuts = attrs["indices_or_sections"]
    exact = np.split(x.exact, cuts, attrs["axis"])
    errors = np.split(x.error, cuts, attrs["axis"])
    return [Value(e, f, x.dtype) for e, f in zip(exact, errors, strict=True)]


@rule("concatenate")
def _concatenate(attrs, *xs):
    exact = np.concatenate([x.exact for x in xs], attrs["axis"])
    return Value(exact, np.concatenate([x.error for x in xs], attrs["axis"]), xs[0].dtype)


@rule("stack")
def _stack(attrs, *xs):
    exact = np.stack([x.exact for x in xs], attrs["axis"])
    return Value(exact, np.stack([x.error for x in xs], attrs["axis"]), xs[0].dtype)


@rule("broadcast_to")
def _broadcast_to(attrs, x):
    return moved(x, lambda a: np.broadcast_to(a, attrs["shape"]))


@rule("tile")
def _tile(attrs, x):
    return moved(x, lambda a: np.tile(a, attrs["reps"]))


@rule("repeat")
def _repeat(attrs, x):
    return moved(x, lambda a: np.repeat(a, attrs["repeats"], attrs["axis"]))


@rule("nn.pad")
def _pad(attrs, x):
    widths, mode = attrs["pad_width"], attrs["pad_mode"]
    if mode != "constant":
        return moved(x, lambda a: np.pad(a, widths, mode=mode))
    value = np.asarray(attrs["pad_value"]).astype(x.exact.dtype)
    exact = np.pad(x.exact, widths, constant_values=value)
    return Value(exact, np.pad(x.error, widths), x.dtype)


@rule("full")
def _full(attrs, x):
    return moved(x, lambda a: np.full(attrs["shape"], a.reshape(())))


@rule("arange")
def _arange(attrs):
    return leaf(np.arange(attrs["start"], attrs["stop"], attrs["step"]).astype(attrs["dtype"]))


# -- makers ------------------------------------------------------------------------------------


def _factors(d, size):
    """Extents whose product is `size`."""
    found = []
    for _ in range(d.int(0, 3)):
        divisors = [f for f in range(1, size + 1) if size % f == 0]
        found.append(d.pick(divisors))
        size //= found[-1]
    return (*found, size)


@maker(4)
def view(d):
    x = d.find()
    value = d.value(x)
    name = d.pick(["reshape", "reshape", "squeeze", "expand_dims", "nn.batch_flatten"])
    if name == "reshape":
        size = value.exact.size
        shape = () if size == 1 and d.chance(0.3) else _factors(d, size)
        return d.call(name, x, newshape=shape)
    if name == "squeeze":
        axes = [a for a, e in enumerate(value.shape) if e == 1]
        chosen = None if d.chance(0.5) else tuple(a for a in axes if d.chance(0.7))
        return d.call(name, x, axis=chosen)
    if name == "expand_dims":
        axis = d.int(0, value.exact.ndim)
        return d.call(name, x, axis=axis, num_newaxis=d.int(1, 2))
    need(value.exact.ndim > 0)
    return d.call(name, x)


@maker(4)
def transpose(d):
    x = d.find(lambda v: v.exact.ndim > 0)
    rank = d.value(x).exact.ndim
    return d.call("transpose", x, axes=tuple(int(a) for a in d.rng.permutation(rank)))


@maker(3)
def cut(d):
    x = d.find(lambda v: v.exact.ndim > 0)
    shape = d.value(x).shape
    name = d.pick(["strided_slice", "strided_slice", "split", "reverse"])
    if name == "reverse":
        return d.call(name, x, axis=d.axis(len(shape)))
    if name == "split":
        axis = d.axis(len(shape))
        extent = shape[axis]
        if d.chance(0.5):
            parts = d.pick([p for p in range(1, min(extent, 8) + 1) if extent % p == 0])
            return d.call(name, x, indices_or_sections=parts, axis=axis)
        cuts = sorted({d.int(1, extent) for _ in range(d.int(1, 3))} - {extent})
        need(bool(cuts))
        return d.call(name, x, indices_or_sections=tuple(cuts), axis=axis)
    axes = sorted({a % len(shape) for a in d.axes(len(shape), 1)})
    begin, end, strides = [], [], []
    for a in axes:
        step = d.pick([1, 1, 2, 3, -1, -2])
        first, last = sorted((d.int(0, shape[a] - 1), d.int(0, shape[a] - 1)))
        if step > 0:
            begin.append(first)
            end.append(last + 1)
        else:
            begin.append(last)
            end.append(first - 1 if first else -shape[a] - 1)
        strides.append(step)
    return d.call(
        name, x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), axes=tuple(axes)
    )


@maker(4)
def join(d):
    x = d.find(lambda v: v.exact.ndim > 0)
    value = d.value(x)
    if d.chance(0.2):
        others = [
            x if d.chance(0.3) else d.leaf(value.shape, value.dtype) for _ in range(d.int(1, 3))
        ]
        return d.call("stack", x, *others, axis=d.axis(value.exact.ndim))
    axis = d.axis(value.exact.ndim)
    position = axis % value.exact.ndim

    def fits(v):
        beside = v.shape[:position] + v.shape[position + 1 :]
        return (
            v.dtype == value.dtype
            and v.exact.ndim == value.exact.ndim
            and (beside == value.shape[:position] + value.shape[position + 1 :])
        )

    parts = [x]
    for _ in range(d.int(1, 3)):
        if d.chance(0.5):
            parts.append(d.find(fits))
        else:
            shape = list(value.shape)
            shape[position] = d.extent(17)
            parts.append(d.leaf(shape, value.dtype))
    order = [parts[int(i)] for i in d.rng.permutation(len(parts))]
    return d.call("concatenate", *order, axis=axis)


@maker(2)
def spread(d):
    x = d.find()
    value = d.value(x)
    rank = value.exact.ndim
    name = d.pick(["broadcast_to", "tile", "repeat", "full", "arange"])
    if name == "broadcast_to":
        shape = tuple(d.extent(7) if e == 1 else e for e in value.shape)
        lead = tuple(d.extent(3) for _ in range(d.int(0, 1)))
        return d.call(name, x, shape=(*lead, *shape))
    if name == "tile":
        return d.call(name, x, reps=tuple(d.int(1, 3) for _ in range(d.int(1, max(rank, 1)))))
    if name == "repeat":
        return d.call(name, x, repeats=d.int(1, 4), axis=d.axis(rank))
    if name == "full":
        scalar = d.leaf((), value.dtype)
        return d.call(name, scalar, shape=d.shape(0, 3, 200))
    return d.call(name, start=d.int(-5, 5), stop=d.int(6, 40), step=d.int(1, 4), dtype=value.dtype)


@maker(2)
def pad(d):
    x = d.find(lambda v: v.exact.ndim > 0 and v.dtype != "bool")
    shape = d.value(x).shape
    mode = d.pick(["constant", "constant", "edge", "reflect"])
    widths = tuple((d.int(0, 3), d.int(0, 3)) if d.chance(0.6) else (0, 0) for _ in shape)
    if mode == "reflect":
        widths = tuple(
            (min(p, e - 1), min(q, e - 1)) for (p, q), e in zip(widths, shape, strict=True)
        )
    value = float(d.int(0, 3)) if mode == "constant" else 0
    return d.call("nn.pad", x, pad_width=widths, pad_value=value, pad_mode=mode)
