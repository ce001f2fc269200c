"""Tuning from templates (classic): names to import, each of which says that there is no tuner."""

from __future__ import annotations

from typing import Any

from slipway.placeholders import TUNING, placeholder_of


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
