"""Helpers of tuning (classic): see `slipway.auto_scheduler`."""

from __future__ import annotations

from typing import Any

from slipway.autotvm.measure import check_remote, request_remote
from slipway.placeholders import TUNING, placeholder_of

__all__ = ["check_remote", "request_remote"]


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
