"""The names of classes that travel with a TFLite file.

They are text files of a zip archive behind the model, and a flatbuffer of its own in the buffer
"TFLITE_METADATA" says which output each belongs to.  A model runs without them, so what cannot be
read is left out.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from slipway.errors import ModelError
from slipway.frontends.tflite.flatbuffer import Flatbuffer, Table

_MAX_BYTES = 1 << 20  # of one file of labels
_LABELS = (2, 3)  # AssociatedFileType: labels along an axis, labels of values


def labels_of(root: Table, buffers: Sequence[Table], data: bytes) -> Mapping[int, tuple[str, ...]]:
    """Return the labels of outputs by their position; none where the file has none.

    Where no metadata says what a file belongs to, the only text file is taken for the first
    output's.
    """
    files = _texts(data)
    if not files:
        return {}
    try:
        described = _described(root, buffers)
    except ModelError:
        described = None
    if described is None:
        return {0: next(iter(files.values()))} if len(files) == 1 else {}
    return {at: files[name] for at, name in described.items() if name in files}


def _texts(data: bytes) -> dict[str, tuple[str, ...]]:
    """Return the lines of the text files in the archive behind a model."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".txt") and info.file_size <= _MAX_BYTES:
                    text = archive.read(info).decode("utf-8", "replace")
                    found[info.filename] = tuple(line.strip() for line in text.splitlines())
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError, EOFError):
        return {}
    return {name: lines for name, lines in found.items() if any(lines)}


def _described(root: Table, buffers: Sequence[Table]) -> dict[int, str] | None:
    """Return the file of each output's labels, or None without metadata."""
    for entry in root.tables(6):
        if entry.text(0) != "TFLITE_METADATA":
            continue
        number = entry.scalar(1, "uint")
        if number >= len(buffers):
            return None
        found = {}
        for graph in Flatbuffer(bytes(buffers[number].bytes(0))).root(b"M001").tables(3)[:1]:
            for position, tensor in enumerate(graph.tables(3)):
                for file in tensor.tables(6):
                    if file.scalar(2, "byte") in _LABELS and position not in found:
                        found[position] = file.text(0)
        return found
    return None
