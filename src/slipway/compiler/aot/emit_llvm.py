"""An `AotProgram` as one LLVM module: what emit_c.py writes as C, with the same header.

The run function has the name, the arguments and the results that the header declares; constants,
kernels and the workspace are local to the module.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.compiler.aot.emit_header import emit_header
from slipway.compiler.aot.program import Location
from slipway.compiler.aot.sizes import bytes_formula, dim_formula, llvm_value
from slipway.compiler.aot.sources import AotSources, ProgramParts, element_bytes
from slipway.compiler.open_sizes import largest_bytes
from slipway.runtime.graph.graph_sizes import Formula

_MISALIGNED, _FAILED, _OUT_OF_RANGE = -1, -2, -3
# How LLVM IR spells each byte of a string: quotes and backslashes by their numbers.
_BYTES = [chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in range(256)]
_OBJECT_BYTES = 24  # the head of a counted object, in front of the DLTensor of a Tensor


def emit_llvm(parts: ProgramParts) -> AotSources:
    """Return the header that C users include, and the program as LLVM IR."""
    name = f"{parts.program.name}_lib0.ll"
    return AotSources(f"{parts.prefix}.h", emit_header(parts), name, _Module(parts).text())


class _Module:
    def __init__(self, parts: ProgramParts) -> None:
        self.parts = parts
        self.program = parts.program
        pointer_bits = parts.target.pointer_bits
        self.word, self.word_bytes = f"i{pointer_bits}", pointer_bits // 8
        self.prefix = parts.prefix
        self.constant_names = {n: f"@{spelled}" for n, spelled in parts.constant_names.items()}
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        used = dict.fromkeys(call.kernel for call in self.program.calls if call.kernel)
        pieces = [self._constant(n, self.parts.constants[n]) for n in self.program.constants]
        pieces += self._workspace()
        pieces += [self.parts.kernels.kernels[name].text for name in used]
        pieces += [self._run()]
        if self.parts.packed_entry:
            pieces += [self._packed()]
        pieces += [self.parts.kernels.helpers]
        states = self.program.states
        if states:
            pieces += [self._reset()]
        kept = {port.name for port in states} & {*self.program.constants}
        if len(kept) < len(states):
            pieces += [_CLEAR.replace("WORD", self.word)]
        if kept or any(not call.kernel for call in self.program.calls):
            pieces += [_COPY.replace("WORD", self.word)]
        return "\n".join(pieces) + "\n"

    # -- data ----------------------------------------------------------------------------------

    def _constant(self, name: str, array: np.ndarray[Any, Any]) -> str:
        data = np.asarray(array, order="C").tobytes() or b"\0"
        body = "".join(map(_BYTES.__getitem__, data))
        pool = self.parts.constant_pools.get(name)
        section = f', section ".slipway.constant.{pool}"' if pool else ""
        return (
            f"{self.constant_names[name]} = private constant [{len(data)} x i8] "
            f'c"{body}"{section}, align {self.parts.alignment_bytes}'
        )

    def _workspace(self) -> list[str]:
        if not self.parts.own_workspace:
            return []
        plan = self.program.plan
        linkage = "" if self.program.workspace_io else "internal "
        return [
            f"@{self.parts.space(i)} = {linkage}global [{max(1, plan.pool_bytes(i))} x i8] "
            f"zeroinitializer, align {self.parts.alignment_bytes}"
            for i in range(len(plan.pools))
        ]

    # -- code ----------------------------------------------------------------------------------

    def _put(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def _members(self, struct: str, count: int) -> list[str]:
        """Load the pointers that a struct holds."""
        found = []
        for number in range(count):
            offset = number * self.word_bytes
            at = self._put(f"getelementptr i8, ptr {struct}, {self.word} {offset}")
            found.append(self._put(f"load ptr, ptr {at}"))
        return found

    def _check(self, pointer: str, alignment: int) -> None:
        """Return MISALIGNED unless a pointer is a multiple of `alignment` bytes."""
        if alignment <= 1:
            return
        number = self._put(f"ptrtoint ptr {pointer} to {self.word}")
        low = self._put(f"and {self.word} {number}, {alignment - 1}")
        self._return_unless(self._put(f"icmp eq {self.word} {low}, 0"), _MISALIGNED)

    def _return_unless(self, test: str, status: int) -> None:
        self.count += 1
        good, bad = f"good{self.count}", f"bad{self.count}"
        self.lines += [
            f"  br i1 {test}, label %{good}, label %{bad}",
            f"{bad}:",
            f"  ret i32 {status}",
            f"{good}:",
        ]

    def _run(self) -> str:
        program, pools = self.program, self.program.plan.pools
        self.lines, self.count = [], 0
        inputs, outputs = [], []
        if not program.workspace_io:
            inputs = self._members("%inputs", len(program.inputs))
            outputs = self._members("%outputs", len(program.outputs))
            ports = (*program.inputs, *program.outputs)
            for pointer, port in zip((*inputs, *outputs), ports, strict=True):
                self._check(pointer, element_bytes(port))
        if self.parts.own_workspace:
            spaces = [f"@{self.parts.space(i)}" for i in range(len(pools))]
        else:
            spaces = self._members("%pools", len(pools))
            for pointer in spaces:
                self._check(pointer, self.parts.alignment_bytes)

        def operand(location: Location) -> str:
            match location.space:
                case "constant":
                    return self.constant_names[location.name]
                case "input":
                    return inputs[location.index]
                case "output":
                    return outputs[location.index]
            base = spaces[location.index]
            if not location.offset:
                return base
            return self._put(f"getelementptr i8, ptr {base}, {self.word} {location.offset}")

        sizes = self._check_sizes()
        evaluated: dict[Formula, str] = {}

        def size_of(formula: Formula, bits: str) -> str:
            if formula not in evaluated:
                evaluated[formula] = llvm_value(formula, self._put, sizes.__getitem__)
            value = evaluated[formula]
            if bits == "i64" or value.isdigit():
                return f"{bits} {value}"
            return f"{bits} {self._put(f'trunc i64 {value} to {bits}')}"

        for call in program.calls:
            words = [f"ptr {operand(a.location)}" for a in call.arguments]
            if not call.kernel:
                source, to = words
                size = size_of(bytes_formula(call.arguments[1].type), self.word)
                self.lines.append(f"  call void @copy_bytes({to}, {source}, {size})")
                continue
            words += [
                size_of(dim_formula(call.arguments[tensor].type.shape[axis]), "i32")
                for tensor, axis in self.parts.kernels.kernels[call.kernel].sizes
            ]
            if call.workspace is not None:
                words.append(f"ptr {operand(call.workspace)}")
            status = self._put(f"call i32 @{call.kernel}({', '.join(words)})")
            if self.parts.kernels.kernels[call.kernel].can_fail:
                self._return_unless(self._put(f"icmp eq i32 {status}, 0"), _FAILED)
        words = [] if program.workspace_io else ["ptr %inputs", "ptr %outputs"]
        words += ["ptr %sizes"] if program.sizes else []
        words += [] if self.parts.own_workspace else ["ptr %pools"]
        return (
            f"define i32 @{self.prefix}_run({', '.join(words)}) nounwind {{\nentry:\n"
            + "\n".join([*self.lines, "  ret i32 0", "}", ""])
        )

    def _check_sizes(self) -> dict[str, str]:
        """Return the sizes by name in i64, after refusing those that no memory is planned for."""
        found = {}
        for number, size in enumerate(self.program.sizes):
            at = self._put(f"getelementptr i8, ptr %sizes, {self.word} {4 * number}")
            given = self._put(f"load i32, ptr {at}")
            for test, bound in (("sge", size.low), ("sle", size.high)):
                self._return_unless(self._put(f"icmp {test} i32 {given}, {bound}"), _OUT_OF_RANGE)
            found[size.name] = self._put(f"sext i32 {given} to i64")
        return found

    def _reset(self) -> str:
        """The function that gives the states their first values."""
        self.lines, self.count = [], 0
        for number, port in enumerate(self.program.inputs):
            if not port.is_state:
                continue
            at = self._put(f"getelementptr i8, ptr %inputs, {self.word} {number * self.word_bytes}")
            to = self._put(f"load ptr, ptr {at}")
            size = f"{self.word} {largest_bytes(port.type)}"
            first = self.constant_names.get(port.name)
            self.lines.append(
                f"  call void @copy_bytes(ptr {to}, ptr {first}, {size})"
                if first
                else f"  call void @clear_bytes(ptr {to}, {size})"
            )
        return f"define void @{self.prefix}_reset(ptr %inputs) nounwind {{\nentry:\n" + "\n".join(
            [*self.lines, "  ret void", "}", ""]
        )

    def _packed(self) -> str:
        """The run function in the calling convention: a tensor for each input, then output."""
        program = self.program
        self.lines, self.count = [], 0
        ports = [*program.inputs, *program.outputs]
        self._return_unless(self._put(f"icmp eq i32 %count, {len(ports)}"), _FAILED)
        structs, tensors = [], []
        for side, count in (("inputs", len(program.inputs)), ("outputs", len(program.outputs))):
            self.lines.append(f"  %{side} = alloca [{max(1, count)} x ptr]")
            structs += [(f"%{side}", i) for i in range(count)]
        for number, (struct, index) in enumerate(structs):
            at = self._put(f"getelementptr i8, ptr %args, {self.word} {16 * number}")
            kind = self._put(f"load i32, ptr {at}")
            is_tensor = self._put(f"icmp eq i32 {kind}, 70")
            is_view = self._put(f"icmp eq i32 {kind}, 7")
            self._return_unless(self._put(f"or i1 {is_tensor}, {is_view}"), _FAILED)
            cell = self._put(f"getelementptr i8, ptr %args, {self.word} {16 * number + 8}")
            value = self._put(f"load ptr, ptr {cell}")
            skip = self._put(f"select i1 {is_tensor}, {self.word} {_OBJECT_BYTES}, {self.word} 0")
            tensor = self._put(f"getelementptr i8, ptr {value}, {self.word} {skip}")
            tensors.append(tensor)
            data = self._put(f"load ptr, ptr {tensor}")
            field = 40 if self.word_bytes == 8 else 32
            address = self._put(f"getelementptr i8, ptr {tensor}, {self.word} {field}")
            offset = self._put(f"load i64, ptr {address}")
            first = self._put(f"getelementptr i8, ptr {data}, i64 {offset}")
            slot = self._put(
                f"getelementptr i8, ptr {struct}, {self.word} {index * self.word_bytes}"
            )
            self.lines.append(f"  store ptr {first}, ptr {slot}")
        words = "ptr %inputs, ptr %outputs"
        if program.sizes:
            words += ", ptr %sizes"
            self.lines.append(f"  %sizes = alloca [{len(program.sizes)} x i32]")
        for number, size in enumerate(program.sizes):
            field = self.word_bytes * 2 + 8 if self.word_bytes == 8 else 20
            slot = self._put(f"getelementptr i8, ptr {tensors[size.port]}, {self.word} {field}")
            shape = self._put(f"load ptr, ptr {slot}")
            at = self._put(f"getelementptr i8, ptr {shape}, {self.word} {8 * size.axis}")
            extent = self._put(f"load i64, ptr {at}")
            if size.times > 1:
                rest = self._put(f"urem i64 {extent}, {size.times}")
                self._return_unless(self._put(f"icmp eq i64 {rest}, 0"), _OUT_OF_RANGE)
                extent = self._put(f"udiv i64 {extent}, {size.times}")
            self._return_unless(self._put(f"icmp ule i64 {extent}, {size.high}"), _OUT_OF_RANGE)
            to = self._put(f"getelementptr i8, ptr %sizes, {self.word} {4 * number}")
            self.lines.append(f"  store i32 {self._put(f'trunc i64 {extent} to i32')}, ptr {to}")
        status = self._put(f"call i32 @{self.prefix}_run({words})")
        return (
            f"define i32 @__tvm_ffi_{self.prefix}_run(ptr %self, ptr %args, i32 %count, "
            "ptr %result) nounwind {\nentry:\n"
            + "\n".join([*self.lines, f"  ret i32 {status}", "}", ""])
        )


_CLEAR = """\
define internal void @clear_bytes(ptr %to, WORD %size) nounwind "no-builtins" {
entry:
  %any = icmp ne WORD %size, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi WORD [ 0, %entry ], [ %next, %loop ]
  %q = getelementptr i8, ptr %to, WORD %i
  store i8 0, ptr %q
  %next = add WORD %i, 1
  %more = icmp ult WORD %next, %size
  br i1 %more, label %loop, label %done
done:
  ret void
}"""
# Byte by byte: a tensor that is an input and an output at once has any alignment.
_COPY = """\
define internal void @copy_bytes(ptr %to, ptr %from, WORD %size) nounwind "no-builtins" {
entry:
  br label %loop
loop:
  %i = phi WORD [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i8, ptr %from, WORD %i
  %q = getelementptr i8, ptr %to, WORD %i
  %byte = load i8, ptr %p
  store i8 %byte, ptr %q
  %next = add WORD %i, 1
  %more = icmp ult WORD %next, %size
  br i1 %more, label %loop, label %done
done:
  ret void
}"""
