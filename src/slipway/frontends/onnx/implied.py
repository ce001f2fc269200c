"""Inputs that the stated shape of a result settles, where the file holds no value for them.

A window's length, the size of a grid, what is cut or padded to: such an input is nothing but the
result's shape, so that its value is a constant before the operator's definition is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from slipway.frontends.onnx.values import Value
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import const

Shape = tuple[int, ...]


def _window(node: Any, shape: Shape) -> tuple[int, Any] | None:
    return (0, shape[0]) if len(shape) == 1 else None


def _center_crop_pad(node: Any, shape: Shape) -> tuple[int, Any] | None:
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), range(len(shape)))
    if not all(-len(shape) <= a < len(shape) for a in axes):
        return None
    return 1, [shape[a] for a in axes]


def _affine_grid(node: Any, shape: Shape) -> tuple[int, Any] | None:
    if len(shape) not in (4, 5):
        return None
    return 1, [shape[0], 1, *shape[1:-1]]  # for how many channels, the grid does not depend on


_IMPLIED: dict[str, Callable[[Any, Shape], tuple[int, Any] | None]] = {
    "BlackmanWindow": _window,
    "HammingWindow": _window,
    "HannWindow": _window,
    "CenterCropPad": _center_crop_pad,
    "AffineGrid": _affine_grid,
}


def with_implied(
    node: Any, inputs: Sequence[Value], shape_of: Callable[[str], Shape | None]
) -> list[Value]:
    """Return the inputs of a node, that which the stated shape of its result settles as constant.

    `shape_of` gives the shape that is stated for a name.
    """
    made = list(inputs)
    settle = _IMPLIED.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if settle is None:
        return made
    shape = shape_of(node.output[0])
    found = None if shape is None else settle(node, shape)
    if found is not None and found[0] < len(made):
        index, value = found
        given = made[index]
        if isinstance(given, Expr) and not isinstance(given, Constant):
            settled = np.asarray(value, given.tensor_type.dtype)
            if settled.shape == tuple(given.tensor_type.shape):
                made[index] = const(settled)
    return made
