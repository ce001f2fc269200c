"""Lowering: a schedule becomes a PrimFunc of loops over multi-dimensional buffers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.depth import DEEPEST, levels
from slipway.ir.expr import IterVar, Range, Var
from slipway.ir.function import PrimFunc
from slipway.ir.visit import nesting, substitute
from slipway.te.compute_nest import ComputeNest
from slipway.te.infer_bound import Bounds, TensorBuffer
from slipway.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp
from slipway.te.primitives.marks import IMPORTS
from slipway.te.primitives.state import INLINE, SCOPE
from slipway.te.rewrite import inside
from slipway.te.scan_loop import scan_statement
from slipway.te.schedule import Schedule
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor
from slipway.te.tensorize import find_tensorized, tensorized_stage


def lower(
    sch: Schedule,
    args: Iterable[Any],
    name: str = "main",
    binds: dict[Tensor, Buffer] | None = None,
) -> PrimFunc:
    """Return the loops of `sch` as a function of `args` (Tensors, Buffers and Vars, in order).

    `binds` gives tensors a Buffer of the caller's (with strides, offset or alignment).
    Raises ScheduleError when the schedule or the argument list cannot work.
    """
    depth, stage = _deepest(sch)
    if depth > DEEPEST:
        raise ScheduleError(
            f"the formula of stage {stage!r} is {depth} operations deep, with what is inlined into "
            "it, and cannot be lowered: compute parts of it in stages of their own (te.compute "
            "without compute_inline), or sum many terms with te.sum"
        )
    with levels(depth):
        return Lowering(sch, list(args), dict(binds or {})).function(name)


def _deepest(sch: Schedule) -> tuple[int, str]:
    """Return how deep the deepest formula is, at most, with what is inlined, and its stage."""
    inlined: dict[Operation, int] = {}
    deepest = (0, "")
    for stage in sch.stages:
        op = stage.op
        if isinstance(op, ComputeOp):
            depth = max(nesting(b, inside) for b in op.body)
            depth += max((inlined.get(t.op, 0) for t in op.input_tensors), default=0)
            if stage.attach_type == INLINE:
                inlined[op] = depth
            deepest = max(deepest, (depth, op.name))
    return deepest


class Lowering:
    """The state of one lowering: bounds, storage of each tensor, and what is attached where."""

    def __init__(self, sch: Schedule, args: list[Any], binds: dict[Tensor, Buffer]) -> None:
        self.schedule = sch
        self.an = Analyzer()
        self.storage: dict[Tensor, TensorBuffer] = {}
        self.params: list[Var] = []
        self.buffer_map: list[tuple[Var, Buffer]] = []
        self.caller_owned: set[Tensor] = set()
        for arg in args:
            self._add_argument(arg, binds)
        self.bounds = Bounds(sch, self.an, self.caller_owned)
        self.attached: dict[tuple[Operation, IterVar], list[Stage]] = {}
        self.root: list[Stage] = []
        self.first_rows: dict[Tensor, Tensor] = {}  # of scans, with the states that they begin
        self._place_stages()
        self._check_inputs()

    # -- arguments -------------------------------------------------------------------------------

    def _add_argument(self, arg: Any, binds: dict[Tensor, Buffer]) -> None:
        if isinstance(arg, Var):
            self.params.append(arg)
            return
        if isinstance(arg, IterVar):
            self.params.append(arg.var)
            return
        buffer: Buffer
        if isinstance(arg, Tensor):
            stage = self.schedule.stage_map.get(arg.op)
            buffer = binds.get(arg) or decl_buffer(arg.shape, arg.dtype, arg.name)
            # What is inlined is stored nowhere: the caller's array for it stays as it was.
            if stage is None or stage.attach_type != INLINE:
                self._own(arg if stage is None else stage.op.output(arg.value_index), buffer)
        elif isinstance(arg, Buffer):
            buffer = arg
            for tensor, bound in binds.items():
                if bound is arg:
                    stage = self.schedule.stage_map.get(tensor.op)
                    self._own(tensor if stage is None else stage.op.output(tensor.value_index), arg)
        else:
            raise ScheduleError(
                f"argument {len(self.params)} is {arg!r}: pass Tensors, Buffers and variables"
            )
        handle = Var(buffer.name, "handle")
        self.params.append(handle)
        self.buffer_map.append((handle, buffer))

    def _own(self, tensor: Tensor, buffer: Buffer) -> None:
        if tensor in self.caller_owned:
            raise ScheduleError(f"tensor {tensor.name!r} is passed twice among the arguments")
        self.storage[tensor] = TensorBuffer(buffer, None)
        self.caller_owned.add(tensor)

    def _check_inputs(self) -> None:
        for stage in self.schedule.stages:
            if isinstance(stage.op, PlaceholderOp):
                tensor = stage.op.output(0)
                read = self.bounds.consumers.get(stage.op) or []
                states = [s for s in self.schedule.stages if isinstance(s.op, ScanOp)]
                if any(tensor in s.op.state_placeholder for s in states):  # type: ignore[attr-defined]
                    continue
                if tensor not in self.storage and read:
                    raise ScheduleError(
                        f"input {tensor.name!r} is read by stage {read[0].name!r}, but it is not "
                        "among the arguments. Pass it: lower(s, [..., A, ...])"
                    )

    # -- placing -----------------------------------------------------------------------------------

    def _place_stages(self) -> None:
        for stage in self.schedule.stages:
            if isinstance(stage.op, PlaceholderOp) or stage.attach_type == INLINE:
                continue
            if stage.attach_type == SCOPE:
                assert stage.attach_stage is not None
                assert stage.attach_ivar is not None
                key = (stage.attach_stage.op, stage.attach_stage.loop_of(stage.attach_ivar))
                self.attached.setdefault(key, []).append(stage)
            else:
                self.root.append(stage)

    def function(self, name: str) -> PrimFunc:
        """Return the whole program as a PrimFunc."""
        for stage in self.schedule.stages:
            if isinstance(stage.op, PlaceholderOp) or stage.attach_type == INLINE:
                continue
            for tensor in stage.op.outputs:
                if tensor not in self.storage and not self._shared(tensor):
                    scope = stage.scope or "global"
                    self.storage[tensor] = self.bounds.allocate(tensor, stage, scope)
        for tensor, owner in self.bounds.aliases.items():
            self.storage[tensor] = self.storage[owner]
        inits = [t for s in self.root if isinstance(s.op, ScanOp) for t in s.op.init]
        self.first_rows = {t: owner for t, owner in self.bounds.aliases.items() if t in inits}
        body = self.pipeline(self.root, S.NOP)
        attrs: tuple[tuple[str, Any], ...] = (("global_symbol", name), ("noalias", True))
        marks = (m for stage in self.schedule.stages for m in stage.iter_var_attrs.values())
        imports = [pragma for mark in marks for pragma in mark.pragmas if pragma[0] in IMPORTS]
        if imports:
            attrs += (("import_source", tuple(imports)),)
        return PrimFunc(tuple(self.params), body, tuple(self.buffer_map), attrs)

    def pipeline(self, stages: list[Stage], inner: S.Stmt) -> S.Stmt:
        """Return the stages in order, then `inner`, with storage around each stage's users."""
        result = inner
        for stage in reversed(stages):
            result = S.seq((self.produce(stage), result))
            result = self._realize(stage, result)
        return result

    def _realize(self, stage: Stage, body: S.Stmt) -> S.Stmt:
        for tensor in stage.op.outputs:
            if tensor in self.first_rows:  # which are stored before the scan's other rows
                tensor = self.bounds.aliases[tensor]
            elif tensor in self.first_rows.values():
                continue
            if tensor not in self.caller_owned and not self._shared(tensor):
                copies = stage.buffer_copies
                kept = copies if copies > 2 else True
                notes: tuple[tuple[str, int], ...] = ()
                if copies > 1:
                    notes += (("double_buffer", kept),)
                if stage.swizzle_unit:
                    notes += ((S.SWIZZLE, stage.swizzle_unit),)
                body = S.Allocate(self.storage[tensor].buffer, body, notes)
        return body

    def _shared(self, tensor: Tensor) -> bool:
        return tensor in self.bounds.aliases

    def produce(self, stage: Stage) -> S.Stmt:
        """Return the statement that computes one stage."""
        if isinstance(stage.op, ComputeOp):
            if find_tensorized(stage) is not None:
                return tensorized_stage(self, stage)
            return ComputeNest(self, stage).statement()
        if isinstance(stage.op, ExternOp):
            return in_one_thread(self._extern(stage.op), stage.env_thread_vars)
        return scan_statement(self, stage)

    def _extern(self, op: ExternOp) -> S.Stmt:
        mapping: dict[Any, Any] = {}
        for tensor, given in (
            *zip(op.inputs, op.input_placeholders, strict=True),
            *zip(op.outputs, op.output_placeholders, strict=True),
        ):
            if tensor not in self.storage:
                raise ScheduleError(
                    f"stage {tensor.op.name!r} is inlined, but extern {op.name!r} reads it from "
                    "memory: give it loops of its own"
                )
            real = self.storage[tensor].buffer
            mapping[given] = real
            mapping[given.data] = real.data
            for dim, extent in zip(given.shape, real.shape, strict=True):
                if isinstance(dim, Var):
                    mapping[dim] = extent
        return substitute(op.body, mapping)  # type: ignore[no-any-return]


def in_one_thread(body: S.Stmt, axes: Iterable[IterVar]) -> S.Stmt:
    """Return statements that one thread along each of `axes` runs."""
    for axis in axes:
        var = Var(axis.var.name, "int32")
        one = IterVar(Range.of(1), var, "thread", axis.thread_tag)
        body = S.For(var, ops.const(0), ops.const(1), S.ForKind.THREAD, body, one)
    return body
