"""Room for walks that recurse: Python's limit follows how deep a program is.

Walks that carry context recurse, with a few frames of Python for each level of a program, and need
next to none of the thread's own stack for them.  So a program may be as deep as `DEEPEST`, whatever
Python's limit is; a deeper one is refused in words before anything recurses over it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slipway.errors import LoweringError
from slipway.ir.node import Node
from slipway.ir.visit import nesting

DEEPEST = 10_000  # nodes inside each other
_FRAMES = 30  # of Python for one level, with room for what is called at the innermost
_lock = threading.Lock()
_holders = 0
_usual = 0


@contextmanager
def levels(count: int) -> Iterator[None]:
    """Let walks recurse `count` levels deep, in every thread, as Python's limit is one for all."""
    global _holders, _usual
    with _lock:
        if _holders == 0:
            _usual = sys.getrecursionlimit()
        _holders += 1
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _usual + _FRAMES * count))
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                sys.setrecursionlimit(_usual)


@contextmanager
def room_for(root: Node, what: str, most: int = DEEPEST) -> Iterator[None]:
    """Let walks recurse over `root`.

    Raises LoweringError, which names `what`, where it has more than `most` levels.
    """
    depth = nesting(root)
    if depth > most:
        raise LoweringError(
            f"{what} has {depth} expressions or statements inside each other, and {most} are the "
            "most here: keep parts in temporaries, or in functions of their own"
        )
    with levels(depth):
        yield
