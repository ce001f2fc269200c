"""Conversions from and to the types that are stored in a byte but not computed with.

These are the integers of 2 and 4 bits and the floating point formats of 8 bits and less, under
their ml_dtypes names.  The NumPy side is ml_dtypes itself; the te side is integer arithmetic on the
bits and gives the same bits, NaN payloads excepted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slipway import dtypes
from slipway.ir import ops
from slipway.relay.ops.tensor.tensors import te
from slipway.runtime.ndarray import numpy_dtype


class Format(NamedTuple):
    """A floating point format: its fields, and the codes (sign excluded) of its special values."""

    bits: int
    mantissa: int
    bias: int
    largest: int  # finite value
    overflow: int  # what lies beyond `largest`, unsaturated
    nan: int | None
    infinity: bool = False
    unsigned_zero: bool = False  # the code of -0 is NaN, the only one


FORMATS = {
    "float8_e4m3fn": Format(8, 3, 7, 0x7E, 0x7F, 0x7F),
    "float8_e4m3fnuz": Format(8, 3, 8, 0x7F, 0x80, 0x80, unsigned_zero=True),
    "float8_e5m2": Format(8, 2, 15, 0x7B, 0x7C, 0x7E, infinity=True),
    "float8_e5m2fnuz": Format(8, 2, 16, 0x7F, 0x80, 0x80, unsigned_zero=True),
    "float4_e2m1fn": Format(4, 1, 1, 0x7, 0x7, None),
}
POWERS = "float8_e8m0fnu"  # the powers of two 2^(code - 127), and NaN


def largest(dtype: str) -> float:
    """Return the largest finite value of a small floating point format."""
    import ml_dtypes

    return float(ml_dtypes.finfo(numpy_dtype(dtype)).max)  # type: ignore[no-untyped-call]


def convert(data: Any, dtype: str, saturate: bool = False) -> Any:
    """Return the array converted to `dtype`: the meaning of relay's cast."""
    target = numpy_dtype(dtype)
    if dtype in FORMATS:
        wide = data.astype(np.float32)  # float64 goes through float32, as compiled code does
        return (np.clip(wide, -largest(dtype), largest(dtype)) if saturate else wide).astype(target)
    if dtypes.is_integral(dtype) and dtypes.is_float(data.dtype.name):
        data = to_integer(data, dtype)
    return data.astype(target)


def to_integer(data: Any, dtype: str) -> Any:
    """Return floats as integers, whatever they are: the meaning of `te.to_integer`."""
    wide = dtypes.bits_of(dtype) == 64 or dtype == "uint32"
    middle = "uint64" if dtype == "uint64" else "int64" if wide else "int32"
    info, double = np.iinfo(middle), np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0)
    with np.errstate(invalid="ignore"):
        held = np.where(double >= float(info.max), info.max, double.astype(middle))
        if middle == "uint64":  # the low bits of what is negative
            negative = np.where(double < -(2.0**63), -(2**63), double.astype(np.int64))
            return np.where(double < 0, negative.astype(middle), held).astype(middle)
        held = np.where(double < float(info.min), info.min, held).astype(middle)
    return held if dtypes.bits_of(dtype) < 8 else held.astype(dtype)


# -- te --------------------------------------------------------------------------------------------


def converted(value: Any, dtype: str, saturate: bool) -> Any:
    """Return the te expression of `value` as `dtype`; one of the two types is a carried one."""
    source = value.dtype
    if source == dtype:
        return value
    if source in FORMATS or source == POWERS:
        value = _decoded(_bits(value, "uint8").astype("uint32"), source)
    elif dtypes.is_carried(source):
        value = _sign_extended(_bits(value, dtypes.carrier_of(source)).astype("int32"), source)
    if not dtypes.is_carried(dtype):
        return (
            ops.not_equal(value, te().const(0, value.dtype))
            if dtype == "bool"
            else value_as(value, dtype)
        )
    if dtype in FORMATS:
        return _bits(_encoded(value.astype("float32"), FORMATS[dtype], saturate), dtype)
    if dtype == POWERS:
        return _bits(_power_code(value.astype("float32")), dtype)
    if dtypes.is_float(value.dtype):
        value = te().to_integer(value, "int32")
    low = value.astype("int32") & te().const((1 << dtypes.bits_of(dtype)) - 1, "int32")
    return _bits(low.astype(dtypes.carrier_of(dtype)), dtype)


def value_as(value: Any, dtype: str) -> Any:
    """Return the te expression of `value` as a dtype that is computed with."""
    if dtypes.is_float(value.dtype) and dtypes.is_integral(dtype):
        return te().to_integer(value, dtype)
    return value.astype(dtype)


def _sign_extended(value: Any, dtype: str) -> Any:
    """The value of the low bits of an int32; ml_dtypes keeps the others clear."""
    free = 32 - dtypes.bits_of(dtype)
    return (value << free) >> free if dtypes.is_int(dtype) else value


def _bits(value: Any, dtype: str) -> Any:
    return ops.call_intrin(dtype, "reinterpret", value)


def _word(value: int) -> Any:
    return te().const(value, "uint32")


def _decoded(code: Any, name: str) -> Any:
    """The float32 value of a code held in a uint32."""
    select = te().select
    nan = _bits(_word(0x7FC00000), "float32")
    if name == POWERS:
        found = select(ops.equal(code, _word(0)), _word(0x00400000), code << 23)
        return select(ops.equal(code, _word(255)), nan, _bits(found, "float32"))
    form = FORMATS[name]
    sign_bit = form.bits - 1
    sign = (code >> sign_bit) << 31
    size = code & _word((1 << sign_bit) - 1)
    normal = (size << (23 - form.mantissa)) + _word((127 - form.bias) << 23)
    scale = te().const(2.0 ** (1 - form.bias - form.mantissa), "float32")
    small = _bits(size.astype("int32").astype("float32") * scale, "uint32")
    found = select(size < _word(1 << form.mantissa), small, normal) | sign
    if form.infinity:
        found = select(ops.equal(size, _word(form.overflow)), sign | _word(0x7F800000), found)
        found = select(size > _word(form.overflow), _word(0x7FC00000), found)
    elif form.nan is not None:
        tested = code if form.unsigned_zero else size
        found = select(ops.equal(tested, _word(form.nan)), _word(0x7FC00000), found)
    return _bits(found, "float32")


def _encoded(value: Any, form: Format, saturate: bool) -> Any:
    """The code of a float32 rounded to nearest, halves to even, as a uint8."""
    select = te().select
    word = _bits(value, "uint32")
    sign_bit, shift = form.bits - 1, 23 - form.mantissa
    sign = (word >> 31) << sign_bit
    size = word & _word(0x7FFFFFFF)
    odd = (size >> shift) & _word(1)
    lowest = (128 - form.bias) << 23  # bits of the smallest normal value
    normal = (size - _word((127 - form.bias) << 23) + _word((1 << (shift - 1)) - 1) + odd) >> shift
    # This sum has the last bit of a small code as its own last bit, and rounds to even.
    magic = 2.0 ** (24 - form.bias - form.mantissa)
    total = _bits(size, "float32") + te().const(magic, "float32")
    small = _bits(total, "uint32") - _word(int(np.float32(magic).view(np.uint32)))
    code = select(size < _word(lowest), small, normal)
    limit = form.largest if saturate else form.overflow
    special = limit & ((1 << sign_bit) - 1)
    finite = select(code > _word(form.largest), _word(special), code)
    if form.unsigned_zero:
        result = select(ops.equal(finite, _word(0)), _word(0), finite | sign)
        if not saturate:
            result = select(code > _word(form.largest), _word(form.overflow), result)
    else:
        result = finite | sign
    if form.nan is None:
        nan = sign ^ _word(1 << sign_bit)  # a zero
    else:
        nan = _word(form.nan) if form.unsigned_zero else _word(form.nan) | sign
    return select(size > _word(0x7F800000), nan, result).astype("uint8")


def _power_code(value: Any) -> Any:
    """The code of the nearest power of two, halves away from zero; NaN for what has none."""
    word = _bits(value, "uint32")
    none = te().any(word >= _word((255 << 23) - (1 << 22)), ops.equal(word, _word(0)))
    return te().select(none, _word(255), (word + _word(1 << 22)) >> 23).astype("uint8")
