"""A program as WebAssembly: the description of its inputs, outputs and run function for a page.

What ``slw_aot_model`` (crt/include/slipway/aot_module.h) is in C, as LLVM IR with pointers of 32
bits.  Inputs and outputs have memory of their own, or lie in the workspace where the plan says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway import dtypes
from slipway.compiler.aot.program import Port
from slipway.compiler.aot.sources import ProgramParts
from slipway.errors import LoweringError

# slw_aot_tensor: a name, and a DLTensor.
_DL_TENSOR = "{ ptr, { i32, i32 }, i32, { i8, i8, i16 }, ptr, ptr, i64 }"
_TENSOR = f"{{ ptr, {_DL_TENSOR}, i32 }}"
_CPU = "{ i32, i32 } { i32 1, i32 0 }"
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
MODEL = "@slw_web_model"


def page_model(parts: ProgramParts) -> str:
    """Return LLVM IR that defines `MODEL`; raises LoweringError for a type that no page has."""
    program, pools = parts.program, parts.program.plan.pools
    lines = []
    spaces = [f"@{parts.space(i)}" for i in range(len(pools))]
    if not parts.own_workspace:
        spaces = [f"@slw_web_pool{i}" for i in range(len(pools))]
        lines += [
            f"{space} = internal global [{max(1, program.plan.pool_bytes(i))} x i8] "
            f"zeroinitializer, align {parts.alignment_bytes}"
            for i, space in enumerate(spaces)
        ]
    elif program.workspace_io:
        used = {p.location.index for p in (*program.inputs, *program.outputs) if p.location}
        lines += [f"{spaces[i]} = external global i8" for i in sorted(used)]
    pointers = []
    for side, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
        data = [_data_of(port, side, i, spaces, lines) for i, port in enumerate(ports)]
        rows = ", ".join(
            _tensor(port, f"{side}{i}", address, lines)
            for i, (port, address) in enumerate(zip(ports, data, strict=True))
        )
        lines.append(f"@{side} = internal global [{len(ports)} x {_TENSOR}] [{rows}]")
        if not program.workspace_io:
            pointers.append(_pointers(f"{side}_data", data, lines))
    if not parts.own_workspace:
        pointers.append(_pointers("pools", spaces, lines))
    run, signature = f"@{parts.prefix}_run", ", ".join("ptr" for _ in pointers)
    lines += [
        f"declare i32 {run}({signature})",
        "define internal i32 @run() nounwind {",
        f"  %status = call i32 {run}({', '.join(pointers)})",
        "  ret i32 %status",
        "}",
        *(_reset(parts) if program.states else ()),
        f"{MODEL} = constant {{ ptr, i32, ptr, i32, ptr, ptr }} {{ ptr @inputs, "
        f"i32 {len(program.inputs)}, ptr @outputs, i32 {len(program.outputs)}, ptr @run, "
        f"ptr {'@reset' if program.states else 'null'} }}",
    ]
    return "\n".join(lines) + "\n"


def _reset(parts: ProgramParts) -> list[str]:
    """Return the function that resets the states where this page has them."""
    return [
        f"declare void @{parts.prefix}_reset(ptr)",
        "define internal void @reset() nounwind {",
        f"  call void @{parts.prefix}_reset(ptr @inputs_data)",
        "  ret void",
        "}",
    ]


def _data_of(port: Port, side: str, number: int, spaces: Sequence[str], lines: list[str]) -> str:
    """Return the address of a port's elements."""
    if port.location is not None:
        space = spaces[port.location.index]
        return f"getelementptr (i8, ptr {space}, i32 {port.location.offset})"
    name = f"@{side}{number}_bytes"
    size = max(1, port.type.size_bytes)
    lines.append(f"{name} = internal global [{size} x i8] zeroinitializer, align 64")
    return name


def _tensor(port: Port, name: str, address: str, lines: list[str]) -> str:
    """Return the initializer of a port's slw_aot_tensor."""
    data = port.name.encode()
    text = "".join(f"\\{byte:02X}" for byte in data) + "\\00"
    lines.append(f'@{name}_name = private constant [{len(data) + 1} x i8] c"{text}"')
    extents = [int(n) for n in port.type.shape]
    row = ", ".join(f"i64 {n}" for n in extents)
    lines.append(f"@{name}_shape = private global [{len(extents)} x i64] [{row}]")
    kind = port.type.dtype.rstrip("0123456789")
    if kind not in _CODES:
        raise LoweringError(f"the tensor {port.name!r} is of {port.type.dtype}, which no page has")
    bits = 8 if kind == "bool" else dtypes.bits_of(port.type.dtype)
    dtype = f"{{ i8, i8, i16 }} {{ i8 {_CODES[kind]}, i8 {bits}, i16 1 }}"
    return (
        f"{_TENSOR} {{ ptr @{name}_name, {_DL_TENSOR} {{ ptr {address}, {_CPU}, "
        f"i32 {len(extents)}, {dtype}, ptr @{name}_shape, ptr null, i64 0 }}, "
        f"i32 {int(port.is_state)} }}"
    )


def _pointers(name: str, data: Sequence[str], lines: list[str]) -> str:
    rows = ", ".join(f"ptr {address}" for address in data)
    lines.append(f"@{name} = internal constant [{len(data)} x ptr] [{rows}]")
    return f"ptr @{name}"
