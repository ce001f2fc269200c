"""Tensor layouts: "NCHW", "NHWC", "NCHW16c", "OIHW16i16o".

An upper-case letter is an axis of the tensor; a number and the lower-case letter after it say that
this axis is cut into blocks of that many elements, and where the position inside a block stands.
In NCHW16c, element (n, c, h, w) lies at (n, c // 16, h, w, c % 16).  An axis may be cut twice: in
OIHW8i16o2i, input channel i lies in block i // 16 at (i // 2 % 8, i % 2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


@dataclass(frozen=True)
class Axis:
    """One dimension of a layout: the whole-axis letter, and the block size (0: the outer part)."""

    letter: str
    block: int = 0


@dataclass(frozen=True)
class Layout:
    """A parsed layout; `axes` in memory order."""

    text: str
    axes: tuple[Axis, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """The whole axes, in order of their outer parts."""
        return tuple(a.letter for a in self.axes if not a.block)

    def block_of(self, letter: str) -> int:
        """Return the block size of an axis; 1 when it is not blocked."""
        return prod(self.blocks_of(letter))

    def blocks_of(self, letter: str) -> list[int]:
        """Return the sizes into which a block of an axis is cut, the outermost first."""
        return [a.block for a in self.axes if a.letter == letter and a.block]

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the place in memory order of (letter, 0) and of each block (letter, 1), ..."""
        seen: dict[str, int] = {}
        found = {}
        for position, axis in enumerate(self.axes):
            depth = seen.get(axis.letter, 0) + 1 if axis.block else 0
            seen[axis.letter] = max(depth, seen.get(axis.letter, 0))
            found[axis.letter, depth] = position
        return found

    def whole_shape(self, shape: Sequence[int]) -> dict[str, int]:
        """Return the extent of each whole axis of a tensor with this layout."""
        extents = dict.fromkeys(self.letters, 1)
        for axis, extent in zip(self.axes, shape, strict=True):
            extents[axis.letter] *= extent
        return extents

    def shape_of(self, whole: dict[str, int]) -> tuple[int, ...]:
        """Return the shape in this layout of a tensor with these whole extents.

        Raises ValueError when a block does not divide its axis.
        """
        for letter, extent in whole.items():
            if extent % self.block_of(letter):
                raise ArgumentValueError(
                    f"layout {self.text} cuts axis {letter} into blocks of "
                    f"{self.block_of(letter)}, which do not divide its extent {extent}"
                )
        return tuple(
            a.block if a.block else whole[a.letter] // self.block_of(a.letter) for a in self.axes
        )


@cache
def parse_layout(text: str) -> Layout:
    """Parse a layout.  Raises ValueError for a string that is none."""
    axes: list[Axis] = []
    position = 0
    while position < len(text):
        match = _AXIS.match(text, position)
        if match is None:
            break
        position = match.end()
        if match.group(1):
            axes.append(Axis(match.group(1)))
        else:
            axes.append(Axis(match.group(3).upper(), int(match.group(2))))
    outer = [a.letter for a in axes if not a.block]
    blocks = [a for a in axes if a.block]
    if (
        position < len(text)
        or not axes
        or len(set(outer)) != len(outer)
        or any(a.letter not in outer for a in blocks)
        or any(a.block and b.block and a.letter == b.letter for a, b in pairwise(axes))
    ):
        raise ArgumentValueError(
            f"{text!r} is not a layout; write for example NCHW, NHWC or NCHW16c"
        )
    return Layout(text, tuple(axes))


def has_blocks(text: str) -> bool:
    """Return whether a layout cuts an axis into blocks."""
    return not text.isalpha()


def transform_shape(shape: Sequence[int], source: str, target: str) -> tuple[int, ...]:
    """Return the shape that a tensor of `shape` in layout `source` has in layout `target`."""
    return parse_layout(target).shape_of(parse_layout(source).whole_shape(shape))


def transform_array(array: np.ndarray[Any, Any], source: str, target: str) -> Any:
    """Move a NumPy array from one layout to another."""
    src, dst = parse_layout(source), parse_layout(target)
    whole = src.whole_shape(array.shape)
    indices = src.positions()
    order = [
        indices[letter, depth]
        for letter in dst.letters
        for depth in range(len(src.blocks_of(letter)) + 1)
    ]
    plain = array.transpose(order).reshape([whole[letter] for letter in dst.letters])
    split: list[int] = []
    where: list[tuple[str, int]] = []
    for letter in dst.letters:
        extents = [whole[letter] // dst.block_of(letter), *dst.blocks_of(letter)]
        split += extents
        where += [(letter, depth) for depth in range(len(extents))]
    wanted = sorted(dst.positions().items(), key=lambda entry: entry[1])
    moved = plain.reshape(split).transpose([where.index(key) for key, _ in wanted])
    return np.asarray(moved, order="C")


def source_index(
    source: str, target: str, floordiv: Callable[[Any, int], Any], mod: Callable[[Any, int], Any]
) -> Callable[..., tuple[Any, ...]]:
    """Return f(*target_indices) -> source indices, for any kind of index with + and *."""
    src, dst = parse_layout(source), parse_layout(target)

    def index(*indices: Any) -> tuple[Any, ...]:
        whole: dict[str, Any] = {}
        for axis, value, step in zip(dst.axes, indices, _steps(dst), strict=True):
            part = value * step if step > 1 else value
            whole[axis.letter] = whole[axis.letter] + part if axis.block else part
        picked = []
        for axis, step in zip(src.axes, _steps(src), strict=True):
            value = floordiv(whole[axis.letter], step) if step > 1 else whole[axis.letter]
            picked.append(mod(value, axis.block) if axis.block else value)
        return tuple(picked)

    return index


def _steps(layout: Layout) -> list[int]:
    """Return for each axis in memory by how much the whole axis grows with its index."""
    left = {letter: layout.block_of(letter) for letter in layout.letters}
    steps = []
    for axis in layout.axes:
        if axis.block:
            left[axis.letter] //= axis.block
        steps.append(left[axis.letter])
    return steps
