"""Who reads and writes what between two barriers of a kernel.

A race is two threads at one element, one of them writing, without a barrier between.  Threads of
different blocks never have one between in a launch; memory that a block shares is another one in
each block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.errors import ExecutionError

Index = tuple[int, int, int]
_AXES = "xyz"


@dataclass(frozen=True)
class Reach:
    """One access: the thread, its block, the barriers that it has passed, and the stage it is in.

    `thread` is the number in the block, `at` its index, `block` the index of its block.
    """

    block: Index
    epoch: int
    thread: int
    at: Index
    stage: str


@dataclass
class _Element:
    written: Reach | None = None
    read: Reach | None = None
    read_by_several: bool = False  # threads of that block, since the same barrier


@dataclass
class Watch:
    """The accesses of one launch; those of memory that a block shares are forgotten behind it."""

    kernel: str
    shared: dict[int, _Element] = field(default_factory=dict)
    others: dict[int, _Element] = field(default_factory=dict)
    bases: dict[int, tuple[Any, int]] = field(default_factory=dict)

    def start_block(self) -> None:
        """Forget what the block before has shared."""
        self.shared.clear()

    def touch(self, name: str, memory: Any, at: Any, who: Reach, writes: bool, own: bool) -> None:
        """Note an access of elements of `memory`, `own` where it is its block's.

        Raises ExecutionError for a race.
        """
        held = self.bases.get(id(memory))
        if held is None:
            held = self.bases[id(memory)] = (memory, memory.ctypes.data)
        elements = self.shared if own else self.others
        for position in (at,) if type(at) is int else np.ravel(at).tolist():
            address = held[1] + position * memory.itemsize
            element = elements.get(address)
            if element is None:
                element = elements[address] = _Element()
            clash = _clash(element, who, writes)
            if clash is not None:
                raise ExecutionError(self._told(name, position, clash, who, writes, own))
            _note(element, who, writes)

    def _told(
        self, name: str, position: int, clash: tuple[Reach, bool], who: Reach, writes: bool,
        own: bool,
    ) -> str:  # fmt: skip
        other, wrote = clash
        where = f"element {position} of {'shared' if own else 'global'} memory {name!r}"
        is_one = other.block == who.block
        kind, first, second = (
            ("threadIdx", other.at, who.at) if is_one else ("blockIdx", other.block, who.block)
        )
        does = [f"{'writes' if w else 'reads'} it in stage" for w in (wrote, writes)]
        advice = (
            "Put a barrier between, or let each thread have elements of its own"
            if is_one
            else "Blocks cannot wait for each other: give them elements of their own, or make two "
            "kernels of it"
        )
        return (
            f"{self.kernel}: a race at {where}: thread {other.at} of block {other.block} {does[0]} "
            f"{other.stage!r}, and thread {who.at} of block {who.block}, apart along "
            f"{apart(kind, first, second)}, {does[1]} {who.stage!r}, without a barrier between. "
            f"{advice}"
        )


def _clash(element: _Element, who: Reach, writes: bool) -> tuple[Reach, bool] | None:
    """Return an earlier access that an access clashes with, and whether that one wrote."""
    written, read = element.written, element.read
    if written is not None and _is_unordered(written, who):
        return written, True
    if not writes or read is None:
        return None
    several = element.read_by_several and (read.block, read.epoch) == (who.block, who.epoch)
    return (read, False) if several or _is_unordered(read, who) else None


def _is_unordered(other: Reach, who: Reach) -> bool:
    if other.block != who.block:
        return True
    return other.epoch == who.epoch and other.thread != who.thread


def _note(element: _Element, who: Reach, writes: bool) -> None:
    if writes:
        element.written = who
        return
    read = element.read
    if read is not None and (read.block, read.epoch) == (who.block, who.epoch):
        element.read_by_several |= read.thread != who.thread
    elif read is None or read.block == who.block:
        element.read, element.read_by_several = who, False


def apart(kind: str, first: Index, second: Index) -> str:
    """Return the axes along which two threads, or blocks, differ."""
    pairs = zip(_AXES, first, second, strict=True)
    return " and ".join(f"{kind}.{axis}" for axis, a, b in pairs if a != b)


def nearest(waiting: list[Index], others: list[Index]) -> tuple[Index, Index]:
    """Return two threads, one of each list, that differ along the fewest axes."""
    pairs = [(a, b) for a in waiting[:64] for b in others[:64]]
    return min(pairs, key=lambda pair: sum(x != y for x, y in zip(*pair, strict=True)))
