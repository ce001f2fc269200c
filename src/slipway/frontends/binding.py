"""Inputs of a model that are bound to constants while it is read, so that what they decide folds.

A sample rate that chooses a branch, a mask that is all ones, the number of steps of a loop: with
such an input known, branches are taken and sizes are fixed before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import ModelError, did_you_mean
from slipway.relay.expr import Constant, Expr
from slipway.relay.visit import free_vars
from slipway.runtime.ndarray import numpy_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

Constants = Mapping[str, Any]  # by the input's name: what numpy.asarray takes


def check_input_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raise ModelError if one of `given` is not among `names`, the inputs of the model."""
    for name in given:
        if name not in names:
            raise ModelError(
                f"the model has no input {name!r}; its inputs are {', '.join(names)}."
                f"{did_you_mean(name, list(names))}"
            )


def bound_constant(name: str, value: npt.ArrayLike, dims: Sequence[Any], dtype: str) -> Constant:
    """Return `value` as a constant of the input's type.

    A dimension that is no int takes any extent; one number fills an input whose shape is fixed.
    Raises ModelError when the value has another shape, or numbers that `dtype` does not hold.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise ModelError(f"the constant for the input {name!r} is no array: {error}") from error
    if array.dtype.kind in "OSUMmc" or (array.dtype.kind == "V" and array.dtype.isbuiltin != 2):
        raise ModelError(
            f"the constant for the input {name!r} is {array.dtype}, but the model wants {dtype}"
        )
    fixed = all(isinstance(d, int) for d in dims)
    if array.ndim == 0 and fixed:
        array = np.full(tuple(dims), array)
    fits = tuple(dims) == ("?",) or (
        array.ndim == len(dims)
        and all(not isinstance(d, int) or d == n for d, n in zip(dims, array.shape, strict=True))
    )
    if not fits:
        raise ModelError(
            f"the constant for the input {name!r} has the shape {array.shape}, but the model has "
            f"({', '.join(str(d) for d in dims)})"
        )
    with np.errstate(all="ignore"):
        made = array.astype(numpy_dtype(dtype))
    if not dtypes.is_float(dtype):
        changed = made.astype(array.dtype) != array
        if array.dtype.kind in "iu" and made.dtype.kind in "iu":
            changed |= (made < 0) != (array < 0)
        if changed.any():
            raise ModelError(
                f"the constant for the input {name!r} holds {array[changed].flat[0]}, which is no "
                f"{dtype}"
            )
    return Constant(made)


def inputs_of(value: Expr) -> list[str]:
    """Return the names of the inputs that an expression is computed from, in order of their use."""
    return list(dict.fromkeys(v.name for v in free_vars(value)))
