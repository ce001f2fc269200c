"""``tvmc.shape_parser``: shapes of inputs as the command line writes them."""

from __future__ import annotations

import argparse
import re
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.relay.dims import OpenDim

__all__ = ["parse_shape_string"]

_PAIR = re.compile(r"\s*([^\s\[\],][^\[\]]*?)\s*:\s*\[([^\]]*)\]\s*,?")


class ShapeError(TVMCException, argparse.ArgumentTypeError):
    """A text of shapes that cannot be read."""


def parse_shape_string(inputs_string: str) -> dict[str, list[Any]]:
    """Return the shapes of ``data:[1,3,224,224] mask:[1,-1]``; a negative size is left open."""
    found: dict[str, list[Any]] = {}
    try:
        for name, sizes in _PAIR.findall(inputs_string):
            numbers = [int(size) for size in sizes.split(",") if size.strip()]
            found[name] = [number if number > 0 else OpenDim() for number in numbers]
    except ValueError:
        found = {}
    if _PAIR.sub("", inputs_string).strip() or not found:
        raise ShapeError(
            f"--input-shapes {inputs_string!r} is not of the form data:[1,3,224,224] mask:[1,7]"
        )
    return found
