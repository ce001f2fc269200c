"""Recursion of any depth: a function that yields its inner calls, and `run`, which makes them.

::

    def depth(node):                        # instead of: 1 + max(map(depth, node.inner))
        found = []
        for inner in node.inner:
            found.append((yield depth(inner)))
        return 1 + max(found, default=0)

    run(depth(root))

The calls wait on a list, not on Python's stack, whose limit a user's program may reach.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]  # yields the Steps of inner calls, receives what they return


def run(call: Steps[T]) -> T:
    """Return what `call` returns."""
    waiting: list[Steps[Any]] = [call]
    value: Any = None
    while True:
        try:
            inner = waiting[-1].send(value)
        except StopIteration as done:
            waiting.pop()
            value = done.value
            if not waiting:
                return value  # type: ignore[no-any-return]
        else:
            waiting.append(inner)
            value = None
