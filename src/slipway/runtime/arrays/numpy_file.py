"""Arrays in NumPy's own files: a .npy holds one, a .npz several with names."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError

LABELS = "labels"  # the array of a dataset's .npz that is no input of a model, but its answers


def read_numpy_file(
    path: str | os.PathLike[str],
) -> np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]]:
    """Return the array of a .npy, or those of a .npz by name.

    Raises ArgumentValueError with the reason for what is neither, was cut short or is damaged.
    """
    with Path(path).open("rb") as file:  # NumPy leaves a file open that it cannot read
        try:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return stored
            with stored:
                return {name: stored[name] for name in stored.files}
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ArgumentValueError(_reason(error)) from error


def _reason(error: Exception) -> str:
    if "Object arrays" in str(error):
        return "an array in it holds Python objects, not numbers"
    if "pickle" in str(error):  # NumPy takes what it does not know for one
        return "it does not begin as one"
    return str(error) or type(error).__name__
