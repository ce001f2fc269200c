"""Einsum, through transposes, sums and batched matrix products."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_equation(text: str) -> bool:
    """Return whether the labels of an equation are letters, and dots come by three."""
    return re.fullmatch(r"([A-Za-z ,]|\.\.\.)*(->([A-Za-z ]|\.\.\.)*)?", text) is not None


class _Term:
    """An operand and the labels of its axes, each once."""

    def __init__(self, value: Expr, labels: str) -> None:
        self.value, self.labels = value, labels

    def extent(self, label: str) -> int:
        return int(self.value.tensor_type.shape[self.labels.index(label)])

    def summed(self, keep: str) -> _Term:
        """Sum over the axes whose labels are not in `keep`."""
        gone = tuple(a for a, label in enumerate(self.labels) if label not in keep)
        if not gone:
            return self
        left = "".join(label for label in self.labels if label in keep)
        return _Term(relay.sum(self.value, gone), left)

    def arranged(self, labels: str) -> Any:
        """The value with its axes in the order of `labels`."""
        axes = [self.labels.index(label) for label in labels]
        return self.value if axes == sorted(axes) else relay.transpose(self.value, axes)


def _without_repeats(node: NodeView, value: Expr, labels: str) -> _Term:
    """Take the diagonal of axes with one label: a product with the unit matrix, then a sum."""
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape = value.tensor_type.shape
            view = [1] * len(shape)
            view[first] = view[second] = shape[first]
            check_table(node, shape[first], shape[first])
            unit = np.eye(shape[first], dtype=value.tensor_type.dtype).reshape(view)
            value = relay.sum(relay.multiply(value, const(unit)), (second,))
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
    for label in rhs.labels:  # an extent of 1 is broadcast
        extents[label] = max(extents.get(label, 1), rhs.extent(label))

    def size(labels: str) -> int:
        return int(np.prod([extents[label] for label in labels], dtype=np.int64))

    def matrix(term: _Term, order: str, shape: tuple[int, ...]) -> Any:
        value = term.arranged(order)
        full = tuple(extents[label] for label in order)
        if value.tensor_type.shape != full:
            value = relay.broadcast_to(value, full)
        return relay.reshape(value, shape)

    left = matrix(lhs, batch + rows + inner, (size(batch), size(rows), size(inner)))
    right = matrix(rhs, batch + inner + columns, (size(batch), size(inner), size(columns)))
    product = relay.nn.batch_matmul(left, right, transpose_b=False)
    product = relay.cast(product, left.tensor_type.dtype)  # a half is summed in float32
    labels = batch + rows + columns
    return _Term(relay.reshape(product, [extents[label] for label in labels]), labels)


@converter("Einsum")
def einsum(node: NodeView) -> Any:
    """Any number of operands, taken two by two from the left."""
    equation = re.sub(r"\s", "", node.attr("equation"))
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    if len(operands) != len(node.inputs):
        raise node.unsupported(f"equation {equation!r} for {len(node.inputs)} operands")
    if not is_equation(equation):
        raise node.unsupported(f"equation {equation!r}: the labels of axes are letters")
    free = [c for c in _LETTERS if c not in equation]
    ranks = [
        node.rank(n) - len(operand.replace("...", ""))
        for n, operand in enumerate(operands)
        if "..." in operand
    ]
    dots = "".join(free[: max(ranks, default=0)])
    terms = []
    for n, operand in enumerate(operands):
        named = len(operand.replace("...", ""))
        if named > node.rank(n) or ("..." not in operand and named != node.rank(n)):
            raise node.unsupported(f"equation {equation!r}: operand {n} has {node.rank(n)} axes")
        own = dots[len(dots) - (node.rank(n) - len(operand.replace("...", ""))) :]
        labels = operand.replace("...", own if dots else "")
        terms.append(_without_repeats(node, node.input(n), labels))
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    right = right.replace("...", dots)
    result = terms[0]
    for n, term in enumerate(terms[1:], 2):
        later = "".join(t.labels for t in terms[n:])
        result = _pair(result, term, right + later)
    return result.summed(right).arranged(right)
