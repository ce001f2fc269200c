"""Compute functions alone as LLVM IR, by the law of ``codegen/unpacked.py``.

A kernel is ``internal i32 @name(pointers)``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from slipway.codegen.llvm.function import FunctionEmitter, ModuleState
from slipway.codegen.llvm.module import attributes_of
from slipway.codegen.unpacked import (
    STACK_BYTES,
    WORKSPACE_ALIGNMENT,
    KernelFile,
    KernelText,
    Workspace,
    sizes_of,
    temporary_bytes,
    tensors_of,
)
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.target.capability import capability_of


class _Kernel(FunctionEmitter):
    """A compute function with its larger temporaries in a planned workspace."""

    def __init__(self, state: ModuleState, name: str) -> None:
        super().__init__(state, name)
        self.workspace = Workspace()

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        size = temporary_bytes(self.name, buffer)
        if size <= STACK_BYTES:
            super()._allocate(node)
            return
        self.note_buffer(buffer)
        with self.workspace.room(size) as offset:
            self.new_statement()
            at = self.w.put(f"getelementptr i8, ptr %workspace, {self.word} {offset}")
            self.pointers[id(buffer.data)] = at
            self.aligned[id(buffer.data)] = WORKSPACE_ALIGNMENT
            self.stmt(node.body)

    def _keep_failure(self, kind: str, message: str) -> None:
        """Keep nothing: the caller gets the status alone."""


def emit_kernels(
    functions: Mapping[str, PrimFunc], target: Target, overlapping: Container[str] = ()
) -> KernelFile:
    """Return the IR of `functions`; those in `overlapping` may get an output on top of an input.

    `helpers` of the result are the lines that the module needs beside the kernels.
    """
    state = ModuleState(
        capability_of(target),
        strict=target.is_strict,
        attributes=f"noinline {attributes_of(target)}",
    )
    kernels = {n: _emit(n, f, state, n not in overlapping) for n, f in functions.items()}
    if state.caches or state.statics:
        raise CodegenError("a model that calls PackedFuncs cannot be compiled ahead of time")
    lines = sorted(state.declarations)
    return KernelFile("\n".join([*lines, *state.loop_lines()]), kernels)


def _emit(name: str, func: PrimFunc, state: ModuleState, noalias: bool) -> KernelText:
    out = _Kernel(state, name)
    out.inside_parallel = True  # which makes every loop a serial one
    variables: list[E.Var] = []
    tensors = tensors_of(name, func)
    sizes = sizes_of(tensors)
    for buffer in tensors:
        variables.append(buffer.data)
        out.note_buffer(buffer)
        if isinstance(buffer.elem_offset, E.Var):
            out.bind_scalar(buffer.elem_offset, "0")
    parameters = out.parameters([*variables, *sizes], noalias)
    out.widen_scalars([*sizes])
    with room_for(func.body, f"function {name!r}"):
        out.stmt(func.body)
    if out.workspace.size_bytes:
        parameters += ", ptr %workspace"
    before = len(state.functions)
    out.finish(parameters)
    text = "\n".join(state.functions[before:])
    del state.functions[before:]
    return KernelText(name, text, out.workspace.size_bytes, "ret i32 -" in text, (*sizes.values(),))
