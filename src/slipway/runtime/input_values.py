"""Values of another dtype than a model's input, converted where nothing is lost.

NumPy makes float64 and int64 where nobody asked for them, and classic TVM converted what
``set_input`` was given.  So float64 becomes float32 (rounded) as long as it stays finite, and any
other value what the input is, if it comes back from there unchanged.  The first conversion of a
model's input warns.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError
from slipway.runtime.ndarray import NDArray, array, numpy_dtype

_WARNED: set[tuple[str, str, str]] = set()


def converted(name: str, value: Any, dtype: str) -> NDArray:
    """Return `value` as an array of `dtype`.  Raises ExecutionError where that would lose some."""
    given = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    found = dtypes.canonical(given.dtype)
    wanted = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        made = given.astype(wanted)
        rounded = dtypes.is_float(found) and dtypes.is_float(dtype)
        if rounded and found == "float64":
            kept = np.isfinite(made) | ~np.isfinite(given)
        else:
            kept = (made.astype(given.dtype) == given) | (given != given)
            if not dtypes.is_float(dtype) and dtypes.is_float(found):
                kept &= np.isfinite(given)
    if not np.all(kept):
        lost = given[~kept].flat[0]
        raise ExecutionError(
            f"set_input: {name!r} has dtype {dtype} in this model, got {found} with {lost}, which "
            f'that cannot hold. Convert it first: x.astype("{dtype}").'
        )
    key = (name, found, dtype)
    if key not in _WARNED:
        _WARNED.add(key)
        warnings.warn(
            f"set_input: {name!r} is converted from {found} to {dtype} at every call; give it as "
            f'{dtype}, for example x.astype("{dtype}")',
            stacklevel=4,
        )
    return array(made)
