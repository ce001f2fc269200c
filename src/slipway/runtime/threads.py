"""How many threads kernels run on, and on which processors.

The default is ``SLIPWAY_NUM_THREADS``, else all processors that this process may run on.
"""

from __future__ import annotations

from collections.abc import Iterable

from slipway.errors import ArgumentValueError
from slipway.runtime.libraries.native_library import native_runtime


def set_num_threads(num_threads: int) -> None:
    """Let every kernel that is called from now on use `num_threads` threads; 0: the default.

    The setting is the process's.  Raises ValueError outside 0..256.
    """
    if native_runtime().lib.slw_set_num_threads(int(num_threads)) != 0:
        raise ArgumentValueError(
            f"cannot run on {num_threads} threads: give a number from 0 to 256."
        )


def num_threads() -> int:
    """Return how many threads a kernel uses."""
    return int(native_runtime().lib.slw_num_threads())


def config_threadpool(
    affinity_mode: int = 0, num_threads: int = 0, cpus: Iterable[int | str] = ()
) -> None:
    """Bind the threads of kernels to processors, as the classic runtime.config_threadpool.

    `affinity_mode` is 0 (not bound), 1 (the processors with the highest clock, a thread on each),
    -1 (those with the lowest), -2 (one thread on each of `cpus`), or -3 (all threads on all of
    `cpus`).  `num_threads` 0: as many as there are such processors.  The calling thread may then
    run on all of them; those that it starts later inherit that.  Raises ValueError for another
    mode, and for processors that this process may not run on.  On systems without such calls only
    the number of threads is set.
    """
    numbers = [int(cpu) for cpu in cpus]
    native_runtime().packed("config_threadpool")(int(affinity_mode), int(num_threads), *numbers)
