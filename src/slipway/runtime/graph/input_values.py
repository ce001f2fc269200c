"""Values of another dtype than an input's or an argument's, converted where nothing is lost.

NumPy makes float64 and int64 where nobody asked for them, and classic TVM converted what
``set_input`` was given.  So float64 becomes float32 (rounded) as long as it stays finite, and any
other value what the input is, if it comes back from there unchanged.  A kernel's arguments are
converted only from NumPy's defaults, float64 and int64; uint16 stands for the bits of bfloat16,
which NumPy has no type of its own for.  The first conversion of each warns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError, RemoteError
from slipway.runtime.ndarray import NDArray, array, numpy_dtype

IN_MODEL = " in this model"
_WARNED: set[tuple[str, str, str]] = set()
# What compiled code says of its arguments (codegen/glue/packed.c).
_OF_ARGUMENTS = re.compile(r"[^\s:]+: (?:argument \d+ \(|got \d+ arguments, expected )")
_OF_DTYPE = re.compile(
    r"([^\s:]+: argument (\d+) \(.*\)) has dtype (float64|int64|uint16), expected (\w+)"
)


def converted(what: str, value: Any, dtype: str, where: str = "", warn: bool = True) -> NDArray:
    """Return `value` as an array of `dtype`; `what` and `where` are words for warning and error.

    Raises ExecutionError where that would lose some.
    """
    given = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    found = dtypes.canonical(given.dtype)
    wanted = numpy_dtype(dtype)
    if (found, dtype) == ("uint16", "bfloat16"):
        return array(given.view(wanted))
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
            f"{what} has dtype {dtype}{where}, got {found} with {lost}, which "
            f'that cannot hold. Convert it first: x.astype("{dtype}").'
        )
    key = (what, found, dtype)
    if warn and key not in _WARNED:
        _WARNED.add(key)
        warnings.warn(
            f"{what} is converted from {found} to {dtype} at every call; give it as "
            f'{dtype}, for example x.astype("{dtype}")',
            stacklevel=4,
        )
    return array(made)


def _on_its_device(given: Any, made: NDArray) -> NDArray:
    """Return a converted array on the device of the given one."""
    where = given.device if isinstance(given, NDArray) else made.device
    return made if where == made.device else made.copyto(where)


def call_kernel(
    function: Callable[..., Any],
    args: Sequence[Any],
    place_beside: Callable[[Any, NDArray], Any] = _on_its_device,
) -> Any:
    """Call a compiled function, and once more with arrays of NumPy's default dtypes converted.

    ``place_beside(given, made)`` puts a converted array where the given one lies.  What the
    function then wrote into a converted array is copied back into the caller's.  Raises
    ArgumentTypeError or ArgumentValueError for arguments that it does not take.
    """
    given = list(args)
    changed: dict[int, tuple[Any, bytes]] = {}
    while True:
        try:
            result = function(*given)
            break
        except (TypeError, ValueError) as error:
            text = str(error)
            remote = isinstance(error, RemoteError)
            if not (remote or type(error) in (TypeError, ValueError)) or not (
                _OF_ARGUMENTS.match(text)
            ):
                raise
            wrong = _OF_DTYPE.match(text)
            if wrong is None or int(wrong[2]) in changed:
                if remote:  # it says already that a device did not take it
                    raise
                known = ArgumentTypeError if type(error) is TypeError else ArgumentValueError
                raise known(text) from None
            if wrong[3] == "uint16":
                if wrong[4] != "bfloat16":
                    raise ArgumentTypeError(text) from None
            elif dtypes.is_float(wrong[3]) != dtypes.is_float(wrong[4]):
                raise ArgumentTypeError(text) from None
            number = int(wrong[2])
            fitting = place_beside(args[number], converted(wrong[1], args[number], wrong[4]))
            for other, argument in enumerate(args):  # one array given twice stays one
                if argument is args[number]:
                    given[other] = fitting
            changed[number] = fitting, fitting.numpy().tobytes()
    for number, (fitting, before) in changed.items():
        if fitting.numpy().tobytes() != before:
            _write_back(args[number], fitting)
    return result


def _write_back(original: Any, made: Any) -> None:
    values = made.numpy()
    if str(original.dtype) == "uint16":
        values = values.view(np.uint16)
    if hasattr(original, "copyfrom"):
        original.copyfrom(values.astype(original.dtype))
    else:
        np.asarray(original)[...] = values
