"""What users give functions: checked before anything is done, or explained when it failed.

Each check raises ArgumentTypeError or ArgumentValueError with the argument, what was given and what
to write in its place.

Operators are built in the innermost loops of importers and passes, so that no call checks the kinds
of its arguments.  `explained` is for the functions as users call them: where one failed with an
error of Python's own, its annotations say which argument could not be meant.  An error that they do
not explain stays as it is.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from slipway.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ExecutionError,
    SlipwayError,
)


def path_of(given: object, what: str, example: str) -> Path:
    """Return the path that `given` is: text, or an object that says its path."""
    if not isinstance(given, str | os.PathLike) or isinstance(os.fspath(given), bytes):
        raise ArgumentTypeError(
            f"{what} is {given!r}, which is no path; write its name, as in {example!r}"
        )
    if not os.fspath(given):
        raise ArgumentValueError(f"{what} is empty; write the name of a file, as {example!r}")
    return Path(given)


def file_to_write(given: object, what: str, example: str) -> Path:
    """Return a path whose folder is there and which is no folder itself."""
    path = path_of(given, what, example)
    if path.is_dir():
        raise ArgumentValueError(
            f"{what} is {str(path)!r}, a folder; write the name of a file in it"
        )
    if not path.absolute().parent.is_dir():
        raise ArgumentValueError(
            f"{what} is {str(path)!r}, and there is no folder {path.absolute().parent}: make it "
            "first"
        )
    return path


def table_of(given: object, what: str, example: str) -> Mapping[str, Any]:
    """Return a table from names, or an empty one for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ArgumentTypeError(f"{what} is {_short(given)}; write a table by name, {example}")
    return given


def items_of(given: object, what: str, example: str) -> list[Any]:
    """Return the items of a list or another collection; a text's are none."""
    if not _is_list(given):
        raise ArgumentTypeError(f"{what} is {_short(given)}; write a list, {example}")
    return list(cast("Iterable[Any]", given))


def function_of(given: object, what: str, example: str) -> Callable[..., Any]:
    """Return what can be called."""
    if not callable(given):
        raise ArgumentTypeError(f"{what} is {_short(given)}, no function; write {example}")
    return given


def text_of(given: object, what: str, example: str) -> str:
    """Return a name."""
    if not isinstance(given, str):
        raise ArgumentTypeError(f"{what} is {_short(given)}, no text; write for example {example}")
    return given


def integer_of(given: object, what: str, minimum: int | None = None) -> int:
    """Return a whole number, a constant of the loop language's too, that is at least `minimum`."""
    value = getattr(given, "value", given)
    value = value.item() if isinstance(value, np.integer) else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(f"{what} is {_short(given)}; write a whole number")
    if minimum is not None and value < minimum:
        raise ArgumentValueError(f"{what} is {value}; write a whole number from {minimum}")
    return value


def number_of(given: object, what: str, *, whole: bool = False) -> Any:
    """Return a number that is not negative, `whole` an integer."""
    kinds = (int,) if whole else (int, float)
    value = given.item() if hasattr(given, "item") and getattr(given, "ndim", 1) == 0 else given
    if isinstance(value, bool) or not isinstance(value, kinds):
        wanted = "a whole number" if whole else "a number"
        raise ArgumentTypeError(f"{what} is {_short(given)}; write {wanted} from 0")
    if not value >= 0:
        raise ArgumentValueError(f"{what} is {value}; write a number from 0")
    return value


def array_of(name: str, value: Any, dtype: Any) -> Any:
    """Return lists and numbers as an array of an input's type."""
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        wanted = "" if dtype is None else f" is {dtype}"
        raise ExecutionError(f"the input {name!r}{wanted}: {error}") from None


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:80]}..."


Kind = tuple[Callable[[Any], bool], str]
"""Of an annotation: how its values are known, and what to write for one."""

_RAW = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


def explained(function: Any, kinds: Mapping[str, Kind]) -> Any:
    """Return `function` with arguments of a wrong kind as ArgumentTypeErrors that name them.

    A class stays itself: its constructor explains.
    """
    if inspect.isclass(function):
        made = vars(function).get("__init__")
        if inspect.isfunction(made) and "as_defined" not in vars(made):
            type.__setattr__(function, "__init__", explained(made, kinds))
        return function
    if not inspect.isfunction(function):
        return function
    if "as_explained" in vars(function):  # two facades offer one function
        return vars(function)["as_explained"]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except SlipwayError:
            raise
        except _RAW as error:
            wrong = _wrong_argument(function, args, options, kinds)
            if wrong is None:
                raise
            raise wrong from error

    vars(call)["as_defined"] = function
    vars(function)["as_explained"] = call
    return call


def explain_all(names: dict[str, Any], listed: Iterable[str], kinds: Mapping[str, Kind]) -> None:
    """Do so with what a facade defines or has imported."""
    names.update({name: explained(names[name], kinds) for name in listed if name in names})


def _wrong_argument(
    function: Any, args: Sequence[Any], options: Mapping[str, Any], kinds: Mapping[str, Kind]
) -> ArgumentTypeError | None:
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **options).arguments
    except TypeError:  # which says itself what is missing or not known
        return None
    for name, value in given.items():
        annotations = _alternatives(str(signature.parameters[name].annotation))
        checks = [_kind(annotation, function, kinds) for annotation in annotations]
        known = [check for check in checks if check is not None]
        if len(known) == len(checks) and not any(fits(value) for fits, _ in known):
            words = " or ".join(words for _, words in known)
            called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
            return ArgumentTypeError(
                f"{called}: argument {name!r} is {_short(value)}; write {words}"
            )
    return None


def _alternatives(annotation: str) -> list[str]:
    """Return the parts of "A | B[C | D]": A and B[C | D]."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter in "[(") - (letter in "])")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _kind(annotation: str, function: Any, kinds: Mapping[str, Kind]) -> Kind | None:
    """Return what is known of an annotation's values; None for one that says nothing."""
    if annotation in kinds:
        return kinds[annotation]
    for begin, kind in _CONTAINERS.items():
        if annotation.startswith(begin):
            return kind
    named = function.__globals__.get(annotation)
    if inspect.isclass(named) and named is not Any and not getattr(named, "_is_protocol", False):
        return (lambda value: isinstance(value, named)), f"a {annotation}"
    return None


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


_CONTAINERS: dict[str, Kind] = {
    "Mapping[": (lambda value: isinstance(value, Mapping), "a table, {name: value}"),
    "dict[": (lambda value: isinstance(value, Mapping), "a table, {name: value}"),
    "Sequence[": (_is_list, "a list"),
    "Iterable[": (_is_list, "a list"),
    "tuple[": (_is_list, "a tuple"),
    "list[": (_is_list, "a list"),
    "Callable[": (callable, "a function"),
}


def is_whole(value: object) -> bool:
    """Return whether `value` is a whole number that 64 bits hold."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value) and value == int(value)
    return isinstance(value, int | np.integer) and abs(int(value)) < 2**63


def is_number(value: object) -> bool:
    """Return whether `value` is a number; infinity is one, which a limit may be."""
    return isinstance(value, int | float | np.number)


def are(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return whether a value is a list of what `fits`."""
    return lambda value: isinstance(value, Sequence | np.ndarray) and all(map(fits, value))


def kinds_of(whole: Callable[[Any], bool]) -> dict[str, Kind]:
    """Return the kinds that every layer has, where `whole` says what counts as a whole number."""

    def extents(value: object) -> bool:
        return whole(value) or are(whole)(value)

    return {
        "None": (lambda value: value is None, "None"),
        "bool": (
            lambda value: isinstance(value, bool | int | np.bool_ | np.integer), "True or False"
        ),
        "int": (whole, "a whole number"),
        "SupportsIndex": (whole, "a whole number"),
        "float": (is_number, "a number"),
        "str": (lambda value: isinstance(value, str), "text"),
        "Path": (
            lambda value: isinstance(value, str | os.PathLike) and not isinstance(value, bytes),
            "a path",
        ),
        "Extents": (extents, "whole numbers"),
        "Axes": (lambda value: value is None or extents(value), "axes: whole numbers"),
        "Sequence[int]": (are(whole), "a list of whole numbers"),
        "Sequence[SupportsIndex]": (are(whole), "a list of whole numbers"),
        "Sequence[float]": (are(is_number), "a list of numbers"),
        "tuple[int, int]": (are(whole), "a pair of whole numbers"),
        "Sequence[Extents]": (are(extents), "a list of pairs of whole numbers"),
    }  # fmt: skip


COMMON = kinds_of(is_whole)
"""The kinds that need no layer's own."""
