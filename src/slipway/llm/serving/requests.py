"""Values of a request's body, checked: the model it names, texts, and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.errors import ArgumentValueError
from slipway.llm.model import LanguageModel


class UnknownModelError(ArgumentValueError):
    """A request names a model that the server does not have."""


def named_model(model: LanguageModel, body: dict[str, Any]) -> None:
    """Raise UnknownModelError where a body names another model than the one that is served."""
    name = model.description.name
    if body.get("model") not in (None, name):
        raise UnknownModelError(f"the model {body['model']!r} is not here: {name!r} is served")


def texts_of(
    model: LanguageModel, name: str, given: Any, most: int, encode: Callable[[str], list[int]]
) -> list[list[int]]:
    """Return the tokens of one text or several, given as texts or as tokens."""
    if isinstance(given, list) and given and all(isinstance(p, str | list) for p in given):
        if len(given) > most:
            raise ArgumentValueError(f"'{name}' has {len(given)} texts; {most} are served")
        return [_text(model, name, one, encode) for one in given]
    return [_text(model, name, given, encode)]


def _text(
    model: LanguageModel, name: str, given: Any, encode: Callable[[str], list[int]]
) -> list[int]:
    if isinstance(given, str):
        return encode(given)
    count = model.description.vocabulary
    if isinstance(given, list) and given and all(type(t) is int for t in given):
        wrong = next((t for t in given if not 0 <= t < count), None)
        if wrong is not None:
            raise ArgumentValueError(f"the token {wrong} is not in the vocabulary of {count}")
        return given
    raise ArgumentValueError(f"'{name}' must be one text, the tokens of one, or a list of either")


def whole(name: str, value: Any, minimum: int, most: int | None = None) -> int:
    """Return a whole number of a body."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ArgumentValueError(f"'{name}' must be a whole number of at least {minimum}")
    if most is not None and value > most:
        raise ArgumentValueError(f"'{name}' is {value}: at most {most} are served")
    return value


def real(name: str, value: Any, default: float) -> float:
    """Return a number of a body, `default` where it has none."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentValueError(f"'{name}' must be a number")
    try:
        return float(value)
    except OverflowError:  # an integer of JSON may be larger than a float holds
        raise ArgumentValueError(f"'{name}' is larger than any number that is served") from None
