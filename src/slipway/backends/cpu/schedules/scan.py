"""A loop over steps as one kernel: around the kernels of its body, each with its own schedule.

    states = initial states
    for t in range(steps):
        kernel_0(states, x[t], ..., temporary)
        kernel_1(temporary, ..., y[t])
        states = new states

The kernels of the body are lowered as those of a graph are, with views of single steps as their
arguments: packed weights, register tiles and parallel loops are the same.  What lies between them
stays in the caches.  States are updated at the end of a step, when nobody reads the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.primitive import schedule_primitive
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up, substitute, walk
from slipway.relay.expr import Call, Function, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.ops.recurrence import LoopAttrs
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order
from slipway.transform.graph.fuse_ops import fuse_ops
from slipway.transform.graph.simplify_expr import RESHAPES

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class ScanKnobs(Knobs):
    """The lanes of the vectors that states and rows are copied in."""

    lanes: int


def _default(problem: Problem) -> ScanKnobs:
    """Choose a register's lanes for the widest element that is copied."""
    lanes = (vector_lanes(problem.target, t.dtype) for t in problem.out_types)
    return ScanKnobs(min(lanes, default=1))


def _space(problem: Problem) -> Space:
    return {"lanes": (1, 2, 4, 8, 16, 32, 64)}


def _kernels(body: Function) -> Function:
    """Return the body of a scan as calls of kernels."""
    return body if any(is_primitive(e) for e in post_order(body)) else fuse_ops(body)


def _cost(problem: Problem, knobs: ScanKnobs) -> float:
    """Return the cycles of all steps' kernels."""
    attrs, target = problem.attrs, problem.target
    kernels = [e for e in post_order(_kernels(attrs.body)) if is_primitive(e)]
    choices = [schedule_primitive(k, target).choice for k in kernels if isinstance(k, Function)]
    first = problem.in_types[attrs.states : attrs.states + attrs.sequences]
    steps = flatten(first[0])[0].shape[0] if first else int(attrs.steps or 0)
    return float(steps * sum(c.cycles or 0 for c in choices if c is not None))


def loop(problem: Problem, inputs: Sequence[te.Tensor], knobs: ScanKnobs) -> list[te.Tensor]:
    """Return the last states and the stacked outputs of the operator scan on `inputs`."""
    target, attrs = problem.target, problem.attrs
    types = [t for t in problem.out_types if isinstance(t, TensorType)]
    body = _kernels(attrs.body)

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        return _Loop(target, attrs, body, ins, outs, knobs.lanes).statement()

    made = te.extern(
        [t.shape for t in types], inputs, statements, "scan", [t.dtype for t in types], tag="scan"
    )
    return list(made) if isinstance(made, list) else [made]


@register_strategy(
    "scan", name="scan.kernels", compute=loop, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_scan(
    problem: Problem, outs: Sequence[te.Tensor], scan: te.Tensor, knobs: ScanKnobs
) -> te.Schedule:
    """The statements are scheduled already."""
    return schedule_opaque(problem.target, outs)


class _Loop:
    """Builds the statements of one scan from its buffers."""

    def __init__(
        self,
        target: Target,
        attrs: LoopAttrs,
        body: Function,
        ins: list[Buffer],
        outs: list[Buffer],
        lanes: int,
    ) -> None:
        self.target = target
        self.lanes = lanes
        self.body = body
        count, sequences = attrs.states, attrs.sequences
        self.states, self.outputs = outs[:count], outs[count:]
        self.initial = ins[:count]
        self.sequences = ins[count : count + sequences]
        self.others = ins[count + sequences :]
        self.step = E.Var("t", "int32")
        self.steps = _shape(self.sequences[0])[0] if sequences else int(attrs.steps or 0)
        last = ops.const(self.steps - 1, "int32")
        self.place = ops.sub(last, self.step) if attrs.reverse else self.step
        self.values: dict[int, list[Buffer]] = {}
        self.temporaries: list[Buffer] = []

    def statement(self) -> S.Stmt:
        """Return the whole loop."""
        begin = [_copy(a, b, self.lanes) for a, b in zip(self.initial, self.states, strict=True)]
        steps = S.For(
            self.step, ops.const(0, "int32"), ops.const(self.steps, "int32"), "serial", self._once()
        )
        return S.seq((*begin, steps))

    def _once(self) -> S.Stmt:
        """Return one step: the kernels of the body, then the new states."""
        self._bind_parameters()
        buffers = self._buffers()
        done: list[S.Stmt] = []
        for expr in post_order(self.body.body, into_functions=False):
            match expr:
                case Tuple():
                    self.values[id(expr)] = [b for f in expr.fields for b in self.values[id(f)]]
                case TupleGetItem():
                    self.values[id(expr)] = [self.values[id(expr.tuple_value)][expr.index]]
                case Call() if is_primitive(expr.op):
                    done.append(self._kernel(expr, buffers))
                case Var() | Function():
                    pass
                case _:
                    raise LoweringError(f"the body of a scan cannot hold a {type(expr).__name__}")
        found = self.values[id(self.body.body)]
        count = len(self.states)
        done += [_copy(a, b, self.lanes) for a, b in zip(found[count:], self._rows(), strict=True)]
        done += self._new_states(found[:count])
        stmt = S.seq(done)
        for buffer in reversed(self.temporaries):
            stmt = S.Allocate(buffer, stmt)
        return stmt

    def _bind_parameters(self) -> None:
        rows = [self._row(sequence) for sequence in self.sequences]
        given = (*self.states, *rows, *self.others)
        for param, buffer in zip(self.body.params, given, strict=True):
            self.values[id(param)] = [buffer]

    def _row(self, buffer: Buffer) -> Buffer:
        """Return the part of a sequence that belongs to this step."""
        shape = _shape(buffer)[1:]
        offset = ops.mul(self.place, ops.const(prod(shape), "int32"))
        return _view(buffer, shape, offset)

    def _rows(self) -> list[Buffer]:
        return [self._row(output) for output in self.outputs]

    def _buffers(self) -> dict[tuple[int, int], Buffer]:
        """Return which results of kernels are written where they belong, by call and field."""
        found: dict[tuple[int, int], Buffer] = {}
        results = self.body.body.fields if isinstance(self.body.body, Tuple) else ()
        for result, row in zip(results[len(self.states) :], self._rows(), strict=False):
            if isinstance(result, TupleGetItem):
                found.setdefault((id(result.tuple_value), result.index), row)
            elif isinstance(result, Call):
                found.setdefault((id(result), 0), row)
        return found

    def _kernel(self, call: Call, buffers: dict[tuple[int, int], Buffer]) -> S.Stmt:
        arguments = [b for a in call.args for b in self.values[id(a)]]
        if _is_reshape(call.op):
            (source,) = arguments
            self.values[id(call)] = [_view(source, call.tensor_type.shape)]
            return S.NOP
        outs = []
        for number, type_ in enumerate(flatten(call.checked_type)):
            buffer = buffers.get((id(call), number))
            if buffer is None:
                buffer = decl_buffer(type_.shape, type_.dtype, f"step{len(self.temporaries)}")
                self.temporaries.append(buffer)
            outs.append(buffer)
        self.values[id(call)] = outs
        kernel = schedule_primitive(call.op, self.target)
        lowered = te.lower(kernel.schedule, list(kernel.args))
        views = dict(zip((b for _, b in lowered.buffer_map), (*arguments, *outs), strict=True))
        return _with_buffers(lowered.body, views)

    def _new_states(self, found: list[Buffer]) -> list[S.Stmt]:
        """Return the copies of new states; old ones that become another state are kept before."""
        first: list[S.Stmt] = []
        then: list[S.Stmt] = []
        for source, state in zip(found, self.states, strict=True):
            if source.data is state.data:
                continue
            if any(source.data is other.data for other in self.states):
                kept = decl_buffer(_shape(source), source.dtype, f"step{len(self.temporaries)}")
                self.temporaries.append(kept)
                first.append(_copy(source, kept, self.lanes))
                source = kept
            then.append(_copy(source, state, self.lanes))
        return first + then


def _shape(buffer: Buffer) -> tuple[int, ...]:
    shape = buffer.constant_shape()
    assert shape is not None
    return shape


def _is_reshape(function: Function) -> bool:
    """Return whether a kernel gives the elements of its only argument in another shape."""
    body = function.body
    while is_call_of(body, *RESHAPES):
        (body,) = body.args
    return body is not function.body and isinstance(body, Var)


def _view(buffer: Buffer, shape: Sequence[int], offset: Any = None) -> Buffer:
    """Return another shape of the memory of `buffer`, from `offset` elements on."""
    if offset is None:
        offset = buffer.elem_offset
    elif buffer.elem_offset is not None:
        offset = ops.add(buffer.elem_offset, offset)
    return decl_buffer(
        tuple(shape), buffer.dtype, buffer.name, buffer.data, elem_offset=offset, scope=buffer.scope
    )


def _copy(source: Buffer, target: Buffer, most: int) -> S.Stmt:
    """Return loops that copy all elements, in vectors."""
    if source.data is target.data:
        return S.NOP
    size = prod(_shape(target))
    a, b = _view(source, (size,)), _view(target, (size,))
    whole = size // most * most
    return S.seq(
        _copy_run(a, b, begin, extent, lanes)
        for begin, extent, lanes in ((0, whole, most), (whole, size - whole, 1))
        if extent
    )


def _copy_run(a: Buffer, b: Buffer, begin: int, extent: int, lanes: int) -> S.Stmt:
    outer, lane = E.Var("i", "int32"), E.Var("v", "int32")
    at = ops.add(ops.add(ops.mul(outer, ops.const(lanes)), lane), ops.const(begin))
    stmt: S.Stmt = S.BufferStore(b, E.BufferLoad(a, (at,)), (at,))
    zero = ops.const(0, "int32")
    stmt = S.For(lane, zero, ops.const(lanes, "int32"), S.ForKind.VECTORIZED, stmt)
    return S.For(outer, zero, ops.const(extent // lanes, "int32"), S.ForKind.SERIAL, stmt)


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
    behind = {id(old.data): new for old, new in views.items()}
    for node in walk(body):
        if isinstance(node, Buffer) and node not in mapping and id(node.data) in behind:
            # A view that the kernel itself made of an argument: a step of a loop inside.
            mapping[node] = _moved(node, behind[id(node.data)])
    return substitute(body, mapping)  # type: ignore[no-any-return]
