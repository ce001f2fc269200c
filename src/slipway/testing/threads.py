"""Kernels of GPUs without one: their threads run concurrently in the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slipway.backends.backend import compile_target
from slipway.backends.gpu.backend import ready_for_threads
from slipway.compiler.driver import loops_for
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir.interpreter.threads import run_threads as interpret
from slipway.target import Target


def run_threads(
    inputs: Any,
    args: Sequence[Any] | None,
    arrays: Sequence[Any],
    target: Target | str = "cuda",
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
) -> None:
    """Run the kernels that `build` would make of `inputs` on NumPy arrays, which change in place.

    No device and no driver is asked: the interpreter runs the threads of each block concurrently.
    `inputs`, `args`, `name` and `binds` are those of `build`; bfloat16 arrays are those of
    ml_dtypes.  Raises ExecutionError for a race (two threads, one element, one of them writing, no
    barrier between), for a barrier that only some threads of a block reach, and for an index
    outside of its buffer, each with the kernel, the stage, the threads and the axes along which
    they differ; and what `build` raises, limits of the target included.
    """
    chosen = compile_target(target, None, "kernels")
    functions = loops_for(inputs, args, chosen, name, binds)
    if len(functions) != 1:
        raise ArgumentValueError(
            f"run_threads runs one function, and the module has {len(functions)}: "
            f"{', '.join(functions)}"
        )
    (key, func), given = next(iter(functions.items())), [_held(a) for a in arrays]
    ready = ready_for_threads(key, func, chosen)
    interpret(ready, *given, warp=max(1, int(chosen.attrs.get("thread_warp_size", 32))))


def _held(array: Any) -> Any:
    """Return an argument as the interpreter takes it."""
    if isinstance(array, np.ndarray):
        return array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    if isinstance(array, (int, float, np.generic)):
        return array
    raise ArgumentTypeError(
        f"run_threads takes NumPy arrays and numbers, not {type(array).__name__}: give "
        "array.numpy(), and read the result there"
    )
