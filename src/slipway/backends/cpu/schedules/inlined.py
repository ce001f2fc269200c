"""The kernels of a function inside another kernel: a step of a scan, a branch, a loop's iteration.

They are lowered as those of a graph are, on the buffers that the kernel around them gives: packed
weights, register tiles and parallel loops are the same.  What lies between them is temporary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.schedules.state_updates import is_reshape, updates_in_place
from slipway.backends.primitive import ScheduledKernel, schedule_primitive
from slipway.backends.size_versions import in_versions
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up, substitute, walk
from slipway.relay.analysis.told_sizes import (
    exact_size,
    in_order_of_sizes,
    is_prefix,
    told_size,
    two_values,
)
from slipway.relay.dims import SymbolDim, is_open, range_text, size_of
from slipway.relay.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_primitive
from slipway.relay.ops.tensor.update import in_place_update
from slipway.relay.types import flatten
from slipway.relay.visit import post_order
from slipway.transform.graph.fuse_ops import fuse_ops

if TYPE_CHECKING:
    from slipway.ir.function import PrimFunc
    from slipway.target import Target


def kernels_of(body: Function) -> Function:
    """Return a function as calls of kernels."""
    return body if any(is_primitive(e) for e in post_order(body)) else fuse_ops(body)


def cycles_of(body: Function, target: Target) -> float:
    """Return the predicted cycles of the kernels of a function."""
    kernels = [e for e in post_order(kernels_of(body)) if is_primitive(e)]
    choices = [schedule_primitive(k, target).choice for k in kernels if isinstance(k, Function)]
    return float(sum(c.cycles or 0 for c in choices if c is not None))


@dataclass(frozen=True)
class SizeTold:
    """A number that a kernel has computed, where what follows has it for a size.

    `variable` None: where it has to be `low`.
    """

    number: E.PrimExpr
    variable: E.Var | None
    low: int
    high: int
    message: str

    def around(self, following: S.Stmt) -> S.Stmt:
        """Return what follows, for a number in the range."""
        number = E.Var("told", self.number.dtype)
        low, high = (ops.const(end, number.dtype) for end in (self.low, self.high))
        is_size = ops.logical_and(ops.less_equal(low, number), ops.less_equal(number, high))
        if self.variable is not None:
            # Also where assertions are left out, nothing is written beyond the memory.
            size = ops.maximum(ops.minimum(number, high), low)
            size = ops.cast(size, self.variable.dtype)
            following = S.LetStmt(self.variable, size, following)
        following = S.AssertStmt(is_size, E.StringImm(self.message), following, "ExecutionError")
        return S.LetStmt(number, self.number, following)


class InlinedKernels:
    """The statements of a function that calls kernels, on given buffers.

    `results` are buffers for some of its results, by number: a kernel that gives one writes there.
    Its first parameters are `states`, as many as its first results: of a state in which a region
    is replaced, that region alone is written.  `found` are the buffers of all results afterwards,
    which may be arguments.
    """

    def __init__(
        self,
        target: Target,
        function: Function,
        arguments: Sequence[Buffer],
        results: Mapping[int, Buffer],
        states: int = 0,
    ) -> None:
        self.target = target
        self.values = {id(p): [b] for p, b in zip(function.params, arguments, strict=True)}
        self.temporaries: list[Buffer] = []
        self._buffers = _buffers(function.body, results)
        done: list[S.Stmt | SizeTold] = []
        order = in_order_of_sizes(list(post_order(function.body, into_functions=False)))
        order, self._updates = updates_in_place(function, order, states)
        self._states = list(arguments[:states])
        self._tellers: dict[E.Var, Buffer] = {}  # the numbers that sizes are
        for expr in order:
            match expr:
                case Tuple():
                    self.values[id(expr)] = [b for f in expr.fields for b in self.values[id(f)]]
                case TupleGetItem():
                    self.values[id(expr)] = [self.values[id(expr.tuple_value)][expr.index]]
                case Call() if is_primitive(expr.op):
                    done += self._kernel(expr)
                case Constant() if expr.array.size == 1:
                    self.values[id(expr)] = [
                        self.temporary(expr.array.shape, expr.array.dtype.name)
                    ]
                    done.append(_filled(self.values[id(expr)][0], expr))
                case Var() | Function():
                    pass
                case _:
                    raise LoweringError(f"a body of kernels cannot hold a {type(expr).__name__}")
        self.statements = done
        self.found = self.values[id(function.body)]

    def temporary(self, like: Sequence[int], dtype: str) -> Buffer:
        """Return a new buffer that lives as long as the statements.

        Of an open size it lies in memory for the largest one, which a program plans.
        """
        name = f"step{len(self.temporaries)}"
        most = [d.high if isinstance(d, SymbolDim) else d for d in like]
        if not any(map(is_open, like)) or None in most:
            buffer = decl_buffer(extents(like), dtype, name)
            self.temporaries.append(buffer)
            return buffer
        room = decl_buffer((prod(most),), dtype, name)
        self.temporaries.append(room)
        return view(room, like)

    def around(self, statements: Sequence[S.Stmt | SizeTold]) -> S.Stmt:
        """Return statements with the temporaries around them, and each size around what follows."""
        following: list[S.Stmt] = []
        for one in reversed(statements):
            if isinstance(one, SizeTold):
                following = [one.around(S.seq(reversed(following)))]
            else:
                following.append(one)
        stmt = S.seq(reversed(following))
        for buffer in reversed(self.temporaries):
            stmt = S.Allocate(buffer, stmt)
        return stmt

    def _kernel(self, call: Call) -> list[S.Stmt | SizeTold]:
        arguments = [b for a in call.args for b in self.values[id(a)]]
        told = self._told(call, arguments)
        if is_reshape(call.op) or is_prefix(call):
            self.values[id(call)] = [view(arguments[0], call.tensor_type.shape)]
            return told
        function = call.op
        if id(call) in self._updates:
            outs = [self._states[self._updates[id(call)]]]
            function = in_place_update(call.op)
        else:
            outs = []
            for number, type_ in enumerate(flatten(call.checked_type)):
                buffer = self._buffers.get((id(call), number))
                outs.append(buffer or self.temporary(type_.shape, type_.dtype))
        self.values[id(call)] = outs
        lowered = in_versions(function, self.target, _lowered)
        views = dict(zip((b for _, b in lowered.buffer_map), (*arguments, *outs), strict=True))
        return [*told, _with_buffers(lowered.body, views)]

    def _told(self, call: Call, arguments: Sequence[Buffer]) -> list[S.Stmt | SizeTold]:
        """Return the size that a kernel brings, if it does: of what follows, or one to be met."""
        brought, exact = told_size(call), exact_size(call)
        variable: E.Var | None
        if brought is not None:
            size, at = brought
            assert size.high is not None
            assert isinstance(size.formula, E.Var)
            message = f"what is found in a loop is out of the range of the size {range_text(size)}"
            variable, low, high = size.formula, size.low, size.high
        elif exact is not None:
            name, low, _, at = exact
            message = f"what is found in a loop is not {low}, which the size {name} is to be"
            variable, high = None, low
        else:
            return []
        count = arguments[at]
        if variable is not None and self._tellers.setdefault(variable, count) is not count:
            raise two_values(str(variable))
        number = E.BufferLoad(count, tuple(ops.const(0, "int32") for _ in count.shape))
        return [SizeTold(number, variable, low, high, message)]


def _lowered(_: Function, kernel: ScheduledKernel) -> PrimFunc:
    return te.lower(kernel.schedule, list(kernel.args))


def _filled(buffer: Buffer, value: Constant) -> S.Stmt:
    """Store a constant of one element, which an operator takes from memory."""
    element = ops.const(value.array.reshape(()).item(), buffer.dtype)
    return S.BufferStore(buffer, element, tuple(ops.const(0, "int32") for _ in buffer.shape))


def _buffers(body: Any, results: Mapping[int, Buffer]) -> dict[tuple[int, int], Buffer]:
    """Return which results of kernels are written where they belong, by call and field."""
    found: dict[tuple[int, int], Buffer] = {}
    fields = body.fields if isinstance(body, Tuple) else (body,)
    for number, buffer in results.items():
        result = fields[number] if number < len(fields) else None
        if isinstance(result, TupleGetItem):
            found.setdefault((id(result.tuple_value), result.index), buffer)
        elif isinstance(result, Call):
            found.setdefault((id(result), 0), buffer)
    return found


def new_states(step: InlinedKernels, states: Sequence[Buffer], lanes: int) -> list[S.Stmt]:
    """Return the copies of new states; old ones that become another state are kept before."""
    first: list[S.Stmt] = []
    then: list[S.Stmt] = []
    for source, state in zip(step.found, states, strict=False):
        if source.data is state.data:
            continue
        if any(source.data is other.data for other in states):
            kept = step.temporary(shape_of(source), source.dtype)
            first.append(copy(source, kept, lanes))
            source = kept
        then.append(copy(source, state, lanes))
    return first + then


def shape_of(buffer: Buffer) -> tuple[Any, ...]:
    """Return a shape as Python ints, with the dimensions that are open as they are."""
    return tuple(size_of(extent) for extent in buffer.shape)


def extents(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return a shape as a buffer has it."""
    return tuple(d.formula if is_open(d) else d for d in shape)


def view(buffer: Buffer, shape: Sequence[int], offset: Any = None) -> Buffer:
    """Return another shape of the memory of `buffer`, from `offset` elements on."""
    if offset is None:
        offset = buffer.elem_offset
    elif buffer.elem_offset is not None:
        offset = ops.add(buffer.elem_offset, offset)
    return decl_buffer(
        extents(shape),
        buffer.dtype,
        buffer.name,
        buffer.data,
        elem_offset=offset,
        scope=buffer.scope,
    )


def copy(source: Buffer, target: Buffer, most: int) -> S.Stmt:
    """Return loops that copy all elements, in vectors."""
    if source.data is target.data:
        return S.NOP
    size = prod(shape_of(target))
    a, b = view(source, (size,)), view(target, (size,))
    if is_open(size):
        return _copy_run(a, b, 0, size, 1)
    whole = size // most * most
    return S.seq(
        _copy_run(a, b, begin, extent, lanes)
        for begin, extent, lanes in ((0, whole, most), (whole, size - whole, 1))
        if extent
    )


def _copy_run(a: Buffer, b: Buffer, begin: int, extent: Any, lanes: int) -> S.Stmt:
    outer, lane = E.Var("i", "int32"), E.Var("v", "int32")
    at = ops.add(ops.add(ops.mul(outer, ops.const(lanes)), lane), ops.const(begin))
    stmt: S.Stmt = S.BufferStore(b, E.BufferLoad(a, (at,)), (at,))
    zero = ops.const(0, "int32")
    stmt = S.For(lane, zero, ops.const(lanes, "int32"), S.ForKind.VECTORIZED, stmt)
    steps = extent.formula if is_open(extent) else ops.const(extent // lanes, "int32")
    return S.For(outer, zero, steps, S.ForKind.SERIAL, stmt)


def _moved(view: Buffer, whole: Buffer) -> Buffer:
    """Return a view of an argument as one of what the argument is now."""
    offset = view.elem_offset
    if whole.elem_offset is not None:
        offset = whole.elem_offset if offset is None else ops.add(offset, whole.elem_offset)
    made: Buffer = view.replace(data=whole.data, elem_offset=offset)
    return made


def _with_buffers(body: S.Stmt, views: dict[Buffer, Buffer]) -> S.Stmt:
    """Return the statements of a kernel on other buffers, which may begin after their pointer."""
    offsets = {id(old.data): new.elem_offset for old, new in views.items()}

    def pointer(node: Node) -> Node | None:
        if not isinstance(node, E.Call) or node.op != "access_ptr":
            return None
        data, start, mode = node.args
        offset = offsets.get(id(data))
        if offset is None:
            return None
        return E.Call(node.dtype, "access_ptr", (data, ops.add(offset, start), mode))

    if any(offset is not None for offset in offsets.values()):
        body = rewrite_bottom_up(body, pointer)
    mapping: dict[Any, Any] = dict(views)
    mapping.update((old.data, new.data) for old, new in views.items())
    new_of = {id(old.data): new for old, new in views.items()}
    for node in walk(body):
        if isinstance(node, Buffer) and node not in mapping and id(node.data) in new_of:
            # A view that the kernel itself made of an argument: a step of a loop inside.
            mapping[node] = _moved(node, new_of[id(node.data)])
    return substitute(body, mapping)  # type: ignore[no-any-return]
