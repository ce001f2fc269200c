"""Cases that no list has: operators, shapes, types and attributes drawn at random by a seed.

`cases(seed, count)` gives {name: builder} as the lists of ``_sweep_cases`` do; the same seed gives
the same cases.  A name says what was drawn, so that a case can be read without its model.
`narrow_cases` draws the same operators in float16, and products in bfloat16 and int8 too.
"""

import random
from functools import partial
from math import prod

import numpy as np
from onnx import TensorProto as T

from benchmarks import _operator_models as m
from benchmarks._sweep_random_products import PRODUCTS, quantized

SIZES = (1, 2, 3, 5, 6, 7, 9, 11, 12, 14, 15, 19, 20, 23, 24, 27, 31, 37, 40, 49, 50, 56, 61, 77,
         80, 96, 100, 121, 144, 160, 192, 197, 200, 224, 250, 300, 384, 511, 640, 777)  # fmt: skip
FLOATS = (T.FLOAT, T.FLOAT, T.FLOAT, T.FLOAT16)
ANY = (T.FLOAT, T.UINT8, T.INT8, T.INT32, T.INT64, T.FLOAT16, T.INT16)
NUMPY = {
    T.FLOAT: "float32", T.UINT8: "uint8", T.INT8: "int8", T.INT16: "int16", T.INT32: "int32",
    T.INT64: "int64", T.FLOAT16: "float16", T.DOUBLE: "float64", T.BOOL: "bool",
}  # fmt: skip
FEWEST, MOST = 2_000, 1_000_000


def shape_of(r, rank=None):
    """Return a shape of neither a handful nor millions of elements."""
    rank = rank or r.choice((2, 3, 3, 4, 4, 5))
    while True:
        shape = tuple(r.choice(SIZES) for _ in range(rank))
        if FEWEST <= prod(shape) <= MOST:
            return shape


def said(*parts):
    """Return words, types and shapes as a part of a name."""
    texts = []
    for part in parts:
        if isinstance(part, (tuple, list)):
            texts.append("x".join(map(str, part)))
        else:
            texts.append(str(part))
    return "_".join(texts)


def constant(g, value, kind):
    return g.constant(np.array(value, NUMPY[kind]))


def unary(r):
    op = r.choice(("Abs", "Neg", "Sign", "Relu", "Exp", "Tanh", "Sigmoid", "Gelu_", "Erf", "Sqrt_"))
    kind = r.choice(ANY if op in ("Abs", "Sign") else FLOATS)
    shape = shape_of(r)

    def build(g):
        if op == "Gelu_":
            return m.gelu(g, shape)
        x = g.input(*shape, kind=kind)
        return g("Sqrt", g("Abs", x)) if op == "Sqrt_" else g(op, x)

    return said(op.lower().strip("_"), NUMPY[kind], shape), build


def binary(r):
    """Arithmetic with a broadcast of random axes, also on narrow integers."""
    op = r.choice(("Add", "Sub", "Mul", "Max", "Min", "Greater", "Equal", "Div", "Pow"))
    kind = r.choice(FLOATS if op in ("Div", "Pow") else ANY)
    if op in ("Max", "Min") and kind in (T.UINT8, T.INT8, T.INT16):
        kind = T.INT32  # onnxruntime has none
    if kind == T.INT16 or (op == "Equal" and kind == T.UINT8):
        kind = T.UINT8 if op in ("Add", "Sub", "Mul") else T.INT32
    shape = shape_of(r)
    stretched = [1 if r.random() < 0.4 else n for n in shape]
    drop = r.choice((0, 0, 1)) if len(shape) > 2 else 0
    sides = [shape, tuple(stretched[drop:])]
    r.shuffle(sides)

    def build(g):
        x, y = (g.input(*s, kind=kind) for s in sides)
        return g(op, g("Abs", x), g("Abs", y)) if op == "Pow" else g(op, x, y)

    return said(op.lower(), NUMPY[kind], *sides), build


def casts(r):
    kinds = [r.choice((T.FLOAT, T.INT32, T.UINT8, T.INT8, T.INT64, T.FLOAT16)) for _ in range(4)]
    shape = shape_of(r)

    def build(g):
        x = g.input(*shape, kind=kinds[0])
        for kind in kinds[1:]:
            x = g("Cast", x, to=kind)
        return x

    return said("cast", *(NUMPY[k] for k in kinds), shape), build


def wheres(r):
    """A chain of choices between a value and broadcast others."""
    shape, count = shape_of(r), r.choice((1, 2, 3))
    stretched = tuple(1 if r.random() < 0.4 else n for n in shape)

    def build(g):
        x = first = g.input(*shape)
        other = g.input(*stretched)
        for step in range(count):
            x = g("Where", g("Greater", first, g.scalar(step * 0.4 - 0.3)), x, other)
            x = g("Mul", x, g.scalar(1.5))
        return x

    return said("where", count, shape, stretched), build


def reduction(r):
    op = r.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd",
                   "ReduceLogSumExp", "ReduceL1", "ReduceSumSquare"))  # fmt: skip
    shape = shape_of(r)
    axes = sorted(r.sample(range(len(shape)), r.randint(1, max(1, len(shape) - 1))))
    kind = r.choice(FLOATS) if op in ("ReduceSum", "ReduceMean") else T.FLOAT
    if op in ("ReduceSum", "ReduceMax", "ReduceMin") and r.random() < 0.3:
        kind = r.choice((T.INT32, T.INT64, T.UINT8) if op != "ReduceSum" else (T.INT32, T.INT64))
    keep = r.choice((0, 1))

    def build(g):
        return g(op, g.input(*shape, kind=kind), g.ints(*axes), keepdims=keep)

    return said(op.lower(), NUMPY[kind], shape, "axes", axes), build


def along_axis(r):
    """What works along one axis, whichever it is."""
    op = r.choice(("Softmax", "Softmax", "LogSoftmax", "ArgMax", "ArgMin", "CumSum", "Hardmax"))
    shape = shape_of(r)
    axis = r.randrange(len(shape))

    def build(g):
        x = g.input(*shape)
        if op == "CumSum":
            return g(op, x, g.constant(np.int64(axis)))
        return g(op, x, axis=axis)

    return said(op.lower(), shape, "axis", axis), build


def top_k(r):
    shape = shape_of(r, r.choice((2, 2, 3)))
    axis = len(shape) - 1 if r.random() < 0.7 else r.randrange(len(shape))
    k = min(shape[axis], r.choice((1, 2, 5, 10, 64, 300, 777)))
    largest = r.choice((1, 1, 0))

    def build(g):
        return g("TopK", g.input(*shape), g.ints(k), outputs=2, axis=axis, largest=largest)

    return said("topk", shape, "axis", axis, "k", k, "largest", largest), build


def gathers(r):
    op = r.choice(("Gather", "Gather", "GatherElements", "ScatterElements", "ScatterElements"))
    shape = shape_of(r, r.choice((2, 3, 4)))
    axis, kind = r.randrange(len(shape)), r.choice((T.FLOAT, T.FLOAT, T.INT64, T.UINT8))
    count = max(1, int(shape[axis] * r.choice((0.3, 0.7, 1))))
    reduction = r.choice(("none", "none", "add", "max")) if kind == T.FLOAT else "none"
    taken = (*shape[:axis], count, *shape[axis + 1 :])

    def build(g):
        x = g.input(*shape, kind=kind)
        sizes = (count,) if op == "Gather" else taken
        where = g.constant(g.rng.integers(0, shape[axis], sizes))
        if op == "ScatterElements":
            updates = g.input(*taken, kind=kind)
            return g(op, x, where, updates, axis=axis, reduction=reduction)
        return g(op, x, where, axis=axis)

    return said(op.lower(), NUMPY[kind], shape, "axis", axis, "take", count, reduction), build


def scatter_nd(r):
    shape = shape_of(r, r.choice((2, 3, 4)))
    width = r.randint(1, len(shape))
    count = r.choice((3, 17, 60))
    reduction = r.choice(("none", "none", "add"))

    def build(g):
        columns = [g.rng.integers(0, n, (count, 1)) for n in shape[:width]]
        where = g.constant(np.concatenate(columns, -1))
        return g(
            "ScatterND", g.input(*shape), where, g.input(count, *shape[width:]),
            reduction=reduction,
        )  # fmt: skip

    return said("scatternd", shape, "width", width, "rows", count, reduction), build


def moves(r):
    """Padding, tiling, expanding, transposing and slicing of random axes and types."""
    op = r.choice(("Pad", "Pad", "Tile", "Expand", "Transpose", "Transpose", "Slice", "Concat"))
    shape = shape_of(r)
    kind = r.choice((T.FLOAT, T.FLOAT, T.UINT8, T.INT64, T.FLOAT16))
    rank = len(shape)
    mode = r.choice(("constant", "reflect", "edge"))
    pads = [r.choice((0, 0, 1, 2, 3)) for _ in range(2 * rank)]
    pads = [min(p, shape[i % rank] - 1) for i, p in enumerate(pads)]
    repeats = [r.choice((1, 1, 2, 3)) for _ in shape]
    order = r.sample(range(rank), rank)
    starts = [r.randrange(n) for n in shape]
    steps = [r.choice((1, 1, 2)) for _ in shape]
    axis = r.randrange(rank)
    narrow = tuple(1 if r.random() < 0.5 else n for n in shape)

    def build(g):
        x = g.input(*(narrow if op == "Expand" else shape), kind=kind)
        if op == "Pad":
            return g(op, x, g.ints(*pads), mode=mode)
        if op == "Tile":
            return g(op, x, g.ints(*repeats))
        if op == "Expand":
            return g(op, x, g.ints(*shape))
        if op == "Transpose":
            return g(op, x, perm=order)
        if op == "Concat":
            return g(op, x, g.input(*shape, kind=kind), x, axis=axis)
        ends = [n for n in shape]
        return g(op, x, g.ints(*starts), g.ints(*ends), g.ints(*range(rank)), g.ints(*steps))

    more = {
        "Pad": (mode, pads), "Tile": (repeats,), "Expand": (narrow,), "Transpose": (order,),
        "Slice": (starts, steps), "Concat": ("axis", axis),
    }[op]  # fmt: skip
    return said(op.lower(), NUMPY[kind], shape, *more), build


def image_shape(r, most=300_000):
    while True:
        shape = (r.choice((1, 1, 2, 3)), r.choice(SIZES), *(r.choice(SIZES) for _ in range(2)))
        if FEWEST <= prod(shape) <= most:
            return shape


def resize(r):
    mode = r.choice(("nearest", "linear", "cubic"))
    how = r.choice(("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"))
    shape = image_shape(r, 100_000)
    to = [max(1, int(n * r.choice((0.5, 0.7, 1.5, 2, 3)))) for n in shape[2:]]
    return said("resize", mode, how, shape, to), partial(
        m.resize, shape=shape, size=to, mode=mode, coordinates=how
    )


def norms(r):
    op = r.choice(("LayerNormalization", "LayerNormalization", "InstanceNormalization", "group"))
    shape = image_shape(r) if op != "LayerNormalization" else shape_of(r)
    axis = r.randrange(1, len(shape))
    groups = r.choice([d for d in range(1, shape[1] + 1) if shape[1] % d == 0])

    def build(g):
        if op == "group":
            return m.group_norm(g, shape, groups)
        if op == "InstanceNormalization":
            return m.norm(g, shape, op, shape[1])
        return m.norm(g, shape, op, *shape[axis:], axis=axis)

    return said(op.lower(), shape, groups if op == "group" else axis), build


def depth_and_space(r):
    block = r.choice((2, 3, 4))
    op = r.choice(("DepthToSpace", "SpaceToDepth"))
    n, c, h, w = image_shape(r, 100_000)
    shape = (n, c * block**2, h, w) if op == "DepthToSpace" else (n, c, h * block, w * block)
    mode = {"mode": r.choice(("DCR", "CRD"))} if op == "DepthToSpace" else {}

    def build(g):
        return g(op, g.input(*shape), blocksize=block, **mode)

    return said(op.lower(), shape, block, *mode.values()), build


def boxes(r):
    """Non-maximum suppression of boxes around random centres."""
    count, classes = r.choice((40, 60, 300, 700, 1000, 2500)), r.choice((1, 1, 3, 20, 80))
    most, lowest = r.choice((10, 50, 100, 300)), r.choice((0.1, 0.4, 0.7))

    def build(g):
        corner = g("Mul", g("Sigmoid", g.input(1, count, 2)), g.scalar(100))
        size = g("Mul", g("Sigmoid", g.input(1, count, 2)), g.scalar(20))
        box = g("Concat", corner, g("Add", corner, size), axis=-1)
        scores = g("Sigmoid", g.input(1, classes, count))
        limits = (g.constant(np.int64(most)), g.scalar(0.5), g.scalar(lowest))
        return g("NonMaxSuppression", box, scores, *limits)

    return said("nms", count, classes, most, lowest), build


MAKERS = (
    unary, binary, binary, casts, wheres, reduction, reduction, along_axis, along_axis, top_k,
    gathers, gathers, scatter_nd, moves, moves, resize, norms, norms, depth_and_space, boxes,
    *PRODUCTS,
)  # fmt: skip


def cases(seed, count):
    """Return `count` cases of one seed: all makers in turn."""
    r = random.Random(seed)
    made = {}
    step = 0
    while len(made) < count:
        name, build = MAKERS[step % len(MAKERS)](r)
        made[f"random{seed}/{name}"] = build
        step += 1  # of a maker that has no others left, too
    return made


class Halves(m.Graph):
    """A graph whose float32 inputs and weights are float16."""

    def input(self, *shape, kind=T.FLOAT):
        return super().input(*shape, kind=T.FLOAT16 if kind == T.FLOAT else kind)

    def constant(self, array):
        return super().constant(array.astype("float16") if array.dtype == "float32" else array)


def in_halves(build):
    """Return what builds the same in float16, from a graph that has nothing in it."""

    def made(g):
        g.__class__ = Halves
        return build(g)

    return made


def narrow_cases(seed, count):
    """Return `count` cases of one seed: float16, and of products bfloat16 and int8 in turn."""
    r = random.Random(seed)
    made = {}
    step = products = 0
    while len(made) < count:
        maker = MAKERS[step % len(MAKERS)]
        step += 1
        form = products % 3 if maker in PRODUCTS else 0
        products += maker in PRODUCTS
        name, build = (quantized if form == 2 else maker)(r)
        if name.startswith("int8conv"):
            made[f"narrow{seed}/{name}"] = build
        elif form:
            made[f"bfloat16_narrow{seed}/{name}"] = build
        else:
            made[f"narrow{seed}/half_{name}"] = in_halves(build)
    return made
