"""What is given to a client, checked before anything is sent."""

from __future__ import annotations

import math
import operator
from numbers import Real

from slipway.errors import ArgumentTypeError, ArgumentValueError

LONGEST_S = (2**32 - 1) / 1000  # milliseconds of 32 bits, 49 days


def seconds(value: float, what: str, nothing: str = "") -> float:
    """Return a time, of a number that the protocol can carry.

    `nothing` says what 0 means; without it the time has to be longer.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"{what}={value!r} is no number of seconds.")
    number = float(value)
    if math.isfinite(number) and 0 <= number <= LONGEST_S and (nothing or number):
        return number
    bound = f"0 ({nothing})" if nothing else "more than 0"
    raise ArgumentValueError(
        f"{what}={value!r} is no time that can be kept: give seconds, {bound} to {LONGEST_S:.0f}."
    )


def text(value: str, what: str) -> str:
    """Return a text that can be sent."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is a text, and it is given {_short(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError(f"{what} {_short(value)} is no Unicode text: {error}.") from None
    return value


def secret(value: str | None, what: str = "the token") -> str | None:
    """Return a token that can be proved; a message does not show it."""
    if value is None or (isinstance(value, str) and not _surrogates(value)):
        return value
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is a text, not of type {type(value).__name__}.")
    raise ArgumentValueError(f"{what} is no Unicode text: it has half a character in it.")


def whole(value: int, what: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """Return a whole number from `low` to `high`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{what}={_short(value)} is no whole number.") from None
    if low <= number <= high:
        return number
    raise ArgumentValueError(f"{what}={number} is not from {low} to {high}.")


def _surrogates(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"
