"""Packed functions of libraries that classic TVM links: products, random numbers, traces.

``tvm.contrib.cblas.matmul`` and its like are NumPy's here, which calls the BLAS it was built
with.  They exist in a process with Python: on this machine, and behind a Python RPC server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway.errors import ExecutionError
from slipway.runtime.libraries.c_source import create as create_c_source
from slipway.runtime.libraries.native_library import tvm_ffi
from slipway.runtime.ndarray import NDArray

PREFIX = "tvm.contrib."
TRACED = "slipway.traced"
_SOURCE = np.random.default_rng()


def _operand(array: NDArray, transposed: Any) -> Any:
    values = array._read()
    return np.swapaxes(values, -1, -2) if transposed else values


def _matmul(a: NDArray, b: NDArray, c: NDArray, transa: Any = False, transb: Any = False) -> None:
    left, right = _operand(a, transa), _operand(b, transb)
    shape = (*left.shape[:-1], right.shape[-1])
    if left.shape[-1] != right.shape[-2] or tuple(c.shape) != shape:
        raise ExecutionError(
            f"a product of {list(left.shape)} and {list(right.shape)} does not go into "
            f"{list(c.shape)}: columns of the first must be rows of the second"
        )
    c._write(np.asarray(np.matmul(left, right), dtype=c._read().dtype, order="C"))


def _filled(draw: Callable[..., Any]) -> Callable[..., None]:
    def fill(low: Any, high: Any, out: NDArray) -> None:
        values = draw(low, high, size=tuple(out.shape))
        out._write(np.asarray(values, dtype=out._read().dtype, order="C"))

    return fill


def _print_trace(*values: Any) -> Any:
    """Print what is traced, and give the last value back (``tvm.default_trace_action``)."""
    print("[TRACE]", *values)
    return values[-1]


def _traced(action: str, *values: Any) -> Any:
    """Call a function that watches values; its result, or the last value, is the expression's."""
    found = tvm_ffi().get_global_func(action, allow_missing=True)
    if found is None:
        raise ExecutionError(
            f"trace_action {action!r} is no function: register it in the process that runs the "
            f"kernel, @register_func({action!r})"
        )
    result = found(*values)
    return values[-1] if result is None else result


def _seed(value: int) -> None:
    global _SOURCE
    _SOURCE = np.random.default_rng(value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"{PREFIX}{lib}.{name}": _matmul for lib in ("cblas", "mkl", "dnnl")
       for name in ("matmul", "batch_matmul")},
    PREFIX + "random.randint": _filled(lambda *a, **k: _SOURCE.integers(*a, **k)),
    PREFIX + "random.uniform": _filled(lambda *a, **k: _SOURCE.uniform(*a, **k)),
    PREFIX + "random.normal": _filled(lambda *a, **k: _SOURCE.normal(*a, **k)),
    PREFIX + "random.seed": _seed,
    "tvm.default_trace_action": _print_trace,
    TRACED: _traced,
    "runtime.CSourceModuleCreate": create_c_source,
}  # fmt: skip


def register(register_func: Callable[[str, Callable[..., Any]], Any]) -> None:
    """Enter, with `register_func`, the functions that nobody has registered himself."""
    for name, function in _FUNCTIONS.items():
        if tvm_ffi().get_global_func(name, allow_missing=True) is None:
            register_func(name, function)
