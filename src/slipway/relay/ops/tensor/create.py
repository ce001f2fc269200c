"""Tensors from nothing: full, zeros, ones, arange, and the *_like forms."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call, Constant
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, const, register_op
from slipway.relay.ops.checks import extents, need_shape
from slipway.relay.ops.dyn import length_of, needs_sizes, of_rank, sizes_may_be_tensors
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type, is_open

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class FullAttrs(Attrs):
    """Shape and dtype of the result; dtype "" is the value's own."""

    shape: tuple[int, ...] = ()
    dtype: str = ""


FULL = register_op(
    "full", "fill_value", attrs=FullAttrs, pattern=OpPattern.ELEMWISE, doc="One value everywhere."
)


@FULL.type_relation
def _full_type(attrs: FullAttrs, fill_value: TensorType) -> Type:
    need_shape("fill_value", fill_value, (), "a scalar")
    return TensorType(attrs.shape, attrs.dtype or fill_value.dtype)


@FULL.reference
def _full_reference(attrs: FullAttrs, fill_value: Array) -> Any:
    return np.full(attrs.shape, fill_value, attrs.dtype or fill_value.dtype)


@FULL.compute
def _full_compute(attrs: FullAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (value,), (out,) = inputs, out_types
    return [
        te().compute(
            out.shape, lambda *i: value().astype(out.dtype), name="T_full", tag="broadcast"
        )
    ]


@FULL.make
@sizes_may_be_tensors(
    "shape",
    tensors=("fill_value",),
    result=lambda fill_value, shape, dtype: of_rank(
        length_of("shape", shape), dtype or fill_value.dtype
    ),
)
def full(fill_value: ExprLike, shape: Extents = (), dtype: str = "") -> Call:
    """Return a tensor that holds `fill_value` everywhere."""
    sizes = extents("shape", shape)
    return FULL(as_expr(fill_value, dtype or None), attrs=FullAttrs(sizes, dtype or ""))


FULL.sample_case((), attrs=FullAttrs((2, 3), "float32"))


def _filled(value: float, shape: Extents, dtype: str) -> Call:
    made: Call = full(const(value, dtype), shape, dtype)
    return made


def zeros(shape: Extents, dtype: str = "float32") -> Call:
    """Return zeros."""
    return _filled(0, shape, dtype)


def ones(shape: Extents, dtype: str = "float32") -> Call:
    """Return ones."""
    return _filled(1, shape, dtype)


@needs_sizes
def full_like(data: ExprLike, fill_value: ExprLike) -> Call:
    """Return a tensor of the type of `data` that holds `fill_value` everywhere."""
    given = as_expr(data).tensor_type
    made: Call = full(as_expr(fill_value, given.dtype), given.shape, given.dtype)
    return made


def zeros_like(data: ExprLike) -> Call:
    """Return zeros of the type of `data`."""
    return full_like(data, 0)


def ones_like(data: ExprLike) -> Call:
    """Return ones of the type of `data`."""
    return full_like(data, 1)


@node
class ArangeAttrs(Attrs):
    """start, start + step, ... below stop."""

    start: float = 0
    stop: float = 1
    step: float = 1
    dtype: str = "int32"


ARANGE = register_op(
    "arange", attrs=ArangeAttrs, pattern=OpPattern.INJECTIVE, doc="An arithmetic sequence."
)


@ARANGE.type_relation
def _arange_type(attrs: ArangeAttrs) -> Type:
    if attrs.step == 0:
        raise BadArgument("step", "is 0")
    if is_open(attrs.stop):
        return TensorType((_open_count(attrs.start, attrs.stop, attrs.step),), attrs.dtype)
    count = ceil((attrs.stop - attrs.start) / attrs.step)
    return TensorType((max(count, 0),), attrs.dtype)


def _open_count(start: float, stop: float, step: float) -> Any:
    if int(start) != start or int(step) != step or step < 0:
        raise BadArgument("step", f"is {step} from {start}: up to an open size it takes integers")
    steps = (stop - int(start) + int(step) - 1) // int(step)
    return steps if steps >= 0 else 0


@ARANGE.reference
def _arange_reference(attrs: ArangeAttrs) -> Any:
    count = max(ceil((attrs.stop - attrs.start) / attrs.step), 0)
    return (attrs.start + np.arange(count) * attrs.step).astype(attrs.dtype)


@ARANGE.compute
def _arange_compute(
    attrs: ArangeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,) = out_types
    start, step = te().const(attrs.start, out.dtype), te().const(attrs.step, out.dtype)
    return [
        te().compute(
            out.shape,
            lambda i: start + i.astype(out.dtype) * step,
            name="T_arange",
            tag="injective",
        )
    ]


def _arange_any(dtype: str | None) -> Type:
    return of_rank(1, dtype or "float32")


@ARANGE.make
@sizes_may_be_tensors("start", "stop", "step", tensors=(), result=_arange_any)
def arange(
    start: ExprLike, stop: ExprLike | None = None, step: ExprLike = 1, dtype: str = "float32"
) -> Call:
    """Return start, start + step, ... below stop; one argument is the stop."""

    def number(value: Any) -> Any:
        if is_open(value):
            return value
        array = value.array if isinstance(value, Constant) else value
        if np.size(array) != 1 or not np.isfinite(array).all():
            raise BadArgument("start", f"stop and step are numbers, got {array!r}")
        return np.asarray(array).reshape(()).item()

    first, last = (0, number(start)) if stop is None else (number(start), number(stop))
    return ARANGE(attrs=ArangeAttrs(first, last, number(step), dtype))


ARANGE.sample_case(attrs=ArangeAttrs(2, 11, 3, "int32"))
ARANGE.sample_case(attrs=ArangeAttrs(1, -2, -0.5, "float32"))
