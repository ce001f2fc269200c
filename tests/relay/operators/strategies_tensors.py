"""Operators that move, pick, join and make elements."""

import numpy as np
from drawing import ALL, FLOATS, NUMBERS, OPS, Case
from strategies import strategy

from slipway.relay.expr import Function, Tuple, Var
from slipway.relay.ops.control import BranchAttrs, WhileAttrs
from slipway.relay.ops.recurrence import LoopAttrs
from slipway.relay.types import TensorType


def attrs_of(d, *fields, **named):
    return OPS[d.name].attrs_type(*fields, **named)


@strategy("reshape")
def reshape(d):
    shape = d.shape()
    factors = [e for e in shape if e > 1]
    order = d.draw_order(factors)
    target = []
    for factor in order:
        if target and d.bool():
            target[-1] *= factor
        else:
            target.append(factor)
        if d.int(0, 4) == 0:
            target.append(1)
    if target and d.bool():
        target[d.int(0, len(target) - 1)] = -1
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, tuple(target)))


@strategy("nn.batch_flatten")
def batch_flatten(d):
    return Case((d.array(d.shape(1), d.pick(ALL)),))


@strategy("transpose")
def transpose(d):
    shape = d.shape(0, 5)
    rank = len(shape)
    axes = d.draw_order(range(rank))
    axes = () if d.int(0, 3) == 0 else tuple(a - rank if d.bool() else a for a in axes)
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, axes))


@strategy("squeeze")
def squeeze(d):
    shape = d.shape(1, 5, (1, 1, 2, 3, 8))
    ones = [a for a, e in enumerate(shape) if e == 1]
    some = tuple(a for a in ones if d.bool())
    axes = None if d.bool() or not some else tuple(a - len(shape) if d.bool() else a for a in some)
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, axes))


@strategy("expand_dims")
def expand_dims(d):
    shape = d.shape(0, 3)
    axis = d.int(-len(shape) - 1, len(shape))
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, axis, d.int(1, 3)))


@strategy("shape_of")
def shape_of(d):
    return Case((d.array(d.shape(1, 5), d.pick(ALL)),), attrs_of(d, d.pick(("int32", "int64"))))


@strategy("broadcast_to")
def broadcast_to(d):
    target = d.shape()
    kept = target[d.int(0, len(target)) :]
    shape = tuple(1 if d.bool() else e for e in kept)
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, target))


@strategy("tile")
def tile(d):
    shape = d.shape(0, 3, size=200)
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, d.ints(d.int(1, 4), 1, 3)))


@strategy("repeat")
def repeat(d):
    shape = d.shape(1, 4, size=500)
    attrs = attrs_of(d, d.int(1, 4), d.axis(len(shape)))
    return Case((d.array(shape, d.pick(ALL)),), attrs)


@strategy("reverse")
def reverse(d):
    shape = d.shape(1, 4)
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, d.axis(len(shape))))


@strategy("strided_slice")
def strided_slice(d):
    shape = d.shape(1, 4)
    axes = d.axes(len(shape), 1)
    begin, end, strides = [], [], []
    for axis in axes:
        extent, step = shape[axis], d.pick([1, 1, 2, 3, -1, -2])
        first, last = sorted((d.int(0, extent - 1), d.int(0, extent)))
        last = max(last, first + 1)
        if step < 0:
            first, last = last - 1, first - 1
        begin.append(first - extent if d.bool() else first)
        end.append(last if last >= 0 else -extent - 1)
        strides.append(step)
    attrs = attrs_of(d, tuple(begin), tuple(end), tuple(strides), axes)
    return Case((d.array(shape, d.pick(ALL)),), attrs)


@strategy("nn.pad")
def pad(d):
    shape = d.shape(1, 4, size=300)
    mode = d.pick(["constant", "edge", "reflect", "symmetric", "wrap"])
    most = [2 if mode in ("constant", "edge") else min(2, e - 1) for e in shape]
    width = tuple((d.int(0, m), d.int(0, m)) for m in most)
    if mode == "constant" and d.bool():  # negative amounts crop
        width = tuple((b, -1 if e + b > 1 and d.bool() else a)
                      for (b, a), e in zip(width, shape, strict=True))  # fmt: skip
    attrs = attrs_of(d, width, d.pick([0.0, 1.0, 3.0]), mode)
    return Case((d.array(shape, d.dtype(NUMBERS, shape, attrs=attrs)),), attrs)


# -- reading at positions ------------------------------------------------------------------------


@strategy("take")
def take(d):
    shape, where = d.shape(1, 3), d.shape(0, 2, size=60)
    axis = d.pick([None, d.axis(len(shape))])
    mode = d.pick(["clip", "wrap", "fast"])
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    low, high = (-extent, extent - 1) if mode == "fast" else (-2 * extent, 2 * extent)
    indices = d.array(where, d.pick(["int32", "int64"]), low, high)
    return Case((d.array(shape, d.pick(ALL)), indices), attrs_of(d, axis, mode))


@strategy("gather")
def gather(d):
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    where = tuple(d.int(1, e) for e in shape)
    indices = d.array(where, d.pick(["int32", "int64"]), -shape[axis], shape[axis] - 1)
    return Case((d.array(shape, d.pick(ALL)), indices), attrs_of(d, axis))


@strategy("gather_nd")
def gather_nd(d):
    shape = d.shape(1, 4)
    batch = d.int(0, len(shape) - 1)
    depth = d.int(1, len(shape) - batch)
    rest = shape[:batch] + d.shape(0, 1, size=20)
    parts = [
        d.array((1, *rest), "int64", -shape[batch + a], shape[batch + a] - 1) for a in range(depth)
    ]
    indices = np.concatenate(parts).astype(d.pick(["int32", "int64"]))
    return Case((d.array(shape, d.pick(ALL)), indices), attrs_of(d, batch))


@strategy("one_hot")
def one_hot(d):
    shape, depth = d.shape(0, 2, size=60), d.int(1, 9)
    dtype = d.pick(["float32", "int32", "int8", "float64"])
    attrs = attrs_of(d, 3.0, d.pick([0.0, 1.0]), depth, d.int(-1, len(shape)), dtype)
    # Beyond the depth there is no hot element.
    indices = d.array(shape, d.pick(["int32", "int64"]), -1, depth)
    return Case((indices,), attrs)


@strategy("scatter_elements")
def scatter_elements(d):
    shape = d.shape(1, 3, size=200)
    axis = d.axis(len(shape))
    reduction = d.pick(["update", "add", "mul", "max", "min"])
    where = tuple(d.int(1, e) for e in shape)
    attrs = attrs_of(d, axis, reduction)
    extent = shape[axis]
    dtype = d.pick(NUMBERS)
    low, top = (0.8, 1.25) if dtype in FLOATS and reduction == "mul" else (None, None)
    indices = d.array(where, d.pick(["int32", "int64"]), -extent, extent - 1)
    terms = max(where) + 1 if reduction in ("add", "mul") else 0
    return Case(
        (d.array(shape, dtype, low, top), indices, d.array(where, dtype, low, top)), attrs,
        terms=terms,
    )  # fmt: skip


@strategy("scatter_nd")
def scatter_nd(d):
    shape = d.shape(1, 3, size=200)
    depth = d.int(1, len(shape))
    reduction = d.pick(["update", "add", "mul", "max", "min"])
    many = d.shape(0, 2, size=20)
    parts = [d.array((1, *many), "int64", -shape[a], shape[a] - 1) for a in range(depth)]
    indices = np.concatenate(parts).astype(d.pick(["int32", "int64"]))
    dtype = d.pick(NUMBERS)
    low, top = (0.8, 1.25) if dtype in FLOATS and reduction == "mul" else (None, None)
    updates = d.array((*many, *shape[depth:]), dtype, low, top)
    terms = int(np.prod(many, dtype=int)) + 1 if reduction in ("add", "mul") else 0
    return Case(
        (d.array(shape, dtype, low, top), indices, updates), attrs_of(d, 0, reduction), terms=terms
    )


@strategy("dynamic_update_slice")
def dynamic_update_slice(d):
    shape = d.shape(1, 4, size=300)
    part = tuple(d.int(0, e) for e in shape)
    axes = tuple(a for a in range(len(shape)) if d.bool())
    dtype, kind = d.pick(NUMBERS), d.pick(["int32", "int64"])
    begin = d.array((len(axes),), kind, -2, max(shape) + 2)  # outside, too
    return Case((d.array(shape, dtype), d.array(part, dtype), begin), attrs_of(d, axes))


@strategy("topk")
def topk(d):
    shape = d.shape(1, 3, size=300)
    axis = d.axis(len(shape))
    attrs = attrs_of(d, d.int(0, shape[axis]), axis, d.bool(), d.pick(["int32", "int64"]))
    dtype = d.pick(NUMBERS)
    data = np.round(d.array(shape, dtype, 0, 9))  # equal elements occur
    return Case((data.astype(dtype),), attrs)


# -- joining, cutting, making --------------------------------------------------------------------


@strategy("concatenate")
def concatenate(d):
    shape = d.shape(1, 3, size=200)
    axis = d.axis(len(shape))
    dtype = d.pick(ALL)
    parts = []
    for _ in range(d.int(1, 4)):
        extents = list(shape)
        extents[axis] = d.int(1, 5)
        parts.append(d.array(tuple(extents), dtype))
    return Case((tuple(parts),), attrs_of(d, axis))


@strategy("stack")
def stack(d):
    shape = d.shape(0, 3, size=200)
    dtype = d.pick(ALL)
    parts = tuple(d.array(shape, dtype) for _ in range(d.int(1, 4)))
    return Case((parts,), attrs_of(d, d.int(-len(shape) - 1, len(shape))))


@strategy("split")
def split(d):
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    count = d.int(0, min(3, shape[axis] - 1))
    cuts = sorted({d.int(1, shape[axis] - 1) for _ in range(count)}) if count else []
    return Case((d.array(shape, d.pick(ALL)),), attrs_of(d, tuple(cuts), axis))


@strategy("full")
def full(d):
    source = d.pick(ALL)
    target = d.pick(["", source])
    return Case((d.array((), source),), attrs_of(d, d.shape(), target))


@strategy("arange")
def arange(d):
    start, step = d.int(-9, 9), d.pick([1, 2, 3, -1, -2])
    stop = start + step * d.int(1, 20) - (d.int(0, abs(step) - 1) * (1 if step > 0 else -1))
    return Case((), attrs_of(d, start, stop, step, d.pick(["int32", "int64", "float32"])))


# -- resampling ----------------------------------------------------------------------------------


@strategy("image.resize")
def resize(d):
    spatial = d.int(1, 3)
    shape = (d.int(1, 2), d.int(1, 3), *d.ints(spatial, 1, 6))
    size = (0, 0, *(d.int(1, 9) for _ in range(spatial)))
    method = d.pick(["nearest_neighbor", "linear", "cubic"])
    mode = d.pick(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
    rounding = d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    attrs = attrs_of(d, size, (), method, mode, rounding, -0.75, d.bool())
    dtype = d.dtype(FLOATS, shape, attrs=attrs)
    terms = {"nearest_neighbor": 0, "linear": 2, "cubic": 4}[method] ** spatial
    # Positions are float32 for data of any dtype.
    coarse = 2.0**29 if dtype == "float64" else 1.0
    return Case((d.array(shape, dtype),), attrs, scale=4.0 * terms * coarse if terms > 1 else 0.0)


@strategy("image.grid_sample")
def grid_sample(d):
    spatial = d.int(1, 2)
    shape = (d.int(1, 2), d.int(1, 3), *d.ints(spatial, 2, 6))
    method = d.pick(["bilinear", "nearest", "bicubic"])
    padding = d.pick(["zeros", "border", "reflection"])
    attrs = attrs_of(d, method, padding, d.bool())
    dtype = d.dtype(("float32", "float64"), shape, (shape[0], *shape[2:], spatial), attrs=attrs)
    grid = d.array((shape[0], *d.ints(spatial, 1, 5), spatial), dtype, -1.3, 1.3)
    # Away from the borders of elements, where a rounding picks another neighbour.
    extents = np.array(shape[:1:-1], np.float64)
    grid = (np.round(grid * extents * 4) / 4 / extents + 0.013).astype(dtype)
    coarse = 2.0**29 if dtype == "float64" else 1.0
    scale = 600.0 * coarse if method != "nearest" else 0.0
    return Case((d.array(shape, dtype), grid), attrs, scale=scale)


@strategy("scan")
def scan(d):
    """A running maximum and a sum of integers: two states, a sequence or two, one value for all."""
    shape, steps, two = d.shape(1, 2, size=40), d.int(1, 6), d.bool()
    kind = TensorType(shape, "int32")
    names = ("high", "sum", "x", *(("y",) if two else ()), "w")
    high, total, *rest = (Var(name, kind) for name in names)
    add, maximum = (OPS[name] for name in ("add", "maximum"))
    step = add(rest[0], rest[1]) if two else rest[0]
    new = (maximum(high, step), add(total, add(step, rest[-1])))
    body = Function((high, total, *rest), Tuple((*new, maximum(*new))))
    states = tuple(d.array(shape, "int32", -999, 999) for _ in range(2))
    sequences = tuple(d.array((steps, *shape), "int32", -999, 999) for _ in range(1 + two))
    others = (d.array(shape, "int32", -999, 999),)
    return Case((states, sequences, others), LoopAttrs(body, 2, 1 + two, reverse=d.bool()))


@strategy("branch")
def branch(d):
    """One of two sums of integers."""
    kind = TensorType(d.shape(1, 2, size=40), "int32")
    bodies = []
    for _ in range(2):
        x, y = Var("x", kind), Var("y", kind)
        first, second = (x, y) if d.bool() else (y, x)
        bodies.append(Function((x, y), Tuple((OPS["subtract"](first, second), first))))
    others = tuple(d.array(kind.shape, "int32", -999, 999) for _ in range(2))
    return Case((d.array((), "bool"), others), BranchAttrs(*bodies))


@strategy("while_loop")
def while_loop(d):
    """Powers of two below a limit, and as many sums of a tensor."""
    kind, number = TensorType(d.shape(1, 2, size=40), "int32"), TensorType((), "int32")
    types = (number, kind, kind, number)
    n, x, w, limit = (Var(name, t) for name, t in zip("nxwm", types, strict=True))
    condition = Function((n, x, w, limit), OPS["less"](n, limit))
    n, x, w, limit = (Var(name, t) for name, t in zip("nxwm", types, strict=True))
    body = Function((n, x, w, limit), Tuple((OPS["add"](n, n), OPS["add"](x, w))))
    states = (np.array(1, "int32"), d.array(kind.shape, "int32", -999, 999))
    others = (d.array(kind.shape, "int32", -99, 99), np.array(d.int(0, 9), "int32"))
    return Case((states, others), WhileAttrs(condition, body))
