"""Statements to C, and the functions around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from slipway import dtypes
from slipway.codegen import legalize
from slipway.codegen.c import spelling
from slipway.codegen.c.expressions import Lane
from slipway.codegen.c.hardware import store_hardware
from slipway.codegen.c.intrinsics import CIntrinsics
from slipway.codegen.c.packed_call import emit_call_packed, emit_return
from slipway.codegen.c.shared_parts import named_parts
from slipway.codegen.capture import captured, is_region, nested_steps
from slipway.codegen.stack import on_stack
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.hardware import HardwareIntrinsic
from slipway.ir.intrin import SHARE
from slipway.ir.structural import structural_equal
from slipway.ir.visit import walk
from slipway.target.capability import Capability


@dataclass
class CModule:
    """What the functions of one C file share."""

    capability: Capability
    device_type: int = 1
    functions: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    externs: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, HardwareIntrinsic] = field(default_factory=dict)
    snippets: list[str] = field(default_factory=list)
    arena_bytes: int = 0
    uses_parallel: bool = False
    uses_workspace: bool = False
    uses_failure: bool = False
    uses_tensor: bool = False
    packed_calls: dict[str, int] = field(default_factory=dict)


class CFunction(CIntrinsics):
    """Emits ``static int32_t name(pointers and scalars)``."""

    def __init__(self, module: CModule, name: str) -> None:
        super().__init__(module.capability)
        self.module = module
        self.name = name
        self.inside_parallel = False
        self.region = False  # it is what one task runs of a region
        self.shares = False  # and it is in no parallel loop of that
        # Around a parallel loop that is shared with one: the variable of that, the steps of this.
        self.shared_outer: tuple[E.Var, int] | None = None
        self.element_dtype: dict[int, str] = {}  # of data pointers, for tensor_view
        self.children = 0
        self.stack_bytes = 0
        self.took_workspace = False
        self.returns_values = False  # its caller takes what tir.ret returns
        self.returned = False  # and there is such a call
        self.held: list[str] = []  # temporaries of the runtime's, the outer ones first
        self.arena_used = 0

    def _call_call_packed(self, node: E.Call, lane: Lane) -> str:
        return emit_call_packed(self, node)

    # -- functions -----------------------------------------------------------------------------

    def parameters(self, params: list[E.Var], elements: dict[int, str], noalias: bool) -> str:
        """Bind the parameters; return the parameter list. `elements`: C type behind a pointer."""
        declared = []
        for var in params:
            name = self.define(var, self.fresh(var.name))
            if var.dtype == "handle":
                ty = elements.get(id(var), "void")
                self.pointer_types[id(var)] = ty
                declared.append(f"{ty}* {'restrict ' if noalias else ''}{name}")
            else:
                declared.append(f"{spelling.c_type(var.dtype)} {name}")
        return ", ".join(declared)

    def finish(self, head: str, params: list[E.Var]) -> None:
        """Append the function, whose body has been emitted, to the module."""
        self._mention_unused()
        body = "\n".join(self.lines)
        mentioned = set(re.findall(r"\w+", body))
        unused = [self.names[id(v)] for v in params if self.names[id(v)] not in mentioned]
        voids = "".join(f"  (void){name};\n" for name in unused)
        self.module.functions.append(f"{head} {{\n{voids}{body}\n  return 0;\n}}\n")
        self.module.helpers |= self.helpers
        self.module.externs.update(self.externs)

    def _mention_unused(self) -> None:
        """Keep compilers quiet about temporaries that turned out to be of no use."""
        counts = Counter(re.findall(r"\w+", "\n".join(self.lines)))
        for name in self.temporaries:
            if counts[name] != 1:
                continue
            for number, line in enumerate(self.lines):
                if f" {name} = " in line:
                    indent = line[: -len(line.lstrip())]
                    self.lines.insert(number + 1, f"{indent}(void){name};")
                    break

    # -- statements ----------------------------------------------------------------------------

    def stmt(self, node: S.Stmt) -> None:
        """Emit one statement."""
        match node:
            case S.BufferStore():
                self._store(node)
            case S.SeqStmt(stmts):
                for inner in stmts:
                    self.stmt(inner)
            case S.For():
                self._for(node)
            case S.IfThenElse():
                self._if(node)
            case S.LetStmt():
                self._block(lambda: self._let_stmt(node))
            case S.Allocate():
                self._block(lambda: self._allocate(node))
            case S.AttrStmt():
                self.stmt(node.body)
            case S.AssertStmt():
                self._assert(node)
            case S.Evaluate(value):
                self._evaluate(value)
            case S.While():
                self.line("for (;;) {")
                self.nested(lambda: self._while(node))
                self.line("}")
            case _:
                raise CodegenError(
                    f"{self.name}: a {type(node).__name__} cannot be compiled: lower it first"
                )

    def nested(self, emit: Callable[[], None]) -> None:
        """Emit what stands inside of a statement, indented."""
        self.depth += 1
        emit()
        self.depth -= 1

    def _block(self, emit: Callable[[], None]) -> None:
        """Emit a block of its own, so that its names and arrays end with it."""
        self.line("{")
        self.nested(emit)
        self.line("}")

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.IntImm):
            return
        if isinstance(value, E.Call) and value.op == "ret":
            emit_return(self, value.args[0])
            return
        if isinstance(value, E.Call) and value.op == "call_packed":
            self._block(lambda: (self._call_call_packed(value, None), None)[1])
            return
        text = self.expr(value)
        if text != "0":
            self.line(f"{'' if isinstance(value, E.Call) else '(void)'}{text};")

    def _let_stmt(self, node: S.LetStmt) -> None:
        lanes = node.value.lanes
        if lanes == 1:
            self.let(node.var, node.value)
        else:
            name = self.fresh(node.var.name)
            self.line(f"{spelling.c_type(node.var.dtype)} {name}[{lanes}];")
            self._lanes(node.value, lanes, lambda lane, text: f"{name}[{lane}] = {text};")
            self.define(node.var, name)
            self.vectors.add(id(node.var))
        self.stmt(node.body)

    def _lanes(
        self, value: E.PrimExpr, lanes: int, assign: Callable[[int | str, str], str]
    ) -> None:
        """Emit ``assign(lane, text of value)`` for each lane: a loop, or one line per lane."""
        if _needs_constant_lanes(value):
            for number in range(lanes):
                self.line("{")
                self.depth += 1
                self.line(assign(number, self.expr(value, number)))
                self.depth -= 1
                self.line("}")
            return
        lane = self.fresh("lane")
        self.line(f"for (int32_t {lane} = 0; {lane} < {lanes}; ++{lane}) {{")
        self.nested(lambda: self.line(assign(lane, self.expr(value, lane))))
        self.line("}")
        self.taken.discard(lane)

    def _store(self, node: S.BufferStore) -> None:
        lanes = node.value.lanes
        if isinstance(node.value, E.Call) and node.value.op == "hardware":
            self._block(lambda: store_hardware(self, node))
            return
        node = node.replace(value=named_parts(node.value))
        if lanes == 1:
            if _hoists(node.value):
                self._block(lambda: self._store_scalar(node))
            else:
                self._store_scalar(node)
            return
        if self._reads_elsewhere(node):
            ty = spelling.c_type(node.buffer.dtype)
            name = self.fresh("vector")
            self.line("{")
            self.depth += 1
            self.line(f"{ty} {name}[{lanes}];")
            self._lanes(node.value, lanes, lambda lane, text: f"{name}[{lane}] = {text};")
            lane = self.fresh("lane")
            self.line(f"for (int32_t {lane} = 0; {lane} < {lanes}; ++{lane}) {{")
            target = self.element(node.buffer, node.indices, lane)
            self.line(f"  {target} = {name}[{lane}];")
            self.line("}")
            self.depth -= 1
            self.line("}")
            self.taken -= {lane, name}
            return
        self._lanes(
            node.value,
            lanes,
            lambda lane, text: f"{self.element(node.buffer, node.indices, lane)} = {text};",
        )

    def _store_scalar(self, node: S.BufferStore) -> None:
        text = self.expr(node.value)
        self.line(f"{self.element(node.buffer, node.indices, None)} = {text};")

    def _reads_elsewhere(self, node: S.BufferStore) -> bool:
        """Return whether the value loads from the stored memory at another index."""
        for inner in walk(node.value):
            if (
                isinstance(inner, E.BufferLoad)
                and inner.buffer.data is node.buffer.data
                and not structural_equal(inner.indices, node.indices)
            ):
                return True
        return False

    def _for(self, node: S.For) -> None:
        parallel = node.kind == S.ForKind.PARALLEL
        if not self.inside_parallel and (parallel or is_region(node)):
            self._parallel(node)
            return
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(
                f"{self.name}: loop {node.loop_var.name} is bound to a GPU thread, and the "
                "target is a CPU: use s[...].parallel / vectorize / unroll instead of bind"
            )
        start = self.index(node.min)
        if parallel and self.shared_outer is not None:
            self._loop_in_share(node, *self.shared_outer)
            return
        if parallel and self.shares:
            dtype, steps = node.extent.dtype, (node.extent,)
            low, high = (self.index(node.min + E.Call(dtype, op, steps)) for op in SHARE)
            self.shares = False
            self.loop(node, low, self.temporary(node.loop_var.dtype, high, "end"))
            self.shares = True
            return
        end = self.index(node.min + node.extent)
        if not isinstance(node.extent, E.IntImm) or not isinstance(node.min, E.IntImm):
            end = self.temporary(node.loop_var.dtype, end, "end")
        self.loop(node, start, end)

    def loop(self, node: S.For, start: str, end: str) -> None:
        """Emit the loop of `node` over [start, end)."""
        var = node.loop_var
        self.bounds.bind(var, node.min, node.extent)
        name = self.define(var, self.fresh(var.name))
        ty = spelling.c_type(var.dtype)
        self.line(f"for ({ty} {name} = {start}; {name} < {end}; ++{name}) {{")
        self.nested(lambda: self.stmt(node.body))
        self.line("}")
        self.taken.discard(name)

    def _while(self, node: S.While) -> None:
        self.line(f"if (!{self.expr(node.condition)}) {{")
        self.line("  break;")
        self.line("}")
        self.stmt(node.body)

    def _if(self, node: S.IfThenElse) -> None:
        condition = self.expr(node.condition)
        if not isinstance(node.condition, E.EQ):  # which clang wants in one pair of parentheses
            condition = f"({condition})"
        self.line(f"if {condition} {{")
        self.nested(lambda: self.stmt(node.then_case))
        if node.else_case is not None:
            self.line("} else {")
            otherwise = node.else_case
            self.nested(lambda: self.stmt(otherwise))
        self.line("}")

    def _assert(self, node: S.AssertStmt) -> None:
        self.line(f"if (!{self.expr(node.condition)}) {{")
        self.fail(node.kind, node.message.value)
        self.line("}")
        self.stmt(node.body)

    def fail(self, kind: str, message: str) -> None:
        """Emit the return with an error of this kind."""
        self.module.uses_failure = True
        self.line(f"  slw_failure_kind = {spelling.c_string(kind)};")
        self.line(f"  slw_failure_message = {spelling.c_string(message)};")
        self.nested(lambda: self.leave("-2"))

    def leave(self, status: str) -> None:
        """Emit the return with this status, the memory that the function holds given back."""
        for name in reversed(self.held):
            self.release(name)
        self.line(f"return {status};")

    # -- memory --------------------------------------------------------------------------------

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        size = buffer.size_bytes()
        ty = spelling.c_type(buffer.dtype)
        name = self.fresh(buffer.name)
        self.define(buffer.data, name)
        self.pointer_types[id(buffer.data)] = ty
        self.element_dtype[id(buffer.data)] = buffer.dtype
        if size is not None and on_stack(buffer.scope, size, self.stack_bytes):
            self.stack_bytes += size
            count = max(1, size // max(1, dtypes.bits_of(buffer.dtype) // 8))
            self.line(f"_Alignas({min(buffer.data_alignment, 64)}) {ty} {name}[{count}];")
            self.stmt(node.body)
            self.stack_bytes -= size
            return
        self._workspace(node, size, ty, name)

    def _workspace(self, node: S.Allocate, size: int | None, ty: str, name: str) -> None:
        module = self.module
        module.uses_workspace = self.took_workspace = True
        if size is not None:
            amount = str(size)
            offset = (self.arena_used + 63) & ~63
            self.arena_used = offset + size
            module.arena_bytes = max(module.arena_bytes, self.arena_used)
            fallback = f"slw_arena + {offset}"
        else:
            total: E.PrimExpr = E.IntImm("int64", dtypes.bytes_of(node.buffer.dtype))
            for extent in node.buffer.shape:
                total = E.Mul(total, E.Cast("int64", extent) if extent.dtype != "int64" else extent)
            amount, fallback = self.index(total), "0"
        device = module.device_type
        self.line(f"{ty}* const {name} = ({ty}*)(void*)(__slipway_workspace_alloc != 0")
        self.line(f"    ? __slipway_workspace_alloc((uint64_t)({amount}), {device}, 0)")
        self.line(f"    : (void*)({fallback}));")
        self.line(f"if ({name} == 0) {{")
        self.fail("MemoryError", f"{self.name}: no workspace memory for {node.buffer.name}")
        self.line("}")
        self.held.append(name)
        self.stmt(node.body)
        self.held.pop()
        self.release(name)
        if size is not None:
            self.arena_used -= size

    def release(self, name: str) -> None:
        """Give a temporary back to the runtime, if that gave it."""
        self.line("if (__slipway_workspace_alloc != 0 && __slipway_workspace_free != 0) {")
        self.line(f"  __slipway_workspace_free({name}, {self.module.device_type}, 0);")
        self.line("}")

    # -- threads -------------------------------------------------------------------------------

    def loop_of_share(self, node: S.For) -> None:
        """Emit steps begin to end of a parallel loop, of those of a nested one if it has that."""
        ty, nested = spelling.c_type(node.loop_var.dtype), nested_steps(node)
        if nested == 1:
            self.loop(node, f"({ty})begin", f"({ty})end")
            return
        self.shared_outer = node.loop_var, nested
        self.loop(node, f"({ty})(begin / {nested})", f"({ty})((end + {nested - 1}) / {nested})")

    def _loop_in_share(self, node: S.For, outer: E.Var, steps: int) -> None:
        """Emit the steps of a nested loop that are in the share, at this step of the outer one."""
        dtype, self.shared_outer = node.loop_var.dtype, None
        ends = []
        for end, test, bound in (("begin", ">", 0), ("end", "<", steps)):
            here = f"{end} - (int64_t){self.names[id(outer)]} * {steps}"
            inside = f"{here} {test} {bound} ? {here} : {bound}"
            ends.append(self.temporary(dtype, f"({spelling.c_type(dtype)})({inside})", end))
        self.loop(node, ends[0], ends[1])

    def _call_share_begin(self, node: E.Call, lane: Lane) -> str:
        return self._share(node, lane, "task") if self.region else "0"

    def _call_share_end(self, node: E.Call, lane: Lane) -> str:
        steps = self.expr(node.args[0], lane)
        return self._share(node, lane, "task + 1") if self.region else steps

    def _share(self, node: E.Call, lane: Lane, task: str) -> str:
        self.helpers.add("slw_share")
        steps = self.expr(node.args[0], lane)
        return f"({spelling.c_type(node.dtype)})slw_share({steps}, {task}, tasks)"

    def _parallel(self, node: S.For) -> None:
        """Outline the loop: ``body(closure, task, tasks)`` runs its share of the steps.

        Of a region it runs everything, and its share of the parallel loops inside.
        """
        self.module.uses_parallel = True
        self.children += 1
        name = f"{self.name}_parallel{self.children}"
        variables = captured(S.SeqStmt((node,)))
        fields = []
        for var in variables:
            if var.dtype == "handle":
                fields.append((f"{self.pointer_types.get(id(var), 'void')}*", self.names[id(var)]))
            else:
                fields.append((spelling.c_type(var.dtype), self.names[id(var)]))
        struct = "".join(f"  {ty} v{i};\n" for i, (ty, _) in enumerate(fields))
        self.module.functions.append(
            f"struct {name}_closure {{\n{struct}  int64_t start;\n  int64_t extent;\n}};\n"
        )
        needs_workspace = self._outline(node, name, variables)
        self.line("{")
        self.depth += 1
        closure = self.fresh("closure")
        status = self.fresh("status")
        self.line(f"struct {name}_closure {closure};")
        self.line(f"int {status};")
        for i, (_, value) in enumerate(fields):
            self.line(f"{closure}.v{i} = {value};")
        self.line(f"{closure}.start = {self.index(node.min)};")
        nested = nested_steps(node)
        each = f" * {nested}" if nested > 1 else ""
        self.line(f"{closure}.extent = {self.index(node.extent)}{each};")
        extra = " && __slipway_workspace_alloc != 0" if needs_workspace else ""
        self.line(f"{status} = __slipway_parallel_launch != 0{extra}")
        self.line(f"    ? __slipway_parallel_launch({name}, &{closure}, 0)")
        self.line(f"    : {name}(&{closure}, 0, 1);")
        self.line(f"if ({status} != 0) {{")
        self.nested(lambda: self.leave(status))
        self.line("}")
        self.depth -= 1
        self.line("}")

    def _outline(self, node: S.For, name: str, variables: list[E.Var]) -> bool:
        inner = CFunction(self.module, name)
        inner.inside_parallel = True
        inner.element_dtype = self.element_dtype
        inner.arena_used = self.arena_used
        inner.line(f"const struct {name}_closure* const closure = raw;")
        inner.taken |= {"closure", "raw", "task", "tasks", "begin", "end"}
        for i, var in enumerate(variables):
            given = inner.define(var, inner.fresh(var.name))
            if var.dtype == "handle":
                ty = self.pointer_types.get(id(var), "void")
                inner.pointer_types[id(var)] = ty
                inner.line(f"{ty}* const restrict {given} = closure->v{i};")
            else:
                inner.line(f"const {spelling.c_type(var.dtype)} {given} = closure->v{i};")
            inner.temporaries.append(given)
            if id(var) in self.bounds.vars:
                inner.bounds.vars[id(var)] = self.bounds.vars[id(var)]
        if node.kind == S.ForKind.PARALLEL:
            inner.helpers.add("slw_share")
            for end, task in (("begin", "task"), ("end", "task + 1")):
                share = f"slw_share(closure->extent, {task}, tasks)"
                inner.line(f"const int64_t {end} = closure->start + {share};")
            inner.loop_of_share(node)
        else:
            inner.region = inner.shares = True
            inner._for(node)
        inner.finish(f"static int {name}(void* raw, int32_t task, int32_t tasks)", [])
        self.took_workspace |= inner.took_workspace
        return inner.took_workspace


def _needs_constant_lanes(value: E.PrimExpr) -> bool:
    return any(
        (isinstance(n, E.Shuffle) and n.lanes > 1) or legalize.changes_lanes(n) for n in walk(value)
    )


def _hoists(value: E.PrimExpr) -> bool:
    """Return whether spelling `value` may need temporaries."""
    return any(
        isinstance(n, (E.Let, E.Min, E.Max, E.FloorDiv, E.FloorMod, E.Call, E.Cast))
        for n in walk(value)
    )
