"""A text as one vector: the last layer's rows of its tokens, pooled.

A model's files say how: those of sentence-transformers in ``modules.json`` and ``1_Pooling``, GGUF
in ``pooling_type``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError, ModelError, reason_of

Array = np.ndarray[Any, Any]
POOLINGS = ("mean", "last", "cls")  # of all rows, that of the last token, of the first
_OF_GGUF = {1: "mean", 2: "cls", 3: "last"}
_OF_FILES = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_lasttoken": "last",
    "pooling_mode_cls_token": "cls",
}  # fmt: skip


@dataclass(frozen=True)
class Pooling:
    """How rows become a vector: one of `POOLINGS`, "" for none, and whether its length is one."""

    how: str = ""
    normalised: bool = True

    def __post_init__(self) -> None:
        if self.how not in ("", *POOLINGS):
            raise ArgumentValueError(f"pooling is {self.how!r}: write one of {', '.join(POOLINGS)}")

    def of(self, rows: Array) -> Array:
        """Return the vector of rows (tokens, hidden)."""
        pooled = {"mean": rows.mean(0), "last": rows[-1], "cls": rows[0]}[self.how]
        return unit(pooled) if self.normalised else pooled


def unit(vector: Array) -> Array:
    """Return a vector of length one in the same direction."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def pooling_of_folder(folder: Path) -> Pooling:
    """Return what a folder of sentence-transformers says; "" where it says nothing."""
    kinds = [str(m.get("type", "")).rpartition(".")[2] for m in _read(folder / "modules.json", [])]
    others = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    if others:
        raise ModelError(
            f"{folder}: its vectors are made by {', '.join(others)} as well, which slipway.llm "
            "does not know"
        )
    given: Mapping[str, Any] = _read(folder / "1_Pooling" / "config.json", {})
    found = [how for key, how in _OF_FILES.items() if given.get(key)]
    mode = given.get("pooling_mode")  # as newer files say it
    found += [how for how in POOLINGS if mode in (how, f"{how}token")]
    if given and len(found) != 1:
        raise ModelError(
            f"{folder}/1_Pooling: tokens are pooled in another way than {' or '.join(POOLINGS)}"
        )
    return Pooling(found[0] if found else "", not kinds or "Normalize" in kinds)


def pooling_of_gguf(metadata: Mapping[str, Any]) -> Pooling:
    """Return what a GGUF file says; "" where it says nothing."""
    kind = metadata.get(f"{metadata.get('general.architecture')}.pooling_type")
    return Pooling(_OF_GGUF.get(kind, "") if isinstance(kind, int) else "")


def _read(file: Path, missing: Any) -> Any:
    if not file.exists():
        return missing
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {reason_of(error)}") from None
    if not isinstance(given, type(missing)) or not all(
        isinstance(part, Mapping) for part in (given if isinstance(given, list) else ())
    ):
        raise ModelError(f"{file} is damaged: it holds {type(given).__name__}")
    return given
