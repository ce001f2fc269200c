"""Kernels of GPUs through LLVM: the walk of functions for processors, with threads.

What differs between makers of GPUs is a table, `GpuMachine` (`nvptx.py`, `amdgpu.py`).  Pointers
are generic; LLVM finds out which of them point to memory of the device or of the block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from slipway import dtypes
from slipway.codegen.gpu.dynamic_shared import ALIGNMENT, MEMORY, SCOPE, DynamicShared
from slipway.codegen.gpu.kernel import AXES, DeviceKernel, axes_of
from slipway.codegen.legalize import as_ramp
from slipway.codegen.llvm.function import FunctionEmitter, ModuleState
from slipway.codegen.llvm.module import emit_part
from slipway.codegen.llvm.types import llvm_type
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.instructions import amd_products
from slipway.ir.instructions.async_copies import WHOLE_BYTES
from slipway.ir.instructions.warp_products import (
    WARP_PRODUCTS,
    emit_llvm,
    instruction,
    llvm_declaration,
)
from slipway.ir.instructions.warp_shuffles import in_words, width_of
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.target.capability import Capability

# Words of a thread's tile with which it wants somewhat more registers than are taken by default,
# and where matrix units, which have registers of their own order, compute it.
_TILES, _MATRIX_TILES = range(32, 128), range(32, 64)


# Of a shuffle's name, its mask, word, place and width: the i32 that comes; `put` adds an
# instruction and returns its result, `declare` a function.
ShuffleOfWords = Callable[
    [str, str, str, str, int, Callable[[str], str], Callable[[str], None]], str
]


@dataclass(frozen=True)
class GpuMachine:
    """How LLVM's IR says what a maker's GPUs do.

    - `convention`: of kernels
    - `numbers`: the functions that give a block's and a thread's number, without the axis
    - `barrier`: the lines of a barrier; `declared` are the functions in them
    - `threads`: a function's attribute for blocks of ``{threads}``
    - `one_block`: one that says that a processor need have room for one block only; "": none
    - `private`: the address space of a thread's own memory, 0 where it is the usual one
    - `lines`: at the end of a module
    - `shuffle`: hands a word over to another thread of the warp
    - `active`: the function that gives a bit for each thread of the warp that is here; "": none
    - `copies`: calls of those to shared memory that go on while threads compute, with ``{bytes}``,
      ``{to}``, ``{from_}``, ``{cache}`` and ``{groups}``
    - `dots`: calls of the instructions for four products of bytes, with ``{a}``, ``{b}``, ``{c}``
    - `version`: N of sm_N, which says what its matrix units take at once
    - `whole`: bytes whose multiples tensors begin at, or vectors are accessed element by element;
      0: vectors may be anywhere
    """

    convention: str
    numbers: Mapping[str, str]
    barrier: Sequence[str]
    declared: Sequence[str]
    threads: str
    one_block: str = ""
    private: int = 0
    lines: Sequence[str] = ()
    dots: Mapping[str, str] = field(default_factory=dict)
    whole: int = 0
    shuffle: ShuffleOfWords | None = None
    active: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


_ATTRIBUTES = 'nounwind "no-builtins"'


def kernels_ir(
    kernels: Iterable[tuple[DeviceKernel, S.For]],
    machine: GpuMachine,
    target: Target,
    capability: Capability,
) -> str:
    """Return LLVM IR of kernels, whose names, parameters and axes are those of their texts.

    Raises CodegenError for what a kernel cannot do.
    """
    state = ModuleState(capability, strict=target.is_strict, attributes=_ATTRIBUTES)
    statics: list[str] = []
    for kernel, root in kernels:
        emitter = _Kernel(state, kernel.name, statics, machine)
        emitter.emit(kernel, root)
    lines = [*statics, *state.functions, *_support(state.declarations), *state.loop_lines()]
    return "\n".join([*lines, *machine.lines]) + "\n"


def _support(declarations: Iterable[str]) -> list[str]:
    """Return the declarations of LLVM's functions, and definitions of the others (codegen/glue).

    Raises CodegenError for a function that nobody defines.
    """
    text = emit_part("support", Target("llvm -mtriple=aarch64-linux-gnu"))  # of 64 bits
    lines: list[str] = []
    for declared in sorted(declarations):
        if "@llvm." in declared:
            lines.append(declared)
            continue
        name = re.findall(r"@([\w.]+)", declared)[0]
        found = re.search(rf"^define [^@\n]*@{re.escape(name)}\(.*?^}}\n", text, re.M | re.S)
        if found is None:
            raise CodegenError(f"a kernel cannot call {name}: no function on the GPU has that name")
        lines.append(found[0].replace("define weak hidden", "define internal"))
    return lines


class _Kernel(FunctionEmitter):
    """Emits one kernel: ``ptx_kernel void @name(pointers and scalars)``, say."""

    def __init__(
        self, module: ModuleState, name: str, statics: list[str], machine: GpuMachine
    ) -> None:
        super().__init__(module, name)
        self.machine = machine
        self.statics = statics
        self.symbols: dict[int, str] = {}  # of shared memory, by id of its data Var
        self.dynamic = DynamicShared()
        self.inside_parallel = True  # a parallel loop in a kernel is a thread's own

    def emit(self, kernel: DeviceKernel, root: S.For) -> None:
        """Append the kernel to the module."""
        loops, body = axes_of(root)
        params = list(kernel.params)
        text = self.parameters(params, noalias=True)
        self.widen_scalars(params)
        for tag, loop in loops.items():
            self._bind_axis(tag, loop)
        self._in_two_ways(body, _accessed_by_vectors(body, params) if self.machine.whole else [])
        counts = [ops.as_int(extent) for extent in kernel.grid()[len(AXES) :]]
        known = [n for n in counts if n is not None]
        bounds = ""
        if len(known) == len(AXES):
            bounds = " " + self.machine.threads.format(threads=prod(known))
            # Else the assembler may spill some registers so that another block has room.  Small
            # tiles need no more, and for large ones it would take more than they need.
            if own_words(body) in (_MATRIX_TILES if has_warp_products(body) else _TILES):
                bounds += " " + self.machine.one_block
        attributes = f"{self.module.attributes}{bounds}"
        self.module.functions.append(
            f"define {self.machine.convention} void @{self.name}({text}) {attributes} "
            "{\nentry:\n" + "\n".join([*self.w.entry, *self.w.lines]) + "\n  ret void\n}\n"
        )
        self.module.declarations |= self.helpers

    def _in_two_ways(self, body: S.Stmt, tensors: Sequence[E.Var]) -> None:
        """Emit the body, and one for `tensors` that begin at whole vectors, chosen when it runs.

        A caller's tensor may begin anywhere; all threads find the same.
        """
        if not tensors:
            self.stmt(body)
            return
        whole, put = self.machine.whole, self.w.put
        starts = [put(f"ptrtoint ptr {self.pointers[id(var)]} to i64") for var in tensors]
        for number in range(1, len(starts)):
            starts[number] = put(f"or i64 {starts[number - 1]}, {starts[number]}")
        tail = put(f"and i64 {starts[-1]}, {whole - 1}")
        test = put(f"icmp eq i64 {tail}, 0")
        yes, no, end = self.w.label("whole"), self.w.label("apart"), self.w.label("end")
        self.w.branch_if(test, yes, no)
        for label, alignment in ((yes, whole), (no, 0)):
            self.w.start(label)
            for var in tensors:
                if alignment:
                    self.aligned[id(var)] = alignment
                else:
                    del self.aligned[id(var)]
            self._scoped(body)
            self.w.branch(end)
        self.w.start(end)

    def _bind_axis(self, tag: str, loop: S.For) -> None:
        kind, axis = tag.split(".")
        self.bounds.bind(loop.loop_var, loop.min, loop.extent)
        symbol = f"@{self.machine.numbers[kind]}.{axis}"
        self.helpers.add(f"declare i32 {symbol}()")
        extent = ops.as_int(loop.extent)
        within = f"range(i32 0, {extent}) " if extent is not None and extent > 0 else ""
        number = self.w.put(f"call {within}i32 {symbol}()")
        if dtypes.bits_of(loop.loop_var.dtype) == 64:
            number = self.w.put(f"zext i32 {number} to i64")
        self.bind_scalar(loop.loop_var, number)
        self.wide_values[id(loop.loop_var)] = self.wide(loop.loop_var)

    def _for(self, node: S.For) -> None:
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(f"{self.name}: loop {node.loop_var.name} over threads is not mapped")
        super()._for(node)

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
        self.note_buffer(buffer)
        count = max(1, size // dtypes.bytes_of(buffer.dtype))
        kind = f"[{count} x {llvm_type(buffer.dtype, self.soft_half, True)}]"
        align = max(buffer.data_alignment, 16)
        name = self.w.name()
        if buffer.scope == "shared":
            symbol = self.symbols.get(id(buffer.data))
            if symbol is None:  # else it was emitted another way already
                symbol = f"@{self.name}.shared{len(self.statics)}"
                self.symbols[id(buffer.data)] = symbol
                self.statics.append(
                    f"{symbol} = internal addrspace(3) global {kind} undef, align {align}"
                )
            text = f"addrspacecast ptr addrspace(3) {symbol} to ptr"
        elif self.machine.private:
            own = self.w.name()
            space = f"addrspace({self.machine.private})"
            self.w.entry.append(f"  {own} = alloca {kind}, align {align}, {space}")
            text = f"addrspacecast ptr {space} {own} to ptr"
        else:
            text = f"alloca {kind}, align {align}"
        self.w.entry.append(f"  {name} = {text}")
        self.pointers[id(buffer.data)] = name
        self.aligned[id(buffer.data)] = align
        self.stmt(node.body)

    def _place(self, buffer: Buffer) -> None:
        """Take memory of what the launch gives."""
        self.note_buffer(buffer)
        symbol, put = f"@{MEMORY}", self.w.put
        static = f"{symbol} = external addrspace(3) global [0 x i8], align {ALIGNMENT}"
        if static not in self.statics:
            self.statics.append(static)
        offset = self.value(self.dynamic.offset_of(buffer))
        first = put(f"getelementptr i8, ptr addrspace(3) {symbol}, i64 {offset}")
        self.pointers[id(buffer.data)] = put(f"addrspacecast ptr addrspace(3) {first} to ptr")
        self.aligned[id(buffer.data)] = ALIGNMENT

    def _assert(self, node: S.AssertStmt) -> None:
        self.stmt(node.body)  # a kernel has no way to report

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.Call) and value.op in ("ret", "call_packed"):
            raise CodegenError(f"{self.name}: a kernel cannot {value.op}: {value}")
        super()._evaluate(value)

    def _call_storage_sync(self, node: E.Call) -> str:
        self.helpers.update(self.machine.declared)
        for line in self.machine.barrier:
            self.w.do(line)
        return "0"

    def _dot(self, node: E.Call) -> str:
        call = self.machine.dots.get(node.op)
        if call is None:
            return super()._dot(node)
        a, b, c = (self.value(x) for x in node.args)
        types = re.sub(r" (\{\w\}|true|false)", "", call.removeprefix("call "))
        self.helpers.add(f"declare {types}")
        return self.w.put(call.format(a=a, b=b, c=c))

    def _call_warp_product(self, node: E.Call) -> str:
        pointers = [self.value(a) for a in node.args[1:]]
        name = node.args[0].value  # type: ignore[attr-defined]
        if name in amd_products.AMD_PRODUCTS:
            product = amd_products.AMD_PRODUCTS[name]
            self.helpers.add(amd_products.llvm_declaration(product))
            amd_products.emit_llvm(product, pointers, self.w.put, self.w.do)
            return "0"
        whole = WARP_PRODUCTS[name]
        entry = instruction(whole, self.machine.version)
        self.helpers.add(llvm_declaration(entry))
        emit_llvm(entry, pointers, self.w.put, self.w.do)
        return "0"

    def _handed_over(self, node: E.Call) -> str:
        shuffle = self.machine.shuffle
        assert shuffle is not None
        single = in_words(node)
        if single is not node:
            return self.value(single)
        width = width_of(node)
        mask, value, position = (self.value(a) for a in node.args[:3])
        kind, put = llvm_type(node.dtype, False, False), self.w.put

        def one(word: str) -> str:
            return shuffle(node.op, mask, word, position, width, put, self.helpers.add)

        if dtypes.bits_of(node.dtype) == 32:
            word = value if kind == "i32" else put(f"bitcast {kind} {value} to i32")
            made = one(word)
            return made if kind == "i32" else put(f"bitcast i32 {made} to {kind}")
        pair = put(f"bitcast {kind} {value} to <2 x i32>")
        halves = [one(put(f"extractelement <2 x i32> {pair}, i32 {half}")) for half in range(2)]
        low = put(f"insertelement <2 x i32> poison, i32 {halves[0]}, i32 0")
        both = put(f"insertelement <2 x i32> {low}, i32 {halves[1]}, i32 1")
        return put(f"bitcast <2 x i32> {both} to {kind}")

    _call_warp_shuffle = _call_warp_shuffle_up = _call_warp_shuffle_down = _handed_over

    def _call_warp_activemask(self, node: E.Call) -> str:
        if not self.machine.active:
            return "-1"
        self.helpers.add(f"declare i32 @{self.machine.active}()")
        return self.w.put(f"call i32 @{self.machine.active}()")

    def _call_async_copy(self, node: E.Call) -> str:
        size = ops.as_int(node.args[2])
        if size == WHOLE_BYTES and not self._copies_whole(node):
            return "0"
        to, from_ = (self.value(a) for a in node.args[:2])
        to = self.w.put(f"addrspacecast ptr {to} to ptr addrspace(3)")
        from_ = self.w.put(f"addrspacecast ptr {from_} to ptr addrspace(1)")
        cache = "cg" if size == WHOLE_BYTES else "ca"  # past a cache that keeps words
        self._copies(node.op, bytes=size, to=to, from_=from_, cache=cache)
        return "0"

    def _copies_whole(self, node: E.Call) -> bool:
        """Return whether both sides lie at multiples of a vector's size; else load and store it."""
        to, from_ = (address.args[0] for address in node.args[:2])  # type: ignore[attr-defined]
        for side in (to, from_):
            form, _, _ = self.flat_index(side.buffer, side.indices)
            if self.align_of(side.buffer, form, dtypes.bytes_of(side.buffer.dtype)) < WHOLE_BYTES:
                self.stmt(S.BufferStore(to.buffer, from_, to.indices))
                return False
        return True

    def _call_async_commit(self, node: E.Call) -> str:
        self._copies(node.op)
        return "0"

    def _call_async_wait(self, node: E.Call) -> str:
        self._copies(node.op, groups=ops.as_int(node.args[0]))
        return "0"

    def _copies(self, op: str, **given: str | int | None) -> None:
        call = self.machine.copies[op].format(**given)
        self.helpers.add(
            "declare " + re.sub(r" (%\w+|\d+)(?=[,)])", "", call.removeprefix("call "))
        )
        self.w.do(call)

    def _keep_failure(self, kind: str, message: str) -> None:
        raise CodegenError(f"{self.name}: a kernel cannot raise {kind}: {message}")


def own_words(body: S.Stmt) -> int:
    """Return how many words of memory a thread has for itself: its tile, and what it multiplies."""
    buffers = [n.buffer for n in walk(body) if isinstance(n, S.Allocate)]
    sizes = [b.size_bytes() or 0 for b in buffers if not b.scope.startswith("shared")]
    return sum(sizes) // 4


def has_warp_products(body: S.Stmt) -> bool:
    """Return whether matrix units compute a part of a kernel."""
    return any(isinstance(n, E.Call) and n.op == "warp_product" for n in walk(body))


def _accessed_by_vectors(body: S.Stmt, params: Sequence[E.Var]) -> list[E.Var]:
    """Return the tensors of which several elements beside each other are accessed at once."""
    found = set()
    for node in walk(body):
        if isinstance(node, (E.BufferLoad, S.BufferStore)):
            ramp = as_ramp(node.indices[-1])
            if ramp is not None and ramp[1] == 1:
                found.add(id(node.buffer.data))
    return [var for var in params if id(var) in found]
