"""qnn.contrib_words: channels of bytes brought together, four in a word, last axis.

    data    uint8 (N, C, H, W)
    result  int32 (N, H, W, ceil(C / 4))    byte k of word w is channel 4 w + k, or zero

An image of three channels becomes one word a position, which vectors of positions compute; byte
by byte the transposition would not.  `qnn.contrib_conv2d_packed` reads words as their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Call
from slipway.relay.op_registry import OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

BYTES = 4  # of a word

WORDS = register_op(
    "qnn.contrib_words", "data", pattern=OpPattern.INJECTIVE, flops_per_element=0,
    doc="Bytes (N, C, H, W) as words (N, H, W, ceil(C / 4)) of four channels, the first lowest.",
)  # fmt: skip


@WORDS.type_relation
def _words_type(attrs: Any, data: TensorType) -> Type:
    need_dtype("data", data, "uint8", "the bytes of words")
    need_rank("data", data, 4)
    n, channels, height, width = data.shape
    return TensorType((n, height, width, -(-channels // BYTES)), "int32")


def bytes_of(words: Array) -> Any:
    """Return the array uint8 (N, H, W, 4 * words) of an array of words."""
    n, height, width, count = words.shape
    little = np.asarray(words.astype("<i4"), order="C")
    return little.view(np.uint8).reshape(n, height, width, count * BYTES)


@WORDS.reference
def _words_reference(attrs: None, data: Array) -> Any:
    last = np.pad(data.transpose(0, 2, 3, 1), ((0, 0),) * 3 + ((0, -data.shape[1] % BYTES),))
    return np.asarray(last, order="C").view("<i4").astype(np.int32)


@WORDS.compute
def _words_compute(attrs: Any, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (data,) = inputs
    channels = shape_of(data)[1]

    def element(n: PrimExpr, y: PrimExpr, x: PrimExpr, w: PrimExpr) -> Any:
        word = None
        for k in range(min(BYTES, channels)):
            position = w * BYTES + k
            byte = data(n, position, y, x).astype("int32")
            if channels % BYTES and channels > BYTES:
                byte = te().if_then_else(position < channels, byte, te().const(0, "int32"))
            byte = byte << te().const(8 * k, "int32")
            word = byte if word is None else word | byte
        return word

    return [te().compute(out_types[0].shape, element, name="T_words", tag="injective")]


@WORDS.make
def contrib_words(data: ExprLike) -> Call:
    """Bring four channels of bytes (N, C, H, W) together in a word (N, H, W, ceil(C / 4))."""
    return WORDS(data)


WORDS.sample_case((1, 3, 5, 7), dtypes=("uint8",), low=0, high=255)
WORDS.sample_case((2, 6, 3, 4), dtypes=("uint8",), low=0, high=255)
