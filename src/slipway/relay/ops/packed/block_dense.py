"""nn.contrib_block_dense: products with block-quantised weights, packed in vectors of outputs.

The data is quantised to int8 by groups of 32 elements as the kernel starts, so that groups are
multiplied as integers; one multiply-add for each group and output gives float sums:

    out[s, j] = sum over g of a[s, g] (scale[j, g] dot[s, j, g] - minimum[j, g] sum[s, g])

where `dot` multiplies the integers of data and weights, `sum` adds those of the data, whose scale
is a.  Where halves of a group have scales of their own (`parts` 2), there are such terms for each.
With `exact` the data stays float, and weights are dequantised as they are read.
Weights lie as (tiles, groups, vectors, bytes): for each vector of L outputs, byte L * 4 m + 4 l + i
holds element 4 m + i of output l, and with less than eight bits the lowest four of element 16 + 4 m
+ i, high.  The bits above those follow, of the words m = 0 ... 7 in turn from the lowest bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import expr as E
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.packed.block_formats import FORMATS, GROUP, format_of, parts_of
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

WORDS = GROUP // 4  # words of four elements in a group


@node
class PackedBlockAttrs(Attrs):
    """`bits` of an integer; what is taken from each (`offset`); whether there are `minima`.

    `parts` of a group have a scale of their own, 1 or 2.  Integers are `signed`, of 8 bits only.
    With `exact` the data is not quantised.
    """

    bits: int = 8
    offset: int = 0
    minima: bool = False
    parts: int = 1
    signed: bool = False
    exact: bool = False


PACKED = register_op(
    "nn.contrib_block_dense", "data", "weight", "scale", "minimum", attrs=PackedBlockAttrs,
    pattern=OpPattern.OPAQUE,
    doc="data (S, K) @ weight.T of block-quantised weights (tiles, groups, vectors, bytes).",
)  # fmt: skip


@PACKED.type_relation
def _type(
    attrs: PackedBlockAttrs,
    data: TensorType,
    weight: TensorType,
    scale: TensorType,
    minimum: TensorType,
) -> Type:
    need_rank("data", data, 2)
    need_dtype("data", data, "float32", "the sums")
    need_rank("weight", weight, 4)
    if attrs.bits not in (4, 5, 6, 8):
        raise BadArgument("bits", f"is {attrs.bits}: it must be 4, 5, 6 or 8")
    if attrs.parts not in (1, 2):
        raise BadArgument("parts", f"is {attrs.parts}: it must be 1 or 2")
    tiles, groups, vectors, width = weight.shape
    if data.shape[1] != groups * GROUP:
        raise BadArgument("data", f"is {data}: its last axis must be {groups * GROUP}")
    lanes = width // (4 * attrs.bits)
    for name, given, there in (("scale", scale, True), ("minimum", minimum, attrs.minima)):
        wanted = (tiles, groups * attrs.parts, vectors * lanes)
        if there and tuple(given.shape) != wanted:
            raise BadArgument(name, f"is {given}: its shape must be {wanted}")
    return TensorType((data.shape[0], tiles * vectors * lanes), "float32")


def pack(
    values: Array, scales: Array, minimum: Array | None, lanes: int, vectors: int, bits: int
) -> tuple[Array, Array, Array]:
    """Return packed weights, scales and minima; `values` (units, K) are bytes as they are stored.

    Outputs are padded with zeros to whole tiles of `lanes` * `vectors`.
    """
    units, depth = values.shape
    tile = lanes * vectors
    more = -units % tile
    groups = depth // GROUP
    raw: Array = np.pad(values, ((0, more), (0, 0))).view(np.uint8)
    # (tile, vector, lane, group, word, byte) -> (tile, group, vector, word, lane, byte)
    words: Array = raw.reshape(-1, vectors, lanes, groups, WORDS, 4).transpose(0, 3, 1, 4, 2, 5)
    if bits < 8:
        half = WORDS // 2
        low, high = words & 15, words >> 4
        planes = [low[:, :, :, :half] | low[:, :, :, half:] << 4]
        for first, count, shift in planes_of(bits):
            plane = [high[:, :, :, first + m] << shift * m for m in range(count)]
            planes.append(np.bitwise_or.reduce(plane)[:, :, :, None])
        words = np.concatenate(planes, 3)
    packed = words.reshape(words.shape[0], groups, vectors, -1)

    def by_tile(given: Array) -> Array:
        padded = np.pad(given, ((0, more), (0, 0))).reshape(-1, tile, given.shape[1])
        made = np.asarray(padded.transpose(0, 2, 1), order="C")
        with np.errstate(over="ignore"):
            short = made.astype(np.float16)
        return short if np.array_equal(short.astype(np.float32), made) else made

    none = np.zeros((1, 1, 1), np.float16)
    return packed, by_tile(scales), none if minimum is None else by_tile(minimum)


def planes_of(bits: int) -> list[tuple[int, int, int]]:
    """Return the first word, the words and the bits of each in vectors of what is above 4 bits."""
    more = bits - 4
    return [(8 // more * i, 8 // more, more) for i in range(more)] if more else []


def quantised_rows(data: Array) -> tuple[Array, Array]:
    """Return the integers (S, groups, 32) and scales (S, groups) that the kernel makes of data."""
    groups = data.reshape(data.shape[0], -1, GROUP).astype(np.float32)
    top = np.abs(groups).max(-1)
    scale = top * np.float32(1 / 127)
    over = np.divide(np.float32(127), top, out=np.zeros_like(top), where=top > 0)
    return np.rint(groups * over[..., None]).astype(np.int8), scale


@PACKED.reference
def _reference(
    attrs: PackedBlockAttrs, data: Array, weight: Array, scale: Array, minimum: Array
) -> Any:
    tiles, groups, vectors, width = weight.shape
    lanes = width // (4 * attrs.bits)
    words = weight.reshape(tiles, groups, vectors, -1, lanes, 4)
    if attrs.bits < 8:
        planes = words[:, :, :, 4:]
        words = np.concatenate([words[:, :, :, :4] & 15, words[:, :, :, :4] >> 4], 3)
        for i, (first, count, shift) in enumerate(planes_of(attrs.bits)):
            for m in range(count):
                above = planes[:, :, :, i] >> shift * m & (1 << shift) - 1
                words[:, :, :, first + m] |= above << 4
    signed = words.view(np.int8) if attrs.signed else words
    q = signed.transpose(0, 2, 4, 1, 3, 5).reshape(-1, groups, GROUP).astype(np.int64)
    share = GROUP // attrs.parts

    def by_output(given: Array) -> Array:
        return given.transpose(0, 2, 1).reshape(-1, given.shape[1]).astype(np.float64)

    if attrs.exact:
        q = q.reshape(len(q), -1, share)
        weights = (q - attrs.offset) * by_output(scale)[..., None]
        if attrs.minima:
            weights = weights - by_output(minimum)[..., None]
        return (data.astype(np.float64) @ weights.reshape(len(q), -1).T).astype(np.float32)
    integers, scales = quantised_rows(data)
    wide = integers.astype(np.int64).reshape(len(data), -1, share)
    q, scales = q.reshape(len(q), -1, share), scales.repeat(attrs.parts, -1)
    products = np.einsum("sgk,jgk->sjg", wide, q - attrs.offset).astype(np.float64)
    made = products * by_output(scale)
    if attrs.minima:
        made = made - wide.sum(-1)[:, None] * by_output(minimum)
    return (made * scales[:, None]).sum(-1).astype(np.float32)


def _stored_value(
    attrs: PackedBlockAttrs, weight: Any, lanes: int, at: tuple[Any, Any, Any]
) -> Any:
    """Return the integer that is stored for element k of group g of output j."""
    (j, g, k), tile = at, lanes * size_of(weight.shape[2])
    vector, word = j % tile // lanes, k // 4

    def byte(m: Any) -> Any:
        return weight(j // tile, g, vector, (m * lanes + j % lanes) * 4 + k % 4)

    if attrs.bits == 8:
        whole = byte(word)
        signed = E.Call("int8", "reinterpret", (whole,)) if attrs.signed else whole
        return signed.astype("int32")
    half = WORDS // 2
    low = (byte(word % half).astype("int32") >> (word // half * 4)) & 15
    if attrs.bits == 4:
        return low
    more = attrs.bits - 4
    count = 8 // more
    high = byte(half + word // count).astype("int32") >> (word % count * more)
    return low + (high & (1 << more) - 1) * 16


@PACKED.compute
def _compute(attrs: PackedBlockAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    shape = out_types[0].shape
    return [packed_sums(attrs, inputs, shape, lambda s: s, lambda s, j: j)]


def packed_sums(
    attrs: PackedBlockAttrs,
    inputs: Sequence[Any],
    shape: Sequence[Any],
    row_of: Callable[[Any], Any],
    output_of: Callable[[Any, Any], Any],
) -> Any:
    """Return the products as a stage (S, J): of row `row_of(s)` with output `output_of(s, j)`.

    Largest elements, integers, products of groups, their sums: for targets without vectors.
    """
    data, weight, scale, minimum = inputs
    rows = data.shape[0]
    _, groups, vectors, width = (size_of(d) for d in weight.shape)
    lanes, m = width // (4 * attrs.bits), te()
    tile = lanes * vectors
    parts, share = attrs.parts, GROUP // attrs.parts
    i, k, g = (
        m.reduce_axis((0, n), name=x)
        for n, x in ((GROUP, "i"), (share, "k"), (groups * parts, "g"))
    )
    each = m.reduce_axis((0, share), name="each")

    def value(j: Any, g: Any, k: Any) -> Any:
        return _stored_value(attrs, weight, lanes, (j, g, k))

    if attrs.exact:
        depth = m.reduce_axis((0, groups * GROUP), name="k")

        def weighted(s: Any, j: Any) -> Any:
            whole_j = output_of(s, j)
            position = (whole_j // tile, depth // share, whole_j % tile)
            whole = value(whole_j, depth // GROUP, depth % GROUP) - attrs.offset
            made = whole.astype("float32") * scale(*position).astype("float32")
            if attrs.minima:
                made = made - minimum(*position).astype("float32")
            return m.sum(data(row_of(s), depth) * made, axis=[depth])

        return m.compute(tuple(shape), weighted, "T_block_dense")
    top = m.compute(
        (rows, groups), lambda s, g: m.max(m.abs(data(s, g * GROUP + i)), axis=[i]), "T_block_top"
    )

    def integer(s: Any, at: Any) -> Any:
        largest = top(s, at // GROUP)
        over = m.Select(largest > 0, m.const(127.0, "float32") / largest, m.const(0.0, "float32"))
        return m.nearbyint(data(s, at) * over).astype("int32")

    integers = m.compute((rows, groups * GROUP), integer, "T_block_integers")

    products = m.compute(
        (*shape, groups * parts),
        lambda s, j, g: m.sum(
            integers(row_of(s), g * share + k)
            * (value(output_of(s, j), g // parts, g % parts * share + k) - attrs.offset),
            axis=[k],
        ),
        "T_block_products",
    )
    totals = m.compute(
        (rows, groups * parts),
        lambda s, g: m.sum(integers(s, g * share + each), axis=[each]),
        "T_block_totals",
    )

    def term(s: Any, j: Any) -> Any:
        row, whole_j = row_of(s), output_of(s, j)
        position = (whole_j // tile, g, whole_j % tile)
        made = products(s, j, g).astype("float32") * scale(*position).astype("float32")
        if attrs.minima:
            low = minimum(*position).astype("float32")
            made = made - totals(row, g).astype("float32") * low
        return m.sum(made * (top(row, g // parts) * m.const(1 / 127, "float32")), axis=[g])

    return m.compute(tuple(shape), term, "T_block_dense")


@PACKED.make
def contrib_block_dense(
    data: ExprLike,
    weight: ExprLike,
    scale: ExprLike,
    minimum: ExprLike,
    bits: int = 8,
    offset: int = 0,
    minima: bool = False,
    parts: int = 1,
    signed: bool = False,
    exact: bool = False,
) -> Call:
    """A product with packed block-quantised weights; see `pack`."""
    attrs = PackedBlockAttrs(bits, offset, minima, parts, signed, exact)
    return PACKED(data, weight, scale, minimum, attrs=attrs)


@PACKED.flops
def _flops(attrs: PackedBlockAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-1]


def packed_parts(
    name: str, data: Array, lanes: int, vectors: int, unsigned: bool | None
) -> tuple[dict[str, Any], tuple[Array, Array, Array]]:
    """Return attributes and arrays of a weight (units, bytes).

    Its bytes are `unsigned`, or signed, or as the format has them where None.
    """
    kind = format_of(name)
    values, scales, minimum = parts_of(name, data)
    offset, middle = kind.offset, 1 << kind.bits - 1
    if minimum.any() and np.array_equal(minimum, scales * np.float32(middle)):
        offset, minimum = middle, np.zeros_like(minimum)  # a zero point in the middle
    if kind.bits == 8 and unsigned and values.dtype == np.int8:
        values, offset = (values.astype(np.int16) + 128).astype(np.uint8), 128
    elif kind.bits == 8 and unsigned is False and values.dtype == np.uint8:
        if offset != middle:
            minimum = minimum - scales * np.float32(middle)
        values, offset = (values.astype(np.int16) - 128).astype(np.int8), 0
    parts = GROUP // kind.share
    if parts == 2 and all(np.array_equal(a[:, ::2], a[:, 1::2]) for a in (scales, minimum)):
        parts, scales, minimum = 1, scales[:, ::2], minimum[:, ::2]
    minima = bool(minimum.any())
    how = {"bits": kind.bits, "offset": offset, "minima": minima, "parts": parts,
           "signed": values.dtype == np.int8}  # fmt: skip
    return how, pack(values, scales, minimum if minima else None, lanes, vectors, kind.bits)


def _cases() -> None:
    for name, vectors, unsigned, exact in (
        ("q8_0", 1, True, False), ("q4_0", 2, True, False), ("q4_1", 1, True, False),
        ("q8_0", 1, False, False), ("q5_0", 1, True, False), ("q6_k", 1, True, False),
        ("u8", 1, False, False), ("q4_0", 2, True, True), ("q8_0", 1, False, True),
        ("q5_1", 1, True, True), ("q6_k", 1, True, True), ("u8", 1, True, True),
    ):  # fmt: skip
        depth, width = FORMATS[name].size * 2, FORMATS[name].bytes * 2
        # What it becomes, without random numbers, whose library takes 10 ms to load: no byte is as
        # the next, so that halves of a group have scales of their own where the format has them.
        some = np.broadcast_to(np.arange(width, dtype=np.uint8) % 3 + 1, (4 * vectors, width))
        how, arrays = packed_parts(name, some, 4, vectors, unsigned)

        def make(
            rng: np.random.Generator, name: str = name, depth: int = depth, vectors: int = vectors,
            unsigned: bool = unsigned,
        ) -> list[Any]:  # fmt: skip
            rows = random_rows(rng, name, 4 * vectors, 2)
            _, arrays = packed_parts(name, rows, 4, vectors, unsigned)
            return [rng.standard_normal((3, depth)).astype("float32"), *arrays]

        PACKED.sample_case(
            (3, depth), *(a.shape for a in arrays), attrs=PackedBlockAttrs(**how, exact=exact),
            dtypes=("float32", *(str(a.dtype) for a in arrays)), make=make,
        )  # fmt: skip


_cases()
