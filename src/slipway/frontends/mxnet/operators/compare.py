"""Comparisons and logic: MXNet's give numbers of the type of what they compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, dtype_of
from slipway.relay.expr import Expr

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "equal": relay.equal, "not_equal": relay.not_equal, "greater": relay.greater,
    "greater_equal": relay.greater_equal, "lesser": relay.less, "lesser_equal": relay.less_equal,
}  # fmt: skip
NUMPY = {"less": relay.less, "less_equal": relay.less_equal} | {
    name: COMPARE[name] for name in ("equal", "not_equal", "greater", "greater_equal")
}
LOGIC = {
    "and": relay.logical_and, "or": relay.logical_or, "xor": relay.logical_xor,
}  # fmt: skip


def true(value: Expr) -> Any:
    """Return where a tensor is not zero."""
    if dtype_of(value) == "bool":
        return value
    return relay.not_equal(value, relay.const(0, dtype_of(value)))


def _enter(name: str, function: Callable[[Any, Any], Any]) -> None:
    @converter(f"broadcast_{name}", f"_{name}")
    def pair(node: NodeView) -> Any:
        return relay.cast(function(node[0], node[1]), node.dtype)

    @converter(f"_{name}_scalar")
    def scalar(node: NodeView) -> Any:
        number = node.const(node.real("scalar", 0.0))
        return relay.cast(function(node.data, number), node.dtype)


def _enter_numpy(name: str, function: Callable[[Any, Any], Any]) -> None:
    @converter(f"_npi_{name}")
    def pair(node: NodeView) -> Any:
        return function(node[0], node[1])

    @converter(f"_npi_{name}_scalar")
    def scalar(node: NodeView) -> Any:
        return function(node.data, node.const(node.real("scalar", 0.0)))


def _enter_logic(name: str, function: Callable[[Any, Any], Any]) -> None:
    @converter(f"broadcast_logical_{name}", f"_logical_{name}")
    def pair(node: NodeView) -> Any:
        return relay.cast(function(true(node[0]), true(node[1])), node.dtype)

    @converter(f"_logical_{name}_scalar")
    def scalar(node: NodeView) -> Any:
        number = relay.const(node.real("scalar", 0.0) != 0.0, "bool")
        return relay.cast(function(true(node.data), number), node.dtype)


for _name, _function in COMPARE.items():
    _enter(_name, _function)
for _name, _function in NUMPY.items():
    _enter_numpy(_name, _function)
for _name, _function in LOGIC.items():
    _enter_logic(_name, _function)


@converter("logical_not")
def _not(node: NodeView) -> Any:
    return relay.cast(relay.logical_not(true(node.data)), node.dtype)


@converter("where", "_npi_where")
def _where(node: NodeView) -> Any:
    condition, x, y = node.inputs
    chosen = true(condition)
    rank, own = len(node.shape), len(x.tensor_type.shape)
    if rank == 1 and own > 1:  # a condition for each row
        chosen = relay.reshape(chosen, (node.shape[0], *[1] * (own - 1)))
    return relay.where(chosen, x, y)
