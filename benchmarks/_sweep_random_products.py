"""Convolutions, products and recurrent layers of ``_sweep_random``: what multiplies and adds."""

from math import prod

from benchmarks import _operator_models as m
from benchmarks import _sweep_models as s

CHANNELS = (1, 3, 5, 8, 12, 16, 20, 24, 31, 32, 40, 48, 60, 64, 72, 96, 100, 128, 144, 192, 250)
LENGTHS = (5, 7, 9, 12, 14, 15, 20, 23, 28, 31, 38, 45, 56, 61, 80)
FEWEST_PRODUCTS, MOST_PRODUCTS = 100_000, 100_000_000


def sized(r, draw):
    """Return what `draw` gives once its second value, the multiply-adds, is in bounds."""
    while True:
        values, work = draw(r)
        if FEWEST_PRODUCTS <= work <= MOST_PRODUCTS:
            return values


def label(op, **values):
    texts = ("x".join(map(str, v)) if isinstance(v, (tuple, list)) else v for v in values.values())
    return op + "_" + "_".join(f"{k}{t}" for k, t in zip(values, texts, strict=True))


def convolution(r):
    """A convolution of one, two or three dimensions, kernel and stride of each axis its own."""

    def draw(r):
        rank = r.choice((1, 2, 2, 2, 3))
        groups = r.choice((1, 1, 1, 2, 3, 4, 8))
        n, c, f = r.choice((1, 1, 2, 3)), r.choice(CHANNELS), r.choice(CHANNELS)
        if groups == 8 and r.random() < 0.7:
            groups, f = c, c
        elif groups > 1:
            c, f = c * groups, f * groups
        size = [r.choice(LENGTHS) for _ in range(rank)]
        kernel = [r.choice((1, 2, 3, 3, 4, 5, 7)) for _ in range(rank)]
        stride = [r.choice((1, 1, 2, 3))] * rank
        dilation = [r.choice((1, 1, 1, 2, 3))] * rank
        work = n * f * c // groups * prod(kernel) * prod(size) // prod(stride)
        if any(k > n for k, n in zip(kernel, size, strict=True)):
            work = 0
        values = {"n": n, "c": c, "size": size, "f": f, "k": kernel, "s": stride, "d": dilation}
        return values | {"g": groups}, work

    v = sized(r, draw)

    def build(g):
        reach = [d * (k - 1) for d, k in zip(v["d"], v["k"], strict=True)]
        pads = [p // 2 for p in reach] + [p - p // 2 for p in reach]
        x = g.input(v["n"], v["c"], *v["size"])
        weight = g.weight(v["f"], v["c"] // v["g"], *v["k"])
        return g(
            "Conv", x, weight, g.weight(v["f"], fan_in=100), strides=v["s"], dilations=v["d"],
            pads=pads, group=v["g"],
        )  # fmt: skip

    return label("conv", **v), build


def transposed(r):
    """A transposed convolution with groups, dilation and padding."""

    def draw(r):
        rank = r.choice((1, 2, 2, 3))
        g = r.choice((1, 1, 2, 4))
        n, c, f = r.choice((1, 2)), r.choice(CHANNELS) * g, r.choice(CHANNELS)
        size = [r.choice(LENGTHS) for _ in range(rank)]
        k, s, d = r.choice((2, 3, 4, 5)), r.choice((1, 2, 2, 3)), r.choice((1, 1, 2))
        work = n * c * f * k**rank * prod(size)
        return {"n": n, "c": c, "size": size, "f": f, "k": k, "s": s, "d": d, "g": g}, work

    v = sized(r, draw)

    def build(g):
        rank = len(v["size"])
        weight = g.weight(v["c"], v["f"], *[v["k"]] * rank, fan_in=v["c"] // v["g"])
        pad = min(1, v["d"] * (v["k"] - 1) // 2)
        return g(
            "ConvTranspose", g.input(v["n"], v["c"], *v["size"]), weight,
            strides=[v["s"]] * rank, dilations=[v["d"]] * rank, group=v["g"],
            pads=[pad] * 2 * rank,
        )  # fmt: skip

    return label("deconv", **v), build


def matmul(r):
    """A product with batches that are broadcast, either side stored transposed."""

    def draw(r):
        rows, depth, units = (r.choice(CHANNELS) for _ in range(3))
        batch = [r.choice((1, 2, 3, 4, 7, 12)) for _ in range(r.choice((0, 1, 2, 2)))]
        other = [b if r.random() < 0.6 else 1 for b in batch]
        other = other[r.choice((0, 0, 1)) :]
        transposed = (r.random() < 0.3, r.random() < 0.4)
        values = {"left": batch, "right": other, "m": rows, "k": depth, "n": units}
        return values | {"transposed": transposed}, prod(batch) * rows * depth * units

    v = sized(r, draw)

    def build(g):
        def side(lead, rows, columns, transposed):
            if not transposed:
                return g.input(*lead, rows, columns)
            last = len(lead)
            order = [*range(last), last + 1, last]
            return g("Transpose", g.input(*lead, columns, rows), perm=order)

        left = side(v["left"], v["m"], v["k"], v["transposed"][0])
        return g("MatMul", left, side(v["right"], v["k"], v["n"], v["transposed"][1]))

    v["transposed"] = tuple(map(int, v["transposed"]))
    return label("matmul", **v), build


def dense(r):
    def draw(r):
        rows, depth, units = (r.choice((1, *CHANNELS, 197, 384, 777)) for _ in range(3))
        return {"rows": rows, "depth": depth, "units": units}, rows * depth * units

    v = sized(r, draw)
    return label("dense", **v), lambda g: m.dense(g, **v)


EQUATIONS = (
    "abc,cd->abd", "abc,abd->acd", "abc,adc->abd", "ab,bc->ca", "abc,cb->ab", "abcd,abed->abce",
    "abc,bcd->abd", "ab,cb->abc", "abc,ab->c", "abcd,cde->abe", "abc,dbc->ad", "abc,abc->ab",
)  # fmt: skip


def einsum(r):
    equation = r.choice(EQUATIONS)
    left, right = equation.split("->")[0].split(",")

    def draw(r):
        sizes = {letter: r.choice((2, 3, 7, 12, 16, 20, 31, 49, 64, 100)) for letter in "abcde"}
        used = {letter: sizes[letter] for letter in sorted({*left, *right})}
        return used, prod(used.values())

    v = sized(r, draw)

    def build(g):
        shapes = ([v[letter] for letter in side] for side in (left, right))
        return g("Einsum", *(g.input(*shape) for shape in shapes), equation=equation)

    return label("einsum_" + equation.replace(",", "_").replace("->", "_"), **v), build


def recurrent(r):
    op = r.choice(("LSTM", "GRU", "RNN"))

    def draw(r):
        both = r.choice((True, True, False))
        v = {"steps": r.choice((3, 10, 25, 60)), "batch": r.choice((1, 2, 5, 9))}
        v |= {"size": r.choice(CHANNELS[3:]), "hidden": r.choice(CHANNELS[3:17])}
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * (1 + both)
        work = v["steps"] * v["batch"] * gates * v["hidden"] * (v["size"] + v["hidden"])
        return v | {"bidirectional": both}, work

    v = sized(r, draw)
    return label(op.lower(), **v), lambda g: m.recurrent(g, op, **v)


def attention(r):
    """softmax(q k') v, with other counts of queries and keys, and a mask or none."""

    def draw(r):
        n, heads, size = (
            r.choice((1, 1, 2)),
            r.choice((1, 2, 3, 6, 8, 12)),
            r.choice(CHANNELS[3:15]),
        )
        rows, keys = (r.choice((1, 5, 17, 49, 64, 77, 100, 197, 256)) for _ in range(2))
        v = {"n": n, "heads": heads, "rows": rows, "keys": keys, "size": size}
        return v | {"mask": r.choice((0, 1))}, 2 * n * heads * rows * keys * size

    v = sized(r, draw)

    def build(g):
        lead = (v["n"], v["heads"])
        q = g.input(*lead, v["rows"], v["size"])
        k, value = (g.input(*lead, v["keys"], v["size"]) for _ in range(2))
        scores = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g("Mul", scores, g.scalar(v["size"] ** -0.5))
        if v["mask"]:
            scores = g("Add", scores, g.input(v["n"], 1, 1, v["keys"]))
        return g("MatMul", g("Softmax", scores, axis=-1), value)

    return label("attention", **v), build


def quantized(r):
    """A convolution or a dense layer of int8."""

    def draw(r):
        groups = r.choice((1, 1, 2, 4))
        v = {"n": r.choice((1, 2)), "c": r.choice(CHANNELS) * groups, "h": r.choice(LENGTHS)}
        v |= {"w": r.choice(LENGTHS), "f": r.choice(CHANNELS) * groups, "k": r.choice((1, 3, 5))}
        v |= {"s": r.choice((1, 1, 2)), "d": r.choice((1, 1, 2)), "groups": groups}
        work = v["n"] * v["c"] // groups * v["f"] * v["h"] * v["w"] * v["k"] ** 2 // v["s"] ** 2
        return v, work

    v = sized(r, draw)
    return label("int8conv", **v), lambda g: s.conv_int8(g, **v)


def pooling(r):
    op = r.choice(("MaxPool", "AveragePool"))

    def draw(r):
        rank = r.choice((1, 2, 2, 3))
        size = [r.choice(LENGTHS) for _ in range(rank)]
        k, st = r.choice((2, 3, 5, 7)), r.choice((1, 2, 3))
        v = {"shape": [r.choice((1, 2)), r.choice(CHANNELS), *size], "k": k, "s": st}
        work = prod(v["shape"]) * k**rank // st**rank
        return v | {"p": k // 2}, work if min(size) >= k else 0

    v = sized(r, draw)
    return label(op.lower(), **v), lambda g: m.pool(g, op, v["shape"], v["k"], v["s"], v["p"])


PRODUCTS = (
    convolution, convolution, convolution, transposed, transposed, matmul, matmul, dense, einsum,
    recurrent, attention, quantized, pooling,
)  # fmt: skip
