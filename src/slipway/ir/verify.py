"""The verifier: what is legal in a PrimFunc at each stage of the pipeline.

============  ==============================================================================
stage         rules added to those above it
============  ==============================================================================
``"loops"``   no te nodes; every variable is defined, once, before its use; every buffer is a
              parameter or allocated around its use; as many indices as dimensions; types fit
``"flat"``    every access has one index, into a one-dimensional buffer without strides
``"ready"``   no vectorized and no unrolled loop; vector values are stored to vector indices
============  ==============================================================================

`transform.verify` runs it around passes; the tests do so after every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from slipway import dtypes
from slipway.errors import ArgumentValueError, LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.ir.intrin import INTRINSICS
from slipway.ir.visit import children

STAGES = ("loops", "flat", "ready")
# The passes that make a function legal at a stage.
_NEEDS = {
    "ready": ("flatten_storage", "vectorize_loop", "unroll_loop"),
    "flat": ("flatten_storage",),
}


def stage_after(passed: Collection[str]) -> str:
    """Return the stage that a function has reached behind the passes of these names."""
    stages = (stage for stage, needs in _NEEDS.items() if all(name in passed for name in needs))
    return next(stages, "loops")


def verify(func: PrimFunc, stage: str = "loops") -> PrimFunc:
    """Return `func` when it is legal at `stage`; else raise LoweringError naming each fault."""
    if stage not in STAGES:
        raise ArgumentValueError(f"stage must be one of {', '.join(STAGES)}, not {stage!r}")
    faults = verify_faults(func, stage)
    if faults:
        listed = "\n  ".join(faults[:8])
        more = f"\n  and {len(faults) - 8} more" if len(faults) > 8 else ""
        raise LoweringError(f"{func.name} is not legal at stage {stage!r}:\n  {listed}{more}")
    return func


def verify_faults(func: PrimFunc, stage: str) -> list[str]:
    """Return what makes `func` not legal at `stage`."""
    checker = _Checker(func, STAGES.index(stage))
    with room_for(func.body, f"function {func.name!r}"):
        checker.function()
    return checker.faults


class _Checker:
    def __init__(self, func: PrimFunc, level: int) -> None:
        self.func = func
        self.level = level
        self.faults: list[str] = []
        self.defined: set[E.Var] = set()
        self.buffers: set[E.Var] = set()
        # Axes of threads, which a predicate may ask for outside of their loops until they are made.
        self.threads: set[E.Var] = set()
        if level == 0:
            loops = (n for n in S.statements(func.body) if isinstance(n, S.For))
            self.threads = {n.thread.var for n in loops if n.thread is not None}
        self.seen: set[int] = set()  # the expressions of this scope, which are all alive

    def function(self) -> None:
        func = self.func
        self.defined.update(func.params)
        for param, buffer in func.buffer_map:
            if param not in func.params:
                self.fault(f"buffer {buffer.name} is mapped to {param}, which is no parameter")
            self.buffers.add(buffer.data)
            sizes = (*buffer.shape, *buffer.strides)
            fields = sizes if buffer.elem_offset is None else (*sizes, buffer.elem_offset)
            self.defined.update(f for f in fields if isinstance(f, E.Var))
        self.stmt(func.body)

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    # -- statements --------------------------------------------------------------------------------

    def stmt(self, node: Any) -> None:
        match node:
            case S.SeqStmt():
                for inner in node.stmts:
                    self.stmt(inner)
            case S.For():
                self.loop(node)
            case S.BufferStore():
                self.store(node)
            case S.IfThenElse():
                self.condition(node.condition)
                self.stmt(node.then_case)
                if node.else_case is not None:
                    self.stmt(node.else_case)
            case S.LetStmt():
                self.expr(node.value)
                if node.value.dtype != node.var.dtype:
                    self.fault(f"let {node.var} of {node.var.dtype} is given {node.value.dtype}")
                self.scoped([node.var], node.body)
            case S.Allocate():
                self.exprs(node.buffer.shape)
                if node.buffer.data in self.buffers:
                    self.fault(f"buffer {node.buffer.name} is allocated inside its own allocation")
                self.buffers.add(node.buffer.data)
                self.stmt(node.body)
                self.buffers.discard(node.buffer.data)
            case S.AttrStmt() if node.key in S.CLASSIC_THREADS:
                self.exprs([node.value])
                if node.node.var in self.defined:  # of a loop, or of a note around this one
                    self.stmt(node.body)
                else:
                    self.scoped([node.node.var], node.body)
            case S.AttrStmt():
                self.stmt(node.body)
            case S.AssertStmt():
                self.condition(node.condition)
                self.stmt(node.body)
            case S.While():
                self.condition(node.condition)
                self.stmt(node.body)
            case S.Evaluate():
                self.expr(node.value)
            case S.Block() if self.level == 0:
                self.block(node)
            case _:
                self.fault(f"{type(node).__name__} does not belong here")

    def block(self, node: S.Block) -> None:
        self.exprs(node.bindings)
        if len(node.axes) != len(node.bindings):
            self.fault(f"block {node.name} has {len(node.axes)} axes, {len(node.bindings)} values")
        names = {axis.var for axis in node.axes} - self.defined
        if len(names) < len(node.axes):
            self.fault(f"an axis of block {node.name} is defined inside its own scope")
        self.defined |= names
        self.seen = set()
        self.condition(node.predicate)
        if node.init is not None:
            self.stmt(node.init)
        self.stmt(node.body)
        self.defined -= names
        self.seen = set()

    def loop(self, node: S.For) -> None:
        self.exprs((node.min, node.extent))
        for name, part in (("start", node.min), ("extent", node.extent)):
            if part.dtype != node.loop_var.dtype:
                self.fault(
                    f"loop {node.loop_var.name} has type {node.loop_var.dtype}, "
                    f"its {name} {part.dtype}"
                )
        if self.level >= 2 and node.kind in (S.ForKind.VECTORIZED, S.ForKind.UNROLLED):
            constant = isinstance(node.extent, E.IntImm)
            if node.kind == S.ForKind.VECTORIZED or (constant and node.extent.value <= 64):  # type: ignore[attr-defined]
                self.fault(f"{node.kind} loop {node.loop_var.name} is left")
        names = [node.loop_var]
        if node.kind == S.ForKind.THREAD:
            if node.thread is None:
                self.fault(f"thread loop {node.loop_var.name} names no thread axis")
            else:
                names.append(node.thread.var)
        self.scoped(names, node.body)

    def scoped(self, names: list[E.Var], body: S.Stmt) -> None:
        fresh = [n for n in names if n not in self.defined]
        if names[0] not in fresh:
            self.fault(f"variable {names[0].name} is defined inside its own scope")
        self.defined.update(fresh)
        self.seen = set()
        self.stmt(body)
        self.defined.difference_update(fresh)
        self.seen = set()

    def store(self, node: S.BufferStore) -> None:
        self.access(node.buffer, node.indices, "stored to")
        self.expr(node.value)
        lanes = max((i.lanes for i in node.indices), default=1)
        element = dtypes.parse(node.buffer.dtype)
        want = dtypes.make(element.code, element.bits, element.lanes * lanes)
        if node.value.dtype != want:
            self.fault(f"buffer {node.buffer.name} takes {want} here, got {node.value.dtype}")

    def condition(self, node: E.PrimExpr) -> None:
        self.expr(node)
        if node.dtype != "bool":
            self.fault(f"condition {node} has type {node.dtype}, needs bool")

    # -- expressions -------------------------------------------------------------------------------

    def access(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...], verb: str) -> None:
        if buffer.data not in self.buffers:
            self.fault(f"buffer {buffer.name} is {verb} outside its allocation")
        if len(indices) != buffer.ndim:
            self.fault(
                f"buffer {buffer.name} of {buffer.ndim} dimensions is {verb} with "
                f"{len(indices)} indices"
            )
        if self.level >= 1 and (buffer.ndim != 1 or buffer.strides or buffer.elem_offset):
            self.fault(f"buffer {buffer.name} is not flat")
        for index in indices:
            self.expr(index)
            if not dtypes.is_integral(index.dtype):
                self.fault(f"index {index} of buffer {buffer.name} has type {index.dtype}")

    def exprs(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            self.expr(node)

    def expr(self, node: object) -> None:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        check = _check_of(type(node))
        if check is not None:
            check(self, node)
        elif isinstance(node, E.PrimExpr) and node.INNER:
            for child in children(node):
                self.expr(child)

    def var(self, node: E.Var) -> None:
        if not any(node in names for names in (self.defined, self.buffers, self.threads)):
            self.fault(f"variable {node.name} is used outside its scope")

    def load(self, node: E.BufferLoad) -> None:
        self.access(node.buffer, node.indices, "read")

    def not_lowered(self, node: E.PrimExpr) -> None:
        self.fault(f"{type(node).__name__} belongs to te: {node}")

    def let(self, node: E.Let) -> None:
        self.expr(node.value)
        self.defined.add(node.var)
        self.expr(node.body)
        self.defined.discard(node.var)

    def call(self, node: E.Call) -> None:
        known = INTRINSICS.get(node.op)
        if known is not None and known.arity >= 0 and known.arity != len(node.args):
            self.fault(f"{node.op} takes {known.arity} arguments, got {len(node.args)}")
        self.exprs(node.args)


# Of other expressions only what is inside them is checked.
_CHECKS: dict[type[E.PrimExpr], Callable[[_Checker, Any], None]] = {
    E.Var: _Checker.var,
    E.BufferLoad: _Checker.load,
    E.ProducerLoad: _Checker.not_lowered,
    E.Reduce: _Checker.not_lowered,
    E.Let: _Checker.let,
    E.Call: _Checker.call,
}
_found: dict[type, Callable[[_Checker, Any], None] | None] = {}


def _check_of(kind: type) -> Callable[[_Checker, Any], None] | None:
    if kind not in _found:
        checks = (check for known, check in _CHECKS.items() if issubclass(kind, known))
        _found[kind] = next(checks, None)
    return _found[kind]
