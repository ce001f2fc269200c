"""Which targets are microcontrollers."""

from __future__ import annotations

from slipway.target import Target


def is_microcontroller(target: Target) -> bool:
    """Return whether code is C for a core without operating system."""
    return target.kind.name == "c" and target.parsed_triple.is_bare
