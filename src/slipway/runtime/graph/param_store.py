"""A model's parameters in one piece of memory, which all executors of the model read."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.runtime.arrays.array_file import MIN_BYTES, release
from slipway.runtime.ndarray import (
    ALIGNMENT_BYTES,
    PACKED,
    NDArray,
    aligned_bytes,
    array_over,
    pack_halves,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_WORTH_THREADS = 1 << 20  # bytes


Position = tuple[int, int, tuple[int, ...], str]  # first byte, bytes, shape, dtype


class ParamStore:
    """Copies of named arrays, one after the other.

    One block, not one for each array: a large block gets huge pages, which is worth 6% of the time
    of ResNet-50.  Attributes: `block`, all their bytes; `positions`, where in it each one lies.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        sources = {name: _as_array(value) for name, value in values.items()}
        self.positions: dict[str, Position] = {}
        at = 0
        for name, source in sources.items():
            dtype = dtypes.canonical(source.dtype)
            size = source.size * dtypes.bytes_of(dtype)
            self.positions[name] = (at, size, source.shape, dtype)
            at += -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.block = aligned_bytes(at)
        pairs = [(self._bytes(name), source) for name, source in sources.items()]
        _copy(pairs, min(4, os.cpu_count() or 1) if at >= _WORTH_THREADS else 1)

    def _bytes(self, name: str) -> npt.NDArray[np.uint8]:
        start, size, _, _ = self.positions[name]
        return self.block[start : start + size]

    @cached_property
    def arrays(self) -> dict[str, NDArray]:
        """The copies by name."""
        return {
            name: array_over(self._bytes(name), shape, dtype)
            for name, (_, _, shape, dtype) in self.positions.items()
        }


def _write(piece: npt.NDArray[np.uint8], source: npt.NDArray[Any]) -> None:
    """Write an array's elements into its bytes; of four bits two lie in each."""
    if source.dtype.name in PACKED:
        packed = pack_halves(source)
        np.copyto(piece[: packed.size], packed)
    elif source.size:  # an empty slice has no other type
        np.copyto(piece.view(source.dtype).reshape(source.shape), source)


def _copy(pairs: Iterable[tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]], threads: int) -> None:
    """Write each array into its place; copying waits for memory, on every core.

    Not `concurrent.futures`, which imports `logging`: 9 ms of the 60 before a first result.
    """
    left = iter(sorted(pairs, key=lambda pair: -pair[1].nbytes))
    failed: list[BaseException] = []

    def some() -> None:
        try:
            for to, source in left:
                _write(to, source)
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
