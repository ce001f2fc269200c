"""Which temporaries live on the stack; the others are taken from the runtime's workspace."""

from __future__ import annotations

STACK_LIMIT = 16 * 1024  # bytes of one temporary that may live on the stack
STACK_TOTAL = 64 * 1024  # bytes of all of them in one function
TILE_LIMIT = 4 * 1024  # bytes of a register tile, which in memory would be slow


def on_stack(scope: str, size: int, taken: int) -> bool:
    """Return whether a temporary of `size` bytes fits beside `taken` bytes of others.

    A small one in scope "local" always does: it is meant to become registers.
    """
    if scope == "local" and size <= TILE_LIMIT:
        return True
    return size <= STACK_LIMIT and taken + size <= STACK_TOTAL
