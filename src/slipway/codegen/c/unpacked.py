"""Compute functions alone as C, by the law of ``codegen/unpacked.py``.

A kernel is ``static int32_t name(pointers...)``; buffers that it only reads are const.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.codegen.c import spelling
from slipway.codegen.c.function import CFunction, CModule
from slipway.codegen.c.module import functions_reserved, helper_section
from slipway.codegen.deep_values import in_parts
from slipway.codegen.narrow import widen_narrow
from slipway.codegen.snippets import c_snippets
from slipway.codegen.unpacked import (
    STACK_BYTES,
    KernelFile,
    KernelText,
    Workspace,
    sizes_of,
    temporary_bytes,
    tensors_of,
)
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.target.capability import capability_of


class _Kernel(CFunction):
    """A compute function with its larger temporaries in a planned workspace."""

    def __init__(self, module: CModule, name: str) -> None:
        super().__init__(module, name)
        self.workspace = Workspace()

    def fail(self, kind: str, message: str) -> None:
        """Emit the return with an error; a program keeps no words about it."""
        self.module.uses_failure = True
        self.line("  return -2;")

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        size = temporary_bytes(self.name, buffer)
        ty = spelling.c_type(buffer.dtype)
        name = self.fresh(buffer.name)
        self.define(buffer.data, name)
        self.pointer_types[id(buffer.data)] = ty
        if size <= STACK_BYTES:  # no more aligned than its type: realigning the stack costs code
            count = max(1, size // max(1, dtypes.bits_of(buffer.dtype) // 8))
            self.line(f"{ty} {name}[{count}];")
            self.stmt(node.body)
            return
        with self.workspace.room(size) as offset:
            self.line(f"{ty}* const {name} = ({ty}*)(void*)(workspace + {offset});")
            self.stmt(node.body)


def emit_kernels(
    functions: Mapping[str, PrimFunc], target: Target, overlapping: Container[str] = ()
) -> KernelFile:
    """Return the C of `functions`; those in `overlapping` may get an output on top of an input."""
    module = CModule(capability_of(target), snippets=c_snippets(functions.values(), target))
    kernels = {}
    for name, func in functions.items():
        kernels[name] = _emit(name, widen_narrow(func), module, name not in overlapping)
    return KernelFile(helper_section(module), kernels)


def _emit(name: str, func: PrimFunc, module: CModule, noalias: bool) -> KernelText:
    func = in_parts(func, spelling.DEEPEST // 2, f"function {name!r}")
    out = _Kernel(module, name)
    out.inside_parallel = True  # which makes every loop a serial one
    out.taken |= {*functions_reserved(name), "workspace"}
    written = {id(s.buffer.data) for s in walk(func.body) if isinstance(s, S.BufferStore)}
    written |= {id(pointer) for pointer in _handed_over(func)}
    arguments = []
    variables: list[E.Var] = []
    tensors = tensors_of(name, func)
    sizes = sizes_of(tensors)
    for buffer in tensors:
        if isinstance(buffer.elem_offset, E.Var):
            out.define(buffer.elem_offset, "0")
        ty = spelling.c_type(buffer.dtype)
        spelled = out.define(buffer.data, out.fresh(buffer.data.name))
        out.pointer_types[id(buffer.data)] = ty
        const = "" if id(buffer.data) in written else "const "
        arguments.append(f"{const}{ty}* {'restrict ' if noalias else ''}{spelled}")
        variables.append(buffer.data)
    for size in sizes:
        arguments.append(f"{spelling.c_type(size.dtype)} {out.define(size, out.fresh(size.name))}")
        variables.append(size)
    before = len(module.functions)
    with room_for(func.body, f"function {name!r} in C", spelling.DEEPEST):
        out.stmt(func.body)
    if out.workspace.size_bytes:
        arguments.append("uint8_t* workspace")
    out.finish(f"SLW_KERNEL int32_t {name}({', '.join(arguments)})", variables)
    texts = module.functions[before:]
    del module.functions[before:]
    text = "\n".join(texts)
    return KernelText(name, text, out.workspace.size_bytes, "return -" in text, (*sizes.values(),))


def _handed_over(func: PrimFunc) -> Iterator[Any]:
    """Yield the buffers that C functions are given pointers to write through."""
    for found in walk(func.body):
        if isinstance(found, E.Call) and found.op == "access_ptr":
            data, _, mask = found.args
            if not isinstance(mask, E.IntImm) or mask.value & 2:
                yield data


def constant_text(dtype: str, values: np.ndarray[Any, Any]) -> list[str]:
    """Return the C spelling of each element of a constant vector."""
    bits = dtypes.bits_of(dtype)
    if dtypes.is_float(dtype) and bits >= 32:
        if bits == 32 and np.isfinite(values).all():
            return [f"{text}f" for text in map(str, values)]
        return [_float_text(v, bits) for v in values.tolist()]
    if bits in (32, 64):
        return [spelling.int_text(int(v), dtype) for v in values.tolist()]
    return [str(int(v)) for v in values.tolist()]


def _float_text(value: float, bits: int) -> str:
    if value != value:
        return "(0.0f / 0.0f)" if bits == 32 else "(0.0 / 0.0)"
    if value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        return f"({sign}1.0f / 0.0f)" if bits == 32 else f"({sign}1.0 / 0.0)"
    return repr(value) if bits == 64 else f"{np.float32(value)!s}f"
