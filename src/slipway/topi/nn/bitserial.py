"""Products of numbers of few bits: the same bit of many numbers in a word, and its ones counted.

Activations are unsigned.  Bit planes i and j of both sides count 2 ** (i + j) each; with `unipolar`
weights a one of a plane stands for +1 and a zero for -1, so that a weight w of b bits is worth
``2 * w - (2 ** b - 1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import math
from slipway.te import reduction as R
from slipway.te.declare import compute
from slipway.te.tensor import Tensor
from slipway.topi.nn.padding import pad
from slipway.topi.nn.windows import sides, spread, windows
from slipway.topi.transform import concatenate
from slipway.topi.utils import get_const_int, normalize_axis

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, ShapeLike


def bitpack(
    data: Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str,
    name: str = "QuantizeInput",
) -> Tensor:  # fmt: skip
    """Put the same bit of as many elements of `pack_axis` as `pack_type` has bits into one number.

    The first element's is the highest; the planes lie along the new axis `bit_axis`.
    """
    if pack_type not in ("uint8", "uint16", "uint32", "uint64") or dtypes.is_float(data.dtype):
        raise InvalidShapeError(
            f"bitpack of {data.dtype} into {pack_type}: integers into uint8 to 64"
        )
    width = dtypes.bits_of(pack_type)
    pack_axis = normalize_axis(pack_axis, data.ndim, "pack_axis")
    bit_axis = normalize_axis(bit_axis, data.ndim + 1, "bit_axis")
    bits = get_const_int(bits)
    extent = get_const_int(data.shape[pack_axis])
    if extent % width or not 1 <= bits <= 8:
        raise InvalidShapeError(
            f"bitpack of axis {pack_axis} of {data.shape} into {pack_type}: its {extent} elements "
            f"must be a multiple of {width}, and `bits` from 1 to 8, not {bits}"
        )
    shape = list(data.shape)
    shape[pack_axis] = ops.const(extent // width)
    shape.insert(bit_axis, ops.const(1))

    def plane(bit: int) -> Tensor:
        def element(*i: PrimExpr) -> Any:
            at = [*i[:bit_axis], *i[bit_axis + 1 :]]
            word: Any = ops.const(0, pack_type)
            for k in range(width):
                own = list(at)
                own[pack_axis] = at[pack_axis] * width + k
                one = ops.const(1, data.dtype)
                value = ops.bitwise_and(
                    ops.shift_right(data(*own), ops.const(bit, data.dtype)), one
                )
                word = ops.bitwise_or(ops.shift_left(word, ops.const(1, pack_type)),
                                      ops.cast(value, pack_type))  # fmt: skip
            return word

        return compute(shape, element, name=f"{name}_{bit}" if bits > 1 else name, tag="bitpack")  # type: ignore[no-any-return]

    planes = [plane(bit) for bit in range(bits)]
    return planes[0] if bits == 1 else concatenate(planes, bit_axis)


def _ones(x: PrimExpr, w: PrimExpr, unipolar: bool, dtype: str) -> PrimExpr:
    """Return how many bits two words have in common, of one-sided weights less those of x alone."""
    count = ops.cast(math.popcount(ops.bitwise_and(x, w)), dtype)
    if not unipolar:
        return count
    return ops.sub(count, ops.cast(math.popcount(ops.bitwise_and(x, ops.bitwise_not(w))), dtype))


def _need_words(data: Tensor, kernel: Tensor, packed: int, what: str) -> None:
    if kernel.ndim not in (packed - 1, packed) or data.ndim != packed - 1:
        raise InvalidShapeError(
            f"{what} of {data.shape} and {kernel.shape}: the data has {packed - 1} axes, the "
            f"weights as many, or {packed} where bitpack has packed them"
        )


def _need_equal(data: Tensor, words: PrimExpr, kernel: Tensor, others: PrimExpr, what: str) -> None:
    """Raise InvalidShapeError where the words of data and weights cannot be multiplied."""
    if get_const_int(words) != get_const_int(others):
        raise InvalidShapeError(
            f"{what} of {data.shape} and {kernel.shape}: packed, the data has {words} words to be "
            f"summed and the weights {others}; they must be as many"
        )


def _conv(
    data: Tensor, kernel: Tensor, stride: ShapeLike, padding: ShapeLike, in_bits: int,
    weight_bits: int, pack_dtype: str, out_dtype: str, unipolar: bool, last: bool,
) -> Tensor:  # fmt: skip
    what = f"bitserial_conv2d_{'nhwc' if last else 'nchw'}"
    _need_words(data, kernel, 5, what)
    x = (
        bitpack(data, in_bits, 3, 4, pack_dtype)
        if last
        else bitpack(data, in_bits, 1, 2, pack_dtype)
    )
    w = kernel
    if kernel.ndim == 4:
        w = bitpack(kernel, weight_bits, 2 if last else 1, 4, pack_dtype, "QuantizeWeight")
    heights = (0, 1) if last else (2, 3)
    sizes = [get_const_int(w.shape[axis]) for axis in heights]
    steps = spread(stride, 2, "stride")
    before, after = sides(padding, sizes)
    first = 1 if last else 3
    edges = [0] * 5
    edges_after = [0] * 5
    edges[first : first + 2], edges_after[first : first + 2] = before, after
    if any(before) or any(after):
        x = pad(x, edges, edges_after, name="PaddedInput")
    made = [windows(x.shape[first + n], sizes[n], steps[n]) for n in (0, 1)]
    words = w.shape[2 if last else 1]
    _need_equal(data, x.shape[3 if last else 1], kernel, words, what)
    rc = R.reduce_axis((0, words), "rc")
    ry, rx = (R.reduce_axis((0, n), name) for n, name in zip(sizes, ("ry", "rx"), strict=True))
    b1, b2 = (R.reduce_axis((0, n), name) for n, name in ((in_bits, "b1"), (weight_bits, "b2")))

    def element(n: PrimExpr, co: PrimExpr, y: PrimExpr, z: PrimExpr) -> Any:
        row, column = y * steps[0] + ry.var, z * steps[1] + rx.var
        at = (n, row, column, rc.var, b1.var) if last else (n, rc.var, b1.var, row, column)
        own = (ry.var, rx.var, rc.var, co, b2.var) if last else (co, rc.var, ry.var, rx.var, b2.var)
        both = _ones(x(*at), w(*own), unipolar, out_dtype)
        return R.sum(ops.shift_left(both, ops.cast(b1.var + b2.var, out_dtype)),
                     axis=[rc, ry, rx, b2, b1])  # fmt: skip

    if last:
        shape = (data.shape[0], *made, w.shape[3])
        return compute(shape, lambda n, y, z, co: element(n, co, y, z), "Conv2dOutput", what)  # type: ignore[no-any-return]
    return compute((data.shape[0], w.shape[0], *made), element, "Conv2dOutput", what)  # type: ignore[no-any-return]


def bitserial_conv2d_nchw(
    data: Tensor, kernel: Tensor, stride: ShapeLike, padding: ShapeLike, activation_bits: int,
    weight_bits: int, pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """Convolve few-bit images (N, C, H, W) with weights (O, I, H, W), or those packed by words."""
    return _conv(data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype, out_dtype,
                 unipolar, False)  # fmt: skip


def bitserial_conv2d_nhwc(
    data: Tensor, kernel: Tensor, stride: ShapeLike, padding: ShapeLike, activation_bits: int,
    weight_bits: int, pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """Convolve few-bit images (N, H, W, C) with weights (H, W, I, O), or those packed by words."""
    return _conv(data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype, out_dtype,
                 unipolar, True)  # fmt: skip


def bitserial_dense(
    data: Tensor, weight: Tensor, data_bits: int, weight_bits: int, pack_dtype: str = "uint32",
    out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """Multiply few-bit rows (N, K) with weights (O, K), or those packed by words."""
    _need_words(data, weight, 3, "bitserial_dense")
    x = bitpack(data, data_bits, 1, 1, pack_dtype, "PackedInput")
    w = (
        weight
        if weight.ndim == 3
        else bitpack(weight, weight_bits, 1, 1, pack_dtype, "PackedWeight")
    )
    _need_equal(data, x.shape[2], weight, w.shape[2], "bitserial_dense")
    k = R.reduce_axis((0, x.shape[2]), "k")
    b1, b2 = (R.reduce_axis((0, n), name) for n, name in ((data_bits, "b1"), (weight_bits, "b2")))

    def element(n: PrimExpr, o: PrimExpr) -> Any:
        both = _ones(x(n, b1.var, k.var), w(o, b2.var, k.var), unipolar, out_dtype)
        return R.sum(ops.shift_left(both, ops.cast(b1.var + b2.var, out_dtype)), axis=[k, b2, b1])

    return compute((data.shape[0], w.shape[0]), element, "T_bitserial_dense", "bitserial_dense")  # type: ignore[no-any-return]


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """Put the signs of 32 elements of an axis (the last) into one uint32; not below zero is 1."""
    along = normalize_axis(-1 if axis is None else axis, data.ndim)
    extent = get_const_int(data.shape[along])
    if extent % 32:
        raise InvalidShapeError(
            f"binarize_pack of axis {along} of {data.shape}: its {extent} elements must be a "
            "multiple of 32"
        )
    shape = list(data.shape)
    shape[along] = ops.const(extent // 32)

    def element(*i: PrimExpr) -> Any:
        word: Any = ops.const(0, "uint32")
        for k in range(32):
            at = list(i)
            at[along] = i[along] * 32 + k
            sign = ops.cast(ops.greater_equal(data(*at), ops.const(0, data.dtype)), "uint32")
            word = ops.bitwise_or(ops.shift_left(word, ops.const(1, "uint32")), sign)
        return word

    return compute(shape, element, name=name, tag="binarize_pack")  # type: ignore[no-any-return]


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """Multiply rows of signs (N, K), packed by `binarize_pack`, with weights (O, K), packed too."""
    if any(t.dtype != "uint32" or t.ndim != 2 for t in (data, weight)):
        raise InvalidShapeError(
            f"binary_dense takes what binarize_pack gives, uint32 of two axes, not {data.dtype} "
            f"{data.shape} and {weight.dtype} {weight.shape}"
        )
    words = data.shape[1]
    _need_equal(data, words, weight, weight.shape[1], "binary_dense")
    k = R.reduce_axis((0, words), "k")
    unlike = compute(
        (data.shape[0], weight.shape[0]),
        lambda i, j: R.sum(
            ops.cast(math.popcount(ops.bitwise_xor(data[i, k.var], weight[j, k.var])), "int32"),
            axis=k,
        ),
        tag="binary_dense",
    )
    return compute(  # type: ignore[no-any-return]
        unlike.shape,
        lambda i, j: ops.cast(ops.sub(ops.mul(words, 32), ops.mul(unlike[i, j], 2)), "float32"),
        tag="elemwise",
    )
