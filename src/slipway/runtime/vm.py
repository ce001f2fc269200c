"""Relay's virtual machine (classic): names to import, each of which says what to use instead."""

from __future__ import annotations

from typing import Any

from slipway.classic_names import REGIONS
from slipway.placeholders import placeholder_of


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, REGIONS)
