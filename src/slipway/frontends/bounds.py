"""A bound on what an importer writes out: tables of positions, masks, unit matrices."""

from __future__ import annotations

from math import prod
from typing import Protocol

MAX_TABLE = 1 << 24  # elements


class Node(Protocol):
    """A node of any format."""

    def unsupported(self, why: str, /) -> Exception:
        """Return the error to raise."""


def check_table(node: Node, *extents: int) -> None:
    """Raise the node's error if a table of these extents is more than should be in memory."""
    if prod(extents) > MAX_TABLE:
        shape = " x ".join(str(e) for e in extents)
        raise node.unsupported(
            f"it needs a constant of {shape} elements; at most {MAX_TABLE} are written out"
        )
