"""Reading ONNX files: a path, bytes or a ModelProto becomes a checked ModelProto and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import MissingPackageError, ModelError, TypeInferenceError
from slipway.frontends.onnx.external_data import EXTERNAL, check_external_data, external_bytes
from slipway.frontends.onnx.weights import without_large_weights
from slipway.relay.types import TensorType
from slipway.runtime.ndarray import numpy_dtype
from slipway.version import install_line

Array = np.ndarray[Any, Any]
Weights = Mapping[str, Array]
# TensorProto.DataType -> dtype; the others (strings, complex numbers) are not served.
DTYPE_OF = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip


def onnx_package() -> Any:
    """Return the onnx package.  Raises MissingPackageError, with how to install it, without it."""
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError(
            f"reading ONNX models needs the onnx package: {install_line('onnx')}"
        ) from error
    return onnx


def load_model(model: Any) -> Any:
    """Return the ModelProto of a path, of bytes, or of a ModelProto itself.

    Raises ModelError, in one paragraph, for a file that is missing, cut short or something else.
    """
    onnx = onnx_package()
    if isinstance(model, onnx.ModelProto):
        return _checked(model, "the model")
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parse(onnx, bytes(model), f"the given {len(model)} bytes")
    if not isinstance(model, (str, Path)):
        raise ModelError(
            f"from_onnx takes a ModelProto, a path or bytes, not a {type(model).__name__}"
        )
    path = Path(model)
    if not path.is_file():
        raise ModelError(f"there is no model file {str(path)!r}")
    proto = _parse(onnx, path.read_bytes(), repr(str(path)))
    check_external_data(proto, path.parent, DTYPE_OF)
    _load_external(onnx, proto, path)
    return proto


def open_model(model: Any) -> tuple[Any, Weights]:
    """Return a ModelProto as `load_model` does, without the large weights, and these by name.

    They lie in files of their own; their TensorProtos say so, as `is_aside` tells.
    """
    if not isinstance(model, (str, Path)) or not Path(model).is_file():
        return load_model(model), {}
    onnx, path = onnx_package(), Path(model)
    taken = without_large_weights(path)
    if taken is None:  # protobuf says what is wrong with the whole file
        return load_model(path), {}
    rest, inside = taken
    try:
        proto = _parse(onnx, rest, repr(str(path)))
    except ModelError:
        return load_model(path), {}
    tensors = list(proto.graph.initializer)
    marked = [tensor for tensor in tensors if is_aside(tensor)]
    if len(marked) != len(inside):
        return load_model(path), {}
    for tensor in marked:
        tensor.ClearField("data_location")
    check_external_data(proto, path.parent, DTYPE_OF)
    outside = [(t, external_bytes(t, path.parent, DTYPE_OF)) for t in tensors]
    weights, aside = {}, []
    for tensor, data in (*zip(marked, inside, strict=True), *outside):
        if data is None:
            continue
        tensor.ClearField("data_location")
        tensor.ClearField("external_data")
        array = _viewed(tensor, data)
        if array is None:
            tensor.raw_data = data.tobytes()
        else:
            weights[tensor.name] = array
            aside.append(tensor)
    _load_external(onnx, proto, path)
    for tensor in aside:
        tensor.data_location = EXTERNAL
    return proto, weights


def is_aside(tensor: Any) -> bool:
    """Return whether the values of a TensorProto are among the weights of `open_model`."""
    return tensor.data_location == EXTERNAL and not tensor.external_data


def _viewed(tensor: Any, data: Array) -> Array | None:
    """Return bytes as the array that a TensorProto describes; None where they are not."""
    dtype, shape = DTYPE_OF.get(tensor.data_type), tuple(tensor.dims)
    if dtype is None or dtypes.is_carried(dtype) or any(extent < 0 for extent in shape):
        return None
    if data.nbytes != prod(shape) * dtypes.bytes_of(dtype):
        return None
    viewed: Array = data.view(numpy_dtype(dtype))
    return viewed.reshape(shape)


def _load_external(onnx: ModuleType, proto: Any, path: Path) -> None:
    try:
        onnx.load_external_data_for_model(proto, str(path.parent))
    except Exception as error:  # onnx raises several unrelated classes here
        if isinstance(error, MemoryError):
            raise
        raise ModelError(
            f"{str(path)!r} keeps weights in other files that cannot be read: {error}"
        ) from error


def _parse(onnx: ModuleType, data: bytes, what: str) -> Any:
    if not data:
        raise ModelError(f"{what} is empty, so it is no ONNX model")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # protobuf's DecodeError lives in a private module
        raise ModelError(
            f"{what} ({len(data)} bytes) is not an ONNX model, or the file is cut short or "
            f"damaged: {error}. Compare its size with the original and copy it again."
        ) from error
    return _checked(proto, what)


def _checked(proto: Any, what: str) -> Any:
    if proto.ir_version <= 0 or not proto.HasField("graph") or not proto.graph.output:
        raise ModelError(
            f"{what} is not an ONNX model, or the file is cut short or damaged: it has no graph "
            "with outputs. Export the model again."
        )
    return proto


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Return the NumPy array of a TensorProto; the byte count is checked against the shape."""
    name = tensor.name or "a constant"
    dtype = DTYPE_OF.get(tensor.data_type)
    if dtype is None:
        known = {v: k for k, v in onnx_package().TensorProto.DataType.items()}
        kind = known.get(tensor.data_type, f"the unknown type {tensor.data_type}")
        raise ModelError(f"the tensor {name!r} holds {kind}, which Slipway does not have")
    shape = tuple(tensor.dims)
    try:
        count = TensorType(shape, dtype).size
    except TypeInferenceError as error:
        raise ModelError(
            f"the tensor {name!r} has dimensions that no tensor has: {error}"
        ) from error
    if tensor.HasField("raw_data") and not dtypes.is_carried(dtype):
        raw = tensor.raw_data
        if len(raw) != count * dtypes.bytes_of(dtype):
            raise ModelError(
                f"the tensor {name!r} should hold {count} {dtype} elements for shape {shape}, but "
                f"the file has {len(raw)} bytes of data: it is damaged"
            )
        return np.frombuffer(raw, dtype=numpy_dtype(dtype)).reshape(shape)
    try:
        array = onnx_package().numpy_helper.to_array(tensor)
    except Exception as error:  # onnx raises ValueError, TypeError and ValidationError
        raise ModelError(f"the tensor {name!r} cannot be read: {error}") from error
    return np.asarray(array)


def weights_bytes(proto: Any, aside: Weights) -> int:
    """Return the bytes of the constants that the file of a model holds, and those taken aside."""
    tensors = list(proto.graph.initializer)
    tensors += [a.t for node in proto.graph.node for a in node.attribute if a.type == 4]
    inside: int = sum(tensor.ByteSize() for tensor in tensors)
    return inside + sum(array.nbytes for array in aside.values())


def unheld(name: str, type_: Any) -> str:
    """Return why an input's elements cannot be had here; "" for those that can."""
    kind = type_.tensor_type.elem_type
    if type_.WhichOneof("value") != "tensor_type" or kind in DTYPE_OF:
        return ""
    found = {8: "strings", 14: "complex numbers", 15: "complex numbers"}
    return (
        f"the input {name!r} holds {found.get(kind, f'elements of type {kind}')}, which Slipway "
        "does not have: cut the model after the nodes that make numbers of them"
    )


def value_type(name: str, type_: Any) -> tuple[tuple[Any, ...], str]:
    """Return (dimensions, dtype) of an input's TypeProto; an unknown dimension is its name or "?".

    Raises ModelError for what is no tensor, and for element types that Slipway lacks.
    """
    kind = type_.WhichOneof("value")
    if kind != "tensor_type":
        raise ModelError(f"the input {name!r} is a {kind}; only tensors are served")
    tensor = type_.tensor_type
    dtype = DTYPE_OF.get(tensor.elem_type)
    if dtype is None:
        raise ModelError(unheld(name, type_))
    if not tensor.HasField("shape"):
        return ("?",), dtype
    dims = tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else (d.dim_param or "?")
        for d in tensor.shape.dim
    )
    return dims, dtype
