"""The weights of a language model, by the names that transformers gives them.

A `Matrix` is an array of floats or rows of quantised blocks.  Sources read tensors when they are
asked for them, so that a model is never in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.relay.ops.packed.block_formats import FORMATS, encode

Array = np.ndarray[Any, Any]
_LAYERS = "model.layers."
# Masks and frequencies that older files keep: the network has its own.
_TABLES = (
    ".inv_freq", ".masked_bias", ".attention.bias", ".attn.bias", ".self_attn.bias",
    "rope_freqs.weight",
)  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """A weight (rows, columns): floats, or the bytes of blocks in `format`."""

    data: Array
    format: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns."""
        rows, width = self.data.shape
        if self.format:
            kind = FORMATS[self.format]
            width = width // kind.bytes * kind.size
        return int(rows), int(width)

    def rows(self, first: int, last: int) -> Matrix:
        """Return some rows."""
        return Matrix(self.data[first:last], self.format)


class Weights:
    """Tensors by name, from a function that reads one."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Matrix | Array]) -> None:
        self.names, self._read = frozenset(names), read
        self._taken: set[str] = set()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Weights:
        """Return the weights in a dictionary of arrays (a state_dict, say)."""
        return cls(list(given), lambda name: np.asarray(given[name], np.float32))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def renamed(self, parts: Sequence[tuple[str, str]]) -> Weights:
        """Return the weights by other names: of each pair the first stands for the second."""
        own = {}
        for theirs in self.names:
            name = theirs
            for here, there in parts:
                name = name.replace(there, here)
            own[name] = theirs
        return Weights(list(own), lambda name: self._read(own[name]))

    def of_whole_model(self) -> Weights:
        """Return the weights by the names that they have in a model with a head of logits.

        Files of the layers alone, as of models that make vectors, leave "model." out.
        """
        if "embed_tokens.weight" not in self.names:
            return self
        return Weights([f"model.{name}" for name in self.names],
                       lambda name: self._read(name.removeprefix("model.")))  # fmt: skip

    def in_blocks(self) -> bool:
        """Return whether a matrix of the first layer is in blocks."""
        first = (self.read(name) for name in self.names if "layers.0." in name)
        return any(isinstance(found, Matrix) and found.format for found in first)

    def vector(self, name: str, size: int) -> Array:
        """Return a vector of `size` floats; of one, it may be a number in the files."""
        found = self.read(name)
        if size == 1 and not isinstance(found, Matrix) and found.shape == ():
            found = found.reshape(1)
        if isinstance(found, Matrix) or found.shape != (size,):
            shape = found.data.shape if isinstance(found, Matrix) else found.shape
            raise ModelError(f"the weight {name!r} has the shape {shape}, not ({size},)")
        return np.asarray(found, np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """Return a matrix of that shape."""
        found = self.read(name)
        made = found if isinstance(found, Matrix) else Matrix(found)
        if made.data.ndim != 2 or made.shape != (rows, columns):
            shape = made.shape if made.data.ndim == 2 else made.data.shape
            raise ModelError(
                f"the weight {name!r} has the shape {shape}, not {(rows, columns)}, which the "
                "model's configuration says"
            )
        return made

    def stack(self, name: str, count: int, rows: int, columns: int) -> Matrix:
        """Return `count` matrices of that shape as one, below each other."""
        found = self.read(name)
        if isinstance(found, Matrix):
            made, shape = found, found.shape
        else:
            made, shape = Matrix(found.reshape(-1, found.shape[-1])), found.shape
        if shape not in ((count, rows, columns), (count * rows, columns), (count * columns,)):
            raise ModelError(
                f"the weight {name!r} has the shape {shape}, not {(count, rows, columns)}, which "
                "the model's configuration says"
            )
        return made

    def read(self, name: str) -> Matrix | Array:
        """Return a tensor as the files have it.  Raises ModelError where there is none."""
        if name not in self.names:
            raise ModelError(f"the model's files have no weight {name!r}")
        self._taken.add(name)
        return self._read(name)

    def check_all_read(self, family: str) -> None:
        """Raise ModelError where a layer has weights that the network of `family` did not ask for.

        What computes with them is missing from it, so that its logits would be wrong.
        """
        layers = {n.split(".")[2] for n in self._taken if n.startswith(_LAYERS)}
        left = sorted(
            name
            for name in self.names - self._taken
            if name.startswith(_LAYERS)
            and name.split(".")[2] in layers  # others predict further tokens
            and not name.endswith(_TABLES)
        )
        if left:
            shown = ", ".join(repr(name) for name in left[:3])
            raise ModelError(
                f"the layers have {len(left)} weights that slipway.llm does not know in a model of "
                f"the family {family!r}: {shown}"
            )


def quantised(matrix: Matrix, name: str) -> Matrix:
    """Return floats in blocks of the format `name`, where rows are whole blocks."""
    if not name or matrix.format or matrix.shape[1] % FORMATS[name].size:
        return matrix
    return Matrix(encode(name, matrix.data), name)


def joined(parts: Sequence[Matrix]) -> Matrix | None:
    """Return the rows of matrices one after the other; None where their formats differ."""
    if len({part.format for part in parts}) > 1:
        return None
    return Matrix(np.concatenate([part.data for part in parts]), parts[0].format)
