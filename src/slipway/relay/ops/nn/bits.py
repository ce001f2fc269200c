"""Products of numbers of few bits, as products of integers: bitserial_conv2d, bitserial_dense.

Activations are unsigned, and their lowest bits count.  With `unipolar` weights a one of each bit
stands for +1 and a zero for -1: a weight w of b bits is worth ``2 * w - (2 ** b - 1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, scalar, typed
from slipway.relay.ops.checks import need_integral, need_words, whole

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def _of_bits(argument: str, value: ExprLike, bits: int, rank: int) -> Any:
    """Return the lowest bits of an argument as int32."""
    given, own = typed(value)
    need_integral(argument, own)
    if own.rank != rank:
        raise BadArgument(argument, f"must have {rank} axes, got {own}")
    return call("bitwise_and", call("cast", given, "int32"), scalar((1 << bits) - 1, "int32"))


def _of_words(weight: ExprLike, bits: int, pack_dtype: str, along: int, planes: int) -> Any:
    """Return weights that `bitpack` has packed as int32: words along one axis, bits another."""
    given, own = typed(weight)
    if own.dtype != pack_dtype or own.shape[planes] != bits:
        raise BadArgument(
            "weight",
            f"of {own.rank} axes is one of words, which must be {pack_dtype} (pack_dtype) with "
            f"{bits} bits (weight_bits) along axis {planes}, got {own}",
        )
    width = 8 * dtypes.bytes_of(pack_dtype)
    wide = planes + (planes > along)
    positions, worths = [1] * (own.rank + 1), [1] * (own.rank + 1)
    positions[along + 1], worths[wide] = width, bits
    shifts = np.arange(width - 1, -1, -1).reshape(positions).astype(pack_dtype)
    each = call("right_shift", call("expand_dims", given, along + 1), const(shifts))
    each = call("cast", call("bitwise_and", each, scalar(1, pack_dtype)), "int32")
    each = call("left_shift", each, const(np.arange(bits, dtype="int32").reshape(worths)))
    shape = [*own.shape]
    shape[along] *= width
    del shape[planes]
    return call("reshape", call("sum", each, [wide]), shape)


def _weights(
    weight: ExprLike, bits: int, pack_dtype: str, along: int, planes: int, packed: int,
) -> Any:  # fmt: skip
    if typed(weight)[1].rank == packed:
        return _of_words(weight, bits, pack_dtype, along, planes)
    return _of_bits("weight", weight, bits, packed - 1)


def _worth(weight: Any, bits: int, unipolar: bool) -> Any:
    if not unipolar:
        return weight
    doubled = call("multiply", weight, scalar(2, "int32"))
    return call("subtract", doubled, scalar((1 << bits) - 1, "int32"))


def _need_words(pack_dtype: str, out_dtype: str) -> None:
    need_words("pack_dtype", pack_dtype)
    if not dtypes.is_integral(out_dtype):
        raise BadArgument("out_dtype", f"is {out_dtype!r}; the sums are integers")


def bitserial_conv2d(
    data: ExprLike, weight: ExprLike, strides: Extents = (1, 1), padding: Extents = (0, 0),
    channels: int | None = None, kernel_size: Extents | None = (3, 3), activation_bits: int = 1,
    weight_bits: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Any:  # fmt: skip
    """Convolve images of few bits with weights of few bits; the sums wrap at `out_dtype`.

    Weights of five axes are packed: `bitpack` of the input channels, bits along the last axis.
    """
    _need_words(pack_dtype, out_dtype)
    activation_bits = whole("activation_bits", activation_bits, 1, 8)
    weight_bits = whole("weight_bits", weight_bits, 1, 8)
    x = _of_bits("data", data, activation_bits, 4)
    if sorted(kernel_layout) != sorted("OIHW"):
        raise BadArgument("kernel_layout", f"is {kernel_layout!r}; use OIHW or HWIO, packed or not")
    w = _weights(weight, weight_bits, pack_dtype, kernel_layout.index("I"), 4, 5)
    w = _worth(w, weight_bits, unipolar)
    found = call(
        "nn.conv2d", x, w, strides, padding, 1, 1, channels, kernel_size, data_layout,
        kernel_layout, out_dtype="int32",
    )  # fmt: skip
    return call("cast", found, out_dtype)


def bitserial_dense(
    data: ExprLike, weight: ExprLike, units: int | None = None, data_bits: int = 1,
    weight_bits: int = 1, pack_dtype: str = "uint32", out_dtype: str = "int16",
    unipolar: bool = True,
) -> Any:  # fmt: skip
    """Multiply rows of few bits with weights (units, K) of few bits, or packed (units, bits, K)."""
    _need_words(pack_dtype, out_dtype)
    data_bits, weight_bits = (
        whole(name, bits, 1, 8)
        for name, bits in (("data_bits", data_bits), ("weight_bits", weight_bits))
    )
    x = _of_bits("data", data, data_bits, 2)
    w = _worth(_weights(weight, weight_bits, pack_dtype, 2, 1, 3), weight_bits, unipolar)
    return call("cast", call("nn.dense", x, w, units, "int32"), out_dtype)
