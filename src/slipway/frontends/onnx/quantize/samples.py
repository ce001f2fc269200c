"""Calibration data in its several forms, as a list of {input name: array}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError, FileError, ModelError
from slipway.runtime.arrays.numpy_file import LABELS, read_numpy_file

Sample = dict[str, np.ndarray[Any, Any]]


def read_samples(calibration: Any, inputs: Mapping[str, tuple[Any, ...]]) -> list[Sample]:
    """Return calibration data as samples.

    `calibration` is an iterable of {name: array}; an array, for a model of one input; a .npz file
    with an array per input, and `labels`, which are left out; a .npy file; or a folder of .npz
    files (a sample each) or .npy files (a sample each, for a model of one input).  Arrays of files
    may have one axis more than the input, or a multiple of its first extent: then they hold many
    samples.  `inputs` gives the model's shapes; what is open in them is no int.  Raises ModelError
    for data that does not fit, FileError for files that hold none.
    """
    if isinstance(calibration, (str, Path)):
        samples = _from_path(Path(calibration), inputs)
    elif isinstance(calibration, np.ndarray):
        samples = _split({_only(inputs, "an array"): calibration}, inputs)
    elif isinstance(calibration, Mapping):
        samples = _split({k: np.asarray(v) for k, v in calibration.items()}, inputs)
    elif isinstance(calibration, Iterable):
        samples = [_named(s, inputs) for s in calibration]
    else:
        raise ModelError(
            "calibration is a path, or an iterable of {input name: array}, not a "
            f"{type(calibration).__name__}"
        )
    if not samples:
        raise ModelError("the calibration data is empty: give some dozens of typical inputs")
    for sample in samples:
        _check(sample, inputs)
    return samples


def _only(inputs: Mapping[str, Any], what: str) -> str:
    if len(inputs) != 1:
        raise ModelError(f"{what} fits a model of one input; this has {', '.join(inputs)}")
    return next(iter(inputs))


def _named(sample: Any, inputs: Mapping[str, Any]) -> Sample:
    if isinstance(sample, Mapping):
        return {str(k): np.asarray(v) for k, v in sample.items()}
    return {_only(inputs, "a sample without names"): np.asarray(sample)}


def _from_path(path: Path, inputs: Mapping[str, tuple[Any, ...]]) -> list[Sample]:
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in (".npz", ".npy"))
        if not files:
            raise FileError(f"the folder {path} holds no .npz or .npy file")
        return [sample for file in files for sample in _from_path(file, inputs)]
    try:
        stored = read_numpy_file(path)
    except ArgumentValueError as error:
        raise FileError(f"{path} is no .npz or .npy file of numbers ({error})") from error
    if isinstance(stored, np.ndarray):
        stored = {_only(inputs, f"{path}, an array,"): stored}
    elif LABELS not in inputs:
        stored.pop(LABELS, None)
    return _split(stored, inputs)


def _split(arrays: Sample, inputs: Mapping[str, tuple[Any, ...]]) -> list[Sample]:
    """Cut arrays of many samples into samples."""
    parts: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        shape = inputs.get(name)
        if shape is None:
            raise ModelError(f"there is no input {name!r}; the inputs are {', '.join(inputs)}")
        if array.ndim == len(shape) + 1:
            parts[name] = list(array)
        elif array.ndim == len(shape) and array.ndim and isinstance(shape[0], int) and shape[0]:
            if array.shape[0] % shape[0]:
                raise ModelError(
                    f"{array.shape[0]} rows for {name!r} are no multiple of {shape[0]}"
                )
            parts[name] = np.split(array, max(array.shape[0] // shape[0], 1))
        else:
            parts[name] = [array]
    count = max((len(p) for p in parts.values()), default=0)
    for name, found in parts.items():
        if len(found) not in (1, count):
            raise ModelError(f"{name!r} has {len(found)} samples, another input {count}")
    return [{n: p[i if len(p) > 1 else 0] for n, p in parts.items()} for i in range(count)]


def _check(sample: Sample, inputs: Mapping[str, tuple[Any, ...]]) -> None:
    missing = [name for name in inputs if name not in sample]
    if missing:
        raise ModelError(f"a calibration sample lacks the input {missing[0]!r}")
    for name, shape in inputs.items():
        given = sample[name].shape
        fits = len(given) == len(shape) and all(
            not isinstance(d, int) or d == g for d, g in zip(shape, given, strict=True)
        )
        if not fits:
            wanted = ", ".join(str(d) for d in shape)
            raise ModelError(f"a calibration sample has {given} for {name!r}, not ({wanted})")
