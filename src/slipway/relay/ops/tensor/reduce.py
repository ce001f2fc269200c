"""Reductions over axes: sum, mean, prod, max, min, all, any, argmax, argmin, and composites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    make,
    register_op,
)
from slipway.relay.ops.checks import integers, need_number, normal_axes
from slipway.relay.ops.tensor import binary, shape, unary
from slipway.relay.ops.tensor.tensors import te, value_of, wide
from slipway.relay.types import TensorType, Type, is_open

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, Axes, ExprLike


@node
class ReduceAttrs(Attrs):
    """The axes to reduce: None all of them; with `exclude`, all but the named."""

    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    exclude: bool = False


def reduced_axes(attrs: ReduceAttrs, rank: int) -> tuple[int, ...]:
    """Return the reduced axes, rising."""
    if attrs.axis is None:
        return tuple(range(rank))
    axes = normal_axes(attrs.axis, rank)
    if attrs.exclude:
        return tuple(a for a in range(rank) if a not in axes)
    return tuple(sorted(axes))


def _shape(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if a in axes else d for a, d in enumerate(shape))
    return tuple(d for a, d in enumerate(shape) if a not in axes)


def _source(
    indices: Sequence[Any], taps: Sequence[Any], axes: Sequence[int], rank: int, keepdims: bool
) -> list[Any]:
    """Return the indices into the data for one output element and the reduction axes."""
    kept = [i for a, i in enumerate(indices) if not (keepdims and a in axes)]
    rest, inner = iter(kept), iter(taps)
    return [next(inner) if a in axes else next(rest) for a in range(rank)]


def _axis(axis: Axes) -> tuple[int, ...] | None:
    return None if axis is None else integers("axis", axis)


def _reducer(
    name: str,
    reference: Callable[..., Any],
    build: Callable[[Any, Any, list[Any]], Any],
    doc: str,
    *,
    divide: bool = False,
    sample: str = "float32",
) -> Any:
    """Register a reduction; `divide` makes a mean of a sum."""
    definition = register_op(
        name, "data", attrs=ReduceAttrs, pattern=OpPattern.COMM_REDUCE, doc=doc
    )
    boolean = sample == "bool"

    @definition.type_relation
    def relation(attrs: ReduceAttrs, data: TensorType) -> Type:
        if boolean and data.dtype != "bool":
            raise BadArgument("data", f"must be bool, got {data}; compare it with 0 first")
        if not boolean:
            need_number("data", data)
        axes = reduced_axes(attrs, data.rank)
        return TensorType(_shape(data.shape, axes, attrs.keepdims), data.dtype)

    @definition.reference
    def evaluate(attrs: ReduceAttrs, data: Array) -> Any:
        axes = reduced_axes(attrs, data.ndim)
        options = {}
        if name in ("max", "min"):  # of no elements: what loses to all
            options["initial"] = _loser(name == "max", data.dtype)
        found = reference(data, axis=axes, keepdims=attrs.keepdims, **options)
        return np.asarray(found).astype(data.dtype)

    @definition.compute
    def compute(attrs: ReduceAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,), (out,) = inputs, out_types
        shape = [size_of(d) for d in x.shape]
        axes = reduced_axes(attrs, len(shape))
        if not axes:
            return [te().compute(out.shape, lambda *i: x(*i), name=f"T_{name}", tag="elemwise")]
        taps = [te().reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]

        def element(*i: PrimExpr) -> Any:
            value = x(*_source(i, taps, axes, len(shape), attrs.keepdims))
            return build(te(), value.astype(summed), taps)

        summed = wide(x.dtype) if name in ("sum", "mean", "prod") else x.dtype
        if divide and not dtypes.is_float(x.dtype):
            summed = _whole_sum(x.dtype)
        total = te().compute(out.shape, element, name=f"{name}_red", tag="comm_reduce")
        count = product(shape[a] for a in axes) if divide else None
        return [_finished(total, count, summed, out.dtype)]

    @definition.flops
    def flops(attrs: ReduceAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
        return float(ins[0].size)

    @definition.make
    def make(
        data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False
    ) -> Call:
        return definition(data, attrs=ReduceAttrs(_axis(axis), bool(keepdims), bool(exclude)))

    make.__name__, make.__doc__ = name, doc
    for attrs in (ReduceAttrs(), ReduceAttrs((1,)), ReduceAttrs((0, -1), True)):
        definition.sample_case((2, 3, 4), attrs=attrs, dtypes=(sample,), low=0.5, high=2)
    definition.sample_case(
        (2, 3, 4), attrs=ReduceAttrs((1,), False, True), dtypes=(sample,), low=0.5, high=2
    )
    return make


def _finished(total: Any, count: Any, summed: str, dtype: str) -> Any:
    """Return sums as the operator gives them: divided by a count where there is one, and cast."""
    if count is not None:
        number = value_of(count)
        divisor = te().const(number, summed) if isinstance(number, int) else number.astype(summed)

        def quotient(*i: PrimExpr) -> Any:
            return te().div(total(*i), divisor).astype(dtype)

        return te().compute(total.shape, quotient, name="T_divide", tag="elemwise")
    if summed == dtype:
        return total
    return te().compute(
        total.shape, lambda *i: total(*i).astype(dtype), name="T_cast", tag="elemwise"
    )


def _mean(data: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    if dtypes.is_float(data.dtype.name):
        total = np.sum(data, axis=axis, keepdims=keepdims, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # NaN of no elements
            return total / np.float64(product(data.shape[a] for a in axis))
    count = max(product(data.shape[a] for a in axis), 1)
    total = np.sum(data, axis=axis, keepdims=keepdims, dtype=_whole_sum(data.dtype.name))
    quotient = total // count
    return quotient + ((total < 0) & (quotient * count != total))  # towards zero


def _loser(largest: bool, dtype: Any) -> Any:
    """The maximum (or minimum) of no elements: an infinity, or the end of the integers."""
    if dtypes.is_float(dtype.name):
        return -np.inf if largest else np.inf
    if dtype.name == "bool":
        return not largest
    return np.iinfo(dtype).min if largest else np.iinfo(dtype).max


def _whole_sum(dtype: str) -> str:
    """The dtype that a mean of integers sums in, modulo 2**64."""
    return "uint64" if dtype == "uint64" else "int64"


sum_ = _reducer("sum", np.sum, lambda t, x, k: t.sum(x, axis=k), "The sum over axes.")
mean = _reducer("mean", _mean, lambda t, x, k: t.sum(x, axis=k), "The mean over axes.", divide=True)
prod = _reducer("prod", np.prod, lambda t, x, k: t.prod(x, axis=k), "The product over axes.")


def _extreme(largest: bool) -> Callable[[Any, Any, list[Any]], Any]:
    """Return the builder of a maximum or minimum; infinity, unlike te's start, loses to all."""

    def build(te_: Any, x: Any, taps: list[Any]) -> Any:
        step = te_.max if largest else te_.min
        if not dtypes.is_float(x.dtype):
            return step(x, axis=taps)
        start = -float("inf") if largest else float("inf")
        reducer = te_.comm_reducer(
            lambda a, b: step(a, b),
            lambda t: te_.const(start, t),
            name="max" if largest else "min",
        )
        return reducer(x, axis=taps)

    return build


max_ = _reducer("max", np.max, _extreme(True), "The largest over axes.")
min_ = _reducer("min", np.min, _extreme(False), "The minimum over axes.")
all_ = _reducer(
    "all", np.all, lambda t, x, k: t.all(x, axis=k), "Whether all hold over axes.", sample="bool"
)
any_ = _reducer(
    "any", np.any, lambda t, x, k: t.any(x, axis=k), "Whether one holds over axes.", sample="bool"
)


@node
class ArgReduceAttrs(Attrs):
    """Axes (None: all), and which of equal candidates is taken.

    The position in several axes is that in their elements, in the order of memory.
    """

    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False
    select_last_index: bool = False
    dtype: str = "int64"


def _arg_axes(attrs: ArgReduceAttrs, rank: int) -> tuple[int, ...]:
    if attrs.axis is None:
        return tuple(range(rank))
    given = attrs.axis if isinstance(attrs.axis, tuple) else (attrs.axis,)
    return tuple(sorted(normal_axes(given, rank)))


def _arg_reducer(name: str, largest: bool) -> OpDefinition:
    definition = register_op(
        name, "data", attrs=ArgReduceAttrs, pattern=OpPattern.COMM_REDUCE,
        doc=f"The position of the {'largest' if largest else 'smallest'} element along an axis.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: ArgReduceAttrs, data: TensorType) -> Type:
        need_number("data", data)
        axes = _arg_axes(attrs, data.rank)
        shape = _shape(data.shape, axes, attrs.keepdims)
        if 0 in data.shape and 0 not in shape:
            raise BadArgument("data", f"is {data}: there is no position in no elements")
        return TensorType(shape, attrs.dtype)

    @definition.reference
    def evaluate(attrs: ArgReduceAttrs, data: Array) -> Any:
        find = np.argmax if largest else np.argmin
        axes = _arg_axes(attrs, data.ndim)
        kept = [a for a in range(data.ndim) if a not in axes]
        shape = _shape(data.shape, axes, attrs.keepdims)
        if 0 in shape:
            return np.zeros(shape, attrs.dtype)
        rows = data.transpose(*kept, *axes).reshape(*(data.shape[a] for a in kept), -1)
        last = attrs.select_last_index
        found = np.asarray(find(rows[..., ::-1] if last else rows, axis=-1))
        found = rows.shape[-1] - 1 - found if last else found
        return found.reshape(shape).astype(attrs.dtype)

    @definition.compute
    def compute(attrs: ArgReduceAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,), (out,) = inputs, out_types
        if not x.shape:  # one element, and its position
            zero = te().const(0, out.dtype)
            return [te().compute((), lambda: zero, name=f"{name}_red", tag="elemwise")]
        axes = _arg_axes(attrs, len(x.shape))
        if axes[-1] == len(x.shape) - 1:
            return _position_in_rows(attrs, x, out, axes, largest)
        return _position_in_pairs(attrs, x, out, axes, name)

    definition.sample_case((3, 5))
    definition.sample_case((3, 5), attrs=ArgReduceAttrs(1, True))
    definition.sample_case(())
    definition.sample_case(
        (3, 5), attrs=ArgReduceAttrs(0, False, True), dtypes=("int32",), low=0, high=2
    )
    for axes, keepdims, last in (
        ((0, 2), False, False),
        ((1, 2), True, False),
        ((0, 1), False, True),
    ):
        definition.sample_case(
            (3, 2, 4), attrs=ArgReduceAttrs(axes, keepdims, last), dtypes=("int32",), low=0, high=2
        )
    return definition


def _position_in_pairs(
    attrs: ArgReduceAttrs, x: Any, out: TensorType, axes: Sequence[int], name: str
) -> list[Any]:
    """Find across memory: one reduction of pairs of position and value."""
    largest, last = name == "argmax", attrs.select_last_index
    shape = [size_of(d) for d in x.shape]
    taps = [te().reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]

    def combine(lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr]) -> Any:
        better = lhs[1] > rhs[1] if largest else lhs[1] < rhs[1]
        tied = ops.equal(lhs[1], rhs[1])
        if dtypes.is_float(x.dtype):  # the first NaN wins over every number
            better = te().any(better, te().all(te().isnan(lhs[1]), ops.equal(rhs[1], rhs[1])))
            tied = te().any(tied, te().all(te().isnan(lhs[1]), te().isnan(rhs[1])))
        first = lhs[0] > rhs[0] if last else lhs[0] < rhs[0]
        keep = te().any(better, te().all(tied, first))
        return te().select(keep, lhs[0], rhs[0]), te().select(keep, lhs[1], rhs[1])

    def identity(index_dtype: str, value_dtype: str) -> Any:
        worst = te().lowest(value_dtype) if largest else te().highest(value_dtype)
        # A real candidate wins over the start even with an equal value.
        return te().const(-1 if last else 2**31 - 1, index_dtype), worst

    reducer = te().comm_reducer(combine, identity, name=name)

    def element(*i: PrimExpr) -> Any:
        value = x(*_source(i, taps, axes, len(shape), attrs.keepdims))
        return reducer((_position(shape, axes, taps), value), axis=taps)

    both = te().compute(out.shape, element, name=f"{name}_red_temp", tag="comm_reduce_idx")
    return [
        te().compute(
            out.shape, lambda *i: both[0](*i).astype(out.dtype), name=f"{name}_red", tag="elemwise"
        )
    ]


def _position(shape: Sequence[Any], axes: Sequence[int], taps: Sequence[Any]) -> Any:
    """Return the position in several axes: that in their elements, in the order of memory."""
    position: Any = 0
    for a, tap in zip(axes, taps, strict=True):
        position = tap if len(axes) == 1 else position * value_of(shape[a]) + tap
    return position


def _position_in_rows(
    attrs: ArgReduceAttrs, x: Any, out: TensorType, axes: Sequence[int], largest: bool
) -> list[Any]:
    """Find along memory: the extreme first, then the first (or last) position that has it.

    Two plain reductions, which run in vectors where one of pairs does not.
    """
    shape = [size_of(d) for d in x.shape]
    count = value_of(product(shape[a] for a in axes))
    find, last = (te().max if largest else te().min), attrs.select_last_index

    def taps_of(name: str) -> list[Any]:
        return [te().reduce_axis((0, shape[a]), name=f"{name}{a}") for a in axes]

    def read(i: Sequence[Any], taps: Sequence[Any]) -> Any:
        return x(*_source(i, taps, axes, len(shape), attrs.keepdims))

    k = taps_of("k")
    extreme = te().compute(out.shape, lambda *i: find(read(i, k), axis=k), name="extreme")
    j = taps_of("j")
    position = _position(shape, axes, j)

    def reached(*i: Any) -> Any:
        found = ops.equal(read(i, j), extreme(*i))
        if dtypes.is_float(x.dtype):  # the extreme is a NaN where there is one
            found = te().any(found, te().isnan(read(i, j)))
        if last:
            return te().max(te().select(found, position, -1), axis=j)
        return te().min(te().select(found, position, count), axis=j)

    positions = te().compute(out.shape, reached, name="position", tag="comm_reduce_idx")

    return [
        te().compute(
            out.shape, lambda *i: positions(*i).astype(out.dtype), name="arg_reduce", tag="elemwise"
        )
    ]


ARGMAX, ARGMIN = _arg_reducer("argmax", True), _arg_reducer("argmin", False)


def _arg_attrs(
    data: ExprLike, axis: Axes, keepdims: bool, exclude: bool, last: bool, dtype: str
) -> ArgReduceAttrs:
    rank = as_expr(data).tensor_type.rank if exclude else 0
    axes = _axis(axis)
    if exclude and axes is not None:
        axes = tuple(a for a in range(rank) if a not in normal_axes(axes, rank))
    one = axes[0] if axes is not None and len(axes) == 1 else axes or None
    return ArgReduceAttrs(one, bool(keepdims), bool(last), dtype)


@ARGMAX.make
def argmax(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False,
    select_last_index: bool = False, dtype: str = "int32",
) -> Call:  # fmt: skip
    """Return the position of the largest element along `axis`."""
    return ARGMAX(data, attrs=_arg_attrs(data, axis, keepdims, exclude, select_last_index, dtype))


@ARGMIN.make
def argmin(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False,
    select_last_index: bool = False, dtype: str = "int32",
) -> Call:  # fmt: skip
    """Return the position of the smallest element along `axis`."""
    return ARGMIN(data, attrs=_arg_attrs(data, axis, keepdims, exclude, select_last_index, dtype))


def variance(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False, with_mean: ExprLike | None = None,
) -> Call:  # fmt: skip
    """Return the variance over axes; a composite of subtract, multiply and mean."""
    given = as_expr(data)
    average = mean(given, axis, True, exclude) if with_mean is None else as_expr(with_mean)
    centred = binary.subtract(given, average)
    spread: Call = mean(binary.multiply(centred, centred), axis, keepdims, exclude)
    if not unbiased:
        return spread
    attrs = ReduceAttrs(_axis(axis), False, exclude)
    sizes = [given.tensor_type.shape[a] for a in reduced_axes(attrs, given.tensor_type.rank)]
    if any(map(is_open, sizes)):  # counted where the shape is known
        dtype = given.tensor_type.dtype
        same, other = (make("cast")(f(given, given), dtype)
                       for f in (binary.equal, binary.not_equal))  # fmt: skip
        counted = sum_(binary.add(same, other), axis, keepdims, exclude)
        ratio = binary.divide(counted, binary.subtract(counted, as_expr(1.0, dtype)))
        return binary.multiply(spread, ratio)  # type: ignore[no-any-return]
    count = product(sizes)
    correction = count / (count - 1) if count > 1 else float("nan")
    return binary.multiply(spread, correction)  # type: ignore[no-any-return]


def std(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False,
) -> Call:  # fmt: skip
    """Return the standard deviation over axes."""
    return unary.sqrt(variance(data, axis, keepdims, exclude, unbiased))  # type: ignore[no-any-return]


def logsumexp(data: ExprLike, axis: Axes = None, keepdims: bool = False) -> Call:
    """Return log(sum(exp(data))) over axes, computed without overflow."""
    given = as_expr(data)
    top = max_(given, axis, True)
    # An infinity less itself is NaN: what is not finite is summed as it is.
    top = binary.where(unary.isfinite(top), top, 0.0)
    total = unary.log(sum_(unary.exp(binary.subtract(given, top)), axis, keepdims))
    if not keepdims:
        top = shape.reshape(top, total.tensor_type.shape)
    return binary.add(total, top)  # type: ignore[no-any-return]
