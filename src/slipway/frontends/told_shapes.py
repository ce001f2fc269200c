"""Shapes as users write them: numbers, and "?", "batch", "1..8" or "n=1..8" for what stays open.

``{"x": ("batch", 3, "?", None)}``: a word names a dimension that several inputs may have, "1..8" is
one with a range, and "?", None and -1 are open without a name.  The command line and every importer
read shapes here, so that a size is spelled one way everywhere.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

from slipway.errors import ModelError, SlipwayError
from slipway.relay.dims import ANY, Dim, is_open

_RANGE = re.compile(r"(?:(?P<name>[^\W\d]\w*)=)?(?P<low>\d+)\.\.(?P<high>\d+)")
SPELLINGS = (
    'a number, "?" for an open size, "n" for one with a name, "1..8" or "n=1..8" for a range'
)


def told_shapes(given: object, extents: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return {input: shape} of what a user gave; None gives none.

    `extents` says what a name stands for that is no dimension of the user's own.  A list of shapes
    is that of a sequence's elements, and None in place of a shape stays as it is.  Raises
    ModelError for what is no such table, with the input.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(
            f"shapes are given by the input's name, {{'x': (1, 3, 224, 224)}}, not as {given!r}"
        )
    made = {}
    for key, shape in given.items():
        name = key if isinstance(key, str) else getattr(key, "name", None)
        if not isinstance(name, str):
            raise ModelError(f"shapes: {key!r} is no name of an input; write {{'x': (1, 3)}}")
        made[name] = _shape(name, shape, extents or {})
    return made


def told_shape(name: str, shape: object) -> tuple[Any, ...]:
    """Return one shape that a user gave the input `name`."""
    return tuple(_shape(name, shape, {}))


def _shape(name: str, shape: Any, extents: Mapping[str, Any]) -> Any:
    if shape is None:
        return None
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise ModelError(
            f"the shape of the input {name!r} is {shape!r}; write its sizes as a tuple: (4,) or "
            "(1, 3, 224, 224)"
        )
    sizes = list(shape)
    if sizes and all(_is_shape(size) for size in sizes):  # of the elements of a sequence
        return [_shape(name, size, extents) for size in sizes]
    return tuple(
        read_size(size, f"{name}_{axis}", f"the shape of the input {name!r}", extents)
        for axis, size in enumerate(sizes)
    )


def _is_shape(size: object) -> bool:
    return isinstance(size, Iterable) and not isinstance(size, str) and not hasattr(size, "item")


def read_size(
    size: Any, own_name: str, where: str, extents: Mapping[str, Any] | None = None
) -> Any:
    """Return a size: an int, or an open dimension, of `own_name` where it has a range alone.

    Raises ModelError, which begins with `where`, for what is none.
    """
    if is_open(size):
        return size
    if size is None or (isinstance(size, str) and size.strip() == "?"):
        return ANY
    if isinstance(size, str):
        return _read_text(size.strip(), own_name, where, extents or {})
    number = _number(size)
    if number is None or number < -1:
        raise ModelError(f"{where} has the size {size!r}; write {SPELLINGS}")
    return ANY if number == -1 else number


def _number(size: Any) -> int | None:
    if isinstance(size, bool):
        return None
    try:
        return operator.index(size)
    except TypeError:
        pass
    value = getattr(size, "value", size)  # an IntImm
    try:
        return int(value) if float(value) == int(value) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _read_text(text: str, own_name: str, where: str, extents: Mapping[str, Any]) -> Any:
    if text.isdecimal():
        return int(text)
    if text in extents:
        return extents[text]
    found = _RANGE.fullmatch(text)
    try:
        if found is not None:
            name = found["name"] or re.sub(r"\W", "_", own_name)
            return Dim(name, int(found["low"]), int(found["high"]))
        if re.fullmatch(r"[^\W\d][\w.\-/:+*() ]*", text):
            return Dim(re.sub(r"\W", "_", text))
    except SlipwayError as error:
        raise ModelError(f"{where} has the size {text!r}: {error}") from None
    raise ModelError(f"{where} has the size {text!r}; write {SPELLINGS}")
