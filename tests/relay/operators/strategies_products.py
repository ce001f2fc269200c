"""Products, convolutions and pools, in all their layouts."""

import numpy as np
from drawing import FLOATS, INTS, NUMBERS, OPS, Case, accepts
from strategies import strategy

from slipway.relay.ops.packed.winograd_images import padded_tiles
from slipway.relay.types import TensorType


def summed(d, name, attrs, shapes, among=FLOATS, terms=1, low=None, high=None):
    """A sum of products over arrays of one dtype."""
    dtype = d.dtype(among, *shapes, attrs=attrs)
    if dtype in INTS:
        low, high = -9, 9
    return Case(tuple(d.array(s, dtype, low, high) for s in shapes), attrs, terms=terms)


@strategy("nn.dense")
def dense(d):
    batch, depth, units = d.shape(0, 2, size=40), d.int(1, 40), d.pick([1, 2, 5, 8, 16, 33])
    attrs = OPS[d.name].attrs_type(d.pick([None, units]))
    return summed(d, d.name, attrs, ((*batch, depth), (units, depth)), NUMBERS, depth)


@strategy("nn.matmul", "nn.batch_matmul")
def matmul(d):
    batch = (d.int(1, 4),) if d.name == "nn.batch_matmul" else ()
    rows, depth, columns = d.int(1, 18), d.int(1, 33), d.pick([1, 3, 8, 16, 17])
    one, other = d.bool(), d.bool()
    attrs = OPS[d.name].attrs_type(one, other)
    left = (depth, rows) if one else (rows, depth)
    right = (columns, depth) if other else (depth, columns)
    return summed(d, d.name, attrs, ((*batch, *left), (*batch, *right)), NUMBERS, depth)


@strategy("nn.bias_add")
def bias_add(d):
    shape = d.shape(1)
    attrs = OPS[d.name].attrs_type(d.axis(len(shape)))
    bias = (shape[attrs.axis],)
    dtype = d.dtype(NUMBERS, shape, bias, attrs=attrs)
    return Case((d.array(shape, dtype), d.array(bias, dtype)), attrs)


def geometry(d, spatial, most=9):
    """Random extents, window, strides, dilation and padding that fit together."""
    window = d.ints(spatial, 1, 3)
    dilation = d.ints(spatial, 1, 2)
    strides = d.ints(spatial, 1, 3)
    padding = d.ints(2 * spatial, 0, 2)
    spans = [(w - 1) * k + 1 for w, k in zip(window, dilation, strict=True)]
    size = tuple(
        d.int(max(s - padding[a] - padding[a + spatial], 1), max(most, s))
        for a, s in enumerate(spans)
    )
    return size, window, strides, dilation, padding


LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def arranged(named, layout):
    return tuple(named[letter] for letter in layout)


@strategy("nn.conv1d", "nn.conv2d", "nn.conv3d")
def conv(d):
    spatial = int(d.name[-2])
    size, window, strides, dilation, padding = geometry(d, spatial, 9 if spatial < 3 else 5)
    kind = d.pick(["plain", "depthwise", "groups"])
    groups = 1 if kind == "plain" else d.pick([2, 3, 4, 8])
    per_group = 1 if kind == "depthwise" else d.pick([1, 2, 3, 4, 8])
    out = groups * d.pick([1, 1, 2, 4, 5, 8])
    letters = LETTERS[spatial]
    data_layout = d.pick(["NC" + letters, "N" + letters + "C"])
    kernel_layout = d.pick(["OI" + letters, letters + "IO"])
    attrs = OPS[d.name].attrs_type(
        strides, padding, dilation, groups, d.pick([None, out]), d.pick([None, window]),
        data_layout, kernel_layout,
    )  # fmt: skip
    extents = dict(zip(letters, size, strict=True))
    taps = dict(zip(letters, window, strict=True))
    data = arranged({"N": d.int(1, 2), "C": groups * per_group, **extents}, data_layout)
    weight = arranged({"O": out, "I": per_group, **taps}, kernel_layout)
    return summed(d, d.name, attrs, (data, weight), NUMBERS, per_group * int(np.prod(window)))


@strategy("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def conv_transpose(d):
    spatial = int(d.name[len("nn.conv")])
    window, dilation = d.ints(spatial, 1, 3), d.ints(spatial, 1, 2)
    strides, size = d.ints(spatial, 1, 3), d.ints(spatial, 1, 5 if spatial < 3 else 3)
    groups, per_group, out = d.pick([1, 1, 2, 3]), d.pick([1, 2, 4]), d.pick([1, 2, 5, 8])
    spans = [
        (n - 1) * s + (w - 1) * k + 1
        for n, s, w, k in zip(size, strides, window, dilation, strict=True)
    ]
    before = tuple(d.int(0, min(1, (s - 1) // 2)) for s in spans)
    after = tuple(d.int(0, min(1, (s - 1) // 2)) for s in spans)
    extra = tuple(d.int(0, s - 1) for s in strides)
    attrs = OPS[d.name].attrs_type(strides, (*before, *after), extra, dilation, groups)
    shapes = ((d.int(1, 2), groups * per_group, *size), (groups * per_group, out, *window))
    terms = per_group * int(np.prod(window))
    return summed(d, d.name, attrs, shapes, NUMBERS, terms)


def pool_window(d, spatial):
    """Windows with padding smaller than they are, so that each sees some of the data."""
    window, dilation = d.ints(spatial, 1, 3), (d.int(1, 2),) * spatial
    strides = d.ints(spatial, 1, 3)
    padding = tuple(d.int(0, w - 1) // 2 for w in (*window, *window))
    size = tuple(
        d.int((w - 1) * k + 1, 9 if spatial < 3 else 5)
        for w, k in zip(window, dilation, strict=True)
    )
    return size, window, strides, dilation, padding


@strategy(*(f"nn.{k}_pool{n}d" for k in ("max", "avg") for n in (1, 2, 3)))
def pool(d):
    spatial = int(d.name[-2])
    size, window, strides, dilation, padding = pool_window(d, spatial)
    letters = LETTERS[spatial]
    layout = d.pick(["NC" + letters, "N" + letters + "C"])
    attrs = OPS[d.name].attrs_type(window, strides, dilation, padding, layout, d.bool(), d.bool())
    named = {"N": d.int(1, 2), "C": d.pick([1, 3, 8, 16]), **dict(zip(letters, size, strict=True))}
    shape = arranged(named, layout)
    among = NUMBERS if "max" in d.name else (*FLOATS, "int32", "int64")
    dtype = d.dtype(among, shape, attrs=attrs)
    terms = int(np.prod(window)) if "avg" in d.name else 0
    low, high = (-1000, 1000) if terms else (None, None)
    return Case((d.array(shape, dtype, low, high),), attrs, terms=terms)


@strategy("nn.max_pool2d_grad", "nn.avg_pool2d_grad")
def pool_gradient(d):
    size, window, strides, _, padding = pool_window(d, 2)
    layout = d.pick(["NCHW", "NHWC"])
    attrs = OPS[d.name].attrs_type(window, strides, (1, 1), padding, layout, d.bool(), d.bool())
    shape = arranged({"N": d.int(1, 2), "C": d.pick([1, 3, 8]), "H": size[0], "W": size[1]}, layout)
    dtype = d.pick(FLOATS)
    pooled = OPS[d.name.removesuffix("_grad")].infer(attrs, [TensorType(shape, dtype)])
    terms = int(np.prod(window))
    return Case((d.array(pooled.shape, dtype), d.array(shape, dtype)), attrs, terms=terms)


@strategy(*(f"nn.{s}_{k}_pool{n}d" for s in ("global", "adaptive") for k in ("max", "avg")
            for n in (1, 2, 3)))  # fmt: skip
def whole_pool(d):
    spatial = int(d.name[-2])
    letters = LETTERS[spatial]
    layout = d.pick(["NC" + letters, "N" + letters + "C"])
    size = d.ints(spatial, 1, 9 if spatial < 3 else 4)
    target = tuple(d.int(1, n) for n in size) if "adaptive" in d.name else ()
    attrs = OPS[d.name].attrs_type(target, layout)
    named = {"N": d.int(1, 2), "C": d.pick([1, 3, 8]), **dict(zip(letters, size, strict=True))}
    shape = arranged(named, layout)
    among = NUMBERS if "max" in d.name else FLOATS
    dtype = d.dtype(among, shape, attrs=attrs)
    terms = int(np.prod(size)) if "avg" in d.name else 0
    return Case((d.array(shape, dtype),), attrs, terms=terms)


# -- blocked -------------------------------------------------------------------------------------


@strategy(*(f"nn.contrib_{kind}{n}d_nchwc" for kind in ("conv", "depthwise_conv")
            for n in (1, 2, 3)))  # fmt: skip
def blocked_conv(d):
    count = int(d.name.removesuffix("d_nchwc")[-1])
    size, window, strides, dilation, padding = geometry(d, count)
    block, out_block = d.pick([1, 4, 8]), d.pick([4, 8, 16])
    inner, outer, groups = d.int(1, 3), d.int(1, 3), d.pick([1, 1, 2])
    depthwise = "depthwise" in d.name
    if depthwise:
        block, inner, groups = out_block, outer, 1
    letters = LETTERS[count]
    attrs = OPS[d.name].attrs_type(
        strides, padding, dilation, inner * block if depthwise else groups, f"NC{letters}{block}c",
        f"OI{letters}{1 if depthwise else block}i{out_block}o", f"NC{letters}{out_block}c",
    )  # fmt: skip
    data = (d.int(1, 2), inner * groups, *size, block)
    kernel = (
        (outer, 1, *window, 1, out_block) if depthwise
        else (outer * groups, inner, *window, block, out_block)
    )  # fmt: skip
    terms = int(np.prod(window)) * (1 if depthwise else inner * block)
    return summed(d, d.name, attrs, (data, kernel), ("float32",), terms)


@strategy(*(f"nn.contrib_conv{n}d_pairs" for n in (1, 2, 3)))
def paired_conv(d):
    count = int(d.name.removesuffix("d_pairs")[-1])
    size, window, strides, dilation, padding = geometry(d, count)
    depth, steps, more = d.pick([2, 4]), d.pick([1, 2]), d.pick([1, 2])
    out_block, inner, outer = d.pick([4, 8, 16]), d.int(1, 2), d.int(1, 3)
    block, letters, groups = depth * steps * more, LETTERS[count], d.pick([1, 1, 2, 3])
    attrs = OPS[d.name].attrs_type(
        strides, padding, dilation, groups, f"NC{letters}{block}c",
        f"OI{letters}{steps}i{out_block}o{depth}i", f"NC{letters}{out_block}c",
    )  # fmt: skip
    data = (d.int(1, 2), inner * groups, *size, block)
    kernel = (outer * groups, inner * more, *window, steps, out_block, depth)
    terms = int(np.prod(window)) * inner * block
    return summed(d, d.name, attrs, (data, kernel), ("float32",), terms)


@strategy("nn.contrib_winograd_weight")
def winograd_weight(d):
    shape = (d.int(1, 3), d.int(1, 3), 3, 3, d.pick([1, 4]), d.pick([4, 8]))
    attrs = OPS[d.name].attrs_type(d.pick([2, 4]))
    made = summed(d, d.name, attrs, (shape,), ("float32",))
    made.terms, made.scale = 0, 8.0
    return made


@strategy("nn.contrib_conv2d_winograd_nchwc")
def winograd_conv(d):
    block, out_block, inner, outer = d.pick([1, 4]), d.pick([4, 8]), d.int(1, 2), d.int(1, 2)
    attrs = OPS[d.name].attrs_type(d.ints(4, 0, 1), f"NCHW{block}c", f"NCHW{out_block}c")
    data = (d.int(1, 2), inner, d.int(3, 11), d.int(3, 11), block)
    side = d.pick([4, 6])
    kernel = (outer, side, side, inner, block, out_block)
    made = summed(d, d.name, attrs, (data, kernel), ("float32",))
    # The transforms add up to 10 times 8 times as much as they return.
    made.terms, made.scale = 0, 200.0 * inner * block
    return made


@strategy("nn.contrib_conv3d_winograd_nchwc")
def winograd_frames(d):
    block, out_block, inner, outer = d.pick([1, 4]), d.pick([4, 8]), d.int(1, 2), d.int(1, 2)
    taps, side = d.int(1, 3), d.pick([4, 6])
    attrs = OPS[d.name].attrs_type(d.ints(6, 0, 1), f"NCDHW{block}c", f"NCDHW{out_block}c")
    data = (d.int(1, 2), inner, d.int(taps, 5), d.int(3, 11), d.int(3, 11), block)
    kernel = (outer, side, side, taps * inner, block, out_block)
    made = summed(d, d.name, attrs, (data, kernel), ("float32",))
    made.terms, made.scale = 0, 200.0 * taps * inner * block
    return made


@strategy("nn.contrib_conv2d_nchwc_by_size")
def conv_by_size(d):
    """By tiles, whose kernel is drawn apart from the direct one."""
    inner, outer, side = d.int(1, 2), d.int(1, 2), d.pick([4, 6])
    attrs = OPS[d.name].attrs_type(d.ints(4, 0, 1), tile_cost=1)
    data = (d.int(1, 2), inner, d.int(3, 11), d.int(3, 11), 4)
    shapes = data, (outer, inner, 3, 3, 4, 4), (outer, side, side, inner, 4, 4)
    made = summed(d, d.name, attrs, shapes, ("float32",))
    made.terms, made.scale = 0, 200.0 * inner * 4
    return made


@strategy("nn.contrib_winograd_tiles")
def winograd_tiles(d):
    attrs = OPS[d.name].attrs_type(d.ints(4, 0, 1), d.pick([2, 4]), d.pick(["NCHW", "NHWC"]))
    size = (d.int(3, 11), d.int(3, 11))
    shape = (d.int(1, 2), 3, *size) if attrs.data_layout == "NCHW" else (d.int(1, 2), *size, 3)
    made = summed(d, d.name, attrs, (shape,), ("float32",))
    made.terms, made.scale = 0, 100.0
    return made


@strategy("nn.contrib_winograd_image")
def winograd_image(d):
    size = (d.int(1, 2), d.int(1, 9), d.int(1, 9))
    m, layout = d.pick([2, 4]), d.pick(["NCHW", "NHWC"])
    tiles = padded_tiles(size[0] * -(-size[1] // m) * -(-size[2] // m))
    matrix = (3, tiles) if layout == "NCHW" else (tiles, 3)
    attrs = OPS[d.name].attrs_type(size, m, layout)
    made = summed(d, d.name, attrs, (((m + 2) ** 2, *matrix),), ("float32",))
    made.terms, made.scale = 0, 400.0
    return made


@strategy("nn.contrib_dense_pack")
def dense_pack(d):
    block = d.pick([4, 8, 16])
    depth, outer = d.int(1, 40), d.int(1, 4)
    attrs = OPS[d.name].attrs_type("", d.pick([0, outer * block - d.int(0, block - 1)]))
    shapes = ((d.int(1, 9), depth), (outer, depth, block))
    assert accepts(d.name, attrs, [(s, "float32") for s in shapes])
    return summed(d, d.name, attrs, shapes, ("float32",), depth)


@strategy("nn.contrib_dense_pairs")
def dense_pairs(d):
    steps, depth, shape = d.int(1, 20), d.pick([2, 4]), (d.int(1, 4), d.pick([4, 8, 16]))
    shapes = ((d.int(1, 9), steps * depth), (shape[0], steps, shape[1], depth))
    return summed(d, d.name, None, shapes, ("float32",), steps * depth)


@strategy("layout_transform")
def layout_transform(d):
    block, other = d.pick([2, 4, 8]), d.pick([2, 4])
    channels = block * other * d.int(1, 2)
    n, h, w = d.int(1, 2), d.int(1, 5), d.int(1, 5)
    shapes = {
        "NCHW": (n, channels, h, w),
        "NHWC": (n, h, w, channels),
        f"NCHW{block}c": (n, channels // block, h, w, block),
        f"NCHW{other * block}c": (n, channels // other // block, h, w, other * block),
    }
    source, target = d.pick(shapes), d.pick(shapes)
    attrs = OPS[d.name].attrs_type(source, target)
    return Case((d.array(shapes[source], d.pick(NUMBERS)),), attrs)


@strategy("nn.attention", "nn.attention_bias")
def attention(d):
    """Any layouts, heads that share key and value, masks of every broadcast shape."""
    shared, size, value_size = d.int(1, 2), d.int(1, 9), d.int(1, 9)
    heads, batch = shared * d.int(1, 2), d.int(1, 2)
    rows, keys = d.pick((1, 3, 8, 16, 17)), d.pick((1, 2, 8, 19))
    layouts = [d.pick(("BSNH", "BNSH", "BNHS", "SBNH", "HNBS")) for _ in range(4)]
    bias_layout = d.pick(("BNST", "BNTS", "TSNB"))
    causal = d.pick(("", "TopLeft", "BottomRight" if keys >= rows else ""))
    attrs = OPS[d.name].attrs_type(d.pick((None, 0.7)), causal, *layouts, bias_layout)
    operands = ((rows, heads, size), (keys, shared, size), (keys, shared, value_size))
    shapes = [
        tuple(dict(zip("BSNH", (batch, *extents), strict=True))[axis] for axis in layout)
        for layout, extents in zip(layouts, operands, strict=False)
    ]
    if d.name == "nn.attention_bias":
        whole = {"B": batch, "N": heads, "S": rows, "T": keys}
        shapes.append(tuple(d.pick((1, whole[axis])) for axis in bias_layout))
    dtype = d.dtype(FLOATS, *shapes, attrs=attrs)
    arrays = tuple(d.array(shape, dtype, -1, 1) for shape in shapes)
    # Rounding of a score is an error of its power; that of sums is relative to the values'.
    return Case(arrays, attrs, ulps=1, scale=16 + keys + 4 * (size + 4) * size)


@strategy("nn.contrib_interleave")
def interleaved(d):
    count = d.int(1, 3)
    strides = tuple(d.int(1, 3) for _ in range(count))
    size = tuple(d.int(1, 2 * s + 20) for s in strides)
    together, parts = d.pick([1, 1, 2, 3]), d.int(1, 3)
    around = (d.int(1, 2), d.int(1, 3) * together), d.pick([(), (4,), (16,), (5,)])
    sources = tuple(d.int(-1, parts * together - 1) for _ in range(int(np.prod(strides))))
    whole = [-(-n // s) for n, s in zip(size, strides, strict=True)]
    shapes = [(*around[0], *(max(1, n - d.int(0, 1)) for n in whole), *around[1])
              for _ in range(parts)]  # fmt: skip
    attrs = OPS[d.name].attrs_type(strides, size, sources, together)
    dtype = d.pick(["float32", "int8"])
    return Case((tuple(d.array(shape, dtype) for shape in shapes),), attrs)


@strategy("nn.contrib_column_sum")
def columns_summed(d):
    count = d.int(1, 3)
    window, strides, dilation = (tuple(d.int(1, 3) for _ in range(count)) for _ in range(3))
    extents = [d.int(1, 7) for _ in range(count)]
    reach = [(n - 1) * s + (k - 1) * e + 1
             for n, k, s, e in zip(extents, window, strides, dilation, strict=True)]  # fmt: skip
    cut = tuple(d.int(0, n - 1) for n in reach)
    size = tuple(d.int(1, n - c + 2) for n, c in zip(reach, cut, strict=True))
    shape = (d.int(1, 2), d.int(1, 3) * int(np.prod(window)), *extents)
    attrs = OPS[d.name].attrs_type(window, strides, dilation, cut, size)
    return Case((d.array(shape, d.pick(["float32", "int8"])),), attrs, ulps=8)
