"""`HardwareParams` (classic): what a search was told of a device, which its target says here."""

from __future__ import annotations

from typing import NamedTuple

from slipway.backends.backend import compile_target
from slipway.backends.gpu.limits import most_threads, shared_bytes
from slipway.errors import TuningError
from slipway.target import Target

LINE_BYTES = 64  # of a cache, where nothing else is said
LOCAL_BYTES = 2**31 - 1  # of a thread's memory: no limit that a search would meet
VTHREADS = 8  # virtual threads of a loop, as classic TVM's search had them at most
GPU_VECTOR_BYTES = 16  # that a thread of a GPU loads at once


class _Fields(NamedTuple):
    num_cores: int
    vector_unit_bytes: int
    cache_line_bytes: int
    max_shared_memory_per_block: int
    max_local_memory_per_block: int
    max_threads_per_block: int
    max_vthread_extent: int
    warp_size: int


class HardwareParams(_Fields):
    """What is known of a device; `target` gives what is not said.

    The search asks the task's target itself, and keeps these in its logs, as classic TVM's did.
    """

    __slots__ = ()

    def __new__(
        cls,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: Target | str | None = None,
        target_host: Target | str | None = None,
    ) -> HardwareParams:
        """Take what is given.  Raises TuningError for what is no number."""
        given = (
            num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
            max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size,
        )  # fmt: skip
        for name, value in zip(_Fields._fields, given, strict=True):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TuningError(
                    f"HardwareParams: {name} is {value!r}, and has to be an integer; what is left "
                    "out is the target's"
                )
        known = _Fields(-1, LINE_BYTES, LINE_BYTES, 0, 0, 0, 0, 0)
        if target is not None:
            known = _of_target(compile_target(target, target_host))
        taken = [
            theirs if mine is None else mine for mine, theirs in zip(given, known, strict=True)
        ]
        return super().__new__(cls, *taken)

    def __getnewargs__(self) -> tuple[int, ...]:
        return tuple(self)


def _of_target(target: Target) -> _Fields:
    if target.kind.is_cpu:
        bytes_ = max(4, target.vector_bits // 8)
        return _Fields(target.num_cores, bytes_, LINE_BYTES, 0, 0, 0, 0, 0)
    shared, threads, warp = shared_bytes(target), most_threads(target), target.thread_warp_size
    return _Fields(
        -1, GPU_VECTOR_BYTES, LINE_BYTES, shared, LOCAL_BYTES, threads, VTHREADS, max(1, warp)
    )
