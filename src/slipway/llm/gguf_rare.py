"""Formats of GGUF that no kernel computes with: their numbers become 8 bits as a file is read.

The values of IQ1 to IQ3 come from tables of vectors, which the package gguf has.  A weight is off
by half a step of q8_0, at most 1/254 of the largest in its 32, beside what the file is off by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import MissingPackageError, ModelError, reason_of
from slipway.llm.weights import Array
from slipway.relay.ops.packed.block_formats import encode


@dataclass(frozen=True)
class RareFormat:
    """A format of `size` elements in `bytes`."""

    name: str
    size: int
    bytes: int


RARE = {
    9: RareFormat("Q8_1", 32, 36), 15: RareFormat("Q8_K", 256, 292),
    16: RareFormat("IQ2_XXS", 256, 66), 17: RareFormat("IQ2_XS", 256, 74),
    18: RareFormat("IQ3_XXS", 256, 98), 19: RareFormat("IQ1_S", 256, 50),
    21: RareFormat("IQ3_S", 256, 110), 22: RareFormat("IQ2_S", 256, 82),
    29: RareFormat("IQ1_M", 256, 56),
}  # fmt: skip


def in_eight_bits(kind: int, raw: Array, where: str) -> Array:
    """Return rows (rows, bytes) of a format as rows of q8_0."""
    form = RARE[kind]
    return encode("q8_0", np.asarray(_numbers(form, raw, where), np.float32))


def _numbers(form: RareFormat, raw: Array, where: str) -> Any:
    if form.name.startswith("Q8"):
        blocks = np.asarray(raw).reshape(raw.shape[0], -1, form.bytes)
        # A scale, integers, and what their sums are.
        first, kind = (2, "<f2") if form.name == "Q8_1" else (4, "<f4")
        scale = np.array(blocks[..., :first], order="C").view(kind).astype(np.float32)
        values = np.array(blocks[..., 4 : 4 + form.size], order="C").view(np.int8)
        return (values * scale).reshape(raw.shape[0], -1)
    try:
        from gguf import GGMLQuantizationType, quants
    except ImportError:
        raise MissingPackageError(
            f"{where} is of the type {form.name}, whose tables the package gguf has: "
            "pip install gguf"
        ) from None
    try:
        return quants.dequantize(raw, GGMLQuantizationType[form.name])
    except (KeyError, NotImplementedError) as error:  # an older package
        raise ModelError(
            f"{where} is of the type {form.name}, which the installed package gguf does not "
            f"read: {reason_of(error)}"
        ) from None
