"""Reductions, scans, sorts, softmax and the normalisations."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.products import softmax
from benchmarks.fuzz_graphs.values import (
    Value,
    add,
    constant,
    divide,
    linear,
    monotone,
    moved,
    multiply,
    need,
    result,
)

LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38, "float64": 1.7e308}


def _axes(attrs, rank):
    axis = attrs["axis"]
    if axis is None:
        return tuple(range(rank))
    axes = {a % rank for a in ((axis,) if isinstance(axis, int) else axis)}
    if attrs.get("exclude"):
        axes = set(range(rank)) - axes
    return tuple(sorted(axes))


def total(x: Value, axes, keepdims=False) -> Value:
    """The sum over axes."""
    count = int(np.prod([x.shape[a] for a in axes]))
    return linear(lambda a: np.sum(a, axes, keepdims=keepdims), x.dtype, count, x)


@rule("sum")
def _sum(attrs, x):
    axes = _axes(attrs, x.exact.ndim)
    if x.real:
        return total(x, axes, attrs["keepdims"])
    exact = np.sum(x.exact, axes, dtype=x.exact.dtype, keepdims=attrs["keepdims"])
    return result(exact, np.sum(x.error, axes, keepdims=attrs["keepdims"]), x.dtype)


@rule("mean")
def _mean(attrs, x):
    axes = _axes(attrs, x.exact.ndim)
    count = int(np.prod([x.shape[a] for a in axes]))
    if x.real:
        return multiply(total(x, axes, attrs["keepdims"]), constant(1 / count, x))
    need(x.certain)
    sums = np.sum(x.exact.astype(object), axes, keepdims=attrs["keepdims"])
    sums = np.asarray(sums, object)
    limit = np.iinfo("int64")
    need(all(limit.min <= int(s) <= limit.max for s in sums.ravel()))
    flat = [int(s) // count if s >= 0 else -(-int(s) // count) for s in sums.ravel()]
    exact = np.array(flat, object).reshape(sums.shape)
    return result(exact.astype(x.dtype), np.zeros(exact.shape), x.dtype)


@rule("prod")
def _prod(attrs, x):
    axes = _axes(attrs, x.exact.ndim)
    keep = attrs["keepdims"]
    exact = np.prod(x.exact, axes, dtype=x.exact.dtype, keepdims=keep)
    if not x.real:
        need(x.certain)
        return result(exact, np.zeros(exact.shape), x.dtype)
    count = int(np.prod([x.shape[a] for a in axes]))
    size = np.prod(np.abs(x.exact), axes, keepdims=keep)
    most = np.prod(np.abs(x.exact) + x.error, axes, keepdims=keep)
    # In some order the large factors come first, and the product of the others then meets infinity.
    high = np.prod(np.maximum(np.abs(x.exact) + x.error, 1.0), axes, keepdims=keep)
    error = np.where(high > LARGEST[x.dtype], np.inf, most - size)
    return result(exact, error, x.dtype, count + 4.0, size)


def _extreme(function):
    def compute(attrs, x):
        axes = _axes(attrs, x.exact.ndim)
        need(all(x.shape[a] for a in axes))
        exact = function(x.exact, axes, keepdims=attrs["keepdims"])
        error = np.max(x.error, axes, keepdims=attrs["keepdims"]) if axes else x.error
        return result(exact, error, x.dtype, 0)

    return compute


rule("max")(_extreme(np.max))
rule("min")(_extreme(np.min))


def _bool(function):
    def compute(attrs, x):
        axes = _axes(attrs, x.exact.ndim)
        error = np.max(x.error, axes, keepdims=attrs["keepdims"], initial=0.0)
        return result(function(x.exact, axes, keepdims=attrs["keepdims"]), error, "bool")

    return compute


rule("all")(_bool(np.all))
rule("any")(_bool(np.any))


def _position(sign):
    def compute(attrs, x):
        axes = _axes(attrs, x.exact.ndim)
        keep, dtype = attrs["keepdims"], attrs["dtype"]
        kept = [a for a in range(x.exact.ndim) if a not in axes]
        rows = np.transpose(x.exact, [*kept, *axes]).reshape([x.shape[a] for a in kept] + [-1])
        errors = np.transpose(x.error, [*kept, *axes]).reshape(rows.shape)
        best = rows.max(-1, keepdims=True) if sign > 0 else rows.min(-1, keepdims=True)
        hit = rows == best
        last = rows.shape[-1] - 1 - hit[..., ::-1].argmax(-1)
        found = last if attrs["select_last_index"] else hit.argmax(-1)
        at = found[..., None]
        gap = np.abs(rows.astype(np.float64) - np.take_along_axis(rows, at, -1))
        reach = errors + np.take_along_axis(errors, at, -1)
        other = np.arange(rows.shape[-1]) != at
        unsure = (other & (reach > 0) & (gap <= reach)).any(-1)
        shape = [1 if a in axes else x.shape[a] for a in range(x.exact.ndim)]
        if keep:
            found, unsure = found.reshape(shape), unsure.reshape(shape)
        return result(found, np.where(unsure, np.inf, 0.0), dtype)

    return compute


rule("argmax")(_position(1))
rule("argmin")(_position(-1))


@rule("topk")
def _topk(attrs, x):
    axis = attrs["axis"] % x.exact.ndim
    rows, errors = (np.moveaxis(a, axis, -1) for a in (x.exact, x.error))
    k = attrs["k"] if attrs["k"] > 0 else rows.shape[-1]
    need(k <= rows.shape[-1])
    keys = rows if attrs["is_ascend"] else -rows.astype(object)
    order = np.argsort(keys, axis=-1, kind="stable")
    sorted_ = np.take_along_axis(rows, order, -1)
    wild = np.max(errors, axis=-1, keepdims=True)
    gaps = np.abs(np.diff(sorted_.astype(np.float64), axis=-1))
    close = ((gaps <= 2 * wild) & (wild > 0)).any(-1, keepdims=True)
    values = result(sorted_[..., :k], wild + np.zeros((*rows.shape[:-1], k)), x.dtype, 0)
    unsure = np.where(close, np.inf, 0.0) + np.zeros((*rows.shape[:-1], k))
    positions = result(order[..., :k], unsure, attrs["dtype"])
    return [moved(v, lambda a: np.moveaxis(a, -1, axis)) for v in (values, positions)]


@rule("cumsum")
def _cumsum(attrs, x):
    axis = attrs["axis"]

    def running(a):
        sums = np.cumsum(a, axis, dtype=a.dtype)
        return sums - a if attrs["exclusive"] else sums

    if not x.real:
        return result(running(x.exact), running(x.error), x.dtype)
    return result(
        running(x.exact), running(x.error), x.dtype, x.shape[axis] + 4.0,
        np.cumsum(np.abs(x.exact), axis),
    )  # fmt: skip


@rule("cumprod")
def _cumprod(attrs, x):
    axis, shape = attrs["axis"], list(x.shape)
    shape[axis] = min(shape[axis], 1)

    def running(a):
        if attrs["exclusive"]:
            cut = [slice(None)] * a.ndim
            cut[axis] = slice(0, -1)
            a = np.concatenate([np.ones(shape, a.dtype), a[tuple(cut)]], axis)
        return np.cumprod(a, axis, dtype=a.dtype)

    exact = running(x.exact)
    if not x.real:
        need(x.certain)
        return result(exact, np.zeros(exact.shape), x.dtype)
    size = running(np.abs(x.exact))
    grown = running(np.abs(x.exact) + x.error) - size
    return result(exact, grown, x.dtype, x.shape[axis] + 4.0, size)


@rule("nn.softmax")
def _softmax(attrs, x):
    return softmax(x, attrs["axis"])


@rule("nn.log_softmax")
def _log_softmax(attrs, x):
    axis = attrs["axis"]
    wild = np.max(x.error, axis=axis, keepdims=True)
    top = np.max(x.exact, axis=axis, keepdims=True)
    exact = x.exact - top - np.log(np.exp(x.exact - top).sum(axis=axis, keepdims=True))
    size = np.abs(x.exact) + np.abs(top) + np.abs(exact) + 1
    return result(exact, x.error + wild, x.dtype, x.shape[axis] + 8.0, size)


def _view(x: Value, rank: int, axis: int) -> Value:
    view = [1] * rank
    view[axis] = -1
    return moved(x, lambda a: a.reshape(view))


def _scaled(attrs, x, gamma, beta, axis):
    rank = x.exact.ndim
    if attrs.get("scale", True):
        x = multiply(x, _view(gamma, rank, axis))
    return add(x, _view(beta, rank, axis)) if attrs.get("center", True) else x


def _normalised(x, axes, epsilon):
    """(x - mean) / sqrt(var + epsilon) by the definition, with errors carried through."""
    count = int(np.prod([x.shape[a] for a in axes]))
    share = constant(1 / count, x)
    centred = add(x, multiply(total(x, axes, True), share), -1)
    # The sum of x * x less the square of the mean is right too, and loses more digits.
    squares = multiply(total(multiply(centred, centred), axes, True), share)
    size = np.mean(x.exact**2, axes, keepdims=True)
    variance = np.mean((x.exact - x.exact.mean(axes, keepdims=True)) ** 2, axes, keepdims=True)
    squares = result(variance, squares.error, x.dtype, 8.0, size)
    root = monotone(np.sqrt, add(squares, constant(epsilon, x)), 4.0, 0.0)
    return divide(centred, root)


@rule("nn.layer_norm")
def _layer_norm(attrs, x, gamma, beta):
    axis = attrs["axis"] % x.exact.ndim
    return _scaled(attrs, _normalised(x, (axis,), attrs["epsilon"]), gamma, beta, axis)


@rule("nn.instance_norm")
def _instance_norm(attrs, x, gamma, beta):
    axis = attrs["axis"] % x.exact.ndim
    axes = tuple(a for a in range(1, x.exact.ndim) if a != axis)
    need(bool(axes) and axis != 0)
    return _scaled(attrs, _normalised(x, axes, attrs["epsilon"]), gamma, beta, axis)


@rule("nn.batch_norm")
def _batch_norm(attrs, x, gamma, beta, mean, var):
    """As x * factor + shift: what a model's inference computes."""
    axis, rank = attrs["axis"], x.exact.ndim
    root = monotone(np.sqrt, add(var, constant(attrs.get("epsilon", 1e-5), var)), 4.0, 0.0)
    factor = divide(gamma, root)
    shift = add(beta, multiply(mean, factor), -1)
    scaled = multiply(x, _view(factor, rank, axis))
    return [add(scaled, _view(shift, rank, axis)), mean, var]


@rule("nn.lrn")
def _lrn(attrs, x):
    axis, size = attrs["axis"], attrs["size"]
    squares = moved(multiply(x, x), lambda a: np.moveaxis(a, axis, 0))
    rows = []
    for c in range(x.shape[axis]):
        first, last = max(c - (size - 1) // 2, 0), c + size // 2 + 1
        rows.append(total(moved(squares, lambda a, f=first, e=last: a[f:e]), (0,), False))
    sums = Value(np.stack([r.exact for r in rows]), np.stack([r.error for r in rows]), x.dtype)
    sums = moved(sums, lambda a: np.moveaxis(a, 0, axis))
    base = add(multiply(sums, constant(attrs["alpha"] / size, x)), constant(attrs["bias"], x))
    return divide(x, monotone(lambda a: np.power(a, attrs["beta"]), base, 16.0, 1e-9))


# -- makers ------------------------------------------------------------------------------------


@maker(5)
def reduce(d):
    x = d.find(lambda v: v.dtype != "bool" and v.exact.size > 0)
    rank = d.value(x).exact.ndim
    name = d.pick(["sum", "sum", "mean", "max", "min", "prod", "argmax", "argmin"])
    axis = d.pick([None, d.axes(rank, 1), d.axes(rank, 1)]) if rank else None
    attrs = {"axis": axis, "keepdims": d.chance(0.4), "exclude": False}
    if axis is not None and d.chance(0.1):
        attrs["exclude"] = True
    if name.startswith("arg"):
        attrs = dict(attrs, axis=d.pick([None, d.axis(rank)]) if rank else None, exclude=False)
        dtype = d.pick(["int32", "int64"])
        return d.call(name, x, **attrs, select_last_index=d.chance(0.3), dtype=dtype)
    return d.call(name, x, **attrs)


@maker(0.7)
def truths(d):
    x = d.find(lambda v: v.dtype == "bool")
    rank = d.value(x).exact.ndim
    axis = d.axes(rank, 1) if rank else None
    return d.call(d.pick(["all", "any"]), x, axis=axis, keepdims=d.chance(0.5), exclude=False)


@maker(1.5)
def scan(d):
    x = d.find(lambda v: v.dtype != "bool" and v.exact.ndim > 0)
    name = d.pick(["cumsum", "cumsum", "cumprod"])
    return d.call(name, x, axis=d.axis(d.value(x).exact.ndim), exclusive=d.chance(0.4))


@maker(1)
def topk(d):
    x = d.find(lambda v: v.dtype != "bool" and v.exact.ndim > 0)
    axis = d.axis(d.value(x).exact.ndim)
    return d.call(
        "topk", x, k=d.int(1, d.value(x).shape[axis]), axis=axis, is_ascend=d.chance(0.4),
        dtype=d.pick(["int32", "int64"]),
    )  # fmt: skip


@maker(3)
def soft(d):
    x = d.find(lambda v: v.real and v.exact.ndim > 0)
    name = d.pick(["nn.softmax", "nn.softmax", "nn.log_softmax"])
    return d.call(name, x, axis=d.axis(d.value(x).exact.ndim))


@maker(4)
def norm(d):
    x = d.find(lambda v: v.real and v.exact.ndim > 0)
    value = d.value(x)
    rank = value.exact.ndim
    name = d.pick(["nn.layer_norm", "nn.instance_norm", "nn.batch_norm", "nn.lrn"])
    axis = d.axis(rank)
    if name == "nn.layer_norm" and d.chance(0.6):
        axis = -1
    if name == "nn.lrn":
        return d.call(name, x, size=d.pick([1, 3, 5]), axis=axis % rank, bias=2.0,
                      alpha=d.pick([1e-4, 0.5]), beta=d.pick([0.5, 0.75]))  # fmt: skip
    extent = value.shape[axis]
    gamma, beta = (d.weights((extent,), value.dtype) for _ in range(2))
    if name == "nn.batch_norm":
        mean = d.leaf((extent,), value.dtype, const=1.0)
        var = d.leaf((extent,), value.dtype, 0.3, 2.0, const=1.0)
        return d.call(name, x, gamma, beta, mean, var, axis=axis)
    if name == "nn.instance_norm":
        need(rank > 2)
        axis = 1 if d.chance(0.7) else rank - 1
        extent = value.shape[axis]
        gamma, beta = (d.weights((extent,), value.dtype) for _ in range(2))
    return d.call(name, x, gamma, beta, axis=axis, epsilon=d.pick([1e-5, 1e-3]))
