"""What the numbers of a model's inputs and outputs mean, where its file says so.

The importers put it on "main" as the attribute "meanings"; the headers of generated programs, the
archives and the reports show it.  Passes neither read nor change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Meaning(NamedTuple):
    """One input or output: real = scale * (integer - zero_point), and what its classes are called.

    `scale` is 0 where the numbers are no quantised ones.  `ties_to_even` says how a real number in
    the middle of two integers is rounded: to the even one, as ONNX does it, or away from zero, as
    TFLite does.
    """

    scale: float = 0.0
    zero_point: int = 0
    ties_to_even: bool = False
    labels: tuple[str, ...] = ()


UNKNOWN = Meaning()


class Meanings(NamedTuple):
    """Those of a model: of inputs by name, and of each output, None where nothing is known."""

    inputs: Mapping[str, Meaning]
    outputs: tuple[Meaning | None, ...]


NO_MEANINGS = Meanings({}, ())


def meanings_attribute(
    inputs: Mapping[str, Meaning], outputs: Iterable[Meaning | None]
) -> tuple[tuple[str, Any], ...]:
    """Return the attribute of a function that holds these, or none where there is nothing to say.

    It is made of tuples, strings and numbers, as attributes are written.
    """
    rows = [("in", name, *meaning) for name, meaning in inputs.items() if meaning != UNKNOWN]
    rows += [
        ("out", str(position), *meaning)
        for position, meaning in enumerate(outputs)
        if meaning is not None and meaning != UNKNOWN
    ]
    return (("meanings", tuple(rows)),) if rows else ()


def meanings_of(attribute: Any, outputs: int) -> Meanings:
    """Return what `meanings_attribute` wrote, of a function with so many outputs."""
    inputs: dict[str, Meaning] = {}
    found: list[Meaning | None] = [None] * outputs
    for side, name, scale, zero_point, even, labels in attribute or ():
        meaning = Meaning(float(scale), int(zero_point), bool(even), tuple(map(str, labels)))
        if side == "in":
            inputs[str(name)] = meaning
        elif int(name) < outputs:
            found[int(name)] = meaning
    return Meanings(inputs, tuple(found))
