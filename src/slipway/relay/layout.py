"""Tensor layouts: "NCHW", "NHWC", "NCHW16c", "OIHW16i16o".

An upper-case letter is an axis of the tensor; a number and the lower-case letter behind it say that
this axis is cut into blocks of that many elements, and where the position inside a block stands.
In NCHW16c, element (n, c, h, w) lies at (n, c // 16, h, w, c % 16).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

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
        return next((a.block for a in self.axes if a.letter == letter and a.block), 1)

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
                raise ValueError(
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
        or len({a.letter for a in blocks}) != len(blocks)
        or any(a.letter not in outer for a in blocks)
    ):
        raise ValueError(f"{text!r} is not a layout; write for example NCHW, NHWC or NCHW16c")
    return Layout(text, tuple(axes))


def transform_shape(shape: Sequence[int], source: str, target: str) -> tuple[int, ...]:
    """Return the shape that a tensor of `shape` in layout `source` has in layout `target`."""
    return parse_layout(target).shape_of(parse_layout(source).whole_shape(shape))


def transform_array(array: np.ndarray[Any, Any], source: str, target: str) -> Any:
    """Move a NumPy array from one layout to another."""
    src, dst = parse_layout(source), parse_layout(target)
    whole = src.whole_shape(array.shape)
    outer = [src.axes.index(Axis(letter)) for letter in dst.letters]
    order: list[int] = []
    for letter, position in zip(dst.letters, outer, strict=True):
        order.append(position)
        inner = Axis(letter, src.block_of(letter))
        if inner in src.axes:
            order.append(src.axes.index(inner))
    plain = array.transpose(order).reshape([whole[letter] for letter in dst.letters])
    split: list[int] = []
    where: dict[Axis, int] = {}
    for letter in dst.letters:
        block = dst.block_of(letter)
        where[Axis(letter)] = len(split)
        split.append(whole[letter] // block)
        if Axis(letter, block) in dst.axes:
            where[Axis(letter, block)] = len(split)
            split.append(block)
    return np.ascontiguousarray(plain.reshape(split).transpose([where[a] for a in dst.axes]))


def source_index(
    source: str, target: str, floordiv: Callable[[Any, int], Any], mod: Callable[[Any, int], Any]
) -> Callable[..., tuple[Any, ...]]:
    """Return f(*target_indices) -> source indices, for any kind of index with + and *."""
    src, dst = parse_layout(source), parse_layout(target)

    def index(*indices: Any) -> tuple[Any, ...]:
        whole: dict[str, Any] = {}
        for axis, value in zip(dst.axes, indices, strict=True):
            if axis.block:
                whole[axis.letter] = whole[axis.letter] + value
            else:
                block = dst.block_of(axis.letter)
                whole[axis.letter] = value * block if block > 1 else value
        picked = []
        for axis in src.axes:
            block = src.block_of(axis.letter)
            value = whole[axis.letter]
            if axis.block:
                picked.append(mod(value, axis.block))
            else:
                picked.append(floordiv(value, block) if block > 1 else value)
        return tuple(picked)

    return index
