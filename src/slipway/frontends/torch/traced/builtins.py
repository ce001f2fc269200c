"""What TorchScript computes with numbers, lists and tuples, as functions of Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is plain: a number (of torch's sizes too), a text, nothing."""
    return (
        value is None
        or isinstance(value, bool | int | float | str)
        or type(value).__name__ in ("SymInt", "SymFloat", "SymBool", "dtype", "device")
    )


def is_open(value: Any) -> bool:
    """Return whether a number is one of torch's sizes that are open."""
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


def _appended(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _length(low: Any, high: Any, step: Any) -> Any:
    return max(0, -((low - high) // step)) if step > 0 else max(0, -((high - low) // -step))


def _part(values: Any, start: Any = None, stop: Any = None, step: Any = 1) -> Any:
    return values[start:stop:step]


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _int(value: Any) -> Any:
    return value if type(value).__name__ == "SymInt" else int(value)


def _float(value: Any) -> Any:
    return value * 1.0 if is_open(value) else float(value)


def _not(value: Any) -> Any:
    return value.logical_not() if hasattr(value, "logical_not") else not value


# Of any values at all.
ALWAYS = ("__is__", "__isnot__", "len", "warn")
# Of numbers, and of lists of them; a step with a tensor among its inputs is an operator.
NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "remainder": operator.mod, "neg": operator.neg,
    "pow": operator.pow, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "__and__": operator.and_,
    "__or__": operator.or_, "__not__": _not, "__is__": operator.is_,
    "__isnot__": operator.is_not, "__range_length": _length,
    "__derive_index": lambda index, start, step: start + index * step,
    "Int": _int, "Float": _float, "Bool": bool, "str": str, "IntImplicit": _int,
    "FloatImplicit": _float, "ScalarImplicit": lambda value: value, "item": lambda value: value,
    "floor": math.floor, "ceil": math.ceil, "sqrt": math.sqrt, "abs": abs, "log": math.log,
    "exp": math.exp, "round": round, "warn": _nothing, "format": str.format,
    "len": len,
    "__getitem__": operator.getitem, "slice": _part, "list": list, "append": _appended,
    "__contains__": operator.contains, "add_": operator.iadd, "copy": list,
}  # fmt: skip


def _own(value: Any, *_: Any) -> Any:
    return value


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "ListConstruct": lambda *values: list(values), "TupleConstruct": lambda *values: values,
    "ListUnpack": tuple, "TupleUnpack": tuple, "TupleIndex": operator.getitem,
    "DictConstruct": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "unchecked_cast": _own, "unchecked_unwrap_optional": _own, "Uninitialized": lambda: None,
    "Print": _nothing, "dtype": lambda x: x.dtype, "device": lambda x: x.device,
    "layout": lambda x: x.layout, "is_cuda": lambda x: False, "shape": lambda x: list(x.shape),
    "requires_grad": lambda x: False, "data": _own, "min": min, "max": max, "abs": abs,
}  # fmt: skip


def _divided(a: Any, b: Any, rounding: str | None = None) -> Any:
    return a / b if rounding is None else a // b


# Operators of tensors, of what a trace writes as tensors and is an open size.
OF_SIZES: dict[str, Callable[..., Any]] = {
    **NUMBERS, "div": _divided, "floor_divide": operator.floordiv,
    "add": lambda a, b, alpha=1: a + alpha * b, "sub": lambda a, b, alpha=1: a - alpha * b,
    "rsub": lambda a, b, alpha=1: b - alpha * a, "detach": _own, "clone": _own,
    "to": lambda value, kind=None, *_: value * 1.0 if kind in (5, 6, 7) else value,
}  # fmt: skip
