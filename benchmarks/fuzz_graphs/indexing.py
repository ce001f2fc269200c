"""Operators that read or write at positions which another tensor holds."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import ULPS, UNIT, Value, leaf, moved, need, result

COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@rule("take")
def _take(attrs, x, indices):
    need(indices.certain)
    axis, mode = attrs["axis"], attrs["mode"]
    extent = x.exact.size if axis is None else x.shape[axis]
    where = indices.exact.astype(np.int64)
    if mode == "fast":
        where = np.where(where < 0, where + extent, where)
        need(bool(((where >= 0) & (where < extent)).all()))
    where = where % extent if mode == "wrap" else np.clip(where, 0, extent - 1)
    return moved(x, lambda a: np.take(a, where, axis))


@rule("gather")
def _gather(attrs, x, indices):
    need(indices.certain)
    where = np.where(indices.exact < 0, indices.exact + x.shape[attrs["axis"]], indices.exact)
    positions = list(np.indices(where.shape))
    positions[attrs["axis"]] = where
    return moved(x, lambda a: a[tuple(positions)])


@rule("gather_nd")
def _gather_nd(attrs, x, indices):
    need(indices.certain and attrs["batch_dims"] == 0)
    return moved(x, lambda a: a[tuple(indices.exact)])


@rule("one_hot")
def _one_hot(attrs, indices):
    need(indices.certain)
    rank = indices.exact.ndim + 1
    axis = attrs["axis"] % rank
    classes = np.arange(attrs["depth"]).reshape([-1 if a == axis else 1 for a in range(rank)])
    hit = np.expand_dims(indices.exact, axis) == classes
    return leaf(np.where(hit, attrs["on_value"], attrs["off_value"]).astype(attrs["dtype"]))


def _scattered(x, updates, positions, reduction):
    """Apply updates one by one, with the error of each."""
    exact, error = x.exact.copy(), x.error.copy()
    reach = np.ones(x.shape)
    order = list(np.ndindex(updates.shape))
    unit = ULPS * UNIT.get(x.dtype, 0.0)
    for at in order:
        position = tuple(p[at] for p in positions)
        value, distance = updates.exact[at], updates.error[at]
        reach[position] += 1
        if reduction == "update":
            need(reach[position] == 2 or (x.exact.size == 0), "two updates of one element")
            exact[position], error[position] = value, distance
            continue
        before = exact[position]
        exact[position] = COMBINE[reduction](before, value)
        if reduction == "mul":
            error[position] = error[position] * abs(value) + abs(before) * distance
        elif reduction == "add":
            error[position] += distance
        else:
            error[position] = max(error[position], distance)
        if reduction in ("add", "mul"):
            size = max(abs(float(before)), abs(float(value)), abs(float(exact[position])))
            error[position] += unit * size * 2
    if reduction == "add" and x.real:  # in any order: every partial sum may be rounded
        size = np.abs(x.exact)
        for at in order:
            size[tuple(p[at] for p in positions)] += abs(updates.exact[at])
        error += size * reach * UNIT[x.dtype]
    return result(exact, error, x.dtype, 0)


@rule("scatter_elements")
def _scatter_elements(attrs, x, indices, updates):
    need(indices.certain and x.exact.size <= 4000)
    axis = attrs["axis"] % x.exact.ndim
    positions = list(np.indices(indices.shape))
    positions[axis] = np.where(indices.exact < 0, indices.exact + x.shape[axis], indices.exact)
    return _scattered(x, updates, positions, attrs["reduction"])


@rule("scatter_nd")
def _scatter_nd(attrs, x, indices, updates):
    need(indices.certain and x.exact.size <= 4000)
    depth = indices.shape[0]
    kept = x.exact.ndim - depth
    inner = np.indices(updates.shape)[updates.exact.ndim - kept :] if kept else []
    outer = [
        np.broadcast_to(i.reshape(i.shape + (1,) * kept), updates.shape) for i in indices.exact
    ]
    return _scattered(x, updates, [*outer, *inner], attrs["mode"])


@rule("dynamic_update_slice")
def _update_slice(attrs, x, update, begin):
    need(begin.certain)
    exact, error = x.exact.copy(), x.error.copy()
    position = [slice(0, extent) for extent in update.shape]
    for axis, first in zip(attrs["axes"], begin.exact.tolist(), strict=True):
        first = min(max(int(first), 0), x.shape[axis] - update.shape[axis])
        position[axis] = slice(first, first + update.shape[axis])
    exact[tuple(position)], error[tuple(position)] = update.exact, update.error
    return Value(exact, error, x.dtype)


@maker(1)
def updates(d):
    x = d.find(lambda v: v.exact.ndim > 0 and 0 < v.exact.size <= 4000)
    value = d.value(x)
    part = [d.int(1, extent) for extent in value.shape]
    axes = [axis for axis in range(len(part)) if d.chance(0.5)]
    begin = _leaf(d, np.array([d.int(-1, value.shape[a] + 1) for a in axes], "int64"))
    update = d.leaf(part, value.dtype)
    return d.call("dynamic_update_slice", x, update, begin, axes=axes)


@maker(2)
def gathers(d):
    x = d.find(lambda v: v.exact.ndim > 0 and v.exact.size > 0)
    shape = d.value(x).shape
    dtype = d.pick(["int32", "int64"])
    name = d.pick(["take", "take", "gather", "gather_nd"])
    axis = d.int(0, len(shape) - 1)
    if name == "take":
        mode = d.pick(["clip", "wrap", "fast"])
        axis = d.pick([None, axis])
        extent = d.value(x).exact.size if axis is None else shape[axis]
        low, high = (-extent, extent - 1) if mode == "fast" else (-2 * extent, 2 * extent)
        indices = d.leaf(d.shape(0, 2, 40), dtype, low, high)
        return d.call(name, x, indices, axis=axis, mode=mode)
    if name == "gather":
        own = tuple(d.int(1, e) for e in shape)
        own = (*own[:axis], d.extent(17), *own[axis + 1 :])
        indices = d.leaf(own, dtype, -shape[axis], shape[axis] - 1)
        return d.call(name, x, indices, axis=axis)
    depth = d.int(1, len(shape))
    count = d.shape(1, 2, 40)
    stacked = np.stack([d.rng.integers(0, shape[a], count) for a in range(depth)])
    return d.call(name, x, _leaf(d, stacked.astype(dtype)), batch_dims=0)


def _leaf(d, array):
    from benchmarks.fuzz_graphs.graph import Node

    return d.append(Node("const" if d.chance(0.4) else "input", array=array))


@maker(0.7)
def one_hot(d):
    indices = d.leaf(d.shape(0, 2, 60), d.pick(["int32", "int64"]), -1, 9)
    rank = d.value(indices).exact.ndim
    return d.call(
        "one_hot", indices, on_value=1.0, off_value=0.0, depth=d.int(1, 9), axis=d.axis(rank + 1),
        dtype=d.dtype(),
    )  # fmt: skip


@maker(1.5)
def scatters(d):
    x = d.find(lambda v: v.exact.ndim > 0 and 0 < v.exact.size <= 600 and v.dtype != "bool")
    value = d.value(x)
    shape = value.shape
    reduction = d.pick(["update", "update", *COMBINE])
    axis = d.int(0, len(shape) - 1)
    if d.chance(0.5):
        own = [d.int(1, e) for e in shape]
        if reduction == "update":  # every position once
            rows = d.rng.permuted(np.tile(np.arange(shape[axis]), (1000, 1)), axis=1)
            count = int(np.prod(own)) // own[axis]
            need(count <= 1000)
            flat = rows[:count, : own[axis]]
            beside = [e for a, e in enumerate(own) if a != axis]
            array = np.moveaxis(flat.reshape(*beside, own[axis]), -1, axis)
        else:
            array = d.rng.integers(-shape[axis], shape[axis], own)
        indices = _leaf(d, np.ascontiguousarray(array).astype("int64"))
        updates = d.leaf(own, value.dtype)
        return d.call("scatter_elements", x, indices, updates, axis=axis, reduction=reduction)
    depth = d.int(1, len(shape))
    most = int(np.prod(shape[:depth]))
    count = d.int(1, min(most, 40))
    chosen = d.rng.permutation(most)[:count]
    if reduction != "update":
        chosen = d.rng.integers(0, most, count)
    tuples = np.stack(np.unravel_index(chosen, shape[:depth]))
    updates = d.leaf((count, *shape[depth:]), value.dtype)
    return d.call("scatter_nd", x, _leaf(d, tuples.astype("int64")), updates, mode=reduction)
