"""The masks that Keras hands to a layer when it runs, and that the layer's call does not name."""

from __future__ import annotations

import inspect
from typing import Any


def implied_masks(node: Any) -> dict[str, Any]:
    """Return by argument the masks that the tensors of a call carry, None where one has none.

    A layer of one tensor, or one list of them, takes `mask`; one of several takes `NAME_mask` for
    each.
    """
    names = list(inspect.signature(node.operation.call).parameters)
    named = dict(zip(names, node.arguments.args, strict=False)) | node.arguments.kwargs
    tensors = {
        name: value
        for name, value in named.items()
        if not name.endswith("mask") and _is_of_tensors(value)
    }
    found = {}
    for name, value in tensors.items():
        wanted = "mask" if len(tensors) == 1 else f"{name}_mask"
        masks = _carried(value)
        listed = masks if isinstance(masks, list) else [masks]
        is_new = wanted in names and named.get(wanted) is None
        if is_new and any(mask is not None for mask in listed):
            found[wanted] = masks
    return found


def _is_of_tensors(value: Any) -> bool:
    several = value if isinstance(value, list | tuple) else [value]
    return bool(several) and all(hasattr(one, "_keras_history") for one in several)


def _carried(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_carried(one) for one in value]
    return getattr(value, "_keras_mask", None)
