"""From the bytes of a TFLite file to a checked description of its graph.

Sizes are compared before anything is allocated: a constant tensor's buffer must hold exactly the
bytes that its shape and dtype say.
"""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.tflite import schema
from slipway.frontends.tflite.c_array import file_bytes
from slipway.frontends.tflite.file_model import (
    Array,
    FileModel,
    FileTensor,
    Operator,
    Quantization,
    SubGraph,
)
from slipway.frontends.tflite.flatbuffer import Flatbuffer, Table
from slipway.frontends.tflite.labels import labels_of
from slipway.frontends.tflite.signatures import signatures_of
from slipway.frontends.tflite.sparse import dense_array

MAX_RANK = 8
MAX_ELEMENTS = 1 << 40


def load_model(model: Any) -> FileModel:
    """Read a model: bytes, a path (`file_bytes`), or a ``tflite.Model`` of the `tflite` package.

    Raises ModelError for what is no TFLite file, and for one that contradicts itself.
    """
    if isinstance(model, FileModel):
        return model
    if isinstance(model, (str, os.PathLike)):
        try:
            data = file_bytes(Path(model))
        except OSError as error:
            raise ModelError(
                f"cannot read the TFLite file {os.fspath(model)!r}: {error.strerror}"
            ) from None
        return parse(data)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return parse(bytes(model))
    held = getattr(getattr(model, "_tab", None), "Bytes", None)
    if held is None:
        raise ModelError(
            f"from_tflite takes bytes, a path or a tflite.Model, got {type(model).__name__}"
        )
    return parse(bytes(held))


def parse(data: bytes) -> FileModel:
    """Return the description of the file `data`."""
    root = Flatbuffer(data).root(b"TFL3")
    version = root.scalar(0, "uint")
    if version != 3:
        raise ModelError(f"the TFLite file has schema version {version}; Slipway reads version 3")
    codes = [_operator_code(code) for code in root.tables(1)]
    buffers = root.tables(4)
    graphs = tuple(_subgraph(graph, codes, buffers, data) for graph in root.tables(2))
    if not graphs:
        raise ModelError("the TFLite file holds no subgraph")
    return FileModel(
        graphs, root.text(3), labels_of(root, buffers, data), signatures_of(root, graphs)
    )


def _operator_code(code: Table) -> tuple[str, int]:
    number = max(code.scalar(0, "byte"), code.scalar(3, "int"))
    if number == schema.CUSTOM:
        return f"CUSTOM:{code.text(1)}", code.scalar(2, "int", 1)
    if not 0 <= number < len(schema.OPERATORS):
        return f"BUILTIN:{number}", code.scalar(2, "int", 1)
    return schema.OPERATORS[number], code.scalar(2, "int", 1)


def _subgraph(
    graph: Table, codes: list[tuple[str, int]], buffers: list[Table], data: bytes
) -> SubGraph:
    tensors = tuple(_tensor(i, tensor, buffers, data) for i, tensor in enumerate(graph.tables(0)))

    def numbers(table: Table, column: int, what: str, optional: bool = False) -> tuple[int, ...]:
        found = table.numbers(column, "int")
        listed = tuple(int(v) for v in found) if found is not None else ()
        for v in listed:
            if not (0 <= v < len(tensors) or (optional and v == -1)):
                raise ModelError(
                    f"the TFLite file is damaged: {what} refers to tensor {v}, but there are "
                    f"{len(tensors)} tensors"
                )
        return listed

    operators = []
    for at, operator in enumerate(graph.tables(3)):
        code = operator.scalar(0, "uint")
        if code >= len(codes):
            raise ModelError(
                f"the TFLite file is damaged: operator {at} has code {code}, but the file lists "
                f"{len(codes)} codes"
            )
        kind, version = codes[code]
        what = f"operator {at} ({kind})"
        operators.append(
            Operator(
                kind,
                version,
                numbers(operator, 1, what, optional=True),
                numbers(operator, 2, what),
                numbers(operator, 8, what, optional=True),
                _options(operator),
                bytes(operator.bytes(5)),
            )
        )
    return SubGraph(
        graph.text(4),
        tensors,
        numbers(graph, 1, "the list of inputs"),
        numbers(graph, 2, "the list of outputs"),
        tuple(operators),
    )


def _options(operator: Table) -> dict[str, Any]:
    """Decode the operator's option table; one that is absent gives every default."""
    number = operator.scalar(3, "ubyte")
    table = operator.table(4) if number else None
    found: dict[str, Any] = {}
    for position, entry in enumerate(schema.OPTIONS.get(number, "").split()):
        name, _, kind = entry.partition(":")
        kind, _, default = kind.partition("=")
        if kind.startswith("["):
            values = table.numbers(position, kind[1:-1]) if table else None
            found[name] = None if values is None else tuple(values.tolist())
        elif kind == "string":
            found[name] = table.text(position) if table else ""
        else:
            standard = int(default or 0)
            found[name] = table.scalar(position, kind, standard) if table else standard
    return found


def _tensor(index: int, table: Table, buffers: list[Table], data: bytes) -> FileTensor:
    name = table.text(3) or f"tensor_{index}"
    code = table.scalar(1, "byte")
    dtype = schema.DTYPES.get(code, schema.TYPE_NAMES.get(code, f"type {code}"))
    shape = _shape(table, 0, name)
    signature = _shape(table, 7, name) if table.numbers(7, "int") is not None else shape
    return FileTensor(
        index, name, shape, signature, dtype, _quantization(table, name, shape),
        _data(table, name, shape, dtype, buffers, data), bool(table.scalar(5, "bool", False)),
    )  # fmt: skip


def _shape(table: Table, column: int, name: str) -> tuple[int, ...]:
    found = table.numbers(column, "int")
    shape = tuple(int(d) for d in found) if found is not None else ()
    if len(shape) > MAX_RANK or any(d < -1 for d in shape) or abs(prod(shape)) > MAX_ELEMENTS:
        raise ModelError(f"the tensor {name!r} has the shape {shape[:9]}, which no tensor can have")
    return shape


def _quantization(table: Table, name: str, shape: tuple[int, ...]) -> Quantization | None:
    """Read scales and zero points.  On tensors of one axis the axis field means nothing."""
    quantization = table.table(4)
    scales = quantization.numbers(2, "float") if quantization else None
    if quantization is None or scales is None or not scales.size:
        return None
    zeros = quantization.numbers(3, "long")
    if zeros is None or not zeros.size:
        zeros = np.zeros(scales.size, np.int64)
    axis = quantization.scalar(6, "int")
    if not np.isfinite(scales).all() or (scales < 0).any():
        raise ModelError(f"the tensor {name!r} has a scale that is no positive number")
    if (zeros < -(1 << 31)).any() or (zeros >= 1 << 31).any():
        raise ModelError(f"the tensor {name!r} has the zero point {zeros.max()}, beyond 32 bits")
    if zeros.size != scales.size and zeros.size != 1:
        raise ModelError(
            f"the tensor {name!r} has {scales.size} scales and {zeros.size} zero points"
        )
    if zeros.size != scales.size:
        zeros = np.full(scales.size, zeros[0])
    if scales.size > 1:
        if len(shape) == 1:
            axis = 0
        if not 0 <= axis < len(shape) or shape[axis] != scales.size:
            raise ModelError(
                f"the tensor {name!r} of shape {shape} has {scales.size} scales along axis {axis}"
            )
    return Quantization(scales, zeros, axis)


def _data(
    table: Table, name: str, shape: tuple[int, ...], dtype: str, buffers: list[Table], data: bytes
) -> Array | None:
    number = table.scalar(2, "uint")
    if number >= len(buffers):
        raise ModelError(
            f"the tensor {name!r} lies in buffer {number}, but the file has {len(buffers)} buffers"
        )
    raw: Any = buffers[number].bytes(0)
    offset, size = buffers[number].scalar(1, "ulong"), buffers[number].scalar(2, "ulong")
    if not len(raw) and offset > 1:
        if offset + size > len(data):
            raise ModelError(f"the data of tensor {name!r} reaches beyond the end of the file")
        raw = memoryview(data)[offset : offset + size]
    if not len(raw) or dtype == "string":
        return None
    sparsity = table.table(6)
    if sparsity is not None and dtype in schema.DTYPES.values() and dtype != "int4":
        kind = np.dtype(dtype)
        if len(raw) % kind.itemsize:
            raise ModelError(f"the sparse tensor {name!r} ({dtype}) has {len(raw)} bytes of data")
        values = np.frombuffer(raw, kind.newbyteorder("<")).astype(dtype, copy=False)
        return dense_array(sparsity, values, shape, name)
    if sparsity is not None:
        raise ModelError(f"the tensor {name!r} is a sparse matrix of {dtype}: not supported")
    if dtype == "int4":
        return _int4(raw, shape, name)
    if dtype not in schema.DTYPES.values():
        return None
    wanted = prod(shape) * np.dtype(dtype).itemsize
    if len(raw) != wanted:
        raise ModelError(
            f"the tensor {name!r} ({dtype}, shape {shape}) needs {wanted} bytes, but has {len(raw)}"
        )
    array = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))
    return array.astype(dtype, copy=False).reshape(shape)


def _int4(raw: Any, shape: tuple[int, ...], name: str) -> Array:
    """Two values in a byte, the low half first."""
    count = prod(shape)
    if len(raw) != (count + 1) // 2:
        raise ModelError(f"the tensor {name!r} (int4, shape {shape}) has {len(raw)} bytes of data")
    packed = np.frombuffer(raw, np.int8)
    halves = np.stack([(packed << 4).astype(np.int8) >> 4, packed >> 4], axis=1)
    return halves.reshape(-1)[:count].reshape(shape)
