"""GGUF files: metadata, and tensors where they lie in the file.

Own code, as reading one takes a page, and a damaged file must end in an error that says where:
every count is held against the bytes that are left before anything is made of it.  Little-endian
files of the versions 2 and 3.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError, reason_of
from slipway.llm.gguf_rare import RARE, in_eight_bits
from slipway.llm.weights import Array, Matrix
from slipway.relay.ops.packed.block_formats import FORMATS

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_DEEPEST = 4  # arrays in arrays
_MOST_AXES = 4
_PLAIN = {0: "<f4", 1: "<f2", 28: "<f8", 30: "<u2"}  # 30 is bfloat16
BLOCKS = {
    2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k",
    13: "q5_k", 14: "q6_k", 20: "iq4_nl", 23: "iq4_xs", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4",
    40: "nvfp4",
}  # fmt: skip
UNREAD = {41: "Q1_0"}


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies in the file, its shape (rows first) and type."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int
    size: int


class GGUFFile:
    """A GGUF file: `metadata` by key, `tensors` by name.

    Raises ModelError for what is no such file, or is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            size = self.path.stat().st_size
            self._bytes: Array = np.memmap(self.path, np.uint8, "r") if size else np.zeros(0, "u1")
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.path} cannot be read: {reason_of(error)}") from None
        if not size:
            raise ModelError(f"{self.path} is empty. Download or write it again.")
        self._at = 0
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, TensorInfo] = {}
        if bytes(self._take(4, "the first bytes")) != b"GGUF":
            raise ModelError(
                f"{self.path} is no GGUF file: it does not begin with GGUF. Language models are "
                "read from .gguf files and transformers' folders; `slipway compile` reads others"
            )
        version = self._scalar("I", "the version")
        if version not in (2, 3):
            raise ModelError(f"{self.path} is GGUF version {version}; 2 and 3 are read")
        tensors, pairs = self._scalar("Q", "counts"), self._scalar("Q", "counts")
        self._bounded(pairs, 13, "metadata")
        self._bounded(tensors, 24, "tensors")
        for _ in range(pairs):
            key = self._string("a key")
            self.metadata[key] = self._value(self._scalar("I", key), key)
        found = [self._tensor() for _ in range(tensors)]
        align = self.metadata.get("general.alignment", 32)
        if not isinstance(align, int) or align < 1 or align & (align - 1):
            raise ModelError(f"{self.path}: the alignment {align!r} is no power of two")
        start = -(-self._at // align) * align
        for info in found:
            if start + info.offset + info.size > len(self._bytes):
                self._fail(f"the tensor {info.name!r} of {info.size} bytes", info.offset + start)
            absolute = start + info.offset
            self.tensors[info.name] = TensorInfo(
                info.name, info.shape, info.kind, absolute, info.size
            )

    def read(self, name: str) -> Matrix | Array:
        """Return a tensor: floats as float32, blocks as they are."""
        info = self.tensors[name]
        raw = self._bytes[info.offset : info.offset + info.size]
        if info.kind in BLOCKS:
            return Matrix(raw.reshape(math.prod(info.shape[:-1]), -1), BLOCKS[info.kind])
        if info.kind in RARE:
            rows = raw.reshape(math.prod(info.shape[:-1]), -1)
            return Matrix(in_eight_bits(info.kind, rows, f"{self.path}: {name!r}"), "q8_0")
        values = raw.view(_PLAIN[info.kind])
        if info.kind == 30:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(values.astype(np.float32)).reshape(info.shape)

    def _fail(self, what: str, at: int) -> None:
        raise ModelError(
            f"{self.path} is damaged or cut short: {what} at byte {at} does not fit its "
            f"{len(self._bytes)} bytes. Download or write it again."
        )

    def _bounded(self, count: int, each: int, what: str) -> None:
        if count * each > len(self._bytes) - self._at:
            self._fail(f"{count} {what}", self._at)

    def _take(self, size: int, what: str) -> Array:
        if size > len(self._bytes) - self._at:
            self._fail(what, self._at)
        self._at += size
        return self._bytes[self._at - size : self._at]

    def _scalar(self, kind: str, what: str) -> Any:
        size = struct.calcsize("<" + kind)
        return struct.unpack("<" + kind, self._take(size, what).tobytes())[0]

    def _string(self, what: str) -> str:
        size = self._scalar("Q", what)
        return self._take(size, what).tobytes().decode("utf-8", "replace")

    def _value(self, kind: int, key: str, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self._scalar(_SCALARS[kind], key)
        if kind == _STRING:
            return self._string(key)
        if kind != _ARRAY or depth > _DEEPEST:
            raise ModelError(f"{self.path} is damaged: {key!r} has a value of the kind {kind}")
        inner, count = self._scalar("I", key), self._scalar("Q", key)
        if inner in _SCALARS:
            size = struct.calcsize("<" + _SCALARS[inner])
            self._bounded(count, size, f"elements of {key!r}")
            code = "u1" if inner == 7 else f"<{_SCALARS[inner]}"
            return np.frombuffer(self._take(count * size, key).tobytes(), code).tolist()
        self._bounded(count, 8, f"elements of {key!r}")
        return [self._value(inner, key, depth + 1) for _ in range(count)]

    def _tensor(self) -> TensorInfo:
        name = self._string("a tensor's name")
        axes = self._scalar("I", name)
        if not 1 <= axes <= _MOST_AXES:
            raise ModelError(f"{self.path} is damaged: the tensor {name!r} has {axes} axes")
        shape = tuple(self._scalar("Q", name) for _ in range(axes))[::-1]
        kind, offset = self._scalar("I", name), self._scalar("Q", name)
        count = math.prod(shape)
        if kind in _PLAIN:
            return TensorInfo(name, shape, kind, offset, count * np.dtype(_PLAIN[kind]).itemsize)
        if kind not in BLOCKS and kind not in RARE:
            names = [n.upper() for n in BLOCKS.values()] + [form.name for form in RARE.values()]
            raise ModelError(
                f"{self.path}: the tensor {name!r} is of the type {UNREAD.get(kind, kind)}; known "
                "are F32, F16, BF16, " + ", ".join(names)
            )
        form = FORMATS[BLOCKS[kind]] if kind in BLOCKS else RARE[kind]
        if shape[-1] % form.size:
            raise ModelError(f"{self.path}: rows of {name!r} are no whole blocks: {shape}")
        return TensorInfo(name, shape, kind, offset, count // form.size * form.bytes)
