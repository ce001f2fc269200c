"""A kernel, a nest of loops over threads, written to a sink."""

from __future__ import annotations

from slipway import dtypes
from slipway.codegen.bounds import ValueBounds
from slipway.codegen.capture import captured
from slipway.codegen.gpu.kernel import AXES, DeviceKernel, axes_of, buffers_of, uses
from slipway.codegen.ssa.intrinsics import SsaIntrinsics
from slipway.codegen.ssa.sink import Memory, Parameters, Sink, Value, memory_dtype, register_dtype
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.instructions.cooperative_products import MATRIX, STORE, named
from slipway.ir.instructions.warp_products import PRODUCT, ZERO
from slipway.ir.instructions.warp_shuffles import is_shuffle
from slipway.ir.visit import walk
from slipway.target.capability import Capability


def write_kernel(
    name: str, root: S.For, sink: Sink, capability: Capability, noalias: bool
) -> DeviceKernel:
    """Write one kernel.  Raises CodegenError for what kernels, or the sink, cannot express."""
    loops, body = axes_of(root)
    params = captured(root)
    extents = {tag: loop.extent for tag, loop in loops.items()}
    for extent in extents.values():  # which the host computes
        inside = {id(v) for v in captured(S.Evaluate(extent))}
        params = [v for v in params if id(v) not in inside or uses(body, v)]
    out = KernelWriter(sink, capability, name)
    signature = out.begin(params, body, noalias, extents)
    for tag, loop in loops.items():
        out.bind_axis(tag, loop)
    out.stmt(body)
    sink.end()
    return DeviceKernel(name, "", tuple(params), signature, extents, out.shared_bytes, frozenset())


class KernelWriter(SsaIntrinsics):
    """Writes the statements of one kernel."""

    shared_bytes = 0
    declared = 0

    def begin(
        self, params: list[E.Var], body: S.Stmt, noalias: bool, extents: dict[str, E.PrimExpr]
    ) -> str:
        """Begin the kernel and bind its parameters; return the signature for a launch."""
        self.bounds = ValueBounds()
        buffers = buffers_of(body)
        pointers: list[Memory | None] = []
        scalars: list[tuple[str, str]] = []
        kinds = ""
        numbers: dict[int, int] = {}
        for var in params:
            if var.dtype != "handle":
                kinds += _kind(var.dtype)
                numbers[id(var)] = len(scalars)
                scalars.append((var.name, register_dtype(var.dtype)))
                continue
            kinds += "p"
            number = len(pointers)
            memory = None
            if id(var) in buffers:
                dtype = memory_dtype(buffers[id(var)].dtype)
                memory = Memory("global", number, var.name, dtype)
                self.memories[id(var)] = memory
            pointers.append(memory)
        numbers_of = {key: memory.number for key, memory in self.memories.items()}
        self.stored, handed = _stored(body)
        given = Parameters(
            tuple(pointers),
            tuple(scalars),
            frozenset(numbers_of[key] for key in self.stored if key in numbers_of),
            frozenset(numbers_of[key] for key in handed if key in numbers_of),
            noalias,
            _warp(body),
        )
        self.sink.begin(self.name, given, _threads(self.name, extents))
        for var in params:
            if var.dtype != "handle":
                self.values[id(var)] = self.sink.scalar(numbers[id(var)])
        return kinds

    def bind_axis(self, tag: str, loop: S.For) -> None:
        """Give a loop's variable the number of the thread or block."""
        self.bounds.bind(loop.loop_var, loop.min, loop.extent)
        number = self.number(self.sink.axis(tag), loop.loop_var.dtype)
        self.name_value(loop.loop_var, number)

    # -- statements --------------------------------------------------------------------------------

    def stmt(self, node: S.Stmt) -> None:
        """Write one statement."""
        match node:
            case S.BufferStore():
                self._store(node)
            case S.For():
                self._for(node)
            case S.While():
                self._while(node)
            case S.IfThenElse():
                self._if(node)
            case S.SeqStmt():
                for inner in node.stmts:
                    self.stmt(inner)
            case S.LetStmt():
                if node.value.lanes == 1:
                    self.let(node.var, node.value)
                else:
                    self.name_value(node.var, self.lanes_of(node.value))
                self.stmt(node.body)
            case S.Allocate():
                self._allocate(node)
            case S.AttrStmt() | S.AssertStmt():  # a kernel has no way to report
                self.stmt(node.body)
            case S.Evaluate():
                self._evaluate(node.value)
            case _:
                raise CodegenError(
                    f"{self.name}: a {type(node).__name__} cannot be compiled: lower it first"
                )

    def _block(self, body: S.Stmt) -> None:
        self.inside(lambda: self.stmt(body))

    def _store(self, node: S.BufferStore) -> None:
        lanes = node.value.lanes
        values = self.lanes_of(node.value)
        for number, value in enumerate(values):
            memory, index = self.element(node.buffer, node.indices, number if lanes > 1 else None)
            self.sink.store(memory, index, self.number(value, memory.dtype))
        self.forget()

    def _for(self, node: S.For) -> None:
        var = node.loop_var
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(f"{self.name}: loop {var.name} over threads is not mapped")
        start, end = self.expr(node.min), self.expr(ops.cast(node.min + node.extent, var.dtype))
        start = self.number(start, var.dtype)
        self.bounds.bind(var, node.min, node.extent)
        self.forget()

        def body(number: Value) -> None:
            self.name_value(var, number)
            self._block(node.body)

        self.sink.loop(start, end, body)
        self.forget()

    def _while(self, node: S.While) -> None:
        self.forget()
        self.sink.repeat(
            lambda: self.inside(lambda: self.expr(node.condition)), lambda: self._block(node.body)
        )
        self.forget()

    def _if(self, node: S.IfThenElse) -> None:
        other = node.else_case
        self.sink.branch(
            self.expr(node.condition),
            lambda: self._block(node.then_case),
            None if other is None else lambda: self._block(other),
        )
        self.forget()

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        size = buffer.size_bytes()
        if size is None:
            raise CodegenError(
                f"{self.name}: the memory {buffer.name!r} of a thread or block has the shape "
                f"{list(buffer.shape)}, and it must be constant"
            )
        scope = buffer.scope if buffer.scope in ("shared", MATRIX) else "local"
        dtype = memory_dtype(buffer.dtype)
        count = max(1, size // max(1, dtypes.bytes_of(dtype)))
        apart = scope == "local" and _is_apart(buffer.data, node.body)
        self.memories[id(buffer.data)] = self._new_memory(scope, buffer.name, dtype, count, apart)
        self.shared_bytes += size if scope == "shared" else 0
        self.stmt(node.body)

    def _new_memory(
        self, scope: str, name: str, dtype: str, count: int, apart: bool = False
    ) -> Memory:
        memory = Memory(scope, self.declared, name, dtype, count, apart)
        self.declared += 1
        self.sink.declare(memory)
        return memory

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.IntImm):
            return
        if isinstance(value, E.Call) and value.op == "storage_sync":
            together = isinstance(value.args[0], E.StringImm) and value.args[0].value == "warp"
            (self.sink.warp_barrier if together else self.sink.barrier)()
            self.forget()
            return
        if isinstance(value, E.Call) and value.op in (PRODUCT, ZERO, STORE):
            self._matrix(value)
            self.forget()
            return
        self.expr(value)

    def _matrix(self, node: E.Call) -> None:
        name, *operands = node.args
        entry = named(name.value)  # type: ignore[attr-defined]
        if entry is None:
            raise CodegenError(
                f"{self.name}: kernels in this language have no product of a warp ({name}). "
                "Compile for a target whose matrix units have it, or without that intrinsic"
            )

        def operand(of: E.PrimExpr) -> Value | tuple[Memory, Value]:
            if isinstance(of, E.Call) and of.op == "address_of":
                load = of.args[0]
                assert isinstance(load, E.BufferLoad)
                return self.element(load.buffer, load.indices, None)
            return self.expr(of)

        self.sink.matrix(node.op.removeprefix("warp_"), entry, *map(operand, operands))

    # -- variables of a thread ---------------------------------------------------------------------

    def scratch(self, dtype: str, value: Value) -> Memory:
        """Return a variable of this thread that holds `value`."""
        memory = self._new_memory("local", "scratch", dtype, 1)
        self.write(memory, value)
        return memory

    def read(self, variable: Memory) -> Value:
        """Return what a variable holds."""
        return self.sink.load(variable, self.sink.constant("int32", 0))

    def write(self, variable: Memory, value: Value) -> None:
        """Let a variable hold another value."""
        self.sink.store(variable, self.sink.constant("int32", 0), value)


def _is_apart(data: E.Var, body: S.Stmt) -> bool:
    """Return whether all elements that are read or written are named by constants."""
    for node in walk(body):
        if isinstance(node, E.Call) and node.op == "address_of":
            return False
        if isinstance(node, (S.BufferStore, E.BufferLoad)) and node.buffer.data is data:
            value = node.value if isinstance(node, S.BufferStore) else node
            if value.lanes > 1 or not all(isinstance(i, E.IntImm) for i in node.indices):
                return False
    return True


def _kind(dtype: str) -> str:
    """Return the character of a launch's signature for a scalar."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "float" and bits in (32, 64):
        return "f" if bits == 32 else "d"
    return str(max(1, bits // 8))


def _threads(name: str, extents: dict[str, E.PrimExpr]) -> tuple[int, ...]:
    sizes = []
    for axis in AXES:
        size = ops.as_int(extents.get(f"threadIdx.{axis}", ops.const(1)))
        if size is None:
            raise CodegenError(
                f"kernel {name} has {extents[f'threadIdx.{axis}']} threads along threadIdx.{axis}, "
                "and this language takes a number that is known when the kernel is compiled. Split "
                "the axis by a constant, and bind the inner loop"
            )
        sizes.append(size)
    return tuple(sizes)


def _warp(body: S.Stmt) -> int:
    """Return how many threads hand each other values, or hold matrices; 1: none do."""
    for node in walk(body):
        if isinstance(node, E.Call) and is_shuffle(node):
            return ops.as_int(node.args[4]) or 1
        if isinstance(node, E.Call) and node.op == STORE:
            entry = named(node.args[0].value)  # type: ignore[attr-defined]
            assert entry is not None
            return entry.lanes
    return 1


def _stored(body: S.Stmt) -> tuple[set[int], set[int]]:
    """Return the data Vars, by id, that are written; and of those what is handed over.

    That is what is read too, in a kernel that has a barrier.
    """
    nodes = list(walk(body))
    stored = {id(n.buffer.data) for n in nodes if isinstance(n, S.BufferStore)}
    if not any(isinstance(n, E.Call) and n.op == "storage_sync" for n in nodes):
        return stored, set()
    return stored, stored & {id(n.buffer.data) for n in nodes if isinstance(n, E.BufferLoad)}
