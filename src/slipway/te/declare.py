"""The functions that declare tensors: placeholder, compute, extern, scan, var, thread_axis."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from slipway import dtypes
from slipway.arguments import function_of, items_of
from slipway.entered import Entered
from slipway.errors import ArgumentTypeError, ArgumentValueError, ScheduleError
from slipway.ir import ops
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, SizeVar, Var
from slipway.ir.stmt import Evaluate, Stmt, seq
from slipway.ir.visit import walk
from slipway.te.attributes import OperationAttrs
from slipway.te.intrinsic_calls import axes_and_body
from slipway.te.operation import ComputeOp, ExternOp, PlaceholderOp, ScanOp
from slipway.te.reduction import as_range
from slipway.te.tensor import INSIDE, Tensor
from slipway.te.tensor_intrin import IntrinsicCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.dtypes import DTypeLike
    from slipway.ir.expr import PrimExprLike, ShapeLike


def var(name: str = "tindex", dtype: str = "int32", span: object = None) -> Var:
    """Return a new scalar variable."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"te.var takes a name and a dtype, not {name!r}")
    return Var(name, dtypes.canonical(dtype))


def size_var(name: str = "size", dtype: str = "int32", span: object = None) -> SizeVar:
    """Return a new variable that is at least zero: a symbolic shape."""
    return SizeVar(name, dtypes.canonical(dtype))


def const(value: PrimExprLike, dtype: str | None = None, span: object = None) -> PrimExpr:
    """Return a constant."""
    return ops.const(value, None if dtype is None else dtypes.canonical(dtype))


def thread_axis(
    dom: Range | ShapeLike | None = None, tag: str = "", name: str = "", span: object | None = None
) -> IterVar:
    """Return a thread axis: ``te.thread_axis("threadIdx.x")`` or ``thread_axis((0, n), tag)``."""
    if isinstance(dom, str):
        dom, tag = None, str(dom)
    if not isinstance(tag, str) or not tag:
        raise ArgumentValueError("te.thread_axis needs a tag such as 'threadIdx.x' or 'blockIdx.x'")
    extent = None if dom is None else as_range(dom)
    named = tag if isinstance(name, str) and not name else name
    return IterVar(extent, Var(named, "int32"), "thread", tag)


def _shape(shape: ShapeLike) -> tuple[PrimExpr, ...]:
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    dims = tuple(ops.as_extent(s) for s in items)
    for extent in dims:
        if not dtypes.is_integral(extent.dtype):
            raise ArgumentValueError(f"a shape holds integers, got {extent} of type {extent.dtype}")
        if isinstance(extent, IntImm) and extent.value < 0:
            raise ArgumentValueError(f"a shape cannot be negative: {items}")
    return dims


def placeholder(
    shape: ShapeLike, dtype: DTypeLike | None = None, name: str = "placeholder"
) -> Tensor:
    """Return an input tensor of `shape` (ints or variables) and `dtype` (float32 by default)."""
    kind = dtypes.canonical(dtype) if dtype is not None else "float32"
    return PlaceholderOp(name, _shape(shape), kind).output(0)


class TagScope:
    """``with te.tag_scope(tag):`` gives every compute inside, or in a decorated function, a tag."""

    _entered: ClassVar[Entered[TagScope]] = Entered("tags")

    def __init__(self, tag: str) -> None:
        self.tag = tag

    @classmethod
    def current(cls) -> str:
        """Return the tag of this thread's or task's scope, "" outside of any."""
        found = cls._entered.innermost()
        return found.tag if found is not None else ""

    def __enter__(self) -> TagScope:
        if outer := self.current():
            raise ScheduleError(
                f"tag_scope({self.tag!r}) stands inside tag_scope({outer!r}): a compute has one tag"
            )
        self._entered.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.leave(self)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose computes have the tag."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


def tag_scope(tag: str) -> TagScope:
    """Return a scope in which computes get `tag`."""
    return TagScope(tag)


def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Return the tensor with ``result[axis] = fcompute(*axis)``.

    `fcompute` is called once, with one variable per dimension; its argument names name the axes.
    When it returns a tuple the result is a tuple of tensors, computed together.  A call of a tensor
    intrinsic stands for the innermost dimensions, whose indices the function does not take.
    Raises ValueError when it takes another number of arguments than `shape` has dimensions.
    """
    dims = _shape(shape)
    names = _axis_names(fcompute, len(dims), varargs_names, name)
    axes = tuple(
        IterVar(Range(ops.const(0, extent.dtype), extent), Var(axis, extent.dtype), "data")
        for axis, extent in zip(names, dims, strict=False)
    )
    INSIDE.depth += 1
    try:
        result = fcompute(*(a.var for a in axes))
    except Exception as error:
        if len(axes) < len(dims):  # whatever it did with too few
            raise _wrong_count(name, len(axes), len(dims)) from error
        raise
    finally:
        INSIDE.depth -= 1
    if isinstance(result, IntrinsicCall):
        inner, body = axes_and_body(result, dims[len(axes) :], name)
        axes, many, intrinsic = (*axes, *inner), len(body) > 1, result.intrin
    else:
        if len(axes) < len(dims):
            raise _wrong_count(name, len(axes), len(dims))
        many, intrinsic = isinstance(result, (tuple, list)), None
        body = tuple(ops.as_expr(r) for r in (result if many else (result,)))
        if not body:
            raise ArgumentValueError(
                f"compute {name!r}: the function returns no value; return an expression, or a "
                "tuple of them"
            )
    _check_body(name, body)
    pairs = OperationAttrs.of(attrs)
    marked = TagScope.current() if isinstance(tag, str) and not tag else tag
    op = ComputeOp(name, axes, body, marked, pairs, intrinsic)
    return op.outputs if many else op.output(0)


def _wrong_count(name: str, taken: int, ndim: int) -> ArgumentValueError:
    return ArgumentValueError(
        f"compute {name!r}: the function takes {taken} indices, but the shape has {ndim} dimensions"
    )


def _axis_names(
    fcompute: Callable[..., Any], ndim: int, varargs: Sequence[str] | None, name: str
) -> list[str]:
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or not parameters:
        fixed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        more = list(varargs) if varargs else [f"i{i}" for i in range(ndim - len(fixed))]
        if parameters or ndim == 0:
            return (fixed + more)[:ndim]
        raise ArgumentValueError(
            f"compute {name!r}: the function takes no index, the shape has {ndim}"
        )
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in needed if p.default is p.empty]
    if len(required) > ndim:
        raise _wrong_count(name, len(required), ndim)
    return [p.name for p in needed[:ndim]]


def _check_body(name: str, body: tuple[PrimExpr, ...]) -> None:
    reducing = [isinstance(b, Reduce) for b in body]
    if any(reducing) and not all(reducing):
        raise ScheduleError(
            f"compute {name!r} returns reductions and other values together; "
            "put the other values into a compute of their own"
        )
    for expr in body:
        sources = (*expr.source, expr.condition) if isinstance(expr, Reduce) else (expr,)
        if any(isinstance(n, Reduce) for source in sources for n in _own_nodes(source)):
            raise ScheduleError(
                f"compute {name!r} uses a reduction inside a larger expression; "
                "compute the reduction in a stage of its own and read that"
            )
    first = body[0]
    if isinstance(first, Reduce):
        for other in body[1:]:
            if not isinstance(other, Reduce) or other.combiner is not first.combiner:
                raise ScheduleError(f"compute {name!r}: all values must come from one reducer")


def _own_nodes(expr: PrimExpr) -> Any:
    """Nodes of an expression, each once, without those of the tensors it reads."""
    stack: list[Any] = [expr]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, ProducerLoad):
            stack.extend(current.indices)
            continue
        for field in current.FIELDS:
            value = getattr(current, field)
            stack.extend(
                v for v in (value if type(value) is tuple else (value,)) if isinstance(v, PrimExpr)
            )


def extern(
    shape: ShapeLike | Sequence[ShapeLike],
    inputs: Tensor | Sequence[Tensor],
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: DTypeLike | Sequence[DTypeLike] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Return tensors computed by statements, usually one call of a packed or C function.

    ``fcompute(ins, outs)`` gets lists of Buffers and returns a statement or a call expression.
    `shape` is one shape or a list of shapes; `dtype` (per output) defaults to the inputs' dtype.
    """
    sources = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    for source in sources:
        if not isinstance(source, Tensor):
            raise ArgumentTypeError(f"extern {name!r}: the inputs are tensors, got {source!r}")
    shapes = _extern_shapes(shape)
    if out_buffers is not None:
        outs = tuple(out_buffers) if isinstance(out_buffers, (tuple, list)) else (out_buffers,)
        shapes = [o.shape for o in outs]
    else:
        kinds = _extern_dtypes(dtype, sources, len(shapes), name)
        outs = tuple(
            decl_buffer(s, kind, name if len(shapes) == 1 else f"{name}.v{i}")
            for i, (s, kind) in enumerate(zip(shapes, kinds, strict=True))
        )
    if in_buffers is not None:
        ins = tuple(in_buffers) if isinstance(in_buffers, (tuple, list)) else (in_buffers,)
        if len(ins) != len(sources):
            raise ArgumentValueError(
                f"extern {name!r}: {len(sources)} inputs but {len(ins)} in_buffers"
            )
    else:
        ins = tuple(decl_buffer(t.shape, t.dtype, t.op.name) for t in sources)
    made = function_of(fcompute, f"extern {name!r}: fcompute", "lambda ins, outs: ...")
    body = made(list(ins), list(outs))
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    elif isinstance(body, (tuple, list)):
        body = seq(Evaluate(b) if isinstance(b, PrimExpr) else b for b in body)
    if not isinstance(body, Stmt):
        raise ArgumentTypeError(
            f"extern {name!r}: the function must return a statement or a call, got {body!r}"
        )
    pairs = OperationAttrs.of(attrs)
    op = ExternOp(name, sources, ins, outs, body, tag, pairs)
    return op.output(0) if op.num_outputs == 1 else list(op.outputs)


def _extern_shapes(shape: Any) -> list[tuple[PrimExpr, ...]]:
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if items and isinstance(items[0], (tuple, list)):
        return [_shape(s) for s in items]
    return [_shape(items)]


def _extern_dtypes(dtype: Any, sources: tuple[Tensor, ...], count: int, name: str) -> list[str]:
    if dtype is None:
        kinds = {t.dtype for t in sources}
        if len(kinds) != 1:
            raise ArgumentValueError(f"extern {name!r}: cannot infer the output type; pass dtype=")
        return [kinds.pop()] * count
    if isinstance(dtype, (tuple, list)):
        return [dtypes.canonical(d) for d in dtype]
    return [dtypes.canonical(dtype)] * count


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Return the states of a recurrence along the first axis.

    `state_placeholder` stands for the whole state, `init` for its first steps, and `update` for
    every later step, reading earlier ones through the placeholder.
    """
    inits, updates, states = (
        tuple(v) if isinstance(v, (tuple, list)) else (v,)
        for v in (init, update, state_placeholder)
    )
    for part in (*inits, *updates, *states):
        if not isinstance(part, Tensor):
            raise ArgumentTypeError(
                f"scan {name!r}: init, update and state are tensors, got {part!r}"
            )
    if not len(inits) == len(updates) == len(states):
        raise ArgumentValueError(
            f"scan {name!r}: {len(inits)} init, {len(updates)} update and "
            f"{len(states)} state tensors; there must be one of each per state"
        )
    for start, step, state in zip(inits, updates, states, strict=True):
        if not start.ndim == step.ndim == state.ndim or start.dtype != state.dtype:
            raise ArgumentValueError(
                f"scan {name!r}: init {start}, update {step} and state {state} must agree in "
                "number of dimensions and dtype"
            )
        if step.dtype != state.dtype:
            raise ArgumentValueError(
                f"scan {name!r}: update has dtype {step.dtype}, state {state.dtype}"
            )
    begin = inits[0].shape[0]
    axis = IterVar(Range(begin, ops.sub(updates[0].shape[0], begin)), Var(f"{name}.idx"), "ordered")
    spatial = tuple(
        IterVar(Range.of(extent), Var(f"{name}.i{d}"), "opaque")
        for state in states
        for d, extent in enumerate(state.shape[1:], 1)
    )
    if isinstance(inputs, Tensor):
        inputs = (inputs,)
    sources = () if inputs is None else tuple(items_of(inputs, f"scan {name!r}: inputs", "[X]"))
    pairs = OperationAttrs.of(attrs)
    op = ScanOp(name, axis, inits, updates, states, sources, spatial, tag, pairs)
    return op.output(0) if op.num_outputs == 1 else list(op.outputs)


__all__ = [
    "Buffer",
    "compute",
    "const",
    "extern",
    "placeholder",
    "scan",
    "size_var",
    "tag_scope",
    "thread_axis",
    "var",
    "walk",
]
