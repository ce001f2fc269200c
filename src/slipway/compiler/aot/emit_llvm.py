"""An `AotProgram` as one LLVM module: what emit_c.py writes as C, with the same header.

The run function has the name, the arguments and the results that the header declares; constants,
kernels and the workspace are local to the module.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.codegen.llvm.module import argument_checks
from slipway.compiler.aot.emit_header import emit_header
from slipway.compiler.aot.packed_entry import FAILED, NO_POOLS, PackedEntry, packed_entry
from slipway.compiler.aot.program import Location, SizeRead
from slipway.compiler.aot.sizes import bytes_formula, dim_formula, llvm_value
from slipway.compiler.aot.sources import AotSources, ProgramParts, element_bytes
from slipway.compiler.open_sizes import largest_bytes
from slipway.dtypes import bits_of
from slipway.runtime.graph.graph_sizes import Formula

_MISALIGNED, _FAILED, _OUT_OF_RANGE = -1, -2, -3
# How LLVM IR spells each byte of a string: quotes and backslashes by their numbers.
_BYTES = [chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in range(256)]


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
        self.texts: list[str] = []
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

        def find_before(call: int) -> None:
            for read in program.reads_before(call):
                sizes[read.size.name] = self._found(read, operand(read.value.location))

        for step, call in enumerate(program.calls):
            find_before(step)
            arguments = [f"ptr {operand(a.location)}" for a in call.arguments]
            if not call.kernel:
                source, to = arguments
                size = size_of(bytes_formula(call.arguments[1].type), self.word)
                self.lines.append(f"  call void @copy_bytes({to}, {source}, {size})")
                continue
            arguments += [
                size_of(dim_formula(call.arguments[tensor].type.shape[axis]), "i32")
                for tensor, axis in self.parts.kernels.kernels[call.kernel].sizes
            ]
            if call.workspace is not None:
                arguments.append(f"ptr {operand(call.workspace)}")
            status = self._put(f"call i32 @{call.kernel}({', '.join(arguments)})")
            if self.parts.kernels.kernels[call.kernel].can_fail:
                self._return_unless(self._put(f"icmp eq i32 {status}, 0"), _FAILED)
        find_before(len(program.calls))
        arguments = [] if program.workspace_io else ["ptr %inputs", "ptr %outputs"]
        arguments += ["ptr %sizes"] if program.sizes else []
        arguments += [] if self.parts.own_workspace else ["ptr %pools"]
        return (
            f"define i32 @{self.prefix}_run({', '.join(arguments)}) nounwind {{\nentry:\n"
            + "\n".join([*self.lines, "  ret i32 0", "}", ""])
        )

    def _check_sizes(self) -> dict[str, str]:
        """Return the sizes by name in i64, after refusing those that no memory is planned for."""
        found = {}
        for number, size in enumerate(self.program.sizes):
            if size.is_found:
                continue
            at = self._put(f"getelementptr i8, ptr %sizes, {self.word} {4 * number}")
            given = self._put(f"load i32, ptr {at}")
            for test, bound in (("sge", size.low), ("sle", size.high)):
                self._return_unless(self._put(f"icmp {test} i32 {given}, {bound}"), _OUT_OF_RANGE)
            found[size.name] = self._put(f"sext i32 {given} to i64")
        return found

    def _found(self, read: SizeRead, at: str) -> str:
        """Return the size that the value at `at` decides, which the caller is told too."""
        bits = bits_of(read.value.type.dtype)
        value = self._put(f"load i{bits}, ptr {at}")
        if bits != 64:
            value = self._put(f"sext i{bits} {value} to i64")
        for test, bound in (("sge", read.size.low), ("sle", read.size.high)):
            self._return_unless(self._put(f"icmp {test} i64 {value}, {bound}"), _OUT_OF_RANGE)
        offset = 4 * self.program.sizes.index(read.size)
        to = self._put(f"getelementptr i8, ptr %sizes, {self.word} {offset}")
        self.lines.append(f"  store i32 {self._put(f'trunc i64 {value} to i32')}, ptr {to}")
        return value

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

    def _take_sizes(self, entry: PackedEntry) -> None:
        """Check the sizes that the arguments have, and write them into the run's table."""
        extents = [self._cell("%symbols", slot) for slot in range(entry.slots)]
        known: dict[str, str] = {}
        for number, (size, check) in enumerate(zip(entry.told, entry.sizes, strict=True)):
            extent = extents[check.slot]
            for test, bound in (("sge", check.low), ("sle", check.high)):
                end = bound * check.times + check.more
                fits = self._put(f"icmp {test} i64 {extent}, {end}")
                self._raise_unless(fits, "ValueError", check.message)
            if check.more:
                extent = self._put(f"sub i64 {extent}, {check.more}")
            if check.times > 1:
                remainder = self._put(f"urem i64 {extent}, {check.times}")
                whole = self._put(f"icmp eq i64 {remainder}, 0")
                self._raise_unless(whole, "ValueError", check.message)
                extent = self._put(f"udiv i64 {extent}, {check.times}")
            known[size.name] = extent
            to = self._put(f"getelementptr i8, ptr %sizes, {self.word} {4 * number}")
            self.lines.append(f"  store i32 {self._put(f'trunc i64 {extent} to i32')}, ptr {to}")
        for other in entry.formulas:
            value = llvm_value(other.formula, self._put, known.__getitem__)
            same = self._put(f"icmp eq i64 {extents[other.slot]}, {value}")
            self._raise_unless(same, "ValueError", other.message)

    def _packed(self) -> str:
        """The run function in the calling convention: a tensor for each input, then output."""
        program, run = self.program, f"{self.prefix}_run"
        entry = packed_entry(program, run)
        self.lines, self.count, self.texts = [], 0, []
        slots, ports = max(1, entry.slots), [*program.inputs, *program.outputs]
        self.lines += [
            f"  %values = alloca [{max(1, len(ports) + 1)} x i64], align 8",
            f"  %symbols = alloca [{slots} x i64], align 8",
            f"  %bound = alloca [{slots} x i8], align 8",
            f"  store [{slots} x i8] zeroinitializer, ptr %bound",
            f"  %inputs = alloca [{max(1, len(program.inputs))} x ptr]",
            f"  %outputs = alloca [{max(1, len(program.outputs))} x ptr]",
            f"  %sizes = alloca [{max(1, len(program.sizes))} x i32]",
            "  %ok = call i32 @slw_check_args(ptr @slw_spec, ptr %args, i32 %count, ptr %values, "
            "ptr %symbols, ptr %bound, ptr %result)",
            "  %good = icmp eq i32 %ok, 1",
            "  br i1 %good, label %checked, label %refused",
            "refused:",
            "  ret i32 %ok",
            "checked:",
        ]
        self._take_sizes(entry)
        structs = [("%inputs", i) for i in range(len(program.inputs))]
        structs += [("%outputs", i) for i in range(len(program.outputs))]
        for number, (struct, index) in enumerate(structs):
            address = self._put(f"inttoptr i64 {self._cell('%values', number)} to ptr")
            offset = f"{self.word} {index * self.word_bytes}"
            slot = self._put(f"getelementptr i8, ptr {struct}, {offset}")
            self.lines.append(f"  store ptr {address}, ptr {slot}")
        parameters = "ptr %inputs, ptr %outputs" + (", ptr %sizes" if program.sizes else "")
        done, why = "false", NO_POOLS
        if self.parts.own_workspace:
            status = self._put(f"call i32 @{run}({parameters})")
            if entry.found:
                fits = self._put(f"icmp ne i32 {status}, {_OUT_OF_RANGE}")
                self._raise_unless(fits, "ValueError", entry.out_of_range)
            done, why = self._put(f"icmp eq i32 {status}, 0"), FAILED
        self._raise_unless(done, "RuntimeError", f"{run}: {why}")
        if entry.found:
            table = self._put(f"inttoptr i64 {self._cell('%values', len(ports))} to ptr")
        for number, size in enumerate(entry.found):
            at = 4 * program.sizes.index(size)
            slot = self._put(f"getelementptr i8, ptr %sizes, {self.word} {at}")
            value = self._put(f"sext i32 {self._put(f'load i32, ptr {slot}')} to i64")
            to = self._put(f"getelementptr i8, ptr {table}, {self.word} {8 * number}")
            self.lines.append(f"  store i64 {value}, ptr {to}")
        spec = ", ".join(f"i32 {word}" for word in entry.words)
        return "\n".join([
            argument_checks(self.parts.target),
            f"@slw_spec = internal constant [{len(entry.words)} x i32] [{spec}], align 8",
            *self.texts,
            f"define i32 @__tvm_ffi_{run}(ptr %self, ptr %args, i32 %count, ptr %result) "
            "nounwind {",
            "entry:",
            *self.lines,
            "  ret i32 0",
            "}",
            "",
        ])  # fmt: skip

    def _cell(self, array: str, number: int) -> str:
        """Load a cell of an array of i64."""
        at = self._put(f"getelementptr i64, ptr {array}, {self.word} {number}")
        return self._put(f"load i64, ptr {at}")

    def _raise_unless(self, test: str, kind: str, message: str) -> None:
        """Leave the packed function with an error."""
        self.count += 1
        good, bad = f"good{self.count}", f"bad{self.count}"
        self.lines += [f"  br i1 {test}, label %{good}, label %{bad}", f"{bad}:"]
        arguments = [f"ptr {self._text(text)}" for text in (kind, message)]
        status = self._put(f"call i32 @slw_raise(ptr %result, {', '.join(arguments)})")
        self.lines += [f"  ret i32 {status}", f"{good}:"]

    def _text(self, text: str) -> str:
        """Return the name of a string that ends with a zero."""
        data = text.encode() + b"\0"
        name = f"@slw_message_{len(self.texts)}"
        body = "".join(map(_BYTES.__getitem__, data))
        self.texts.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{body}"')
        return name


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
