"""Hardware intrinsics in C: a small function for each in use, and the stores that call it.

The function takes pointers, ``slw_hw_<name>(c, a, b)``, and adds to c in place; a compiler
that inlines it keeps what it can in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slipway.codegen.c import spelling
from slipway.codegen.hardware import hardware
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.hardware import HardwareIntrinsic
from slipway.ir.structural import structural_equal

if TYPE_CHECKING:
    from slipway.codegen.c.function import CFunction

_WORD = """static inline int32_t slw_word32(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}
"""


def hardware_text(used: Mapping[str, HardwareIntrinsic]) -> str:
    """Return the #includes and functions of the intrinsics in `used`."""
    if not used:
        return ""
    headers = dict.fromkeys(h for entry in used.values() for h in entry.header.split("\n"))
    parts = [f"#include <{header}>\n" for header in headers]
    if any("slw_word32" in entry.c for entry in used.values()):
        parts.append(_WORD)
    for entry in used.values():
        a, b, c = (spelling.c_type(t) for t in (entry.a_dtype, entry.b_dtype, entry.c_dtype))
        rows = [f"a{k}" for k in range(entry.depth)] if entry.taps else ["a"]
        data = ", ".join(f"const {a}* {row}" for row in rows)
        head = f"static inline void {_symbol(entry)}({c}* c, {data}, const {b}* b)"
        parts.append(f"{head} {{\n  {entry.c}\n}}\n")
    return "\n".join(parts)


def _symbol(entry: HardwareIntrinsic) -> str:
    return "slw_hw_" + entry.name.replace(".", "_")


def store_hardware(out: CFunction, node: S.BufferStore) -> None:
    """Emit ``buffer[indices] = new c`` for a store of a "hardware" call."""
    call: Any = node.value
    entry = hardware(call, out.capability.target)
    out.module.hardware[entry.name] = entry
    *rows, b, c = call.args[1:]
    left, right = ", ".join(_pointer(out, a) for a in rows), _pointer(out, b)
    target = E.BufferLoad(node.buffer, node.indices)
    if _contiguous(target) and structural_equal(target, c):
        out.line(f"{_symbol(entry)}({_pointer(out, target)}, {left}, {right});")
        return
    sums = _array(out, c, const=False)
    out.line(f"{_symbol(entry)}({sums}, {left}, {right});")
    for lane in range(entry.c_size):
        element = out.element(node.buffer, node.indices, lane if entry.c_size > 1 else None)
        out.line(f"{element} = {sums}[{lane}];")


def _contiguous(value: E.PrimExpr) -> bool:
    """Return whether `value` is elements of a buffer that are contiguous."""
    if not isinstance(value, E.BufferLoad):
        return False
    last = value.indices[-1]
    if last.lanes == 1:
        return value.lanes == 1
    strides = value.buffer.strides
    unit = not strides or (isinstance(strides[-1], E.IntImm) and strides[-1].value == 1)
    step = last.stride if isinstance(last, E.Ramp) else None
    return unit and isinstance(step, E.IntImm) and step.value == 1


def _pointer(out: CFunction, value: E.PrimExpr) -> str:
    """Return a pointer to the elements of `value`."""
    if isinstance(value, E.BufferLoad) and _contiguous(value):
        indices = value.indices
        if isinstance(indices[-1], E.Ramp):
            indices = (*indices[:-1], indices[-1].base)
        return f"&{out.element(value.buffer, indices, None)}"
    return _array(out, value, const=True)


def _array(out: CFunction, value: E.PrimExpr, const: bool) -> str:
    """Write the lanes of `value` into a new array; return its name."""
    name = out.fresh("lanes")
    ty = spelling.c_type(value.dtype)
    lanes = range(value.lanes)
    texts = [out.expr(value, lane if value.lanes > 1 else None) for lane in lanes]
    declaration = f"{'const ' if const else ''}{ty} {name}[{len(texts)}]"
    out.line(f"{declaration} = {{{', '.join(texts)}}};")
    return name
