"""Loops of operators that are written as statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from slipway.relay.dims import usual

WORTH_SHARING = 1 << 15  # elements


@contextmanager
def nest(ib: Any, extents: Sequence[int], shared: bool = False) -> Iterator[list[Any]]:
    """Open one loop for each extent; with `shared` the first that has steps is parallel."""
    with ExitStack() as loops:
        positions: list[Any] = []
        for extent in extents:
            steps = usual(extent)
            kind = "parallel" if shared and steps > 1 else "serial"
            shared = shared and steps == 1
            positions.append(loops.enter_context(ib.for_range(0, extent, "i", kind=kind)))
        yield positions
