"""Values of a model's description, each of the kind that is asked for.

What is missing, of another kind or beyond all sense raises ModelError with its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import ModelError

_MOST = 2**31  # of whatever is counted
_LARGEST = 1e30


def need(given: Mapping[str, Any], key: str, where: str) -> Any:
    """Return a value that must be there."""
    if given.get(key) is None:
        raise ModelError(f"{where} lacks {key!r}: it is not the whole description of a model")
    return given[key]


def count_of(given: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    """Return a positive whole number."""
    value = given.get(key)
    value = default if value is None else value
    if value is None:
        need(given, key, where)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(f"{where}: {key} is {shown(value)}, and must be a positive whole number")
    if value > _MOST:
        raise ModelError(f"{where}: {key} is {shown(value)}, more than any model has ({_MOST:,})")
    return value


def number_of(given: Mapping[str, Any], key: str, where: str, default: float) -> float:
    """Return a number that a float holds."""
    value = given.get(key)
    if value is None:
        return default
    # An integer of JSON may be larger than a float holds; the comparison takes any.
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not -_LARGEST <= value <= _LARGEST:
        raise ModelError(f"{where}: {key} is {shown(value)}, and must be a number")
    return float(value)


def positive(given: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    """Return a positive number; it must be there where `default` is None."""
    if default is None:
        need(given, key, where)
    value = number_of(given, key, where, default or 0.0)
    if value <= 0:
        raise ModelError(f"{where}: {key} is {value}, and must be positive")
    return value


def list_of(given: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """Return a list, an empty one where the key is missing."""
    value = given.get(key)
    if value is not None and not isinstance(value, list):
        raise ModelError(f"{where}: {key} is {shown(value)}, and must be a list")
    return value or []


def token_of(value: Any, key: str, where: str) -> int:
    """Return a token's number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"{where}: {key} is {shown(value)}, and must be a token's number")
    return value


def tokens_of(given: Mapping[str, Any], key: str, where: str) -> tuple[int, ...]:
    """Return one token or several."""
    value = given.get(key)
    if value is None:
        return ()
    several = value if isinstance(value, list) else [value]
    return tuple(token_of(v, key, where) for v in several)


def shown(value: Any) -> str:
    """Return a value for a message, short."""
    return repr(value)[:80]
