"""Products of numbers of few bits, as products of integers: bitserial_conv2d, bitserial_dense.

Activations are unsigned, and their lowest bits count.  With `unipolar` weights a one of each bit
stands for +1 and a zero for -1: a weight w of b bits is worth ``2 * w - (2 ** b - 1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.relay.op_registry import BadArgument
from slipway.relay.ops.build import call, scalar, typed
from slipway.relay.ops.checks import need_integral

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def _of_bits(argument: str, value: ExprLike, bits: int, rank: int) -> Any:
    """Return the lowest bits of an argument as int32."""
    given, own = typed(value)
    need_integral(argument, own)
    if own.rank != rank:
        raise BadArgument(argument, f"must have {rank} axes, not yet packed, got {own}")
    if not 1 <= bits <= 8:
        raise BadArgument(argument, f"has 1 to 8 bits, not {bits}")
    return call("bitwise_and", call("cast", given, "int32"), scalar((1 << bits) - 1, "int32"))


def _worth(weight: Any, bits: int, unipolar: bool) -> Any:
    if not unipolar:
        return weight
    doubled = call("multiply", weight, scalar(2, "int32"))
    return call("subtract", doubled, scalar((1 << bits) - 1, "int32"))


def _need_words(pack_dtype: str, out_dtype: str) -> None:
    if pack_dtype not in ("uint8", "uint16", "uint32", "uint64"):
        raise BadArgument("pack_dtype", f"is {pack_dtype!r}; use uint8, uint16, uint32 or uint64")
    if not dtypes.is_integral(out_dtype):
        raise BadArgument("out_dtype", f"is {out_dtype!r}; the sums are integers")


def bitserial_conv2d(
    data: ExprLike, weight: ExprLike, strides: Extents = (1, 1), padding: Extents = (0, 0),
    channels: int | None = None, kernel_size: Extents | None = (3, 3), activation_bits: int = 1,
    weight_bits: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Any:  # fmt: skip
    """Convolve images of few bits with weights of few bits; the sums wrap at `out_dtype`."""
    _need_words(pack_dtype, out_dtype)
    x = _of_bits("data", data, activation_bits, 4)
    w = _worth(_of_bits("weight", weight, weight_bits, 4), weight_bits, unipolar)
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
    """Multiply rows of few bits with weights (units, K) of few bits."""
    _need_words(pack_dtype, out_dtype)
    x = _of_bits("data", data, data_bits, 2)
    w = _worth(_of_bits("weight", weight, weight_bits, 2), weight_bits, unipolar)
    return call("cast", call("nn.dense", x, w, units, "int32"), out_dtype)
