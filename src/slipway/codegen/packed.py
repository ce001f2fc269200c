"""What a PrimFunc expects of its arguments, as the data that glue/packed.c checks against."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway import dtypes
from slipway.errors import CodegenError
from slipway.ir.buffer import Buffer
from slipway.ir.expr import IntImm, PrimExpr, Var
from slipway.ir.function import PrimFunc

KIND_TENSOR, KIND_INT, KIND_FLOAT, KIND_POINTER = range(4)
ROW = 10
HEAD = 2


@dataclass
class Signature:
    """The checks of one function: `words` for packed.c, and what its `symbols` slots mean.

    `symbols[k]` is the Var that slot k binds, or None for a size that only `conditions` speaks
    of: pairs (slot, expression that the size must equal), checked after the symbols are bound.
    """

    name: str
    words: list[int] = field(default_factory=list)
    symbols: list[Var | None] = field(default_factory=list)
    conditions: list[tuple[int, PrimExpr, str]] = field(default_factory=list)


def c_words(words: list[int]) -> str:
    """Return a signature's words as C spells 32-bit integers."""
    text = ", ".join(str(w - (1 << 32) if w >= 1 << 31 else w) for w in words)
    return text.replace("-2147483648", "(-2147483647 - 1)")


def signature_of(func: PrimFunc, device_type: int = 1) -> Signature:
    """Describe `func`'s parameters; raises CodegenError for one that has no calling form.

    Tensors lie on devices of `device_type`, or of the function's attribute of that name.
    """
    device_type = int(func.attr("device_type", device_type))
    out = Signature(func.name)
    slots: dict[int, int] = {}

    def size(value: PrimExpr, what: str) -> int:
        if isinstance(value, IntImm):
            return value.value
        if isinstance(value, Var):
            if id(value) not in slots:
                slots[id(value)] = len(out.symbols)
                out.symbols.append(value)
            return -1 - slots[id(value)]
        out.symbols.append(None)
        out.conditions.append((len(out.symbols) - 1, value, what))
        return -len(out.symbols)

    for param in func.params:  # a size that is a parameter too must agree with it
        if func.buffer_of(param) is None and dtypes.is_integral(param.dtype):
            continue
    rows: list[list[int]] = []
    names: list[str] = []
    dims: list[int] = []
    for param in func.params:
        buffer = func.buffer_of(param)
        names.append(buffer.name if buffer is not None else param.name)
        if buffer is None:
            rows.append(_scalar_row(func, param))
            continue
        first = len(dims)
        dims += [size(s, f"{buffer.name}.shape[{i}]") for i, s in enumerate(buffer.shape)]
        dims += [size(s, f"{buffer.name}.strides[{i}]") for i, s in enumerate(buffer.strides)]
        rows.append(_tensor_row(buffer, device_type, first))
    _lay_out(out, rows, names, dims)
    return out


@dataclass(frozen=True)
class TensorParameter:
    """A compact tensor that a function takes; a dimension -1 - k is whatever slot k binds."""

    name: str
    dtype: str
    dims: list[int]


def need_returnable(name: str, value: PrimExpr, elsewhere: bool) -> None:
    """Raise CodegenError unless a function can return `value`; `elsewhere`: not from there."""
    if elsewhere:
        raise CodegenError(
            f"{name}: tir.ret stands where no value can be returned: in a parallel loop, in a "
            "kernel of a model or of a GPU. Write the result into a buffer"
        )
    if value.lanes != 1:
        raise CodegenError(f"{name}: tir.ret returns one number, and {value} is {value.dtype}")


def tensors_signature(
    name: str, parameters: list[TensorParameter], device_type: int = 1
) -> Signature:
    """Describe a function that takes tensors only; its dimensions' slots are the caller's."""
    out = Signature(name)
    rows: list[list[int]] = []
    dims: list[int] = []
    for parameter in parameters:
        rows.append(_row(parameter.dtype, len(parameter.dims), device_type, len(dims)))
        dims += parameter.dims
    _lay_out(out, rows, [parameter.name for parameter in parameters], dims)
    return out


def _scalar_row(func: PrimFunc, param: Var) -> list[int]:
    code, bits, lanes = dtypes.parse(param.dtype)
    if lanes != 1:
        raise CodegenError(f"{func.name}: parameter {param.name} is a vector ({param.dtype})")
    kind = {"float": KIND_FLOAT, "bfloat": KIND_FLOAT, "handle": KIND_POINTER}.get(code, KIND_INT)
    return [kind, 0, 0, bits, lanes, 0, -1, 1, 0, 0]


def _tensor_row(buffer: Buffer, device_type: int, first: int) -> list[int]:
    return _row(buffer.dtype, len(buffer.shape), device_type, first, len(buffer.strides))


def _row(dtype: str, rank: int, device_type: int, first: int, strides: int = 0) -> list[int]:
    code, bits, lanes = dtypes.parse(dtype)
    align = 1 << max(0, (max(1, bits // 8)).bit_length() - 1)
    return [KIND_TENSOR, 0, dtypes.DLPACK_CODE[code], bits, lanes, rank,
            device_type, align, first, strides]  # fmt: skip


def _lay_out(out: Signature, rows: list[list[int]], names: list[str], dims: list[int]) -> None:
    """Concatenate head, rows, dimensions and texts, with the offsets between them."""
    dims_at = HEAD + ROW * len(rows)
    text_at = 4 * (dims_at + 2 * len(dims))
    text = out.name.encode() + b"\0"
    head = [len(rows), text_at]
    for row, name in zip(rows, names, strict=True):
        row[1] = text_at + len(text)
        row[8] = dims_at + 2 * row[8]
        text += name.encode() + b"\0"
    text += b"\0" * (-len(text) % 4)
    words = head + [word for row in rows for word in row]
    for dim in dims:
        words += [dim & 0xFFFFFFFF, (dim >> 32) & 0xFFFFFFFF]
    words += [int.from_bytes(text[i : i + 4], "little") for i in range(0, len(text), 4)]
    out.words = [w & 0xFFFFFFFF for w in words]
