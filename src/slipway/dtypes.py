"""Data types, written as plain strings: "float32", "int8x16", "bool", "handle".

A dtype string is code + bits, with `xN` appended for N vector lanes.  They are strings
so that ``A.dtype`` goes straight into NumPy, and so that two equal types are one object
in every dictionary.  The functions here take them apart; all are cached.

A type of the user's own, "custom[posites2]16", is one more code, once it is registered.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from slipway.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import numpy as np

# Small floating point formats by their ml_dtypes names, each with its DLDataTypeCode and bits.
# Like the integers of 2 bits they are "carried": stored one to a byte, moved and converted, but not
# computed with.  Those of 4 bits relay carries too; loops compute with them (codegen/narrow.py).
_CARRIED_FLOATS = {
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float4_e2m1fn": (17, 4),
}
_PATTERN = re.compile(
    rf"({'|'.join(_CARRIED_FLOATS)}|int|uint|float|bfloat|bool|handle|custom\[\w+\])(\d*)(?:x(\d+))?"
)
_WIDTHS = {
    "int": (2, 4, 8, 16, 32, 64),
    "uint": (1, 2, 4, 8, 16, 32, 64),
    "float": (16, 32, 64),
    "bfloat": (16,),
}
# DLPack's DLDataTypeCode.
DLPACK_CODE = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 6}
DLPACK_CODE.update((name, code) for name, (code, _) in _CARRIED_FLOATS.items())
_CODE_OF_DLPACK = {value: key for key, value in DLPACK_CODE.items()}
# Numbers of the user's own lie in unsigned integers of their width; each has a code from 129 on.
FIRST_CUSTOM_CODE, LAST_CUSTOM_CODE = 129, 255
_CUSTOM_WIDTHS = (8, 16, 32, 64)


class NamedType(Protocol):
    """A type of another package that tells its name, as those of NumPy and tvm_ffi do."""

    @property
    def name(self) -> str:
        """The name: "float32"."""
        ...

    def __hash__(self) -> int: ...


DTypeLike: TypeAlias = "str | type | NamedType | np.dtype[np.generic]"  # of `canonical`


class DTypeParts(NamedTuple):
    """A dtype taken apart: type code, bits of one lane, number of lanes."""

    code: str
    bits: int
    lanes: int


@cache
def parse(dtype: str) -> DTypeParts:
    """Take `dtype` apart.

    ``bool`` has 8 bits in memory; ``handle`` has 64 here, and the target's pointer width
    in generated code.  Raises ValueError for a string that names no type.
    """
    match = _PATTERN.fullmatch(dtype)
    if match is None:
        raise ArgumentValueError(
            f"{dtype!r} is not a dtype; write for example 'float32' or 'int8x16'"
        )
    code, bits, lanes = match.group(1), match.group(2), int(match.group(3) or 1)
    if code == "bool" or (bits == "1" and code in ("int", "uint")):
        code = "bool"
        return DTypeParts(code, 8, lanes)
    if code == "handle":
        return DTypeParts(code, 64, lanes)
    if code in _CARRIED_FLOATS:
        return DTypeParts(code, _CARRIED_FLOATS[code][1], lanes)
    width = int(bits) if bits else 32
    if code not in DLPACK_CODE:
        raise ArgumentValueError(
            f"{dtype!r} is not a dtype: {code} is not registered; "
            f"call tvm.target.datatype.register({custom_name(code)!r}, "
            f"{FIRST_CUSTOM_CODE}) first, or take another code up to {LAST_CUSTOM_CODE}"
        )
    known = _WIDTHS.get(code, _CUSTOM_WIDTHS)
    if width not in known or lanes < 1:
        widths = ", ".join(str(w) for w in known)
        raise ArgumentValueError(f"{dtype!r} is not a dtype: {code} comes in {widths} bits")
    return DTypeParts(code, width, lanes)


@cache
def make(code: str, bits: int, lanes: int = 1) -> str:
    """Build a dtype string from its parts; the inverse of `parse`."""
    base = code if code in ("bool", "handle", *_CARRIED_FLOATS) else f"{code}{bits}"
    return base if lanes == 1 else f"{base}x{lanes}"


def canonical(dtype: DTypeLike) -> str:
    """Return the dtype string of a string, a NumPy dtype or scalar type, or a tvm_ffi dtype."""
    try:
        return _canonical(dtype)
    except TypeError:  # what cannot be hashed is no dtype
        raise ArgumentTypeError(
            f"{dtype!r:.80} is not a dtype; write for example 'float32'"
        ) from None


@cache
def _canonical(dtype: DTypeLike) -> str:
    text = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype)
    if not isinstance(text, str):
        text = repr(dtype)
    if isinstance(dtype, type):
        text = {"float": "float32", "int": "int32", "bool": "bool"}.get(
            dtype.__name__, dtype.__name__.rstrip("_")
        )
    if text in ("uint1", "int1"):
        text = "bool"
    parts = parse(text)
    return make(*parts)


def code_of(dtype: str) -> str:
    """Return the type code: int, uint, float, bfloat, bool or handle."""
    return parse(dtype).code


def bits_of(dtype: str) -> int:
    """Return the bits of one lane."""
    return parse(dtype).bits


def lanes_of(dtype: str) -> int:
    """Return the number of vector lanes; 1 for a scalar."""
    return parse(dtype).lanes


@cache
def with_lanes(dtype: str, lanes: int) -> str:
    """Return `dtype` with `lanes` lanes."""
    parts = parse(dtype)
    return make(parts.code, parts.bits, lanes)


def scalar_of(dtype: str) -> str:
    """Return the dtype of one lane."""
    return with_lanes(dtype, 1)


@cache
def is_float(dtype: str) -> bool:
    """Return whether values are real numbers: float, bfloat, or of the user's own type."""
    code = parse(dtype).code
    return code in ("float", "bfloat") or code.startswith("custom")


@cache
def is_custom(dtype: str) -> bool:
    """Return whether `dtype` is a number of the user's own, "custom[name]bits"."""
    return parse(dtype).code.startswith("custom")


def any_custom() -> bool:
    """Return whether any type of the user's own is registered."""
    return any(code.startswith("custom") for code in DLPACK_CODE)


def custom_name(code: str) -> str:
    """Return the name in the code of a type of the user's own."""
    return code.removeprefix("custom[").removesuffix("]")


def custom_carrier(dtype: str) -> str:
    """Return the unsigned integers in which numbers of the user's own lie."""
    parts = parse(dtype)
    return make("uint", parts.bits, parts.lanes)


def custom_code(name: str) -> int | None:
    """Return the code of the user's own type of a name; None where there is none."""
    return DLPACK_CODE.get(f"custom[{name}]")


def custom_type_name(number: int) -> str | None:
    """Return the name of the user's own type with a code; None where there is none."""
    code = _CODE_OF_DLPACK.get(number, "")
    return custom_name(code) if code.startswith("custom") else None


def register_custom(name: str, number: int) -> None:
    """Make "custom[name]bits" a dtype whose DLPack code is `number`; see `target.datatype`."""
    if re.fullmatch(r"\w+", name) is None:
        raise ArgumentValueError(
            f"a datatype cannot be called {name!r}: take letters, digits and underscores"
        )
    if not FIRST_CUSTOM_CODE <= number <= LAST_CUSTOM_CODE:
        raise ArgumentValueError(
            f"the code of datatype {name!r} is {number}: take one from {FIRST_CUSTOM_CODE} "
            f"to {LAST_CUSTOM_CODE}"
        )
    other = custom_type_name(number)
    if other not in (None, name) or custom_code(name) not in (None, number):
        taken = f"{number} is that of {other!r}" if other else f"it has {custom_code(name)}"
        raise ArgumentValueError(
            f"datatype {name!r} cannot have the code {number}: {taken}; a type keeps its code"
        )
    DLPACK_CODE[f"custom[{name}]"] = number
    _CODE_OF_DLPACK[number] = f"custom[{name}]"


@cache
def is_carried(dtype: str) -> bool:
    """Return whether values are only stored and converted: integers under 8 bits, small floats."""
    code, bits, _ = parse(dtype)
    return bits < 8 or code in _CARRIED_FLOATS


@cache
def carrier_of(dtype: str) -> str:
    """Return the dtype of the byte in which a carried dtype lies: int8 for int2, int4; else uint8.

    The low bits hold the value; those above are 0, as ml_dtypes has it.
    """
    parts = parse(dtype)
    return make("int" if parts.code == "int" else "uint", 8, parts.lanes)


def is_int(dtype: str) -> bool:
    """Return whether values are signed integers."""
    return parse(dtype).code == "int"


def is_uint(dtype: str) -> bool:
    """Return whether values are unsigned integers (bool excluded)."""
    return parse(dtype).code == "uint"


def is_bool(dtype: str) -> bool:
    """Return whether values are truth values."""
    return parse(dtype).code == "bool"


def is_integral(dtype: str) -> bool:
    """Return whether values are integers of either sign (bool excluded)."""
    return parse(dtype).code in ("int", "uint")


def bytes_of(dtype: str) -> int:
    """Return the bytes of one element with all its lanes, rounded up."""
    parts = parse(dtype)
    return (parts.bits * parts.lanes + 7) // 8


def array_bytes(count: int, dtype: str) -> int:
    """Return the bytes of `count` contiguous elements; four-bit ones lie two in a byte."""
    parts = parse(dtype)
    if parts.code in ("int", "uint") and parts.bits == 4:
        return (count * parts.lanes + 1) // 2
    return count * bytes_of(dtype)


@cache
def int_range(dtype: str) -> tuple[int, int]:
    """Return the smallest and largest value of an integer or bool dtype."""
    code, bits, _ = parse(dtype)
    if code == "bool":
        return 0, 1
    if code == "uint":
        return 0, (1 << bits) - 1
    if code == "int":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    raise ArgumentValueError(f"{dtype!r} is not an integer type")


def from_dlpack(code: int, bits: int, lanes: int) -> str:
    """Return the dtype string of a DLPack DLDataType."""
    if code == 1 and bits == 1:
        return make("bool", 8, lanes)
    return make(_CODE_OF_DLPACK[code], bits, lanes)
