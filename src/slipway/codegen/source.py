"""A function that may not have to be lowered: the kernel cache can know what it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slipway.ir.function import PrimFunc


@dataclass(frozen=True)
class FunctionSource:
    """A function to compile: `lower` returns its target-ready loops, each time the same.

    `key` stands for everything that they are made from (`cache.key_of`); "" where nothing does.
    `symbol` is a name that equal functions share; "" for a function with its own name alone.
    """

    name: str
    lower: Callable[[], PrimFunc]
    key: str = ""
    symbol: str = ""
