"""A model's parameters in one piece of memory, which all executors of the model read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
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
        if at < _WORTH_THREADS:
            for to, source in pairs:
                to._write(source)
        else:  # copying waits for memory, on every core
            pairs.sort(key=lambda pair: -pair[1].nbytes)
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                list(pool.map(lambda pair: pair[0]._write(pair[1]), pairs))


def _as_array(value: Any) -> npt.NDArray[Any]:
    values = value._read() if isinstance(value, NDArray) else np.asarray(value)
    return np.asarray(values, order="C")
