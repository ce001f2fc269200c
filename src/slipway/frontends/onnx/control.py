"""Subgraphs: If with a condition known at compile time or at run time."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter


@converter("If")
def if_(node: NodeView) -> Any:
    """A constant condition takes its branch; otherwise both become the branches of relay.If."""
    assert node.subgraph is not None
    condition = node.input(0)
    if isinstance(condition, relay.Constant):
        chosen = "then_branch" if condition.array.reshape(-1)[0] else "else_branch"
        return node.subgraph(node.attr(chosen), [])
    branches: list[Any] = [
        node.subgraph(node.attr(name), []) for name in ("then_branch", "else_branch")
    ]
    if condition.tensor_type.rank:
        condition = relay.reshape(condition, ())
    if len(branches[0]) != len(node.outputs) or len(branches[1]) != len(node.outputs):
        raise node.unsupported("a branch could not be converted")
    kinds = [[v.type for v in branch] for branch in branches]
    if kinds[0] != kinds[1]:
        raise node.unsupported(
            "the branches give different shapes, which static shapes cannot hold"
        )
    if len(node.outputs) == 1:
        return relay.If(condition, branches[0][0], branches[1][0])
    choice = relay.If(condition, relay.Tuple(branches[0]), relay.Tuple(branches[1]))
    return relay.TupleWrapper(choice, len(node.outputs))
