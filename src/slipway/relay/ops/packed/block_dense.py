"""nn.contrib_block_dense: products with block-quantised weights, packed in vectors of outputs.

The data is quantised to int8 by groups of 32 elements as the kernel starts, so that groups are
multiplied as integers; one multiply-add for each group and output gives float sums:

    out[s, j] = sum over g of a[s, g] (scale[j, g] dot[s, j, g] - least[j, g] sum[s, g])

where `dot` multiplies the integers of data and weights, `sum` adds those of the data, whose scale
is a.  Weights lie as
(tiles, groups, vectors, bytes): for each vector of L outputs, byte L * 4 m + 4 l + i holds element
4 m + i of output l, and of four bits also element 16 + 4 m + i, high.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """`bits` of an integer; what is taken from each (`offset`); whether there are `minima`."""

    bits: int = 8
    offset: int = 0
    minima: bool = False

    @property
    def is_signed(self) -> bool:
        """Whether the bytes of weights are signed."""
        return self.bits == 8 and self.offset == 0


PACKED = register_op(
    "nn.contrib_block_dense", "data", "weight", "scale", "least", attrs=PackedBlockAttrs,
    pattern=OpPattern.OPAQUE,
    doc="data (S, K) @ weight.T of block-quantised weights (tiles, groups, vectors, bytes).",
)  # fmt: skip


@PACKED.type_relation
def _type(
    attrs: PackedBlockAttrs,
    data: TensorType,
    weight: TensorType,
    scale: TensorType,
    least: TensorType,
) -> Type:
    need_rank("data", data, 2)
    need_dtype("data", data, "float32", "the sums")
    need_rank("weight", weight, 4)
    if attrs.bits not in (4, 8):
        raise BadArgument("bits", f"is {attrs.bits}: it must be 4 or 8")
    tiles, groups, vectors, width = weight.shape
    if data.shape[1] != groups * GROUP:
        raise BadArgument("data", f"is {data}: its last axis must be {groups * GROUP}")
    lanes = width // (4 * attrs.bits)
    for name, given, there in (("scale", scale, True), ("least", least, attrs.minima)):
        if there and tuple(given.shape) != (tiles, groups, vectors * lanes):
            wanted = (tiles, groups, vectors * lanes)
            raise BadArgument(name, f"is {given}: its shape must be {wanted}")
    return TensorType((data.shape[0], tiles * vectors * lanes), "float32")


def pack(
    values: Array, scales: Array, least: Array | None, lanes: int, vectors: int, bits: int
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
    if bits == 4:
        half = WORDS // 2
        words = words[:, :, :, :half] | words[:, :, :, half:] << 4
    packed = words.reshape(words.shape[0], groups, vectors, -1)

    def by_tile(given: Array) -> Array:
        padded = np.pad(given, ((0, more), (0, 0))).reshape(-1, tile, groups)
        made = np.asarray(padded.transpose(0, 2, 1), order="C")
        with np.errstate(over="ignore"):
            short = made.astype(np.float16)
        return short if np.array_equal(short.astype(np.float32), made) else made

    none = np.zeros((1, 1, 1), np.float16)
    return packed, by_tile(scales), none if least is None else by_tile(least)


def quantised_rows(data: Array) -> tuple[Array, Array]:
    """Return the integers (S, groups, 32) and scales (S, groups) that the kernel makes of data."""
    groups = data.reshape(data.shape[0], -1, GROUP).astype(np.float32)
    top = np.abs(groups).max(-1)
    scale = top * np.float32(1 / 127)
    over = np.divide(np.float32(127), top, out=np.zeros_like(top), where=top > 0)
    return np.rint(groups * over[..., None]).astype(np.int8), scale


@PACKED.reference
def _reference(
    attrs: PackedBlockAttrs, data: Array, weight: Array, scale: Array, least: Array
) -> Any:
    tiles, groups, vectors, width = weight.shape
    lanes = width // (4 * attrs.bits)
    words = weight.reshape(tiles, groups, vectors, -1, lanes, 4)
    if attrs.bits == 4:
        words = np.concatenate([words & 15, words >> 4], 3)
    signed = words.view(np.int8) if attrs.is_signed else words
    q = signed.transpose(0, 2, 4, 1, 3, 5).reshape(-1, groups, GROUP).astype(np.int64)
    integers, scales = quantised_rows(data)
    wide = integers.astype(np.int64)
    products = np.einsum("sgk,jgk->sjg", wide, q - attrs.offset).astype(np.float64)

    def by_output(given: Array) -> Array:
        return given.transpose(0, 2, 1).reshape(-1, groups).astype(np.float64)

    made = products * by_output(scale)
    if attrs.minima:
        made = made - wide.sum(-1)[:, None] * by_output(least)
    return (made * scales[:, None]).sum(-1).astype(np.float32)


@PACKED.compute
def _compute(attrs: PackedBlockAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Largest elements, integers, products of groups, their sums: for targets without vectors."""
    data, weight, scale, least = inputs
    rows = data.shape[0]
    _, groups, vectors, width = (size_of(d) for d in weight.shape)
    lanes, m = width // (4 * attrs.bits), te()
    tile = lanes * vectors
    i, k, g = (
        m.reduce_axis((0, n), name=x) for n, x in ((GROUP, "i"), (GROUP, "k"), (groups, "g"))
    )
    top = m.compute(
        (rows, groups), lambda s, g: m.max(m.abs(data(s, g * GROUP + i)), axis=[i]), "T_block_top"
    )

    def integer(s: Any, at: Any) -> Any:
        largest = top(s, at // GROUP)
        over = m.Select(largest > 0, m.const(127.0, "float32") / largest, m.const(0.0, "float32"))
        return m.nearbyint(data(s, at) * over).astype("int32")

    integers = m.compute((rows, groups * GROUP), integer, "T_block_integers")

    def value(j: Any, g: Any, k: Any) -> Any:
        vector, word = j % tile // lanes, k // 4
        if attrs.bits == 4:
            half = WORDS // 2
            byte = weight(j // tile, g, vector, (word % half * lanes + j % lanes) * 4 + k % 4)
            return (byte.astype("int32") >> (word // half * 4)) & 15
        byte = weight(j // tile, g, vector, (word * lanes + j % lanes) * 4 + k % 4)
        signed = E.Call("int8", "reinterpret", (byte,)) if attrs.is_signed else byte
        return signed.astype("int32")

    products = m.compute(
        (rows, out_types[0].shape[1], groups),
        lambda s, j, g: m.sum(
            integers(s, g * GROUP + k) * (value(j, g, k) - attrs.offset), axis=[k]
        ),
        "T_block_products",
    )
    totals = m.compute(
        (rows, groups), lambda s, g: m.sum(integers(s, g * GROUP + i), axis=[i]), "T_block_totals"
    )

    def term(s: Any, j: Any) -> Any:
        made = products(s, j, g).astype("float32") * scale(j // tile, g, j % tile).astype("float32")
        if attrs.minima:
            low = least(j // tile, g, j % tile).astype("float32")
            made = made - totals(s, g).astype("float32") * low
        return m.sum(made * (top(s, g) * m.const(1 / 127, "float32")), axis=[g])

    return [m.compute(out_types[0].shape, term, "T_block_dense")]


@PACKED.make
def contrib_block_dense(
    data: ExprLike,
    weight: ExprLike,
    scale: ExprLike,
    least: ExprLike,
    bits: int = 8,
    offset: int = 0,
    minima: bool = False,
) -> Call:
    """A product with packed block-quantised weights; see `pack`."""
    attrs = PackedBlockAttrs(bits, offset, minima)
    return PACKED(data, weight, scale, least, attrs=attrs)


@PACKED.flops
def _flops(attrs: PackedBlockAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-1]


def packed_parts(
    name: str, data: Array, lanes: int, vectors: int, unsigned: bool
) -> tuple[dict[str, Any], tuple[Array, Array, Array]]:
    """Return attributes and arrays of a weight (units, bytes), its bytes `unsigned` or signed."""
    kind = format_of(name)
    values, scales, least = parts_of(name, data)
    offset = kind.offset
    if kind.bits == 8 and unsigned:
        values, offset = (values.astype(np.int16) + 128).astype(np.uint8), 128
    minima = bool(least.any())
    arrays = pack(values, scales, least if minima else None, lanes, vectors, kind.bits)
    return {"bits": kind.bits, "offset": offset, "minima": minima}, arrays


def _cases() -> None:
    for name, vectors, unsigned in (
        ("q8_0", 1, True),
        ("q4_0", 2, True),
        ("q4_1", 1, True),
        ("q8_0", 1, False),
    ):
        depth, width = FORMATS[name].size * 2, FORMATS[name].bytes * 2
        # What it becomes, without random numbers, whose library takes 10 ms to load.
        some = np.ones((4 * vectors, width), np.uint8)
        how, arrays = packed_parts(name, some, 4, vectors, unsigned)

        def make(
            rng: np.random.Generator, name: str = name, depth: int = depth, vectors: int = vectors,
            unsigned: bool = unsigned,
        ) -> list[Any]:  # fmt: skip
            rows = random_rows(rng, name, 4 * vectors, 2)
            _, arrays = packed_parts(name, rows, 4, vectors, unsigned)
            return [rng.standard_normal((3, depth)).astype("float32"), *arrays]

        PACKED.sample_case(
            (3, depth), *(a.shape for a in arrays), attrs=PackedBlockAttrs(**how),
            dtypes=("float32", *(str(a.dtype) for a in arrays)), make=make,
        )  # fmt: skip


_cases()
