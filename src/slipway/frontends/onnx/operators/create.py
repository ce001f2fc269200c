"""Constants and tensors from shapes."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const


@converter("Constant")
def constant(node: NodeView) -> Any:
    """A value from one of the attributes that may hold it."""
    for name, dtype in (
        ("value", None), ("sparse_value", None), ("value_float", "float32"),
        ("value_floats", "float32"), ("value_int", "int64"), ("value_ints", "int64"),
    ):  # fmt: skip
        found = node.attr(name)
        if found is not None:
            return const(np.asarray(found, dtype))
    raise node.unsupported(f"its value is {', '.join(node.attributes) or 'missing'}")


@converter("ConstantOfShape")
def constant_of_shape(node: NodeView) -> Any:
    """One value everywhere; zero when none is given."""
    value = node.attr("value")
    value = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    shape = node.ints(0, "the shape")
    if any(not is_open(extent) and extent < 0 for extent in shape):
        raise node.unsupported(f"the shape {shape} has a negative extent")
    if not any(map(is_open, shape)) and prod(shape) <= 4096:
        return const(np.full(shape, value[0], value.dtype))
    return relay.full(const(value[0], value.dtype.name), shape, value.dtype.name)


@converter("Range")
def range_(node: NodeView) -> Any:
    """An arithmetic sequence of constant bounds, or in whole steps up to an open size."""
    if not isinstance(node.input(1), relay.Constant) and node.sizes.of(node.input(1)) is not None:
        return _open_range(node)
    start, limit, delta = (
        node.constant(i, what).reshape(())[()] for i, what in enumerate(("start", "limit", "delta"))
    )
    if delta == 0:
        raise node.unsupported("delta is 0")
    if isinstance(start, np.integer):
        steps = (int(limit) - int(start)) / int(delta)  # NumPy's integers would wrap
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = float(limit - start) / float(delta)
    if not np.isfinite(steps):
        raise node.unsupported(f"it counts from {start} to {limit} by {delta}")
    count = max(ceil(steps), 0)
    check_table(node, count)
    return const((start + np.arange(count) * delta).astype(node.type().dtype))


def _open_range(node: NodeView) -> Any:
    (start,), (limit,), (delta,) = (
        node.ints(i, what) for i, what in enumerate(("start", "limit", "delta"))
    )
    if is_open(delta) or delta < 1:
        raise node.unsupported(f"delta is {delta}: up to an open size it counts up by a number")
    dtype = node.type().dtype
    if not is_open(start):
        return relay.arange(start, limit, delta, dtype)
    first = relay.cast(node.input(0), dtype)
    return relay.add(relay.arange(0, limit - start, delta, dtype), relay.reshape(first, ()))


@converter("EyeLike")
def eye_like(node: NodeView) -> Any:
    """Ones on a diagonal."""
    rows, columns = node.type().shape
    dtype = dtype_of(node, node.attr("dtype")) if node.attr("dtype") else node.type().dtype
    k = int(node.attr("k", 0))
    if is_open(rows) or is_open(columns):
        down = relay.expand_dims(relay.arange(k, rows + k, 1, "int64"), 1)
        return relay.cast(relay.equal(relay.arange(0, columns, 1, "int64"), down), dtype)
    check_table(node, rows, columns)
    return const(np.eye(rows, columns, k, dtype=dtype))
