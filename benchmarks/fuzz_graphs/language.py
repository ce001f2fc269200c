"""Operators of language models: weights that are bytes of blocks, and rotated pairs."""

import ml_dtypes
import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import ULPS, UNIT, Value, linear, need, result

# GGML's blocks: (elements, bytes, bytes of half-precision numbers in front or at the end).
BLOCKS = {
    "q8_0": (32, 34, 2), "q4_0": (32, 18, 2), "q4_1": (32, 20, 4), "q5_0": (32, 22, 2),
    "q5_1": (32, 24, 4), "q6_k": (256, 210, -2),
}  # fmt: skip


def _block(name, block):
    """The numbers of one block, as ggml-quants.c reads it."""
    size, _, halves = BLOCKS[name]
    if name == "q6_k":
        return _q6_k(block)
    numbers = block[:halves].copy().view(np.float16).astype(np.float64)
    scale, minimum = numbers[0], numbers[1] if halves == 4 else 0.0
    if name == "q8_0":
        return block[2:].view(np.int8) * scale
    bytes_ = block[-16:].astype(np.int64)
    whole = np.concatenate([bytes_ & 15, bytes_ >> 4])
    if name.startswith("q5"):
        high = int.from_bytes(block[halves : halves + 4].tobytes(), "little")
        whole += np.array([(high >> j & 1) << 4 for j in range(size)])
    if name.endswith("_0"):
        whole -= 8 if name == "q4_0" else 16
    return whole * scale + minimum


def _q6_k(block):
    low, high = block[:128].astype(np.int64), block[128:192].astype(np.int64)
    scales, whole = block[192:208].view(np.int8).astype(np.float64), np.zeros(256)
    scale = float(block[208:].copy().view(np.float16)[0])
    for half in range(2):
        for k in range(32):
            q, h, s = low[64 * half :], high[32 * half + k], scales[8 * half + k // 16 :]
            for part, nibble in enumerate((q[k] & 15, q[k + 32] & 15, q[k] >> 4, q[k + 32] >> 4)):
                value = (nibble | (h >> 2 * part & 3) << 4) - 32
                whole[128 * half + 32 * part + k] = scale * s[2 * part] * value
    return whole


def _rows(attrs, weight):
    need(weight.certain)
    length = BLOCKS[attrs["format"]][1]
    return np.stack([
        np.concatenate([_block(attrs["format"], block) for block in row.reshape(-1, length)])
        for row in weight.exact
    ])  # fmt: skip


@rule("nn.block_take")
def _block_take(attrs, weight, indices):
    need(indices.certain)
    rows = _rows(attrs, weight)[np.clip(indices.exact, 0, len(weight.exact) - 1)]
    return result(rows, 0.0, "float32", ULPS, np.abs(rows) + 1e-3)


@rule("nn.block_dense")
def _block_dense(attrs, x, weight):
    rows = _rows(attrs, weight)
    exact = Value(rows, np.zeros(rows.shape), "float32")
    return linear(lambda a, b: a @ b.T, x.dtype, rows.shape[1] + 4, _in_bytes(x), exact)


def _in_bytes(x):
    """Data as an instruction that multiplies bytes may take it: half a step of 32 elements off."""
    groups = np.abs(x.exact).reshape(*x.shape[:-1], -1, 32).max(axis=-1)
    step = np.repeat(groups, 32, axis=-1) / 127
    return Value(x.exact, x.error + 0.51 * step, x.dtype)


@rule("nn.expert_dense")
def _expert_dense(attrs, x, weight, experts):
    need(experts.certain)
    count, units = weight.shape[:2]
    if attrs["format"]:
        need(weight.certain)
        bytes_ = weight.exact.reshape(count * units, -1)
        flat = Value(bytes_, np.zeros(bytes_.shape), weight.dtype)
        matrices = _rows(attrs, flat).reshape(count, units, -1)
        doubt, x = np.zeros(matrices.shape), _in_bytes(x)
    else:
        matrices, doubt = weight.exact, weight.error
    chosen = np.clip(experts.exact, 0, count - 1)
    taken = Value(matrices[chosen], doubt[chosen], "float32")  # (S, J, units, K)
    return linear(lambda a, b: (a[:, :, None, :] * b).sum(-1), x.dtype, x.shape[2] + 4, x, taken)


@rule("nn.rotary_embedding")
def _rotary(attrs, x, cosine, sine, position):
    need(position.certain)
    pairs, first = cosine.shape[1], int(position.exact[0])
    need(0 <= first <= cosine.shape[0] - x.shape[0])
    exact, error = x.exact.copy(), x.error.copy()
    unit = UNIT[x.dtype]
    for j in range(pairs):
        left, right = (2 * j, 2 * j + 1) if attrs["interleaved"] else (j, j + pairs)
        c, s = (
            Value(t.exact[first : first + x.shape[0], j, None],
                  t.error[first : first + x.shape[0], j, None], x.dtype)
            for t in (cosine, sine)
        )  # fmt: skip
        a, b = x.exact[..., left], x.exact[..., right]
        most = (np.abs(a) + np.abs(b)) * np.maximum(np.abs(c.exact), np.abs(s.exact))
        exact[..., left], exact[..., right] = a * c.exact - b * s.exact, b * c.exact + a * s.exact
        wide = x.error[..., left] + x.error[..., right]
        doubt = c.error + s.error
        spread = wide * (np.abs(c.exact) + np.abs(s.exact) + doubt)
        spread = spread + (np.abs(a) + np.abs(b)) * doubt + ULPS * unit * most
        error[..., left] = error[..., right] = spread
    return result(exact, error, x.dtype, 0)


@rule("nn.float_parts")
def _float_parts(attrs, x):
    need(x.certain)
    parts, residual = [], x.exact.astype(np.float32)
    for _ in range(max(attrs["parts"]) + 1):
        parts.append(residual.astype(ml_dtypes.bfloat16).astype(np.float32))
        residual = residual - parts[-1]
    joined = np.concatenate([parts[p] for p in attrs["parts"]], attrs["axis"])
    return result(joined, 0.0, "bfloat16", 0)


@maker(0.6)
def blocks(d):
    name = d.pick(list(BLOCKS))
    size, length, halves = BLOCKS[name]
    rows, count = d.int(1, 17), d.int(1, 2 if size > 32 else 5)
    data = d.rng.integers(0, 256, (rows, count, length)).astype(np.uint8)
    scales = d.rng.uniform(-0.05, 0.05, (rows, count, abs(halves) // 2)).astype("float16")
    position = slice(0, halves) if halves > 0 else slice(halves, None)
    data[..., position] = scales.view(np.uint8)
    weight = d.append_const(data.reshape(rows, -1))
    if d.chance(0.4):
        indices = d.leaf(d.shape(0, 2, 12), "int32", 0, rows - 1)
        return d.call("nn.block_take", weight, indices, format=name)
    x = d.leaf((*d.shape(0, 2, 20), size * count), "float32", const=0.1)
    return d.call("nn.block_dense", x, weight, format=name)


@maker(0.4)
def experts(d):
    count, units, tokens, each = d.int(1, 5), d.int(1, 17), d.int(1, 7), d.int(1, 3)
    name = d.pick(["", "", *BLOCKS])
    if name:
        size, length, halves = BLOCKS[name]
        blocks_ = d.int(1, 2)
        data = d.rng.integers(0, 256, (count * units * blocks_, length)).astype(np.uint8)
        scales = d.rng.uniform(-0.05, 0.05, (len(data), abs(halves) // 2)).astype("float16")
        position = slice(0, halves) if halves > 0 else slice(halves, None)
        data[:, position] = scales.view(np.uint8)
        weight, depth = d.append_const(data.reshape(count, units, -1)), size * blocks_
    else:
        depth = d.extent(33)
        weight = d.weights((count, units, depth), "float32")
    x = d.leaf((tokens, d.pick([1, each]), depth), "float32", const=0.1)
    numbers = d.leaf((tokens, each), "int32", 0, count - 1, const=0.2)
    return d.call("nn.expert_dense", x, weight, numbers, format=name)


@maker(0.6)
def rotary(d):
    dtype = d.dtype()
    need(dtype in UNIT)
    steps, heads, pairs = d.int(1, 5), d.int(1, 3), d.int(1, 17)
    x = d.leaf((steps, heads, 2 * pairs + d.pick([0, 0, 1, 6])), dtype, const=0.1)
    angles = d.rng.uniform(0, 7, (steps + 3, pairs))
    tables = [d.append_const(f(angles).astype(dtype)) for f in (np.cos, np.sin)]
    position = d.leaf((1,), "int32", 0, 3, const=0.3)
    interleaved = d.chance(0.5)
    return d.call("nn.rotary_embedding", x, *tables, position, interleaved=interleaved)


@maker(0.3)
def float_parts(d):
    shape = d.shape(1, 3, 200)
    x = d.leaf(shape, "float32", const=0.1)
    parts = d.pick([(0, 1), (0, 0, 1), (0, 1, 2), (2, 0), (1,)])
    return d.call("nn.float_parts", x, parts=parts, axis=d.axis(len(shape)))
