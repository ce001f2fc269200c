"""A model file without what it has learned: the same graph, with made-up values for its weights.

Most defects of a compiler show themselves on it, and it can be given away. Constants of up to eight
values stay: shapes, axes, paddings and scales are among them, without which no graph is the same.
Others repeat a few values, none of them zero throughout: of zeros a compiler would make less.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.onnx.reader import onnx_package
from slipway.frontends.tflite.flatbuffer import Flatbuffer

KEPT_VALUES = 8
_PERIOD = 251
LARGEST_BYTES = 1 << 28
# TensorType of TFLite's schema -> dtype.
_DTYPES = {0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16",
           9: "int8", 10: "float64"}  # fmt: skip
_VERSION_OF_RUNTIME = "min_runtime_version"
_FOUR_BITS = (21, 22, 23)  # UINT4, INT4, FLOAT4E2M1 of ONNX: two values in a byte


def without_weights(path: Path) -> bytes | None:
    """Return a model file with made-up weights; None for one whose parts are not known.

    Raises ModelError for a file that cannot be read, or is too large to be held.
    """
    if path.suffix not in (".onnx", ".tflite"):
        return None
    if path.stat().st_size > LARGEST_BYTES:
        raise ModelError(f"it has more than {LARGEST_BYTES >> 20} MiB")
    return _onnx(path) if path.suffix == ".onnx" else _tflite(path.read_bytes())


def _onnx(path: Path) -> bytes:
    onnx = onnx_package()
    try:
        model = onnx.ModelProto.FromString(path.read_bytes())
    except Exception as error:  # of protobuf, whose versions have it in several places
        raise ModelError(f"it is no ONNX file: {error}") from error
    if any(prod(t.dims) > LARGEST_BYTES for t in _constants(model, onnx)):
        raise ModelError(f"it has a constant of more than {LARGEST_BYTES >> 20} Mi values")
    del model.metadata_props[:]
    model.doc_string = ""
    for graph in _graphs(model, onnx):
        graph.doc_string = ""
        for node in graph.node:
            node.doc_string = ""
            for attribute in node.attribute:
                _empty_attribute(attribute)
    for tensor in _constants(model, onnx):
        tensor.doc_string = ""
        if prod(tensor.dims) > KEPT_VALUES:
            _empty_tensor(tensor, onnx)
    return bytes(model.SerializeToString())


def _graphs(model: Any, onnx: Any) -> Iterator[Any]:
    """Yield the graph, the functions, and what their nodes have inside."""
    pending = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    pending.append(attribute.g)
                pending.extend(attribute.graphs)


def _constants(model: Any, onnx: Any) -> Iterator[Any]:
    for graph in _graphs(model, onnx):
        yield from getattr(graph, "initializer", ())
        yield from (sparse.values for sparse in getattr(graph, "sparse_initializer", ()))
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield attribute.t
                elif attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
                    yield attribute.sparse_tensor.values
                yield from attribute.tensors


def _empty_attribute(attribute: Any) -> None:
    """Take lists of numbers and texts out: thresholds of trees, coefficients, words, labels."""
    attribute.doc_string = ""
    if len(attribute.floats) > KEPT_VALUES:
        attribute.floats[:] = _made_up(len(attribute.floats), np.dtype("float32")).tolist()
    if len(attribute.strings) > KEPT_VALUES:
        attribute.strings[:] = [b"%d" % i for i in range(len(attribute.strings))]


def _empty_tensor(tensor: Any, onnx: Any) -> None:
    count, kind = prod(tensor.dims), tensor.data_type
    fields = [
        field.name
        for field, _ in tensor.ListFields()
        if field.name.endswith("_data") or field.name in ("external_data", "data_location")
    ]
    for name in fields:
        tensor.ClearField(name)
    if kind == onnx.TensorProto.STRING:
        tensor.string_data.extend([b""] * count)
        return
    if kind in _FOUR_BITS:
        tensor.raw_data = b"\x12" * -(-count // 2)
    else:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        tensor.raw_data = _made_up(count, dtype).tobytes()


def _made_up(count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return values that weights of a type could have; wide integers may be indices: 0 and 1."""
    few = (np.arange(_PERIOD) * 89 % _PERIOD) - _PERIOD // 2
    if dtype.kind in "biu":
        few = few if dtype.itemsize <= 2 and dtype.kind != "b" else few % 2
        few = few % 128 if dtype.kind == "u" else few
        return np.resize(few, count).astype(dtype)
    return (np.resize(few, count) / np.float32(8 * _PERIOD)).astype(dtype)


def _tflite(data: bytes) -> bytes:
    held = bytearray(_without_archive(data))
    root = Flatbuffer(held).root(b"TFL3")
    buffers = root.tables(4)
    kept, dtypes = {0}, {}
    for table in root.tables(6):
        if table.text(0) == _VERSION_OF_RUNTIME:
            kept.add(table.scalar(1, "uint"))
    for graph in root.tables(2):
        for tensor in graph.tables(0):
            shape = tensor.numbers(0, "int")
            buffer = tensor.scalar(2, "uint")
            if prod(int(d) for d in (shape if shape is not None else ())) <= KEPT_VALUES:
                kept.add(buffer)
            dtypes[buffer] = _DTYPES.get(tensor.scalar(1, "byte"))
    for number, table in enumerate(buffers):
        if number not in kept:
            content, dtype = table.bytes(0), dtypes.get(number)
            if dtype is None or len(content) % np.dtype(dtype).itemsize:
                content[:] = bytes(len(content))  # labels and the like
            else:
                count = len(content) // np.dtype(dtype).itemsize
                content[:] = _made_up(count, np.dtype(dtype)).tobytes()
    return bytes(held)


def _without_archive(data: bytes) -> bytes:
    """Return the file without the archive of labels and words that may be attached to it."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        starts = [member.header_offset for member in archive.infolist()]
    return data[: min(starts)] if starts else data
