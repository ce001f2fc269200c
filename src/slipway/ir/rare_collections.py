"""Python's search for cycles of garbage, made rare while a compiler makes many nodes.

IR nodes are immutable records that point at what was made before them, so hardly any is in a
cycle, and counting references frees them.  The collector still walks over all that are alive, again
and again while some thousands are made: a seventh of the processor time of lowering.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000  # between two collections; some 5 MB of nodes
_lock = threading.Lock()
_holders = 0
_usual = (0, 0, 0)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect cycles once in `_NEW_OBJECTS` objects, in the whole process, as Python does.

    A program that has turned collections off, or made them rarer, keeps its setting.
    """
    global _holders, _usual
    with _lock:
        if _holders == 0:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _NEW_OBJECTS:
                gc.set_threshold(_NEW_OBJECTS, *_usual[1:])
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                gc.set_threshold(*_usual)
