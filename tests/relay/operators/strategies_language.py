"""Random cases of what language models are made of."""

import numpy as np
from drawing import OPS, Case
from strategies import strategy

from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.packed.block_dense import packed_parts
from slipway.relay.ops.packed.block_formats import FORMATS


@strategy("nn.block_dense")
def block_dense(d):
    name, blocks, units = d.pick(FORMATS), d.int(1, 2), d.int(1, 20)
    depth = blocks * FORMATS[name].size
    data = d.array((*d.ints(d.int(0, 1), 1, 3), d.int(1, 3), depth), "float32", -2, 2)
    weight = random_rows(d.rng, name, units, blocks)
    # The weights themselves are rounded, a few times each.
    attrs = OPS[d.name].attrs_type(name, d.bool())
    return Case((data, weight), attrs, ulps=1, scale=8.0 * depth)


@strategy("nn.block_take")
def block_take(d):
    name, blocks, units = d.pick(FORMATS), d.int(1, 2), d.int(1, 20)
    indices = d.array(d.ints(d.int(1, 2), 1, 5), "int32", 0, units - 1)
    weight = random_rows(d.rng, name, units, blocks)
    return Case((weight, indices), OPS[d.name].attrs_type(name), ulps=1, scale=4)


@strategy("nn.contrib_block_dense")
def packed(d):
    name, blocks, lanes, vectors = d.pick(FORMATS), 1, d.pick([4, 8, 16]), d.pick([1, 2, 4])
    weight = random_rows(d.rng, name, d.int(1, 70), blocks)
    how, arrays = packed_parts(name, weight, lanes, vectors, d.bool())
    data = d.array((d.int(1, 20), blocks * FORMATS[name].size), "float32", -2, 2)
    return Case((data, *arrays), OPS[d.name].attrs_type(**how, exact=d.bool()), ulps=2, scale=64)


def _experts(d, depth):
    tokens, each, matrices = d.int(1, 5), d.int(1, 3), d.int(1, 4)
    data = d.array((tokens, d.pick([1, each]), depth), "float32", -2, 2)
    return data, d.array((tokens, each), "int32", -1, matrices), matrices


@strategy("nn.expert_dense")
def expert_dense(d):
    name = d.pick(["", *FORMATS])
    depth = FORMATS[name].size if name else d.int(1, 40)
    data, experts, matrices = _experts(d, depth)
    units = d.int(1, 9)
    if name:
        weight = random_rows(d.rng, name, matrices * units, 1).reshape(matrices, units, -1)
    else:
        weight = d.array((matrices, units, depth), "float32", -1, 1)
    attrs = OPS[d.name].attrs_type(name)
    return Case((data, weight, experts), attrs, ulps=1, scale=8.0 * depth)


@strategy("nn.contrib_expert_dense")
def packed_experts(d):
    name, lanes, vectors = d.pick(FORMATS), d.pick([4, 8, 16]), d.pick([1, 2])
    data, experts, matrices = _experts(d, FORMATS[name].size)
    rows = random_rows(d.rng, name, matrices * lanes * vectors, 1)
    how, arrays = packed_parts(name, rows, lanes, vectors, d.bool())
    attrs = OPS[d.name].attrs_type(**how, matrices=matrices)
    return Case((data, *arrays, experts), attrs, ulps=2, scale=64)


@strategy("nn.rotary_embedding")
def rotary(d):
    rows, heads, pairs, start = d.int(1, 4), d.int(1, 3), d.int(1, 17), d.int(0, 3)
    angles = d.array((rows + start, pairs), "float32", 0, 6)
    data = d.array((rows, heads, 2 * pairs + d.int(0, 3)), "float32", -2, 2)
    attrs = OPS[d.name].attrs_type(d.bool())
    position = np.array([start], np.int32)
    return Case((data, np.cos(angles), np.sin(angles), position), attrs, ulps=1, scale=4)


@strategy("nn.cached_attention", "nn.sloped_cached_attention")
def cached_attention(d):
    shared, size, blocks, block = d.int(1, 2), d.pick([3, 8, 16]), d.int(1, 3), d.pick([4, 16])
    heads, rows = shared * d.int(1, 3), d.int(1, min(7, blocks * block))
    start = d.int(0, blocks * block - rows)
    shapes = ((rows, heads, size), (rows, shared, size), (rows, shared, size),
              (shared, blocks, size, block), (shared, blocks * block, size))  # fmt: skip
    caches = d.pick(["float32", "float16"])
    arrays = [d.array(shape, "float32", -1, 1) for shape in shapes]
    arrays[3:] = [array.astype(caches) for array in arrays[3:]]
    attrs = OPS[d.name].attrs_type(d.pick([None, 0.5]), d.int(0, 5), d.pick([0.0, 3.0]))
    position = np.array([start], np.int32)
    more = [d.array((heads,), "float32", -1, 1)] if "sloped" in d.name else []
    return Case((*arrays, position, *more), attrs, ulps=1, scale=32 + 8 * (size + 4) * size)


@strategy("nn.cached_conv1d")
def cached_conv(d):
    rows, channels, taps = d.int(1, 6), d.int(1, 20), d.int(2, 5)
    shapes = ((rows, channels), (channels, taps), (taps - 1, channels))
    arrays = [d.array(shape, "float32", -1, 1) for shape in shapes]
    return Case((*arrays, np.array([d.int(0, 5)], np.int32)), None, ulps=1, scale=taps)


@strategy("random.threefry_generate", "random.threefry_split")
def random_words(d):
    key = d.rng.integers(0, 2**64, 10, dtype="uint64")
    bit = d.int(-1, 127)  # where the path ends; -1: it is full
    mask = 1 << bit if bit >= 0 else 0
    key[8:] = mask >> 64, mask & (2**64 - 1)
    if d.bool():
        key[7] = 2**64 - d.int(1, 40)
    if d.name.endswith("split"):
        return Case((key,), None)
    return Case((key,), OPS[d.name].attrs_type(d.ints(d.int(1, 3), 0, 5)))
