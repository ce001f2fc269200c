"""A model beside its reference, and beside labels, over a whole set of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slipway.deploy.model import Model
from slipway.deploy.reference import Reference
from slipway.deploy.tensors import Array, TensorSpec
from slipway.errors import ArgumentValueError, ExecutionError, FileError, did_you_mean
from slipway.runtime.arrays.numpy_file import LABELS, read_numpy_file


class SamplesError(ExecutionError, ArgumentValueError):
    """Samples or labels that do not fit the model, or each other."""


@dataclass(frozen=True)
class Samples:
    """Inputs of a model, as many as there were, and the right class of each where it is known."""

    inputs: Mapping[str, Array]
    labels: Array | None = None


@dataclass
class OutputQuality:
    """One output over all samples: powers of signal and error, and what follows from them."""

    name: str
    largest_error: float = 0.0
    signal: float = 0.0
    noise: float = 0.0
    product: float = 0.0
    own_power: float = 0.0
    values: int = 0
    not_finite: int = 0  # of them, on both sides alike: these have no error

    def add(self, got: Array, wanted: Array) -> None:
        """Take one more batch."""
        one, two = got.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
        good = np.isfinite(one) & np.isfinite(two)
        same = (one == two) | (np.isnan(one) & np.isnan(two))
        if not np.all(good | same):
            self.largest_error = float("inf")
        self.values += good.size
        self.not_finite += int(np.count_nonzero(same & ~good))
        one, two = one[good], two[good]
        if one.size:
            self.largest_error = max(self.largest_error, float(np.abs(one - two).max()))
        self.signal += float(two @ two)
        self.noise += float(np.square(one - two).sum())
        self.product += float(one @ two)
        self.own_power += float(one @ one)

    @property
    def is_broken(self) -> bool:
        """Whether a value is infinite or no number where the reference's is another."""
        return self.largest_error == float("inf")

    @property
    def is_unknown(self) -> bool:
        """Whether no value is finite, so that nothing was compared."""
        return 0 < self.values == self.not_finite

    @property
    def sqnr_db(self) -> float:
        """The ratio of the reference's power to the error's, in decibels; NaN of nothing."""
        if self.is_broken:
            return float("-inf")
        if self.is_unknown:
            return float("nan")
        if self.noise == 0:
            return float("inf")
        return 10 * float(np.log10(max(self.signal, 1e-300) / self.noise))

    @property
    def cosine(self) -> float:
        """That of the angle between all values and the reference's; NaN of nothing."""
        if self.is_broken:
            return 0.0
        if self.is_unknown:
            return float("nan")
        norm = float(np.sqrt(self.signal) * np.sqrt(self.own_power))
        return self.product / norm if norm else 1.0


@dataclass
class Validation:
    """What `validate` found; shares are of all samples, None where nothing is known."""

    samples: int = 0
    reference: str = ""
    outputs: list[OutputQuality] = field(default_factory=list)
    top1: float | None = None
    reference_top1: float | None = None
    same_top1: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; JSON has no infinity or NaN, which become texts."""
        found = asdict(self)
        found["outputs"] = [
            {
                "name": o.name,
                **{
                    name: value if np.isfinite(value) else str(value)
                    for name in ("sqnr_db", "cosine", "largest_error")
                    for value in (getattr(o, name),)
                },
                "values": o.values,
                "not_finite": o.not_finite,
            }
            for o in self.outputs
        ]
        return found


def validate(model: Model, samples: Samples, reference: Reference | None = None) -> Validation:
    """Run `model` where it is on all samples, beside a reference's (name, function).

    The classes are those of the first output that has such (`classes_of`), a row each.  Raises
    SamplesError for samples that do not fit the model, and for labels where none has, and
    ExecutionError for a reference of other outputs.
    """
    labels = None if samples.labels is None else whole_labels(samples.labels)
    found = Validation(reference=reference[0] if reference else "")
    classes: list[int] = []
    theirs: list[int] = []
    chosen: int | None = None
    for arrays, rows in batches(model.inputs, samples.inputs):
        got = list(model.run(arrays).values())
        whole = max((array.shape[0] for array in arrays.values() if array.ndim), default=1)
        if not found.samples:
            chosen = next(
                (i for i, o in enumerate(got) if classes_of(o, rows, whole) is not None), None
            )
            if labels is not None:
                check_labels(labels, model, None if chosen is None else got[chosen], whole)
        own = None if chosen is None else classes_of(got[chosen], rows, whole)
        classes += own or []
        found.samples += len(own) if own else rows
        if reference is None:
            continue
        wanted = [np.asarray(value) for value in reference[1](arrays)]
        if len(wanted) != len(got):
            raise ExecutionError(
                f"the model has {len(got)} outputs, and the reference ({found.reference}) "
                f"{len(wanted)}: it is no reference for this model"
            )
        if not found.outputs:
            found.outputs = [OutputQuality(spec.name) for spec in model.outputs]
        for quality, one, other in zip(found.outputs, got, wanted, strict=True):
            if one.shape != other.shape:
                raise ExecutionError(
                    f"the output {quality.name!r} is {list(one.shape)}, and that of the reference "
                    f"({found.reference}) {list(other.shape)}: it is no reference for this model"
                )
            quality.add(one, other)
        if chosen is not None:
            theirs += classes_of(wanted[chosen], rows, whole) or []
    if theirs:
        found.same_top1 = share(classes, theirs)
    if not found.samples:
        raise SamplesError("the dataset has no samples: its arrays have no rows")
    if labels is not None:
        if len(labels) != len(classes):
            raise SamplesError(
                f"there are {len(labels)} labels for {len(classes)} rows of "
                f"{model.outputs[chosen or 0]}: give the number of its class for each sample"
            )
        found.top1 = share(classes, labels)
        found.reference_top1 = share(theirs, labels) if theirs else None
    return found


def whole_labels(labels: Array) -> Array:
    """Return the labels as whole numbers, one after the other.

    Raises SamplesError for names of classes, which no output has, and for other numbers.
    """
    flat = labels.ravel()
    is_number = flat.dtype.kind in "biu" or (
        flat.dtype.kind == "f" and bool(np.all(flat == np.round(flat)))
    )
    if not is_number or (flat.size and flat.min() < 0):
        raise SamplesError(
            f"`{LABELS}` are the numbers of classes, whole ones from 0, and the dataset has "
            f"{flat.dtype} ({', '.join(map(str, flat[:3]))}, ...)"
        )
    return flat


def check_labels(labels: Array, model: Model, output: Array | None, whole: int) -> None:
    """Raise SamplesError where no output has classes, or not those that labels name."""
    if output is None:
        raise SamplesError(
            "labels are compared with the largest of a sample's scores, or with a whole "
            f"number, and no output has such: {'; '.join(map(str, model.outputs))}. Leave "
            f"`{LABELS}` out of the dataset"
        )
    count = _rows_of_scores(output, whole).shape[1]
    if count > 1 and labels.size and labels.max() >= count:
        raise SamplesError(
            f"there are labels up to {labels.max()}, and scores of the classes 0 to {count - 1}"
        )


def share(some: Sequence[Any] | Array, others: Sequence[Any] | Array) -> float:
    """Return which part of two lists is equal."""
    return float(np.mean(np.asarray(some) == np.asarray(others)))


def classes_of(output: Array, rows: int, whole: int) -> list[int] | None:
    """Return the class of each of the first `rows` of `whole` rows; None where there is none.

    It is the index of the largest of a row's several scores, or its only number where that is a
    whole one (of argmax).  Maps and boxes have several dimensions of scores, a regression one real.
    Scores that are no numbers have the class -1, which no label names.
    """
    if 0 in output.shape or len([extent for extent in output.shape[1:] if extent != 1]) > 1:
        return None
    flat = _rows_of_scores(output, whole)[:rows]
    if flat.shape[1] > 1:
        has_class = ~np.isnan(flat.astype(np.float64)).any(axis=1)
        return [int(index) for index in np.where(has_class, flat.argmax(axis=1), -1)]
    return [int(value) for value in flat[:, 0]] if output.dtype.kind in "biu" else None


def _rows_of_scores(output: Array, whole: int) -> Array:
    if output.ndim >= 2:
        return output.reshape(output.shape[0], -1)
    # Scores of the only sample, or a number of each.
    return output.reshape((-1, 1) if output.size in (1, whole) else (1, -1))


def batches(
    specs: Sequence[TensorSpec], given: Mapping[str, Array]
) -> Iterator[tuple[dict[str, Array], int]]:
    """Yield (inputs of one run, how many of its rows are samples).

    An array has one more axis than its input, in front, or more rows; the last run is padded
    with the last sample.
    """
    for spec in specs:
        if spec.name not in given:
            raise SamplesError(
                f"the dataset has no array {spec.name!r}; it has {', '.join(given) or 'none'}, and "
                f"the model's inputs are {'; '.join(map(str, specs))}."
                f"{did_you_mean(spec.name, list(given))}"
            )
    counts = {spec.name: _count(spec, given[spec.name]) for spec in specs}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise SamplesError(f"the arrays of the dataset hold different numbers of runs: {listed}")
    for number in range(next(iter(counts.values()))):
        arrays, rows = {}, 1
        for spec in specs:
            arrays[spec.name], rows = _run(spec, given[spec.name], number)
        yield arrays, rows


def _count(spec: TensorSpec, array: Array) -> int:
    if array.dtype != np.dtype(spec.dtype):
        raise SamplesError(
            f"the input {spec} gets {array.dtype} of the dataset: convert it before it is saved"
        )
    if array.ndim > 0 and spec.agrees(array.shape[1:]):
        return len(array)
    rows = _rows(spec)
    if rows and spec.agrees((spec.largest[0], *array.shape[1:])):
        return -(-len(array) // rows)
    raise SamplesError(
        f"samples for {spec} have an axis more in front, or more rows; the dataset's array is "
        f"{list(array.shape)}"
    )


def _rows(spec: TensorSpec) -> int:
    """Return how many rows a run has: as many as the model, or one where it leaves that open."""
    rows = spec.shape[0] if spec.shape else 0
    return rows if isinstance(rows, int) else 1


def _run(spec: TensorSpec, array: Array, number: int) -> tuple[Array, int]:
    rows = _rows(spec)
    if array.ndim > len(spec.shape):
        one = np.asarray(array[number], order="C")
        return one, len(one) if one.ndim else 1
    part = array[number * rows : (number + 1) * rows]
    padded = np.concatenate([part, np.repeat(part[-1:], rows - len(part), axis=0)])
    return np.asarray(padded, order="C"), len(part)


@dataclass(frozen=True)
class Dataset:
    """The files of samples at a path, read; a model's inputs say which arrays are which."""

    path: Path
    files: Mapping[Path, Array | Mapping[str, Array]]

    @property
    def may_have_labels(self) -> bool:
        """Whether there is an array called `labels`; a model may have such an input, too."""
        return any(isinstance(held, Mapping) and LABELS in held for held in self.files.values())

    def samples(self, specs: Sequence[TensorSpec]) -> Samples:
        """Return the samples of a model with these inputs: the files joined, row after row."""
        parts = {file: _named(file, held, specs) for file, held in self.files.items()}
        first = next(iter(parts))
        names = set(parts[first])
        for file, part in parts.items():
            if set(part) != names:
                raise SamplesError(
                    f"{file} holds {', '.join(sorted(part))}, and {first} "
                    f"{', '.join(sorted(names))}"
                )
        try:
            joined = {
                name: np.concatenate([np.atleast_1d(p[name]) for p in parts.values()])
                for name in names
            }
        except ValueError as error:
            raise FileError(f"{self.path}: its files cannot be joined: {error}") from None
        labels = None if LABELS in {s.name for s in specs} else joined.pop(LABELS, None)
        return Samples(joined, labels)


def read_dataset(path: Path) -> Dataset:
    """Return what a .npz (an array for each input, `labels`), a .npy, or a folder of them holds.

    The files of a folder come in the order of their names.
    """
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in (".npz", ".npy"))
    if not files:
        raise FileError(f"{path}: there is no .npz and no .npy in this folder")
    return Dataset(path, {file: _stored(file) for file in files})


def _stored(file: Path) -> Array | dict[str, Array]:
    try:
        return read_numpy_file(file)
    except ArgumentValueError as error:
        raise FileError(f"{file}: this is no .npz and no .npy file ({error})") from None


def _named(
    file: Path, held: Array | Mapping[str, Array], specs: Sequence[TensorSpec]
) -> Mapping[str, Array]:
    if not isinstance(held, np.ndarray):
        return held
    if len(specs) != 1:
        raise SamplesError(
            f"{file}: a .npy holds one array, and the model has {len(specs)} inputs; write a npz: "
            "numpy.savez('samples.npz', " + ", ".join(f"{s.name}=..." for s in specs) + ")"
        )
    return {specs[0].name: held}
