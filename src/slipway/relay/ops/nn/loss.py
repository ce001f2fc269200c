"""Losses, and softmax under its fast name: compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.op_registry import BadArgument
from slipway.relay.ops.build import call, scalar, typed
from slipway.relay.ops.checks import need_integral, need_shape

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


def fast_softmax(data: ExprLike, axis: int = -1) -> Any:
    """Return the softmax; there is one, and it is fast."""
    return call("nn.softmax", data, axis)


def _rows(predictions: Any, targets: Any) -> int:
    (_, own), (_, wanted) = typed(predictions), typed(targets)
    need_shape("targets", wanted, own.shape, "that of the predictions")
    return own.shape[0]


def _negative_mean(values: Any, rows: int) -> Any:
    total = call("sum", values)
    return call("negative", call("divide", total, scalar(rows, total.tensor_type.dtype)))


def cross_entropy(predictions: ExprLike, targets: ExprLike) -> Any:
    """Return minus the mean over rows of sum(targets * log(predictions))."""
    rows = _rows(predictions, targets)
    return _negative_mean(call("multiply", call("log", predictions), targets), rows)


def cross_entropy_with_logits(predictions: ExprLike, targets: ExprLike) -> Any:
    """Return minus the mean over rows of sum(targets * predictions), which are logarithms."""
    rows = _rows(predictions, targets)
    return _negative_mean(call("multiply", predictions, targets), rows)


def nll_loss(
    predictions: ExprLike,
    targets: ExprLike,
    weights: ExprLike,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:
    """Return the negative logarithms of the target classes, weighted.

    `predictions` are (N, C, ...) logarithms, `targets` (N, ...) classes, `weights` (C,); targets
    of `ignore_index` count nothing.
    """
    (x, own), (classes, kind), (factors, weight) = (
        typed(predictions), typed(targets), typed(weights)
    )  # fmt: skip
    need_integral("targets", kind)
    if reduction not in ("mean", "sum", "none"):
        raise BadArgument("reduction", f"is {reduction!r}; use 'mean', 'sum' or 'none'")
    if own.rank < 2:
        raise BadArgument("predictions", f"must be (N, C, ...), got {own}")
    need_shape("targets", kind, (own.shape[0], *own.shape[2:]), "predictions without their classes")
    need_shape("weights", weight, (own.shape[1],), "one factor per class")
    used = call("not_equal", classes, scalar(ignore_index, kind.dtype))
    position = call("where", used, classes, scalar(0, kind.dtype))
    factor = call("take", factors, position, 0)
    factor = call("where", used, factor, scalar(0, weight.dtype))
    picked = call("squeeze", call("gather", x, 1, call("expand_dims", position, 1)), [1])
    loss = call("negative", call("multiply", picked, factor))
    if reduction == "none":
        return loss
    total = call("sum", loss)
    return total if reduction == "sum" else call("divide", total, call("sum", factor))
