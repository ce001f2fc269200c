"""The first k of a sorted axis, where k is a number of the model: 0 means none.

`relay.topk` takes what is below 1 for all of them, as the classic system does.
"""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.relay.expr import Expr


def first_ranked(x: Expr, k: int, axis: int, ascending: bool, dtype: str) -> Any:
    """Return the `k` largest (or smallest) elements along an axis, and where they are."""
    if k:
        return relay.topk(x, k, axis, "both", ascending, dtype)
    kind = x.tensor_type
    shape = list(kind.shape)
    shape[axis] = 0
    return [relay.zeros(shape, kind.dtype), relay.zeros(shape, dtype)]
