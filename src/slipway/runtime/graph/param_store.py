"""A model's parameters in one piece of memory, which all executors of the model read."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.runtime.arrays.array_file import MIN_BYTES, release
from slipway.runtime.ndarray import ALIGNMENT_BYTES, NDArray, aligned_bytes, array_over

if TYPE_CHECKING:
    import numpy.typing as npt

_WORTH_THREADS = 1 << 20  # bytes


class ParamStore:
    """Copies of named arrays, one after the other; `arrays` are over the copies.

    One block, not one for each array: a large block gets huge pages, which is worth 6% of the time
    of ResNet-50.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        sources = {name: _as_array(value) for name, value in values.items()}
        slices, at = {}, 0
        for name, source in sources.items():
            size = source.size * dtypes.bytes_of(dtypes.canonical(source.dtype))
            slices[name] = slice(at, at + size)
            at += -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        block = aligned_bytes(at)
        self.arrays: dict[str, NDArray] = {
            name: array_over(block[slices[name]], source.shape, dtypes.canonical(source.dtype))
            for name, source in sources.items()
        }
        pairs = [(self.arrays[name], source) for name, source in sources.items()]
        _copy(pairs, min(4, os.cpu_count() or 1) if at >= _WORTH_THREADS else 1)


def _copy(pairs: Iterable[tuple[NDArray, npt.NDArray[Any]]], threads: int) -> None:
    """Write each array into its place; copying waits for memory, on every core.

    Not `concurrent.futures`, which imports `logging`: 9 ms of the 60 before a first result.
    """
    left = iter(sorted(pairs, key=lambda pair: -pair[1].nbytes))
    failed: list[BaseException] = []

    def some() -> None:
        try:
            for to, source in left:
                to._write(source)
                if source.nbytes >= MIN_BYTES:
                    release(source)  # else all of it would lie in memory twice
        except BaseException as error:  # the caller's thread raises it
            failed.append(error)

    others = [threading.Thread(target=some) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    some()
    for thread in others:
        thread.join()
    if failed:
        raise failed[0]


def _as_array(value: Any) -> npt.NDArray[Any]:
    values = value._read() if isinstance(value, NDArray) else np.asarray(value)
    return np.asarray(values, order="C")
