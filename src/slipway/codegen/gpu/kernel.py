"""A kernel, a nest of loops over threads, as a function of a GPU's language."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from slipway import dtypes
from slipway.codegen.c import spelling
from slipway.codegen.c.expressions import COMPARISONS, OPERATORS, Lane
from slipway.codegen.c.function import CModule
from slipway.codegen.capture import captured
from slipway.codegen.extremes import number_first
from slipway.codegen.gpu.dialect import Dialect
from slipway.codegen.gpu.dynamic_shared import MEMORY, SCOPE, DynamicShared
from slipway.codegen.gpu.images import ImageFunction
from slipway.codegen.multiply_add import product_of
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.instructions.async_copies import GROUPING
from slipway.ir.instructions.cooperative_products import STORE
from slipway.ir.instructions.dot4 import DOTS
from slipway.ir.instructions.texels import is_texture
from slipway.ir.instructions.warp_products import PRODUCT, ZERO, symbol
from slipway.ir.instructions.warp_shuffles import in_words, is_shuffle, width_of
from slipway.ir.visit import children, post_order, walk

_SIGNATURE = {("float", 32): "f", ("float", 64): "d"}
AXES = ("x", "y", "z")
WARP_HELPER = "warp_product."  # in front of the names of those that a kernel uses
SHUFFLE_HELPER, COPY_HELPER = "warp_shuffle", "async_copy"  # that a kernel uses
HALF_HELPER = "half_arithmetic"


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel's text, and what the host says to launch it.

    `signature` is that of crt's device_api.h for `params`; `extents` has the steps of each axis.
    `shared_bytes` are those that its code says; a launch gives it `dynamic_bytes` besides.
    """

    name: str
    text: str
    params: tuple[E.Var, ...]
    signature: str
    extents: dict[str, E.PrimExpr]
    shared_bytes: int
    helpers: frozenset[str]
    dynamic_bytes: E.PrimExpr | None = None  # None: no such memory

    @property
    def known_shared_bytes(self) -> int:
        """The bytes that the threads of a block share, as far as they are known."""
        given = None if self.dynamic_bytes is None else ops.as_int(self.dynamic_bytes)
        return self.shared_bytes + (given or 0)

    def grid(self) -> list[E.PrimExpr]:
        """Return the blocks along x, y and z, then the threads of a block."""
        tags = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in AXES]
        return [self.extents.get(tag, ops.const(1)) for tag in tags]


def axes_of(node: S.Stmt) -> tuple[dict[str, S.For], S.Stmt]:
    """Return the loops over threads at the top of a kernel, and the code inside them."""
    loops: dict[str, S.For] = {}
    while isinstance(node, S.For) and node.kind == S.ForKind.THREAD and node.thread is not None:
        loops[node.thread.thread_tag] = node
        node = node.body
    return loops, node


def emit_kernel(
    name: str, root: S.For, dialect: Dialect, module: CModule, noalias: bool = True
) -> DeviceKernel:
    """Return the text of one kernel.  Raises CodegenError for what the language cannot express."""
    loops, body = axes_of(root)
    out = KernelEmitter(module, name, dialect)
    params = captured(root)
    extents = {tag: loop.extent for tag, loop in loops.items()}
    for extent in extents.values():  # which the host computes
        inside = {id(v) for v in captured(S.Evaluate(extent))}
        params = [v for v in params if id(v) not in inside or uses(body, v)]
    parameters, signature = out.kernel_parameters(params, body, noalias)
    for tag, loop in loops.items():
        out.bind_axis(tag, loop)
    out.stmt(body)
    dynamic_bytes = out.dynamic.total(name, params)
    text = out.text(dialect, parameters, extents)
    return DeviceKernel(
        name, text, tuple(params), signature, extents, out.shared_bytes, frozenset(out.helpers),
        dynamic_bytes,
    )  # fmt: skip


def uses(node: S.Stmt, var: E.Var) -> bool:
    """Return whether `var` occurs in `node`."""
    return any(n is var for n in walk(node))


class KernelEmitter(ImageFunction):
    """Emits one kernel: the walk of C with memory in spaces, and threads."""

    def __init__(self, module: CModule, name: str, dialect: Dialect) -> None:
        super().__init__(module, name)
        self.dialect = dialect
        self.strict = module.capability.target.is_strict
        self.native_half = module.capability.half == "native"
        self.spaces: dict[int, str] = {}  # of memory, by data Var
        self.declared: list[str] = []  # shared memory, at the top of the function
        self.shared_bytes = 0
        self.dynamic = DynamicShared()
        self.taken |= dialect.reserved | {name, MEMORY}
        self.shared: frozenset[int] = frozenset()  # nodes of this statement, by id

    # -- around the body ---------------------------------------------------------------------------

    def kernel_parameters(
        self, params: list[E.Var], body: S.Stmt, noalias: bool
    ) -> tuple[list[str], str]:
        """Bind the parameters; return their declarations, and the signature for a launch."""
        buffers = buffers_of(body)
        parameters, kinds = [], ""
        for number, var in enumerate(params):
            name = self.define(var, self.fresh(var.name))
            if var.dtype == "handle":
                buffer = buffers.get(id(var))
                if buffer is None:
                    raise CodegenError(f"{self.name}: pointer {var.name} is of no known type")
                if is_texture(buffer.scope):
                    access = self.image_access(buffer, body)
                    parameters.append(self.dialect.image.format(access=access, name=name))
                    kinds += "p"
                    continue
                ty = spelling.c_type(buffer.dtype)
                self.pointer_types[id(var)] = ty
                self.spaces[id(var)] = "global"
                restrict = self.dialect.restrict if noalias else ""
                pattern, kind = self.dialect.pointer, "p"
            else:
                ty, restrict = spelling.c_type(var.dtype), ""
                code, bits, _ = dtypes.parse(var.dtype)
                pattern = self.dialect.scalar
                kind = _SIGNATURE.get((code, bits)) or str(max(1, bits // 8))
            parameters.append(pattern.format(type=ty, name=name, number=number, restrict=restrict))
            kinds += kind
        return parameters, kinds

    def bind_axis(self, tag: str, loop: S.For) -> None:
        """Give a loop's variable the number of the thread or block."""
        self.bounds.bind(loop.loop_var, loop.min, loop.extent)
        name = self.define(loop.loop_var, self.fresh(tag.replace("Idx.", "_")))
        self.line(f"const int32_t {name} = {self.dialect.indices[tag]};")
        self.temporaries.append(name)

    def text(self, dialect: Dialect, parameters: list[str], extents: dict[str, E.PrimExpr]) -> str:
        """Return the whole function."""
        self._mention_unused()
        if self.dynamic.offsets:
            own = [dialect.dynamic_declared] if dialect.dynamic_declared else []
            given = [dialect.dynamic_parameter] if dialect.dynamic_parameter else []
            self.declared, parameters = [*own, *self.declared], [*parameters, *given]
        threads = [ops.as_int(extents.get(f"threadIdx.{a}", ops.const(1))) for a in AXES]
        known = [n for n in threads if n is not None]
        bounds = dialect.bounds.format(threads=", ".join(map(str, known)), most=prod(known))
        head = dialect.head.format(
            bounds=bounds if len(known) == 3 else "",  # otherwise only the launch knows
            name=self.name,
            parameters=", ".join(parameters),
            lane=dialect.lane if SHUFFLE_HELPER in self.helpers else "",
        )
        lines = [f"  {line}" for line in self.declared] + self.lines
        return f"{head} {{\n" + "\n".join(lines) + "\n}\n"

    # -- memory ------------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer) -> str:
        """Return the data pointer of a buffer, as a pointer to its elements."""
        name = self._c_Var(buffer.data, None)
        ty = spelling.c_type(buffer.dtype)
        if self.pointer_types.get(id(buffer.data)) == ty:
            return name
        space = self.dialect.spaces[self.spaces.get(id(buffer.data), "local")]
        return f"(({space}{ty}*){name})"

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        if buffer.scope == SCOPE:
            self._place(buffer)
            self.stmt(node.body)
            return
        size = buffer.size_bytes()
        if size is None:
            raise CodegenError(
                f"{self.name}: the memory {buffer.name!r} of a thread or block has the shape "
                f"{list(buffer.shape)}, and it must be constant"
            )
        shared = buffer.scope == "shared"
        ty = spelling.c_type(buffer.dtype)
        name = self.define(buffer.data, self.fresh(buffer.name))
        self.pointer_types[id(buffer.data)] = ty
        self.element_dtype[id(buffer.data)] = buffer.dtype
        self.spaces[id(buffer.data)] = "shared" if shared else "local"
        count = max(1, size // max(1, dtypes.bits_of(buffer.dtype) // 8))
        line = f"{self.dialect.shared if shared else ''}{ty} {name}[{count}];"
        if shared:
            self.declared.append(line)
            self.shared_bytes += size
        else:
            self.line(line)
        self.stmt(node.body)

    def _place(self, buffer: Buffer) -> None:
        """Declare memory that the launch gives."""
        ty, space = spelling.c_type(buffer.dtype), self.dialect.spaces["shared"]
        offset = self.expr(self.dynamic.offset_of(buffer))
        name = self.define(buffer.data, self.fresh(buffer.name))
        self.pointer_types[id(buffer.data)] = ty
        self.element_dtype[id(buffer.data)] = buffer.dtype
        self.spaces[id(buffer.data)] = "shared"
        first = f"({space}uint8_t*){MEMORY} + {offset}"
        self.line(f"{space}{ty}* {name} = ({space}{ty}*)({first});")

    # -- statements --------------------------------------------------------------------------------

    def _for(self, node: S.For) -> None:
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(f"{self.name}: loop {node.loop_var.name} over threads is not mapped")
        start = self.index(node.min)
        end = self.index(node.min + node.extent)
        if not isinstance(node.extent, E.IntImm) or not isinstance(node.min, E.IntImm):
            end = self.temporary(node.loop_var.dtype, end, "end")
        self.loop(node, start, end)

    def _assert(self, node: S.AssertStmt) -> None:
        self.stmt(node.body)  # a kernel has no way to report

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.Call) and value.op == "storage_sync":
            self.line(self.dialect.barrier)
            return
        if isinstance(value, E.Call) and value.op in (PRODUCT, ZERO, STORE):
            self._warp_product(value)
            return
        if isinstance(value, E.Call) and value.op in ("async_copy", *GROUPING):
            self._async(value)
            return
        if isinstance(value, E.Call) and value.op in ("ret", "call_packed"):
            raise CodegenError(f"{self.name}: a kernel cannot {value.op}: {value}")
        super()._evaluate(value)

    def _warp_product(self, node: E.Call) -> None:
        name = node.args[0].value  # type: ignore[attr-defined]
        if name not in self.dialect.products:
            raise CodegenError(
                f"{self.name}: kernels in {self.dialect.name} have no product of a warp "
                f"({name}). Compile for a target whose matrix units have it, or without that "
                "intrinsic"
            )
        self.helpers.add(f"{WARP_HELPER}{name}")
        self.line(f"{symbol(name)}({', '.join(self.expr(a) for a in node.args[1:])});")

    def _async(self, node: E.Call) -> None:
        if not self.dialect.copies:
            raise CodegenError(
                f"{self.name}: kernels in {self.dialect.name} have no {node.op}: compile for CUDA"
            )
        self.helpers.add(COPY_HELPER)
        *addresses, number = node.args or (None,)
        given = "" if number is None else f"<{ops.as_int(number)}>"
        self.line(f"slw_{node.op}{given}({', '.join(self.expr(p) for p in addresses)});")

    def fail(self, kind: str, message: str) -> None:
        """Refuse: a kernel has no way to report an error."""
        raise CodegenError(f"{self.name}: a kernel cannot raise {kind}: {message}")

    # -- what a statement uses several times -------------------------------------------------------

    def stmt(self, node: S.Stmt) -> None:
        """Emit one statement; what its value uses more than once is computed once.

        Spelled out each time, an expression of shared parts would be a text of exponential length.
        """
        if isinstance(node, S.BufferStore):
            self.shared, self.known = _shared_nodes(node), {}
            super().stmt(node)
            self.shared, self.known = frozenset(), {}
            return
        super().stmt(node)

    def expr(self, node: E.PrimExpr, lane: Lane = None) -> str:
        """Return the spelling of (one lane of) `node`: a name, where it is used again."""
        if id(node) not in self.shared:
            return super().expr(node, lane)
        key = (id(node), lane, self.indexing)
        found = self.known.get(key)
        if found is not None and any(found[1] is lines for lines in (self.lines, *self.branches)):
            return found[0]
        text = super().expr(node, lane)
        if text.isidentifier():
            return text
        name = self.temporary(node.dtype, text)
        self.known[key] = name, self.lines
        return name

    def let(self, var: E.Var, value: E.PrimExpr, lane: Lane = None) -> None:
        """Name `value`: copies of an expression share the variable and may give it another."""
        super().let(var, value, lane)
        self.known = {}

    def _call_if_then_else(self, node: E.Call, lane: Lane) -> str:
        self.branches.append(self.lines)
        text = super()._call_if_then_else(node, lane)
        self.branches.pop()
        return text

    # -- arithmetic and calls ----------------------------------------------------------------------

    def _binary(self, node: E.BinaryOp, lane: Lane) -> str:
        """Return a sum with a product as one instruction, as processors compute it."""
        product = None if self.strict else product_of(node)
        of_halves = self._computes_in_halves(node)
        if product is not None and (
            of_halves or dtypes.scalar_of(node.dtype) in ("float32", "float64")
        ):
            first = product is node.a
            other = self._number(node.b if first else node.a, lane)
            x, y = self._number(product.a, lane), self._number(product.b, lane)
            if isinstance(node, E.Sub):
                x, other = (x, f"-{other}") if first else (f"-{x}", other)
            if of_halves:
                return f"slw_half_bits(slw_half_fma({x}, {y}, {other}))"
            return f"fma({x}, {y}, {other})"
        if of_halves:
            x, y = self._number(node.a, lane), self._number(node.b, lane)
            return f"slw_half_bits({x} {OPERATORS[type(node)]} {y})"
        return super()._binary(node, lane)

    _c_Add = _c_Sub = _c_Mul = _binary

    def _computes_in_halves(self, node: E.BinaryOp | E.CmpOp) -> bool:
        """Return whether the device's own float16 computes a node: what it rounds right, or not."""
        if not self.native_half or dtypes.scalar_of(node.a.dtype) != "float16":
            return False
        self.helpers.add(HALF_HELPER)
        return True

    def _number(self, node: E.PrimExpr, lane: Lane) -> str:
        """Return the spelling of a float as the language's number, of a float16 too."""
        text = self.expr(node, lane)
        return f"slw_as_half({text})" if dtypes.scalar_of(node.dtype) == "float16" else text

    def _choose(self, node: E.BinaryOp, lane: Lane) -> str:
        if not self._computes_in_halves(node):
            return super()._choose(node, lane)
        first, second, is_number = number_first(node)
        b, a = self.simple(second, lane), self.simple(first, lane)
        sign = "<" if type(node) is E.Min else ">"
        no_number = "" if is_number else f" || slw_as_half({a}) != slw_as_half({a})"
        return f"(slw_as_half({a}) {sign} slw_as_half({b}){no_number} ? {a} : {b})"

    _c_Min = _c_Max = _choose

    def _compare(self, node: E.CmpOp, lane: Lane) -> str:
        if not self._computes_in_halves(node):
            return super()._compare(node, lane)
        a, b = self._number(node.a, lane), self._number(node.b, lane)
        return f"({a} {COMPARISONS[type(node)]} {b})"

    _c_EQ = _c_NE = _c_LT = _c_LE = _c_GT = _c_GE = _compare

    def _c_Cast(self, node: E.Cast, lane: Lane) -> str:
        source, target = dtypes.scalar_of(node.value.dtype), dtypes.scalar_of(node.dtype)
        pair = (source, target)
        own = self.dialect.halves is not None or self.native_half
        if self.native_half and "float16" in pair and "float32" in pair:
            self.helpers.add(HALF_HELPER)
        loaded = node.value
        if pair == ("float16", "float32") and self.reads_texture(loaded):
            return self.number_of_texel(loaded, lane)  # type: ignore[arg-type]
        if own and pair == ("float16", "float32"):
            return f"slw_from_half({self.expr(node.value, lane)})"
        if own and pair == ("float32", "float16"):
            return f"slw_to_half({self.expr(node.value, lane)})"
        return super()._c_Cast(node, lane)

    def _c_Call(self, node: E.Call, lane: Lane) -> str:
        builtin = self.dialect.builtins.get(node.op)
        if builtin is not None and dtypes.scalar_of(node.args[0].dtype) in ("float32", "float64"):
            return f"{builtin}({', '.join(self.expr(a, lane) for a in node.args)})"
        if node.op in ("call_extern", "call_pure_extern"):
            function, *arguments = node.args
            name = str(getattr(function, "value", function))
            if name in self.dialect.externs:
                return f"{name}({', '.join(self.expr(a, lane) for a in arguments)})"
        if node.op in ("call_extern", "call_pure_extern", "call_llvm_intrin", "hardware"):
            called = getattr(node.args[0], "value", node.args[0])
            raise CodegenError(
                f"{self.name}: kernels in {self.dialect.name} cannot call {called!r}"
            )
        if node.op == "warp_activemask":
            return self.dialect.active
        if is_shuffle(node):
            return self._shuffle(node, lane)
        if node.op in DOTS and self.dialect.dots is not None:
            return f"slw_{node.op}({', '.join(self.expr(a, lane) for a in node.args)})"
        return super()._c_Call(node, lane)

    def _shuffle(self, node: E.Call, lane: Lane) -> str:
        pattern = self.dialect.shuffles.get(node.op)
        if pattern is None:
            raise CodegenError(no_shuffles(self.name, self.dialect.name, node.op))
        single = in_words(node)
        if single is not node:
            return self.expr(single, lane)
        self.helpers.add(SHUFFLE_HELPER)
        mask, value, position = (self.expr(a, lane) for a in node.args[:3])
        return pattern.format(mask=mask, value=value, position=position, width=width_of(node))


def no_shuffles(kernel: str, language: str, op: str) -> str:
    """Return why a kernel cannot hand values to other threads of its warp."""
    return (
        f"{kernel}: kernels in {language} have no {op}: not every device tells how many threads "
        'are a warp, and which. Hand values over in memory of scope "shared", or compile for cuda, '
        "rocm, metal or vulkan"
    )


def buffers_of(body: S.Stmt) -> dict[int, Buffer]:
    """Return a buffer for each memory that is accessed."""
    found: dict[int, Buffer] = {}
    for node in walk(body):
        if isinstance(node, (S.BufferStore, E.BufferLoad)):
            found.setdefault(id(node.buffer.data), node.buffer)
    return found


def _shared_nodes(root: S.Stmt) -> frozenset[int]:
    """Return the ids of the expressions in `root` that are used more than once and are no leaves.

    Not what loads under a condition that may keep it from being computed.
    """
    uses: dict[int, int] = {}
    guarded: set[int] = set()
    for node in walk(root):
        for child in children(node):
            uses[id(child)] = uses.get(id(child), 0) + 1
        if isinstance(node, (E.And, E.Or)):
            guarded.update(id(inner) for inner in walk(node))
    loads = _loading(root) & guarded
    return frozenset(
        id(node)
        for node in walk(root)
        if uses.get(id(node), 0) > 1
        and isinstance(node, E.PrimExpr)
        and not isinstance(node, _LEAVES)
        and children(node)
        and id(node) not in loads
    )


_LEAVES = (E.Var, E.IntImm, E.FloatImm, E.StringImm, E.Ramp, E.Broadcast)


def _loading(root: S.Stmt) -> set[int]:
    """Return the ids of the expressions that load from memory."""
    found: set[int] = set()
    for node in post_order(root):
        if isinstance(node, E.BufferLoad) or any(id(child) in found for child in children(node)):
            found.add(id(node))
    return found
