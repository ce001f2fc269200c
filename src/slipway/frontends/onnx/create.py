"""Constants and tensors from shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.bounds import check_table
from slipway.frontends.onnx.arithmetic import dtype_of
from slipway.frontends.onnx.converters import NodeView, converter

MAX_RANGE = 1 << 24  # elements of a sequence that is written out


@converter("Constant")
def constant(node: NodeView) -> Any:
    """A value from one of the attributes that may hold it."""
    for name, dtype in (
        ("value", None), ("value_float", "float32"), ("value_floats", "float32"),
        ("value_int", "int64"), ("value_ints", "int64"),
    ):  # fmt: skip
        found = node.attr(name)
        if found is not None:
            return relay.const(np.asarray(found, dtype))
    raise node.unsupported(f"its value is {', '.join(node.attributes) or 'missing'}")


@converter("ConstantOfShape")
def constant_of_shape(node: NodeView) -> Any:
    """One value everywhere; zero when none is given."""
    value = node.attr("value")
    value = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    shape = node.ints(0, "the shape")
    if int(np.prod(shape, dtype=np.int64)) <= 4096:
        return relay.const(np.full(shape, value[0], value.dtype))
    return relay.full(relay.const(value[0], value.dtype.name), shape, value.dtype.name)


@converter("Range")
def range_(node: NodeView) -> Any:
    """An arithmetic sequence of constant bounds."""
    start, limit, delta = (
        node.constant(i, what).reshape(())[()] for i, what in enumerate(("start", "limit", "delta"))
    )
    if delta == 0:
        raise node.unsupported("delta is 0")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    if count > MAX_RANGE:
        raise node.unsupported(f"it has {count} elements; at most {MAX_RANGE} are made")
    return relay.const((start + np.arange(count) * delta).astype(node.type().dtype))


@converter("EyeLike")
def eye_like(node: NodeView) -> Any:
    """Ones on a diagonal."""
    rows, columns = node.type().shape
    check_table(node, rows, columns)
    dtype = dtype_of(node, node.attr("dtype")) if node.attr("dtype") else node.type().dtype
    return relay.const(np.eye(rows, columns, node.attr("k", 0), dtype=dtype))
