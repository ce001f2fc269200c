"""Inputs and outputs of a model: what they are, and arrays of any kind as what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.arguments import array_of
from slipway.errors import ExecutionError, did_you_mean
from slipway.runtime.ndarray import array_of_tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its name in the model, shape and dtype.

    An open dimension is a name or a formula of names; `largest` has its upper bound.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    largest: tuple[int, ...]
    # (low, high) of the values that mean something, where the model quantises what it is given.
    values: tuple[float, float] | None = None
    # What its classes are called, where the model tells; of an input the texts that it takes.
    labels: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Return whether a dimension is told by the arrays of each run."""
        return self.shape != self.largest

    def agrees(self, shape: Sequence[int]) -> bool:
        """Return whether a shape has this rank and its fixed dimensions."""
        return len(shape) == len(self.shape) and all(
            isinstance(own, str) or own == given
            for own, given in zip(self.shape, shape, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def specs_of(described: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    """Return the specs that an artifact's metadata lists."""
    return tuple(
        TensorSpec(
            *(d["name"], tuple(d["shape"]), d["dtype"], tuple(d.get("largest", d["shape"]))),
            _values(d),
            tuple(d.get("labels", ())),
        )
        for d in described
    )


def _values(described: Mapping[str, Any]) -> tuple[float, float] | None:
    if "range" in described:
        low, high = described["range"]
        return float(low), float(high)
    dtype = described["dtype"]
    if described.get("labels") and dtypes.is_integral(dtype):
        return 0, len(described["labels"]) - 1
    # A quantised integer uses all its values, and 8 bits are a picture's or quantised.
    if dtypes.is_integral(dtype) and ("scale" in described or dtype in ("int8", "uint8")):
        return dtypes.int_range(dtype)
    return None


def as_array(value: Any) -> Array:
    """Return what a caller gives as a NumPy array: arrays, tensors of PyTorch, DLPack, lists."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # PyTorch's
        return array_of_tensor(value)
    if hasattr(value, "numpy"):
        return np.asarray(value.numpy())
    if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def positions_of(texts: Array, labels: Sequence[str]) -> Array:
    """Return the position of each text in a list of them, -1 for one that is not there."""
    positions = {label: position for position, label in enumerate(labels)}
    words = (t.decode(errors="replace") if isinstance(t, bytes) else str(t) for t in texts.flat)
    found = [positions.get(word, -1) for word in words]
    return np.array(found, np.int64).reshape(texts.shape)


def _is_row(given: Mapping[str, Any], specs: Sequence[TensorSpec]) -> bool:
    """Return whether a dictionary is the only input itself, and not inputs by name."""
    return len(specs) == 1 and bool(specs[0].labels) and specs[0].name not in given


def _told_by_texts(spec: TensorSpec, value: Any) -> Any:
    """Return positions for texts, a row of numbers for each dictionary, and all else as it is."""
    rows = [value] if isinstance(value, Mapping) else value
    if isinstance(rows, list | tuple) and rows and all(isinstance(r, Mapping) for r in rows):
        made = np.zeros((len(rows), len(spec.labels)), spec.dtype)
        columns = {label: column for column, label in enumerate(spec.labels)}
        for number, row in enumerate(rows):
            for key, amount in row.items():
                if str(key) in columns:  # what a model was not trained with counts for nothing
                    made[number, columns[str(key)]] = amount
        return made
    texts = as_array(value)
    return positions_of(texts, spec.labels) if texts.dtype.kind in "USO" else value


def named_inputs(
    specs: Sequence[TensorSpec],
    given: Sequence[Any],
    named: Mapping[str, Any],
    others: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
) -> dict[str, Array]:
    """Return {input: array} of a call ``m(x, y)``, ``m(a=x)`` or ``m({"a": x})``.

    `others` are the arrays of inputs that are not given, `options` the other keywords of the call.

    Lists and numbers take the dtype of their input.  Raises ExecutionError, with the inputs that
    the model has, for one that is missing, too much, given twice, or unknown.
    """
    first = given[0] if len(given) == 1 else None
    if isinstance(first, Mapping) and not _is_row(first, specs):
        given, named = (), {**first, **named}
    listed = "; ".join(map(str, specs)) or "none"
    if len(given) > len(specs):
        raise ExecutionError(
            f"{len(given)} inputs are given and the model has {len(specs)}: {listed}"
        )
    names = [spec.name for spec in specs]
    for name in named:
        if name not in names:
            besides = f", and there is no such option: {', '.join(options)}" if options else ""
            raise ExecutionError(
                f"the model has no input {name!r}{besides}. Its inputs: {listed}."
                f"{did_you_mean(name, [*names, *options])}"
            )
        if name in names[: len(given)]:
            raise ExecutionError(f"the input {name!r} is given by position and by name")
    values = {**(others or {}), **dict(zip(names, given, strict=False)), **named}
    missing = [str(spec) for spec in specs if spec.name not in values]
    if missing:
        raise ExecutionError(f"inputs are missing: {'; '.join(missing)}")
    arrays = {}
    for spec in specs:
        value = values[spec.name]
        if spec.labels:
            value = _told_by_texts(spec, value)
        if isinstance(value, list | tuple | int | float | bool):
            dtype = spec.dtype if spec.dtype != "bfloat16" else None
            arrays[spec.name] = array_of(spec.name, value, dtype)
        else:
            arrays[spec.name] = as_array(value)
        if arrays[spec.name].dtype.kind not in "biufV":
            raise ExecutionError(
                f"the input {spec.name!r} is {spec.dtype}, and what is given for it is "
                f"{arrays[spec.name].dtype}: give numbers of that type"
            )
    return arrays


def check_sizes(specs: Sequence[TensorSpec], arrays: Mapping[str, Array]) -> None:
    """Raise ExecutionError for inputs that tell different sizes of one open dimension."""
    told: dict[str, tuple[str, int]] = {}
    for spec in specs:
        shape = arrays[spec.name].shape
        for dim, size in zip(spec.shape, shape, strict=False):
            if not isinstance(dim, str) or not dim.isidentifier():
                continue
            other, known = told.setdefault(dim, (spec.name, size))
            if known != size:
                raise ExecutionError(
                    f"the inputs tell different sizes of {dim}: {other!r} {known}, {spec.name!r} "
                    f"{size}; the model takes {'; '.join(map(str, specs))}"
                )


def batches_in(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], arrays: Mapping[str, Array]
) -> int:
    """Return how many runs the arrays are for: 1, or as many as fit them along the first axis.

    Several runs need every input to have as many times the rows it has in the model, and every
    output to have those rows too; where a dimension is open it is one run, whose sizes the executor
    checks.  Raises ExecutionError for any other shape.
    """
    one_run = any(spec.is_open for spec in inputs)
    counts = set()
    for spec in inputs:
        shape = arrays[spec.name].shape
        rows = spec.shape[0] if spec.shape else 0
        if spec.agrees(shape):
            counts.add(1)
        elif (
            not one_run
            and isinstance(rows, int)
            and rows > 0
            and spec.agrees((rows, *shape[1:]))
            and shape[0] % rows == 0
        ):
            counts.add(shape[0] // rows)
        else:
            raise ExecutionError(
                f"the input {spec.name!r} is {str(spec).partition(': ')[2]}, and the array given "
                f"for it has the shape {list(shape)}"
            )
    if len(counts) > 1:
        shapes = "; ".join(f"{s.name}: {list(arrays[s.name].shape)}" for s in inputs)
        raise ExecutionError(
            f"the inputs are for different numbers of runs ({shapes}); the model takes "
            f"{'; '.join(map(str, inputs))}"
        )
    count = counts.pop() if counts else 1
    all_rows = {spec.shape[0] for spec in inputs if spec.shape}
    for spec in outputs if count != 1 else ():
        if not spec.shape or {spec.shape[0]} != all_rows:
            raise ExecutionError(
                f"{count} batches cannot be run one after the other: the output {spec} does not "
                "have the inputs' rows along its first axis. Compile the model for this batch: "
                "shapes={...}"
            )
    return count


def largest_first(values: Array, count: int) -> Array:
    """Return the flat indices of the `count` largest values, equal ones in order, NaN last.

    Of unsigned integers zero, and of signed ones the smallest, is its own negative: they are not
    sorted by that.
    """
    flat = values.reshape(-1)
    if flat.dtype.kind in "biu":
        return (flat.size - 1 - np.argsort(flat[::-1], kind="stable")[::-1])[:count]
    return np.argsort(-flat, kind="stable")[:count]
