"""Whether a value fits the declared type of a node's field: what a document says is not trusted.

The hints of the node classes are the schema.  They are nodes, numbers, texts, tuples of these, and
unions with None; what is declared otherwise is not checked.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from slipway.ir.node import INTEGER_LIKE, NODE_CLASSES, Node

Check = Callable[[Any], bool]


_KNOWN: dict[type[Node], tuple[tuple[str, Check], ...]] = {}


def field_checks(cls: type[Node]) -> tuple[tuple[str, Check], ...]:
    """Return (name, test of a value) for each field of a node class, in order."""
    if cls not in _KNOWN:
        hints = _hints(cls)
        _KNOWN[cls] = tuple((name, _check(hints.get(name, Any))) for name in cls.FIELDS)
    return _KNOWN[cls]


def _hints(cls: type[Node]) -> dict[str, Any]:
    """Return the hints of a class; one that only a type checker imports is a node of that name."""
    found: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(cls, None, found)
        except NameError as error:
            name = str(error.name)
            named = (c for c in NODE_CLASSES.values() if c.__name__ == name)
            found[name] = next(named, Node)


def _check(hint: Any) -> Check:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = [_check(argument) for argument in arguments]
        return lambda value: any(option(value) for option in options)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _check(arguments[0])
        return lambda value: isinstance(value, tuple) and all(item(v) for v in value)
    if origin is tuple:
        items = [_check(argument) for argument in arguments]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(items)
            and all(test(v) for test, v in zip(items, value, strict=True))
        )
    if origin is np.ndarray:
        return lambda value: isinstance(value, np.ndarray)
    if hint is float:
        return lambda value: isinstance(value, (int, float))
    if hint is int:
        return lambda value: isinstance(value, (int, *INTEGER_LIKE.values()))
    if isinstance(hint, type) and hint is not Any:
        return lambda value: isinstance(value, hint)
    return lambda value: True
