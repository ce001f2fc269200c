"""What a long step tells whoever waits at a terminal; silent elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext


def step(title: str, quiet: bool) -> AbstractContextManager[None]:
    """Return a context that shows `title` with its seconds, where stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    try:
        from slipway.cli import console
    except ModuleNotFoundError:  # without the extra "cli"
        return nullcontext()
    return console.step(title)
