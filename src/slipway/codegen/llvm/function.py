"""Statements to LLVM IR, and the functions around them."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway import dtypes
from slipway.codegen.capture import is_region
from slipway.codegen.llvm.intrinsics import IntrinsicEmitter
from slipway.codegen.llvm.packed_call import emit_call_packed, emit_return
from slipway.codegen.llvm.parallel import emit_parallel, end_of_share, loop_in_share, share_of
from slipway.codegen.llvm.pieces import MANY, emit_piece, is_long, pieces
from slipway.codegen.llvm.tiles import emit_tile_call, place_configurations
from slipway.codegen.llvm.types import llvm_type
from slipway.codegen.stack import on_stack
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.target.capability import Capability

CPU = 1  # DLPack's device type


@dataclass
class ModuleState:
    """What the functions of one module share."""

    capability: Capability
    strict: bool = False
    device_type: int = CPU
    functions: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    strings: dict[str, str] = field(default_factory=dict)
    caches: dict[str, str] = field(default_factory=dict)
    statics: list[str] = field(default_factory=list)
    arena_bytes: int = 0
    loop_wishes: list[str] = field(default_factory=list)
    uses_parallel: bool = False
    uses_workspace: bool = False
    attributes: str = ""
    arena: str = "slw_arena"

    def static_tensor(self, rank: int) -> tuple[str, str]:
        """Return the names of a new static Tensor object and of its shape and strides."""
        number = len(self.statics) // 2
        head = "i64 5368709120, i32 70, i32 0"  # 2^32 weak, 2^30 strong references; Tensor
        self.statics.append(
            f"@slw.tensor.{number} = internal global {{ i64, i32, i32, [13 x i64] }} "
            f"{{ {head}, [13 x i64] zeroinitializer }}, align 8"
        )
        self.statics.append(
            f"@slw.sizes.{number} = internal global [{2 * rank + 1} x i64] zeroinitializer"
        )
        return f"@slw.tensor.{number}", f"@slw.sizes.{number}"

    def cache_slot(self, function: str) -> str:
        """Return the name of the variable that keeps the PackedFunc `function` once found."""
        return self.caches.setdefault(function, f"@slw.cache.{len(self.caches)}")

    def string(self, text: str) -> str:
        """Return the name of a constant that holds `text`, NUL-terminated."""
        if text not in self.strings:
            self.strings[text] = f"@slw.text.{len(self.strings)}"
        return self.strings[text]

    def loop_metadata(self, wish: str) -> int:
        """Return the number of a new loop's metadata; `wish`: "full" or "disable" unrolling."""
        self.loop_wishes.append(wish)
        return len(self.loop_wishes)

    def loop_lines(self) -> list[str]:
        """Return the lines that define the metadata of all loops."""
        above = len(self.loop_wishes) + 1
        wishes = {wish: above + n for n, wish in enumerate(dict.fromkeys(self.loop_wishes))}
        return [
            *(f'!{n} = !{{!"llvm.loop.unroll.{wish}"}}' for wish, n in wishes.items()),
            *(
                f"!{n} = distinct !{{!{n}, !{wishes[wish]}}}"
                for n, wish in enumerate(self.loop_wishes, 1)
            ),
        ]


class FunctionEmitter(IntrinsicEmitter):
    """Emits the body of one compute function: ``i32 @name(pointers and scalars)``."""

    def __init__(self, module: ModuleState, name: str) -> None:
        super().__init__(module.capability, module.strict)
        self.module = module
        self.name = name
        self.inside_parallel = False
        self.region = False  # it is what one task runs of a region
        self.shares = False  # and it is in no parallel loop of that
        # Around a parallel loop that is shared with one: the variable of that, the steps of this.
        self.shared_outer: tuple[E.Var, int] | None = None
        self._element_bytes: dict[int, int] = {}
        self.element_dtype: dict[int, str] = {}  # of data pointers, for tensor_view
        self.stack_bytes = 0
        self.took_workspace = False
        self.returns_values = False  # its caller takes what tir.ret returns
        self.returned = False  # and there is such a call
        self.held: list[tuple[str, str]] = []  # temporaries, the outer ones first: see release
        self.arena_used = 0
        self.loops = 0
        self.children = 0
        self.pieces = 0
        self.noalias = True
        self.has_many = False  # pointers: long sequences become functions of their own
        self.terminated = False
        self.in_loop_scopes = 0

    @property
    def element_bytes(self) -> dict[int, int]:
        """Bytes of one element behind each data pointer, by id of its Var."""
        return self._element_bytes

    def _call_call_packed(self, node: E.Call) -> str:
        return emit_call_packed(self, node)

    def _tile_call(self, node: E.Call) -> str:
        return emit_tile_call(self, node)

    _call_tile_config = _call_tile_zero = _call_tile_load = _call_tile_dot = _tile_call
    _call_tile_store = _tile_call

    # -- functions -----------------------------------------------------------------------------

    def parameters(self, params: list[E.Var], noalias: bool) -> str:
        """Bind the parameters; return the text of the parameter list."""
        declared = []
        self.noalias = noalias
        self.has_many = sum(var.dtype == "handle" for var in params) > MANY
        for number, var in enumerate(params):
            operand = f"%p{number}"
            if var.dtype == "handle":
                self.pointers[id(var)] = operand
                declared.append(f"ptr {'noalias ' if noalias else ''}{operand}")
            else:
                declared.append(f"{self.ty(var.dtype)} {operand}")
                self.bind_scalar(var, operand)
        return ", ".join(declared)

    def bind_scalar(self, var: E.Var, operand: str) -> None:
        """Make `var` stand for `operand`, in pointer width too where it is an integer."""
        self.values[id(var)] = operand
        self.address.depth[id(var)] = self.loops
        self.address.atoms[id(var)] = var

    def widen_scalars(self, params: list[E.Var]) -> None:
        """Compute the pointer-width form of integer parameters, once, at the entry."""
        for var in params:
            if dtypes.is_integral(var.dtype):
                self.wide_values[id(var)] = self.wide(var)

    def inner(self, name: str, variables: list[E.Var]) -> FunctionEmitter:
        """Return the emitter of a function that this one gives `variables` to."""
        made = FunctionEmitter(self.module, name)
        made.inside_parallel, made.arena_used = self.inside_parallel, self.arena_used
        made._element_bytes = self._element_bytes
        made.element_dtype = self.element_dtype
        for var in variables:
            if id(var) in self.bounds.vars:
                made.bounds.vars[id(var)] = self.bounds.vars[id(var)]
            if id(var) in self.aligned:
                made.aligned[id(var)] = self.aligned[id(var)]
        return made

    def finish(self, signature: str, attributes: str = "") -> None:
        """Append the function, whose body has been emitted, to the module."""
        if not self.terminated:
            self.w.do("ret i32 0")
        place_configurations(self)
        self.module.functions.append(
            f"define internal i32 @{self.name}({signature}) {self.module.attributes}{attributes} {{"
            "\nentry:\n" + "\n".join([*self.w.entry, *self.w.lines]) + "\n}\n"
        )
        self.module.declarations |= self.helpers

    # -- statements ----------------------------------------------------------------------------

    def stmt(self, node: S.Stmt) -> None:
        """Emit one statement."""
        match node:
            case S.BufferStore():
                self.new_statement()
                self.store(node)
            case S.SeqStmt(stmts):
                if (self.has_many or is_long(stmts)) and not self.region:
                    for piece in pieces(stmts):
                        emit_piece(self, piece)
                    return
                for inner in stmts:
                    self.stmt(inner)
            case S.For():
                self._for(node)
            case S.IfThenElse():
                self._if(node)
            case S.LetStmt(var, value, body):
                self.new_statement()
                if var.dtype == "handle":
                    self.pointers[id(var)] = self.value(value)
                else:
                    self.define(var, value)
                    self.address.depth[id(var)] = self.loops
                self._scoped(body)
            case S.Allocate():
                self._allocate(node)
            case S.AttrStmt():
                self.stmt(node.body)
            case S.AssertStmt():
                self._assert(node)
            case S.Evaluate(value):
                if not isinstance(value, E.IntImm):
                    self.new_statement()
                    self._evaluate(value)
            case S.While():
                self._while(node)
            case _:
                raise CodegenError(
                    f"{self.name}: a {type(node).__name__} cannot be compiled: lower it first"
                )

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.Call) and value.op == "ret":
            emit_return(self, value.args[0])
            return
        self.value(value)

    def _scoped(self, body: S.Stmt) -> None:
        """Emit statements inside of another, whose loads may give something else after a store."""
        outer, self.memo = self.memo, [{}]
        self.w.scopes.append({})
        self.stmt(body)
        self.w.scopes.pop()
        self.memo = outer

    def _for(self, node: S.For) -> None:
        parallel = node.kind == S.ForKind.PARALLEL
        if not self.inside_parallel and (parallel or is_region(node)):
            emit_parallel(self, node)
            return
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(
                f"{self.name}: loop {node.loop_var.name} is bound to a GPU thread, and the "
                "target is a CPU: use s[...].parallel / vectorize / unroll instead of bind"
            )
        self.new_statement()
        start = self.wide(node.min)
        if parallel and self.shared_outer is not None:
            loop_in_share(self, node, *self.shared_outer)
            return
        if parallel and self.shares:
            low, high = (f"add {self.word} {start}, {x}" for x in share_of(self, node.extent))
            self.shares = False
            self.loop(node, self.w.put(low), self.w.put(high), False)
            self.shares = True
            return
        count = node.extent.value if isinstance(node.extent, E.IntImm) else None
        if count is not None and count <= 0:
            return
        if count is not None and isinstance(node.min, E.IntImm):
            end = str(node.min.value + count)
        else:
            end = self.w.put(f"add nsw {self.word} {start}, {self.wide(node.extent)}")
        self.loop(node, start, end, count is not None)

    def loop(self, node: S.For, start: str, end: str, runs: bool) -> None:
        """Emit the loop of `node` over [start, end); `runs`: it has at least one step."""
        w, var = self.w, node.loop_var
        head, done = w.label("loop"), w.label("done")
        self.bounds.bind(var, node.min, node.extent)
        if runs:
            w.branch(head)
        else:
            test = w.put(f"icmp slt {self.word} {start}, {end}")
            w.branch_if(test, head, done)
        before = w.block
        w.start(head)
        step, following = w.name(), w.name()
        slot = len(w.lines)
        w.lines.append("")  # the phi, once the last block of the body is known
        self.loops += 1
        self.bind_scalar(var, step)
        self.wide_values[id(var)] = step
        bits = dtypes.bits_of(var.dtype)
        if bits != self.capability.pointer_bits:
            opcode = "trunc nsw" if bits < self.capability.pointer_bits else "sext"
            self.values[id(var)] = w.put(f"{opcode} {self.word} {step} to i{bits}")
        self._scoped(node.body)
        self.loops -= 1
        w.lines.append(f"  {following} = add nsw {self.word} {step}, 1")
        more = w.put(f"icmp slt {self.word} {following}, {end}")
        w.branch_if(more, head, done, self.loop_metadata(node))
        w.lines[slot] = (
            f"  {step} = phi {self.word} [ {start}, %{before} ], [ {following}, %{w.block} ]"
        )
        w.start(done)

    def loop_metadata(self, node: S.For) -> str:
        """Return the metadata of a loop's branch: what it wants of LLVM's unroller."""
        if node.kind == S.ForKind.UNROLLED:
            wish = "full"
        elif S.KEEP_LOOP in node.annotations:
            wish = "disable"
        else:
            return ""
        return f", !llvm.loop !{self.module.loop_metadata(wish)}"

    def _while(self, node: S.While) -> None:
        self.new_statement()
        w = self.w
        head, body, done = (w.label(x) for x in ("while", "do", "done"))
        w.branch(head)
        w.start(head)
        w.scopes.append({})
        self.memo.append({})
        test = self.value(node.condition)
        w.branch_if(test, body, done)
        w.start(body)
        self._scoped(node.body)
        self.memo.pop()
        w.scopes.pop()
        w.branch(head)
        w.start(done)

    def _if(self, node: S.IfThenElse) -> None:
        self.new_statement()
        w = self.w
        test = self.value(node.condition)
        yes, end = w.label("then"), w.label("end")
        no = w.label("else") if node.else_case is not None else end
        w.branch_if(test, yes, no)
        for label, body in ((yes, node.then_case), (no, node.else_case)):
            if body is not None:
                w.start(label)
                self._scoped(body)
                w.branch(end)
        w.start(end)

    def _assert(self, node: S.AssertStmt) -> None:
        self.new_statement()
        test = self.value(node.condition)
        bad, good = self.w.label("bad"), self.w.label("good")
        self.w.branch_if(test, good, bad)
        self.w.start(bad)
        self._keep_failure(node.kind, node.message.value)
        self.leave("-2")
        self.w.start(good)
        self.stmt(node.body)

    def _keep_failure(self, kind: str, message: str) -> None:
        """Keep the words of an error for the wrapper, which knows the result slot."""
        for slot, text in (("kind", kind), ("message", message)):
            self.w.do(f"store ptr {self.module.string(text)}, ptr @slw_failure_{slot}")

    # -- memory --------------------------------------------------------------------------------

    def note_buffer(self, buffer: Buffer) -> None:
        """Remember the element size behind a data pointer, for access_ptr."""
        self._element_bytes[id(buffer.data)] = dtypes.bytes_of(buffer.dtype)
        self.element_dtype[id(buffer.data)] = buffer.dtype

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        self.note_buffer(buffer)
        size = buffer.size_bytes()
        align = max(buffer.data_alignment, 16)
        if size is not None and on_stack(buffer.scope, size, self.stack_bytes):
            self.stack_bytes += size
            ty = llvm_type(buffer.dtype, self.soft_half, True)
            count = max(1, size // dtypes.bytes_of(buffer.dtype))
            name = self.w.name()
            self.w.entry.append(f"  {name} = alloca [{count} x {ty}], align {align}")
            self.pointers[id(buffer.data)] = name
            self.aligned[id(buffer.data)] = align
            self.stmt(node.body)
            return
        self._workspace(node, size)

    def _workspace(self, node: S.Allocate, size: int | None) -> None:
        """Take a large temporary from the runtime, or from the static arena where there is none."""
        w, buffer = self.w, node.buffer
        self.module.uses_workspace = self.took_workspace = True
        self.new_statement()
        if size is not None:
            amount = str(size)
            offset = (self.arena_used + 63) & ~63
            self.arena_used = offset + size
            self.module.arena_bytes = max(self.module.arena_bytes, self.arena_used)
            fallback = f"getelementptr (i8, ptr @{self.module.arena}, {self.word} {offset})"
        else:
            total: E.PrimExpr = E.IntImm("int64", dtypes.bytes_of(buffer.dtype))
            for extent in buffer.shape:
                total = E.Mul(total, E.Cast("int64", extent) if extent.dtype != "int64" else extent)
            amount, fallback = self.value(total), "null"
        kind = self.module.device_type
        give = w.put("load ptr, ptr @__slipway_workspace_alloc")
        missing = w.put(f"icmp eq ptr {give}, null")
        allocate, use = w.label("ask"), w.label("use")
        before = w.block
        w.branch_if(missing, use, allocate)
        w.start(allocate)
        got = w.put(f"call noalias ptr {give}(i64 {amount}, i32 signext {kind}, i32 signext 0)")
        w.branch(use)
        w.start(use)
        memory = w.put(f"phi ptr [ {fallback}, %{before} ], [ {got}, %{allocate} ]")
        failed, good = w.label("nomemory"), w.label("memory")
        w.branch_if(w.put(f"icmp eq ptr {memory}, null"), failed, good)
        w.start(failed)
        text = f"{self.name}: no workspace memory for temporary {buffer.name}"
        self._keep_failure("MemoryError", text)
        self.leave("-2")
        w.start(good)
        self.pointers[id(buffer.data)] = memory
        self.aligned[id(buffer.data)] = 64
        self.held.append((memory, missing))
        self.stmt(node.body)
        self.held.pop()
        self.release(memory, missing)
        if size is not None:
            self.arena_used -= size

    def leave(self, status: str) -> None:
        """Emit the return with this status, the memory that the function holds given back."""
        for held in reversed(self.held):
            self.release(*held)
        self.w.do(f"ret i32 {status}")

    def release(self, memory: str, missing: str) -> None:
        """Give a temporary back to the runtime, unless `missing`: the runtime did not give it."""
        w, kind = self.w, self.module.device_type
        release, after = w.label("release"), w.label("after")
        take = w.put("load ptr, ptr @__slipway_workspace_free")
        skip = w.put(f"icmp eq ptr {take}, null")
        w.branch_if(w.put(f"or i1 {missing}, {skip}"), after, release)
        w.start(release)
        w.do(f"call void {take}(ptr {memory}, i32 signext {kind}, i32 signext 0)")
        w.branch(after)
        w.start(after)

    def _call_share_begin(self, node: E.Call) -> str:
        return end_of_share(self, node.args[0], node.dtype, 0) if self.region else "0"

    def _call_share_end(self, node: E.Call) -> str:
        (extent,) = node.args
        return end_of_share(self, extent, node.dtype, 1) if self.region else self.value(extent)
