"""Compute functions alone, for programs that call them directly: what C and LLVM IR share.

Law: a kernel takes plain pointers, its tensors in the order of the function's parameters, and
checks none of them; then the sizes that their shapes leave open, as int32.  Its loops run serially.
Temporaries above `STACK_BYTES` lie in a workspace whose pointer is the last parameter, so that the
program plans them together with its tensors.  It returns 0, or -2 when a check of its own failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from slipway.errors import CodegenError
from slipway.ir.buffer import Buffer
from slipway.ir.expr import Var
from slipway.ir.function import PrimFunc

STACK_BYTES = 256  # of one temporary on the stack; deeper stacks than that surprise people
WORKSPACE_ALIGNMENT = 16


@dataclass(frozen=True)
class KernelText:
    """One kernel: its definition, the workspace bytes it takes, whether it can fail.

    `sizes` are the open sizes that it takes, each as (tensor, axis).
    """

    name: str
    text: str
    workspace_bytes: int
    can_fail: bool
    sizes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class KernelFile:
    """The kernels of one file, and the lines that the file needs beside them."""

    helpers: str
    kernels: dict[str, KernelText]


class Workspace:
    """What one kernel's temporaries take: each lies above those that live around it."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._used = 0

    @contextmanager
    def room(self, size: int) -> Iterator[int]:
        """Take `size` bytes for the body of the ``with``; the value is their offset."""
        before = self._used
        offset = -(-before // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
        self._used = offset + size
        self.size_bytes = max(self.size_bytes, self._used)
        yield offset
        self._used = before


def temporary_bytes(kernel: str, buffer: Buffer) -> int:
    """Return the bytes of a temporary.  Raises CodegenError when they are not constant."""
    size = buffer.size_bytes()
    if size is None:
        raise CodegenError(
            f"{kernel}: the temporary {buffer.name} has no constant size, so that its "
            "memory cannot be planned"
        )
    return size


def sizes_of(buffers: Sequence[Buffer]) -> dict[Var, tuple[int, int]]:
    """Return the sizes that the shapes of a kernel's tensors leave open, and where each is."""
    found: dict[Var, tuple[int, int]] = {}
    for number, buffer in enumerate(buffers):
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, Var):
                found.setdefault(extent, (number, axis))
    return found


def tensors_of(kernel: str, func: PrimFunc) -> list[Buffer]:
    """Return the buffer of each parameter.  Raises CodegenError for one that is no tensor."""
    found = []
    for param in func.params:
        buffer = func.buffer_of(param)
        if buffer is None:
            raise CodegenError(f"{kernel}: parameter {param.name} is no tensor")
        found.append(buffer)
    return found
