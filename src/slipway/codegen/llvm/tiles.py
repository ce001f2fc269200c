"""Instructions on tiles as LLVM IR: those of x86, by the numbers of registers.

A configuration takes 170 cycles and is the thread's own, so that a function with one has it in
front, outside of its loops; only where it calls parts of itself, which leave their own behind,
or where it has several, they stay where they are.  Before it returns it gives the tiles back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.instructions.tiles import INSTRUCTIONS, ROW_BYTES, TILES, has_tiles

if TYPE_CHECKING:
    from slipway.codegen.llvm.function import FunctionEmitter

_CONFIG = "; tiles "  # a line that is left where a configuration stands, and its constant
_DECLARED = {
    "ldtilecfg": "declare void @llvm.x86.ldtilecfg(ptr)",
    "tilerelease": "declare void @llvm.x86.tilerelease()",
    "tilezero": "declare void @llvm.x86.tilezero(i8 immarg)",
    "tileloadd64": "declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)",
    "tilestored64": "declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)",
}


def emit_tile_call(emitter: FunctionEmitter, node: E.Call) -> str:
    """Emit a call of ``tile_...``."""
    target = emitter.capability.target
    if not has_tiles(target):
        raise CodegenError(
            f"{emitter.name}: {node.op} needs amx-tile, which the target {target} has not. Add "
            "-mattr=+amx-tile if the processor has it"
        )
    operation = node.op.removeprefix("tile_")
    if operation == "config":
        emitter.w.do(_CONFIG + _constant(emitter, [_number(x) for x in node.args]))
    elif operation == "dot":
        _dot(emitter, node)
    elif operation == "zero":
        _do(emitter, "tilezero", f"i8 {_number(node.args[0])}")
    else:
        tile, address, stride = node.args
        scale = dtypes.bits_of(_pointed(address)) // 8
        step = emitter.wide(ops.mul(stride, scale))
        name = "tileloadd64" if operation == "load" else "tilestored64"
        _do(emitter, name, f"i8 {_number(tile)}, ptr {emitter.value(address)}, i64 {step}")
    return "0"


def _dot(emitter: FunctionEmitter, node: E.Call) -> None:
    first: Any = node.args[0]
    entry, target = INSTRUCTIONS[first.value], emitter.capability.target
    lacking = entry.missing(target)
    if lacking:
        raise CodegenError(
            f"{emitter.name}: {entry.name} needs {', '.join(lacking)}, which the target {target} "
            f"has not. Add -mattr=+{lacking[0]} if the processor has it"
        )
    emitter.helpers.add(f"declare void @{entry.llvm}(i8 immarg, i8 immarg, i8 immarg)")
    tiles = ", ".join(f"i8 {_number(t)}" for t in node.args[1:])
    emitter.w.do(f"call void @{entry.llvm}({tiles})")


def _do(emitter: FunctionEmitter, name: str, operands: str) -> None:
    emitter.helpers.add(_DECLARED[name])
    emitter.w.do(f"call void @llvm.x86.{name}({operands})")


def _number(value: Any) -> int:
    """Return a constant."""
    return int(value)


def _pointed(address: Any) -> str:
    """Return the dtype of what an address_of points to."""
    return str(address.args[0].dtype)


def _constant(emitter: FunctionEmitter, numbers: list[int]) -> str:
    """Return the name of the constant for LDTILECFG: palette 1, bytes and numbers of rows."""
    rows, widths = numbers[::2], numbers[1::2]
    data = bytearray(ROW_BYTES)
    data[0] = 1
    for tile in range(TILES):
        data[16 + 2 * tile : 18 + 2 * tile] = widths[tile].to_bytes(2, "little")
        data[48 + tile] = rows[tile]
    symbol = "@slw.tiles." + ".".join(f"{r}x{w}" for r, w in zip(rows, widths, strict=True) if r)
    text = "".join(f"\\{byte:02x}" for byte in data)
    emitter.helpers.add(
        f'{symbol} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align 64'
    )
    return symbol


def place_configurations(emitter: FunctionEmitter) -> None:
    """Put the configurations of a function, whose lines are complete, where they belong."""
    w = emitter.w
    mark = "  " + _CONFIG
    found = {line.removeprefix(mark) for line in w.lines if line.startswith(mark)}
    if not found:
        return
    emitter.helpers |= {_DECLARED["ldtilecfg"], _DECLARED["tilerelease"]}
    once = len(found) == 1 and emitter.children == 0
    lines = [_config(symbol) for symbol in found] if once else []
    for line in w.lines:
        if line.startswith(mark):
            lines += [] if once else [_config(line.removeprefix(mark))]
            continue
        if line.startswith("  ret "):
            lines.append("  call void @llvm.x86.tilerelease()")
        lines.append(line)
    w.lines = lines


def _config(symbol: str) -> str:
    return f"  call void @llvm.x86.ldtilecfg(ptr {symbol})"
