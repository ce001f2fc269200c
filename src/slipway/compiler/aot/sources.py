"""What the text of an ahead-of-time program is made from, and that text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.codegen.unpacked import KernelFile
from slipway.compiler.aot.program import AotProgram, Port
from slipway.target import Target


@dataclass(frozen=True)
class AotSources:
    """The generated files: names and texts."""

    header_name: str
    header: str
    source_name: str
    source: str


@dataclass(frozen=True)
class ProgramParts:
    """A program, its kernels and constants, and how the text is wanted.

    `constant_pools` names the memory of each constant; the text places those of each memory
    apart.  `own_workspace`: the workspace is a static array of the program; else the caller gives
    its pools as the last argument of the run function.  `packed_entry` adds
    ``__tvm_ffi_<prefix>_run``, which takes the tensors in the calling convention.
    """

    program: AotProgram
    kernels: KernelFile
    constants: Mapping[str, np.ndarray[Any, Any]]
    compiler: str
    target: Target
    own_workspace: bool = True
    packed_entry: bool = False
    alignment_bytes: int = 16
    constant_pools: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What the names begin with that the program shows."""
        return f"tvmgen_{self.program.name}"

    @property
    def constant_names(self) -> dict[str, str]:
        """The name of each constant's array."""
        return {name: f"constant_{i}" for i, name in enumerate(self.program.constants)}

    def space(self, pool: int) -> str:
        """Return the name of the array for a pool; a visible one must be this model's alone."""
        name = self.program.plan.pools[pool].name
        prefix = f"{self.prefix}_" if self.program.workspace_io else ""
        return f"{prefix}workspace_{name}"


def element_bytes(port: Port) -> int:
    """Return what the pointer of an input or output must be a multiple of."""
    return max(1, dtypes.bits_of(port.type.dtype) // 8)
