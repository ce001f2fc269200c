"""Pooling on any layout: windows outside, a vector of the innermost axis inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway import te
from slipway.schedules.reduction import schedule_opaque
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target


@register_implementation(
    "nn.max_pool2d",
    "nn.avg_pool2d",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_max_pool2d",
    name="pool.window",
)
def schedule_pool(target: Target, outs: Sequence[te.Tensor], pool: te.Tensor) -> te.Schedule:
    """One loop nest for the windows, one for what is fused behind them."""
    return schedule_opaque(target, outs)
