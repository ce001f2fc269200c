"""How many threads kernels run on. The default is ``SLIPWAY_NUM_THREADS``, else all processors."""

from __future__ import annotations

from slipway.runtime.native_library import native_runtime


def set_num_threads(num_threads: int) -> None:
    """Let every kernel that is called from now on use `num_threads` threads; 0: the default.

    The setting is the process's.  Raises ValueError outside 0..256.
    """
    if native_runtime().lib.slw_set_num_threads(int(num_threads)) != 0:
        raise ValueError(f"cannot run on {num_threads} threads: give a number from 0 to 256.")


def num_threads() -> int:
    """Return how many threads a kernel uses."""
    return int(native_runtime().lib.slw_num_threads())
