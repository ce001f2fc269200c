"""What functions of T give the reader of a program: loops, blocks, memory without a name yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer


@dataclass(frozen=True)
class Loops:
    """What a for statement runs over: nested loops of one kind."""

    extents: tuple[Any, ...]
    kind: str = S.ForKind.SERIAL
    begin: Any = 0
    thread: str = ""
    annotations: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class BlockAxis:
    """An axis of a block before it has its name: extent (or begin and end), kind, value."""

    dom: Any
    kind: str
    value: Any


@dataclass(frozen=True)
class BlockHead:
    """What ``with T.block(name)`` opens."""

    name: str


@dataclass(frozen=True)
class Mark:
    """A statement that says something of what is around it."""

    kind: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Matched:
    """A buffer over a parameter, before it has its name."""

    param: Any
    buffer: Buffer


@dataclass(frozen=True)
class Allocated:
    """A buffer of the function's own, before it has its name."""

    buffer: Buffer


@dataclass(frozen=True)
class Launched:
    """What ``T.launch_thread(thread, extent)`` says: what follows it runs in so many threads."""

    thread: Any  # the axis that T.env_thread gave, or its tag
    extent: Any
