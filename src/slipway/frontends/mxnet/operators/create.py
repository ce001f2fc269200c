"""Arrays that come from nothing: filled ones, and those that count."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, OpenFill, converter, dtype_of, shape_of
from slipway.relay.expr import Expr


def closed_pair(a: Expr | OpenFill, b: Expr | OpenFill) -> tuple[Any, Any]:
    """Return two operands, an open one of them in the shape of the other."""
    if isinstance(a, OpenFill) and isinstance(b, OpenFill):
        return a.closed(a.shape), b.closed(b.shape)
    if isinstance(a, OpenFill):
        return a.closed(shape_of(cast(Expr, b))), b
    if isinstance(b, OpenFill):
        return a, b.closed(shape_of(a))
    return a, b


def _filled(node: NodeView, value: float) -> Any:
    made = OpenFill(node.ints("shape"), value, node.text("dtype", "float32"))
    return made if 0 in made.shape else made.closed(made.shape)


@converter("_zeros", "_zeros_without_dtype", "_npi_zeros")
def _zeros(node: NodeView) -> Any:
    return _filled(node, 0.0)


@converter("_ones", "_npi_ones")
def _ones(node: NodeView) -> Any:
    return _filled(node, 1.0)


@converter("_full", "_npi_full")
def _full(node: NodeView) -> Any:
    return _filled(node, node.real("value", 0.0))


@converter("zeros_like", "_npi_zeros_like")
def _zeros_like(node: NodeView) -> Any:
    return relay.zeros_like(node.data)


@converter("ones_like", "_npi_ones_like")
def _ones_like(node: NodeView) -> Any:
    return relay.ones_like(node.data)


@converter("_arange", "_npi_arange")
def _arange(node: NodeView) -> Any:
    start, stop = node.real("start", 0.0), node.value("stop")
    if stop is None:
        start, stop = 0.0, start
    values = np.arange(start, float(stop), node.real("step", 1.0))
    repeated = np.repeat(values, node.integer("repeat", 1))
    return relay.const(repeated, node.text("dtype", "float32"))


@converter("_contrib_arange_like")
def _arange_like(node: NodeView) -> Any:
    """Count along an axis of another array, or over all of its elements."""
    axis, repeat = node.value("axis"), node.integer("repeat", 1)
    shape = node.shape if axis is None else (node.shape[int(axis)],)
    count = math.prod(shape)
    positions = np.arange(count) // repeat
    values = node.real("start", 0.0) + node.real("step", 1.0) * positions
    return relay.const(values.reshape(shape), dtype_of(node.data))


@converter("_eye", "_npi_eye")
def _eye(node: NodeView) -> Any:
    rows = node.integer("N")
    made = np.eye(rows, node.integer("M", 0) or rows, node.integer("k", 0))
    return relay.const(made, node.text("dtype", "float32"))


@converter("_linspace", "_npi_linspace")
def _linspace(node: NodeView) -> Any:
    made = np.linspace(
        node.real("start", 0.0), node.real("stop", 0.0), node.integer("num"),
        endpoint=node.flag("endpoint", True),
    )  # fmt: skip
    return relay.const(made, node.text("dtype", "float32"))


@converter("shape_array")
def _shape(node: NodeView) -> Any:
    return relay.const(np.array(node.shape), "int64")


@converter("size_array")
def _size(node: NodeView) -> Any:
    return relay.const(np.array([math.prod(node.shape)]), "int64")
