"""Axes of scalars: PyTorch counts one, 0 or -1, where relay has none.

``torch.softmax(x, 0)``, ``x.sum(-1)`` and ``x.sort()`` of a tensor without axes are served as those
of a vector with one element.
"""

from __future__ import annotations

from slipway import relay
from slipway.frontends.torch.converters import Converter, NodeView
from slipway.relay.expr import Expr, TupleWrapper

NEW_AXES = ("unsqueeze", "unsqueeze_copy", "stack", "squeeze", "squeeze_copy")


def has_axis_of_scalar(node: NodeView) -> bool:
    """Return whether the node names an axis of a tensor that has none."""
    given = node.arguments.get("self")
    if node.kind in NEW_AXES or not isinstance(given, Expr) or given.tensor_type.rank:
        return False
    return any(
        isinstance(dims, int) or (isinstance(dims, (list, tuple)) and len(dims) > 0)
        for dims in (node.arguments.get("dim"), node.arguments.get("dims"))
    )


def along_scalar(convert: Converter, node: NodeView) -> list[Expr | None]:
    """Convert a node whose tensors without axes count as vectors of one element."""
    view = NodeView.__new__(NodeView)
    view.__dict__.update(node.__dict__)
    view.arguments = {
        name: relay.reshape(value, (1,))
        if isinstance(value, Expr) and not value.tensor_type.rank
        else value
        for name, value in node.arguments.items()
    }
    made = convert(view)
    results = list(made) if isinstance(made, (list, TupleWrapper)) else [made]
    return [
        value if wanted is None or value is None else relay.reshape(value, wanted.shape)
        for value, wanted in zip(results, node.outputs, strict=True)
    ]
