"""Weights that an ONNX model keeps in other files: checked before a byte of them is read.

They lie in regular files of the model's own folder, without links that lead elsewhere, and each
tensor's part of its file has the bytes that its shape and type say.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from slipway import dtypes
from slipway.errors import ModelError
from slipway.runtime.arrays.array_file import MIN_BYTES, Array, range_of

EXTERNAL = 1  # TensorProto.DataLocation


def check_external_data(proto: Any, folder: Path, dtype_of: dict[int, str]) -> None:
    """Raise ModelError for a tensor whose data is elsewhere, or more or less than it takes."""
    for tensor in _tensors(proto):
        if tensor.data_location == EXTERNAL:
            _check(tensor, folder, dtype_of)


def external_bytes(tensor: Any, folder: Path, dtype_of: dict[int, str]) -> Array | None:
    """Return the large data of a tensor that keeps it elsewhere; None for all others.

    Raises ModelError as `check_external_data` does.
    """
    if tensor.data_location != EXTERNAL:
        return None
    path, offset, length = _check(tensor, folder, dtype_of)
    if length < MIN_BYTES:
        return None
    with path.open("rb") as file:
        return range_of(file, offset, length)


def _tensors(proto: Any) -> Iterator[Any]:
    graphs = [proto.graph]
    nodes = [n for function in proto.functions for n in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes += graph.node
            continue
        for attribute in nodes.pop().attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            graphs += attribute.graphs


def _check(tensor: Any, folder: Path, dtype_of: dict[int, str]) -> tuple[Path, int, int]:
    """Return the file, the first byte and the number of bytes of a tensor's data."""
    name = tensor.name or "a constant"

    def refused(why: str) -> ModelError:
        return ModelError(
            f"the model keeps the weight {name!r} in other files that cannot be read: {why}"
        )

    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = Path(location)
    if not location or "\0" in location or path.is_absolute():
        raise refused(f"{location[:200]!r} is no place inside the model's folder")
    try:
        inside = (folder / path).resolve().is_relative_to(folder.resolve())
        regular = inside and (folder / path).is_file()
        size = (folder / path).stat().st_size if regular else 0
    except (OSError, RuntimeError) as error:
        raise refused(f"{location[:200]!r}: {getattr(error, 'strerror', None) or error}") from None
    if not inside:
        raise refused(f"{location[:200]!r} leads out of the model's folder")
    if not regular:
        raise refused(f"{location[:200]!r} is no file beside the model")

    def number(key: str, standard: int) -> int:
        text = entries.get(key, "").strip() or str(standard)
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise refused(f"its {key} is {text[:40]!r}, not a number of bytes")
        return int(text)

    offset = number("offset", 0)
    dtype = dtype_of.get(tensor.data_type)
    known = dtype is not None and all(d >= 0 for d in tensor.dims)
    wanted = -(-prod(tensor.dims) * dtypes.bits_of(dtype) // 8) if dtype and known else 0
    rest = max(size - offset, 0)
    length = number("length", min(rest, wanted) if known else rest)
    if "length" not in entries:  # the onnx package would read all that is left of the file
        entry = tensor.external_data.add()
        entry.key, entry.value = "length", str(length)
    if offset + length > size:
        raise refused(
            f"it begins at byte {offset} of {location[:200]!r} and takes {length}, but the file "
            f"has {size} bytes"
        )
    if not known:
        return folder / path, offset, length  # refused with its own words where it is read
    if length != wanted:
        raise ModelError(
            f"the tensor {name!r} should hold {prod(tensor.dims)} {dtype} elements for shape "
            f"{tuple(tensor.dims)}, but {location[:200]!r} has {length} bytes of data for it"
        )
    return folder / path, offset, length
