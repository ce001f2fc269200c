"""Tuning without templates (classic): names to import, which say what tunes instead."""

from __future__ import annotations

from typing import Any

from slipway.placeholders import TUNING, placeholder_of


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
