"""What users give functions, checked before anything is done.

Each check raises ArgumentTypeError or ArgumentValueError with the argument, what was given and what
to write in its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError


def path_of(given: object, what: str, example: str) -> Path:
    """Return the path that `given` is: text, or an object that says its path."""
    if not isinstance(given, str | os.PathLike) or isinstance(os.fspath(given), bytes):
        raise ArgumentTypeError(
            f"{what} is {given!r}, which is no path; write its name, as in {example!r}"
        )
    if not os.fspath(given):
        raise ArgumentValueError(f"{what} is empty; write the name of a file, as {example!r}")
    return Path(given)


def file_to_write(given: object, what: str, example: str) -> Path:
    """Return a path whose folder is there and which is no folder itself."""
    path = path_of(given, what, example)
    if path.is_dir():
        raise ArgumentValueError(
            f"{what} is {str(path)!r}, a folder; write the name of a file in it"
        )
    if not path.absolute().parent.is_dir():
        raise ArgumentValueError(
            f"{what} is {str(path)!r}, and there is no folder {path.absolute().parent}: make it "
            "first"
        )
    return path


def table_of(given: object, what: str, example: str) -> Mapping[str, Any]:
    """Return a table from names, or an empty one for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ArgumentTypeError(f"{what} is {_short(given)}; write a table by name, {example}")
    return given


def number_of(given: object, what: str, *, whole: bool = False) -> Any:
    """Return a number that is not negative, `whole` an integer."""
    kinds = (int,) if whole else (int, float)
    value = given.item() if hasattr(given, "item") and getattr(given, "ndim", 1) == 0 else given
    if isinstance(value, bool) or not isinstance(value, kinds):
        wanted = "a whole number" if whole else "a number"
        raise ArgumentTypeError(f"{what} is {_short(given)}; write {wanted} from 0")
    if not value >= 0:
        raise ArgumentValueError(f"{what} is {value}; write a number from 0")
    return value


def array_of(name: str, value: Any, dtype: Any) -> Any:
    """Return lists and numbers as an array of an input's type."""
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        wanted = "" if dtype is None else f" is {dtype}"
        raise ExecutionError(f"the input {name!r}{wanted}: {error}") from None


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:80]}..."
