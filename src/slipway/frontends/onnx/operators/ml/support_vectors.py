"""Support vector machines: sums of a row's likeness to vectors, and classes that pairs vote for."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.ml.linear import (
    chosen,
    labels_of,
    logistic_pair,
    numbers_of,
    rows_of,
    transformed,
)
from slipway.relay.expr import Var
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType
from slipway.transform.graph.loop_invariants import closed, looped

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

# LIBSVM, "A Library for Support Vector Machines", section 8: probabilities of classes from those
# of pairs are improved until the largest error is below this, shared among the classes.
_ERROR = 0.005
_MOST_ROUNDS = 100
_LEAST_SHARE = 1e-7  # of a pair


def likeness(node: NodeView, x: Expr, vectors: np.ndarray[Any, Any]) -> Any:
    """Return how like each row is to each vector: rows, vectors."""
    kind = node.attr("kernel_type", "LINEAR")
    gamma, bias, degree = (*numbers_of(node, "kernel_params"), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        apart = relay.expand_dims(x, 1) - const(vectors[None])
        squares = relay.sum(relay.multiply(apart, apart), -1)
        return relay.exp(relay.multiply(squares, const(np.float32(-gamma))))
    products = relay.nn.dense(x, const(vectors))
    if kind == "LINEAR":
        return products
    if kind not in ("POLY", "SIGMOID"):
        raise node.unsupported(f"kernel_type {kind!r}")
    products = relay.multiply(products, const(np.float32(gamma))) + const(np.float32(bias))
    if kind == "SIGMOID":
        return relay.tanh(products)
    if degree in (2, 3):
        square = relay.multiply(products, products)
        return square if degree == 2 else relay.multiply(square, products)
    return relay.power(products, const(np.float32(degree)))


@converter("ai.onnx.ml.SVMRegressor")
def svm_regressor(node: NodeView) -> Any:
    """The weighted sum of a row's likeness to each support vector."""
    x, factors = rows_of(node), numbers_of(node, "coefficients")
    count = node.attr("n_supports", 0)
    vectors, offset = numbers_of(node, "support_vectors"), numbers_of(node, "rho")
    width = x.tensor_type.shape[-1]
    if not count:  # a linear one has its factors at once
        vectors, factors, count = factors, np.ones(1, np.float32), 1
    if vectors.size != count * width or factors.size != count or offset.size != 1:
        raise node.unsupported(
            f"{vectors.size} numbers of {count} support vectors of {width} columns, with "
            f"{factors.size} coefficients"
        )
    products = likeness(node, x, vectors.reshape(count, width))
    made = relay.nn.dense(products, const(factors.reshape(1, -1))) + const(offset)
    if node.attr("one_class", 0):
        one = const(np.float32(1.0))
        made = relay.where(relay.greater(made, const(0.0)), one, relay.negative(one))
    return transformed(node, made)


@converter("ai.onnx.ml.SVMClassifier")
def svm_classifier(node: NodeView) -> Any:
    """The class that most pairs vote for; what decides each pair, or the classes' probabilities."""
    labels = labels_of(node, ("classlabels_ints", "classlabels_strings"))
    sizes = np.array(node.attr("vectors_per_class", ()), np.int64)
    if labels.size < 2:
        raise node.unsupported("it has one class")
    if not sizes.sum():
        return _linear(node, labels)
    x, classes, count = rows_of(node), labels.size, int(sizes.sum())
    pairs = list(combinations(range(classes), 2))
    vectors, factors = numbers_of(node, "support_vectors"), numbers_of(node, "coefficients")
    offsets = numbers_of(node, "rho")
    slopes, shifts = numbers_of(node, "prob_a"), numbers_of(node, "prob_b")
    width = x.tensor_type.shape[-1]
    if (
        sizes.size != classes
        or vectors.size != count * width
        or factors.size != count * (classes - 1)
        or offsets.size != len(pairs)
        or slopes.size != shifts.size
        or slopes.size not in (0, len(pairs))
    ):
        raise node.unsupported(
            f"{vectors.size} numbers of {count} support vectors of {width} columns, with "
            f"{factors.size} coefficients, {offsets.size} offsets and {slopes.size} slopes for "
            f"{classes} classes"
        )
    check_table(node, len(pairs), count)
    factors = factors.reshape(classes - 1, count)
    weights = np.zeros((len(pairs), count), np.float32)
    owner = np.repeat(np.arange(classes), sizes)
    for row, (one, other) in zip(weights, pairs, strict=True):
        row[owner == one] = factors[other - 1, owner == one]
        row[owner == other] = factors[one, owner == other]
    products = likeness(node, x, vectors.reshape(count, width))
    scores = relay.add(relay.nn.dense(products, const(weights)), const(offsets))
    label = chosen(_votes(scores, pairs, classes), labels)
    if slopes.size:
        shares = _probabilities(_pair_shares(scores, slopes, shifts), pairs, classes)
        return [label, transformed(node, shares)]
    if classes > 2:
        return [label, transformed(node, scores)]
    kind = node.attr("post_transform", "NONE")
    if kind == "LOGISTIC":
        return [label, logistic_pair(scores)]
    first = relay.negative(scores) if kind == "NONE" else relay.subtract(const(1.0), scores)
    return [label, relay.concatenate([first, scores], 1)]


def _linear(node: NodeView, labels: np.ndarray[Any, Any]) -> Any:
    """Return label and scores of a machine without vectors: a weighted sum for each class."""
    x, factors, offset = rows_of(node), numbers_of(node, "coefficients"), numbers_of(node, "rho")
    width = x.tensor_type.shape[-1]
    if factors.size != labels.size * width or not offset.size:
        raise node.unsupported(
            f"{factors.size} coefficients and {offset.size} offsets for {labels.size} classes and "
            f"{node.type()}"
        )
    products = relay.nn.dense(x, const(factors.reshape(labels.size, width)))
    scores = relay.add(products, const(offset[:1]))
    label = chosen(scores, labels)
    if labels.size == 2:  # the second one where either sum says so, as onnxruntime has it
        best = relay.max(scores, -1)
        says = relay.greater(best, const(0.0))
        if (factors >= 0).all():
            says = relay.greater_equal(best, const(0.5))
        label = relay.where(says, const(labels[1]), label)
    return [label, transformed(node, scores)]


def _votes(scores: Expr, pairs: list[tuple[int, int]], classes: int) -> Any:
    """Return how many pairs decide for each class: the first one's score is positive."""
    gain = np.zeros((classes, len(pairs)), np.float32)
    usual = np.zeros(classes, np.float32)
    for number, (one, other) in enumerate(pairs):
        gain[one, number], gain[other, number] = 1, -1
        usual[other] += 1
    first = relay.cast(relay.greater(scores, const(0.0)), "float32")
    return relay.add(relay.nn.dense(first, const(gain)), const(usual))


def _pair_shares(scores: Expr, slopes: np.ndarray[Any, Any], shifts: np.ndarray[Any, Any]) -> Any:
    """Return the probability of each pair's first class."""
    found = relay.sigmoid(
        relay.negative(relay.add(relay.multiply(scores, const(slopes)), const(shifts)))
    )
    return relay.clip(found, _LEAST_SHARE, 1 - _LEAST_SHARE)


def _probabilities(shares: Expr, pairs: list[tuple[int, int]], classes: int) -> Any:
    """Return the classes' probabilities whose pairs are most like those found.

    With r the pairs' shares, q[i, i] is the sum of r[j, i]^2 and q[i, j] is -r[j, i] r[i, j]; p is
    improved class by class until q p is the same for all, and then p q p.
    """
    rows = shares.tensor_type.shape[0]
    position = np.full((classes, classes), 2 * len(pairs))
    for pair, (one, other) in enumerate(pairs):
        position[one, other], position[other, one] = pair, len(pairs) + pair
    all_shares = relay.concatenate(
        [shares, relay.subtract(const(1.0), shares), relay.zeros((rows, 1), "float32")], 1
    )
    r = relay.reshape(
        relay.take(all_shares, const(position.reshape(-1)), 1, mode="fast"), (-1, classes, classes)
    )
    squares = relay.expand_dims(relay.sum(relay.multiply(r, r), 1), 1)
    diagonal = relay.multiply(squares, const(np.eye(classes, dtype=np.float32)))
    q = relay.subtract(diagonal, relay.multiply(r, relay.transpose(r, (0, 2, 1))))

    number, going = Var("number", TensorType((), "int64")), Var("going", TensorType((), "bool"))
    p = Var("p", TensorType((rows, classes), "float32"))
    qp = relay.sum(relay.multiply(q, relay.expand_dims(p, 1)), 2)
    pqp = relay.sum(relay.multiply(p, qp), 1, True)
    error = relay.max(relay.abs(relay.subtract(qp, pqp)), 1, True)
    wrong = relay.greater_equal(error, const(np.float32(_ERROR / classes)))
    better = relay.where(wrong, _improved(q, p, qp, pqp), p)
    test = relay.logical_and(going, relay.less(number, const(_MOST_ROUNDS, "int64")))
    first = relay.add(relay.zeros((rows, classes), "float32"), const(np.float32(1 / classes)))
    _, _, found = looped(
        [number, going, p],
        test,
        [number + const(1, "int64"), relay.any(wrong), better],
        [const(0, "int64"), const(True), first],
    )
    return found


def _improved(q: Expr, p: Expr, qp: Expr, pqp: Expr) -> Any:
    """Return p after a step for each class, which leave its sum at one."""
    classes = p.tensor_type.shape[1]
    states = [Var(name, value.tensor_type) for name, value in (("p", p), ("qp", qp), ("pqp", pqp))]
    one = Var("one", TensorType((classes,), "float32"))  # the class, as a row of zeros but for it
    now, product, square = states

    def of(values: Expr) -> Any:
        return relay.sum(relay.multiply(values, one), 1, True)

    row = relay.sum(relay.multiply(q, relay.expand_dims(one, 1)), 1)
    at, own = of(product), of(row)
    step = relay.divide(relay.subtract(square, at), own)
    grown = relay.add(const(1.0), step)
    new = [
        relay.divide(relay.add(now, relay.multiply(step, one)), grown),
        relay.divide(relay.add(product, relay.multiply(step, row)), grown),
        relay.divide(
            relay.divide(square + relay.multiply(step, relay.multiply(step, own) + at + at), grown),
            grown,
        ),
    ]
    body, others = closed([*states, one], relay.Tuple(tuple(new)))
    given = const(np.eye(classes, dtype=np.float32))
    return relay.scan(body, [p, qp, pqp], [given], others)[0]
