"""Weights of few bits in blocks with a scale each: MatMulNBits and GatherBlockQuantized.

Such weights stay in their bits.  Where the node allows data of 8 bits (`accuracy_level` 4),
products may be those of integers, elsewhere the data stays float.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const
from slipway.relay.ops.packed.block_formats import GROUP
from slipway.relay.ops.packed.few_bits import SHARE, stored_rows

Array = np.ndarray[Any, Any]
DATA_IN_BYTES = 4  # the accuracy_level that allows them


def _unpacked(data: Array, bits: int, count: int) -> Array:
    """Return `count` integers of the last axis of bytes, the lowest bits first."""
    if bits == 8:
        return data[..., :count]
    ones = np.unpackbits(data, axis=-1, bitorder="little")
    ones = ones[..., : ones.shape[-1] // bits * bits].reshape(*data.shape[:-1], -1, bits)
    whole: Array = (ones << np.arange(bits, dtype=np.uint8)).sum(-1, dtype=np.uint8)
    return whole[..., :count]


def _zero_points(node: NodeView, index: int, scales: Array, bits: int) -> Array:
    """Return the zero point of each block: packed like the weights, a float each, or the middle."""
    if not node.has(index):
        return np.full(scales.shape, 1 << bits - 1, np.float32)
    given = node.constant(index, "zero points")
    if given.dtype != np.uint8:
        return given.astype(np.float32).reshape(scales.shape)
    packed = given.reshape(*scales.shape[:-1], -1)
    return _unpacked(packed, bits, scales.shape[-1]).astype(np.float32)


@converter("com.microsoft.MatMulNBits")
def matmul(node: NodeView) -> Any:
    """A product with a matrix of 2 to 8 bits, of which each block has a scale and a zero point."""
    bits, size = node.attr("bits", 4), node.attr("block_size")
    rows, columns = node.attr("N"), node.attr("K")
    if not 2 <= bits <= 8:
        raise node.unsupported(f"bits is {bits}; 2 to 8 are served")
    if size is None or size < SHARE or size & (size - 1):
        raise node.unsupported(f"block_size is {size}; it must be a power of two from 16 on")
    if node.attr("weight_prepacked", 0):
        raise node.unsupported("its weights are packed for one device (weight_prepacked)")
    blocks = -(-columns // size)
    packed = node.constant(1, "weight")
    x, dtype = node.input(0), node.type().dtype
    if dtype != "float32":
        x = relay.cast(x, "float32")
    if packed.size == 0:  # an omitted projection
        made: Any = relay.nn.dense(x, const(np.zeros((rows, columns), np.float32)))
    elif packed.size * 8 != rows * blocks * size * bits:
        raise node.unsupported(
            f"its weight of {packed.size} bytes is not {rows} rows of {blocks} blocks of {size} "
            f"elements of {bits} bits"
        )
    else:
        values = _unpacked(packed.reshape(rows, blocks, -1), bits, size).reshape(rows, -1)
        scales = node.constant(2, "scales").astype(np.float32).reshape(rows, blocks)
        zeros = _zero_points(node, 3, scales, bits)
        made = _product(node, x, values, scales, zeros)
    if node.has(5):
        bias = node.input(5)
        made = relay.add(made, bias if dtype == "float32" else relay.cast(bias, "float32"))
    return made if dtype == "float32" else relay.cast(made, dtype)


def _product(node: NodeView, x: Any, values: Array, scales: Array, zeros: Array) -> Any:
    columns, size = node.attr("K"), node.attr("block_size")
    if node.has(4):  # each column says which block's scale it has
        position = node.constant(4, "g_idx").astype(np.int64)[:columns]
    else:
        stored = stored_rows(values.astype(np.int32), scales, zeros, size)
        assert stored is not None  # its blocks are of 16 elements or more
        rows, name = stored
        more = values.shape[1] + -values.shape[1] % GROUP - columns
        if more:
            edges = [(0, 0)] * (x.tensor_type.rank - 1)
            x = relay.nn.pad(x, (*edges, (0, more)))
        if node.attr("accuracy_level", 0) == DATA_IN_BYTES:
            return relay.nn.block_dense(x, const(rows), name)
        # Targets that have no kernel for float data and blocks multiply with floats.
        every = const(np.arange(len(rows), dtype=np.int32))
        return relay.nn.dense(x, relay.nn.block_take(const(rows), every, name))
    whole = values[:, :columns].astype(np.float32)
    return relay.nn.dense(x, const((whole - zeros[:, position]) * scales[:, position]))


@converter("com.microsoft.GatherBlockQuantized")
def gather(node: NodeView) -> Any:
    """Slices of a quantised constant as real numbers; zeros where an index is out of range."""
    bits, size = node.attr("bits", 4), node.attr("block_size", 128)
    data = node.constant(0, "data")
    kind = node.type().dtype
    scales = node.constant(2, "scales")
    dtype = node.type(2).dtype
    rank, axis = data.ndim, node.attr("gather_axis", 0)
    blocked = node.attr("quantize_axis", 1)
    axis, blocked = axis % rank, blocked % rank
    if kind == "uint8":
        middle = 1 << bits - 1
        values = _unpacked(data, bits, data.shape[-1] * 8 // bits).astype(np.int32)
    elif kind in ("int4", "uint4", "int8"):
        middle, values = 0, data.astype(np.int32)
    else:
        raise node.unsupported(f"its data is {kind}; integers are served")
    scales = scales.astype(np.float32)
    if node.has(3):
        given = node.constant(3, "zero points")
        if kind == "uint8":
            given = _unpacked(given, bits, scales.shape[-1])
        zeros = given.astype(np.float32).reshape(scales.shape)
    else:
        zeros = np.full(scales.shape, middle, np.float32)
    indices = node.input(1)
    count = values.shape[axis]
    if node.type(1).dtype != "int32":
        indices = relay.cast(indices, "int32")
    zero, top = const(np.int32(0)), const(np.int32(count))
    indices = relay.where(relay.less(indices, zero), relay.add(indices, top), indices)
    inside = relay.logical_and(relay.greater_equal(indices, zero), relay.less(indices, top))
    if (rank, axis, blocked) == (2, 0, 1) and kind != "int8" and values.shape[1] % SHARE == 0:
        # the last block may be shorter
        scales, zeros = (
            a[:, np.arange(0, values.shape[1], SHARE) // size] for a in (scales, zeros)
        )
        stored = stored_rows(values, scales, zeros, SHARE)
        assert stored is not None
        rows = relay.nn.block_take(const(stored[0]), indices, stored[1])
        if values.shape[1] % GROUP:
            last = node.rank(1)
            rows = relay.strided_slice(rows, [0], [values.shape[1]], axes=[last])
    else:
        position = np.arange(values.shape[blocked]) // size
        exact = values - np.take(zeros, position, blocked)
        exact = (exact * np.take(scales, position, blocked)).astype(np.float32)
        rows = relay.take(const(exact), indices, axis)
    for _ in range(rank - axis - 1):
        inside = relay.expand_dims(inside, -1)
    for _ in range(axis):
        inside = relay.expand_dims(inside, 0)
    made = relay.where(inside, rows, const(np.float32(0)))
    return made if dtype == "float32" else relay.cast(made, dtype)
