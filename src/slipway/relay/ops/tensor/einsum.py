"""einsum, through transposes, sums and batched matrix products."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Tuple
from slipway.relay.op_registry import BadArgument, as_expr
from slipway.relay.ops.build import call
from slipway.relay.ops.dyn import needs_sizes

if TYPE_CHECKING:
    from slipway.relay.expr import Expr, ExprLike

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_equation(text: str) -> bool:
    """Return whether the labels of an equation are letters, and dots come by three."""
    return re.fullmatch(r"([A-Za-z ,]|\.\.\.)*(->([A-Za-z ]|\.\.\.)*)?", text) is not None


class _Term:
    """An operand and the labels of its axes, each once."""

    def __init__(self, value: Expr, labels: str) -> None:
        self.value, self.labels = value, labels

    def extent(self, label: str) -> Any:
        return self.value.tensor_type.shape[self.labels.index(label)]

    def summed(self, keep: str) -> _Term:
        """Sum over the axes whose labels are not in `keep`."""
        gone = tuple(a for a, label in enumerate(self.labels) if label not in keep)
        if not gone:
            return self
        left = "".join(label for label in self.labels if label in keep)
        return _Term(call("sum", self.value, gone), left)

    def arranged(self, labels: str) -> Any:
        """The value with its axes in the order of `labels`."""
        axes = [self.labels.index(label) for label in labels]
        return self.value if axes == sorted(axes) else call("transpose", self.value, axes)


def _without_repeats(value: Expr, labels: str) -> _Term:
    """Take the diagonal of axes with one label: zeros elsewhere, then a sum."""
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape = value.tensor_type.shape
            positions = [
                call("reshape", call("arange", 0, shape[first], 1, "int32"),
                     [-1 if axis == at else 1 for axis in range(len(shape))])
                for at in (first, second)
            ]  # fmt: skip
            unit = call("cast", call("equal", *positions), value.tensor_type.dtype)
            value = call("sum", call("multiply", value, unit), (second,))
            labels = labels[:second] + labels[second + 1 :]
    return _Term(value, labels)


def _pair(lhs: _Term, rhs: _Term, keep: str) -> _Term:
    """Multiply two operands, summing over the labels that nothing else needs."""
    shared = [label for label in lhs.labels if label in rhs.labels]
    lhs = lhs.summed(keep + rhs.labels)
    rhs = rhs.summed(keep + lhs.labels)
    batch = "".join(label for label in shared if label in keep)
    inner = "".join(label for label in shared if label not in keep)
    rows = "".join(label for label in lhs.labels if label not in shared)
    columns = "".join(label for label in rhs.labels if label not in shared)
    extents = {label: lhs.extent(label) for label in lhs.labels}
    for label in rhs.labels:
        if extents.get(label, 1) == 1:  # which is broadcast
            extents[label] = rhs.extent(label)

    def size(labels: str) -> Any:
        return prod(extents[label] for label in labels)

    def matrix(term: _Term, order: str, shape: tuple[int, ...]) -> Any:
        value = term.arranged(order)
        full = tuple(extents[label] for label in order)
        if value.tensor_type.shape != full:
            value = call("broadcast_to", value, full)
        return call("reshape", value, shape, allowzero=True)

    left = matrix(lhs, batch + rows + inner, (size(batch), size(rows), size(inner)))
    right = matrix(rhs, batch + inner + columns, (size(batch), size(inner), size(columns)))
    product = call("nn.batch_matmul", left, right, transpose_b=False)
    product = call("cast", product, left.tensor_type.dtype)  # a half is summed in float32
    labels = batch + rows + columns
    shape = [extents[label] for label in labels]
    return _Term(call("reshape", product, shape, allowzero=True), labels)


@needs_sizes
def einsum(data: ExprLike | Sequence[ExprLike], equation: str) -> Any:
    """Sum the products of operands over the labels that the result does not have (numpy.einsum).

    Operands are taken two by two from the left.
    """
    given = as_expr(data)
    values = list(given.fields) if isinstance(given, Tuple) else [given]
    equation = re.sub(r"\s", "", equation)
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    if len(operands) != len(values):
        raise BadArgument("equation", f"is {equation!r} for {len(values)} operands")
    if not is_equation(equation):
        raise BadArgument("equation", f"is {equation!r}: the labels of axes are letters")
    ranks = [value.tensor_type.rank for value in values]
    named = [len(operand.replace("...", "")) for operand in operands]
    for n, operand in enumerate(operands):
        if named[n] > ranks[n] or ("..." not in operand and named[n] != ranks[n]):
            raise BadArgument("equation", f"is {equation!r}: operand {n} has {ranks[n]} axes")
    free = [c for c in _LETTERS if c not in equation]
    hidden = [r - k for r, k, o in zip(ranks, named, operands, strict=True) if "..." in o]
    dots = "".join(free[: max(hidden, default=0)])
    terms = []
    for n, operand in enumerate(operands):
        own = dots[len(dots) - (ranks[n] - named[n]) :]
        labels = operand.replace("...", own if dots else "")
        terms.append(_without_repeats(values[n], labels))
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    right = right.replace("...", dots)
    result = terms[0]
    for n, term in enumerate(terms[1:], 2):
        later = "".join(t.labels for t in terms[n:])
        result = _pair(result, term, right + later)
    return result.summed(right).arranged(right)
