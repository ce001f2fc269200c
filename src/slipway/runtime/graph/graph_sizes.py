"""Open dimensions of a compiled model's graph: named sizes, and formulas of them.

A formula is in reverse Polish order: names of sizes, integers, and the operators ``+ - * // % min()
max()``.  ``("n", 2, "*", 1, "+")`` is 2 n + 1.  In graph.bin a word of it is an i64: the operation
in the lowest four bits, and above them the integer or the number of the size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OPERATORS = ("+", "-", "*", "//", "%", "min()", "max()")
_CONSTANT, _SIZE, _FIRST_OPERATOR = 0, 1, 2
MAX_DEPTH = 16  # of the stack that evaluates a formula: crt/src/graph_sizes.c

Formula = tuple["int | str", ...]


@dataclass(frozen=True)
class OpenSize:
    """A size that is known only when the model runs: from `low` to `high`, both included.

    Inputs tell it; or the entry `teller`, one integer that a node computes, where that is not None.
    """

    name: str
    low: int
    high: int
    teller: int | None = None

    def to_json(self) -> list[str | int]:
        """Return it as graph.json has it."""
        known: list[str | int] = [self.name, self.low, self.high]
        return known if self.teller is None else [*known, self.teller]


@dataclass(frozen=True)
class OpenAxis:
    """Axis `axis` of entry `entry` has the size that a formula gives."""

    entry: int
    axis: int
    formula: Formula


def evaluate(formula: Formula, sizes: Mapping[str, int]) -> int:
    """Return the value of a formula.  Raises ValueError for one that is none."""
    stack: list[int] = []
    for token in formula:
        if isinstance(token, int):
            stack.append(token)
        elif token in OPERATORS:
            if len(stack) < 2:
                raise ValueError(f"the formula {formula} lacks an operand")
            b, a = stack.pop(), stack.pop()
            stack.append(_apply(token, a, b))
        elif token in sizes:
            stack.append(sizes[token])
        else:
            raise ValueError(f"the formula {formula} has the unknown size {token!r}")
        if len(stack) > MAX_DEPTH:
            raise ValueError(f"the formula {formula} is too deep")
    if len(stack) != 1:
        raise ValueError(f"the formula {formula} has {len(stack)} values")
    return stack[0]


def _apply(operator: str, a: int, b: int) -> int:
    if operator in ("//", "%"):
        if b < 1:
            raise ValueError(f"a formula divides by {b}")
        return a // b if operator == "//" else a % b
    if operator in ("min()", "max()"):
        return min(a, b) if operator == "min()" else max(a, b)
    return a + b if operator == "+" else a - b if operator == "-" else a * b


def check_sizes(
    shapes: Sequence[tuple[int, ...]], sizes: Sequence[OpenSize], dims: Sequence[OpenAxis]
) -> None:
    """Raise ValueError for sizes and dimensions that cannot be of entries with these `shapes`."""
    largest = {size.name: size.high for size in sizes}
    if len(largest) < len(sizes) or any(not 0 <= s.low <= s.high for s in sizes):
        raise ValueError("two open sizes have one name, or one has no range")
    for size in sizes:
        if size.teller is not None and not (
            0 <= size.teller < len(shapes) and set(shapes[size.teller]) <= {1}
        ):
            raise ValueError(f"the size {size.name} is told by {size.teller}, which is no number")
    for dim in dims:
        if not 0 <= dim.entry < len(shapes) or not 0 <= dim.axis < len(shapes[dim.entry]):
            raise ValueError(f"axis {dim.axis} of entry {dim.entry} is open, but there is none")
        if not 0 <= evaluate(dim.formula, largest) <= shapes[dim.entry][dim.axis]:
            raise ValueError(f"the formula {dim.formula} exceeds its bound")


def to_words(formula: Formula, names: Sequence[str]) -> list[int]:
    """Return a formula as graph.bin has it."""
    return [
        (token << 4) | _CONSTANT
        if isinstance(token, int)
        else _FIRST_OPERATOR + OPERATORS.index(token)
        if token in OPERATORS
        else (names.index(token) << 4) | _SIZE
        for token in formula
    ]


def from_words(words: Sequence[int], names: Sequence[str]) -> Formula:
    """Return the formula of words.  Raises ValueError or IndexError where they are none."""
    formula: list[int | str] = []
    for word in words:
        operation, value = word & 15, word >> 4
        if operation == _CONSTANT:
            formula.append(value)
        elif operation == _SIZE:
            if value < 0:
                raise ValueError("a formula has a size of a negative number")
            formula.append(names[value])
        else:
            formula.append(OPERATORS[operation - _FIRST_OPERATOR])
    return tuple(formula)
