"""Operators of the domain ai.onnx.ml that are tensor arithmetic; TfIdfVectorizer on integers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

MAX_SKIPS = 256  # between the members of an n-gram; each distance is counted by itself


@converter("ai.onnx.ml.Binarizer")
def binarizer(node: NodeView) -> Any:
    """One where the value is greater than the threshold, else zero."""
    over = relay.greater(node.input(0), node.like(node.attr("threshold", 0.0)))
    return relay.cast(over, node.type().dtype)


@converter("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(node: NodeView) -> Any:
    """Columns at the given positions of the last axis."""
    x = node.input(0)
    if node.rank() == 1:
        x = relay.expand_dims(x, 0)
    positions = relay.reshape(node.input(1), (-1,))
    return relay.take(x, positions, x.tensor_type.rank - 1, mode="fast")


@converter("ai.onnx.ml.LinearRegressor")
def linear_regressor(node: NodeView) -> Any:
    """Sums of columns by the coefficients, and intercepts; further columns are not read."""
    transform = node.attr("post_transform", "NONE")
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise node.unsupported(f"post_transform {transform!r}")
    targets = node.attr("targets", 1)
    factors = np.array(node.attr("coefficients", ()), np.float32)
    width = node.type().shape[-1]
    if (
        node.rank() != 2
        or not factors.size
        or factors.size % targets
        or (factors.size // targets > width)
    ):
        raise node.unsupported(
            f"{factors.size} coefficients for {targets} targets of {node.type()}"
        )
    factors = factors.reshape(targets, -1)
    x = relay.cast(node.input(0), "float32")
    if factors.shape[1] < width:
        x = relay.strided_slice(x, [0], [factors.shape[1]], axes=[1])
    result = relay.nn.dense(x, const(factors))
    if node.attr("intercepts"):
        result = relay.add(result, const(np.array(node.attr("intercepts"), np.float32)))
    if transform == "LOGISTIC":
        return relay.sigmoid(result)
    return relay.nn.softmax(result, -1) if transform == "SOFTMAX" else result


def _pool(node: NodeView) -> list[np.ndarray[Any, Any]]:
    """Return the n-grams of the vocabulary by length: arrays (count, n) for n = 1, 2, ..."""
    if node.attr("pool_strings"):
        raise node.unsupported("its vocabulary holds strings")
    pool = np.array(node.attr("pool_int64s", ()), np.int64)
    starts = [*node.attr("ngram_counts"), len(pool)]
    lengths = [stop - start for start, stop in pairwise(starts)]
    if starts[0] != 0 or any(n < 0 or n % grams for grams, n in enumerate(lengths, 1)):
        raise node.unsupported(
            f"its attribute 'ngram_counts' {starts[:-1]} does not cut its vocabulary of "
            f"{len(pool)} numbers into n-grams"
        )
    return [pool[start:stop].reshape(-1, n) for n, (start, stop) in enumerate(pairwise(starts), 1)]


@converter("TfIdfVectorizer")
def tf_idf_vectorizer(node: NodeView) -> Any:
    """How often each n-gram of the vocabulary occurs in each row, with gaps between its members."""
    mode = node.attr("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise node.unsupported(f"mode {mode!r}")
    shape = node.type().shape
    if len(shape) not in (1, 2):
        raise node.unsupported(f"its input has {len(shape)} axes; 1 or 2 are served")
    rows = shape[0] if len(shape) == 2 else 1
    x = relay.reshape(relay.cast(node.input(0), "int64"), (rows, shape[-1]))
    shortest, longest = node.attr("min_gram_length"), node.attr("max_gram_length")
    if not shortest <= longest <= len(node.attr("ngram_counts")):
        raise node.unsupported(
            f"its n-grams have {shortest} to {longest} members, where its vocabulary has some of "
            f"up to {len(node.attr('ngram_counts'))}"
        )
    skips = min(node.attr("max_skip_count"), shape[-1])
    if skips * len(_pool(node)) > MAX_SKIPS:
        raise node.unsupported(f"max_skip_count is {skips}; at most {MAX_SKIPS} are served")
    counts = []
    for n, grams in enumerate(_pool(node), 1):
        wanted = shortest <= n <= longest and len(grams)
        gaps = range(1, 2 if n == 1 else skips + 2)
        found = [_count(x, grams, gap) for gap in gaps if shape[-1] > (n - 1) * gap and wanted]
        total = relay.zeros((rows, len(grams)), "float32")
        for one in found:
            total = relay.add(total, one)
        counts.append(total)
    positions = np.array(node.attr("ngram_indexes"), np.int64)
    weights = np.array(node.attr("weights", (1.0,) * len(positions)), np.float32)
    known = sum(map(len, _pool(node)))
    for name, given in (("ngram_indexes", positions), ("weights", weights)):
        if len(given) != known:
            raise node.unsupported(f"it has {len(given)} {name} for {known} n-grams")
    # Column i of the result is n-gram source[i]; the last one is a column of zeros.
    if not positions.size or positions.min() < 0:
        raise node.unsupported("ngram_indexes must be positions in the result")
    check_table(node, int(positions.max()) + 1)
    source = np.full(int(positions.max()) + 1, len(positions))
    source[positions] = np.arange(len(positions))
    all_counts = relay.concatenate([*counts, relay.zeros((rows, 1), "float32")], 1)
    if mode == "IDF":
        all_counts = relay.cast(relay.greater(all_counts, const(0.0, "float32")), "float32")
    if mode != "TF":
        all_counts = relay.multiply(all_counts, const(np.append(weights, np.float32(0))))
    result = relay.take(all_counts, const(source), 1)
    return relay.reshape(result, (*shape[:-1], len(source)))


def _count(x: Expr, grams: np.ndarray[Any, Any], gap: int) -> Any:
    """Count each n-gram, its members `gap` apart, in each row of `x`."""
    rows, columns = x.tensor_type.shape
    count, n = grams.shape
    positions = columns - (n - 1) * gap
    all_equal = None
    for member in range(n):
        part = relay.strided_slice(x, [0, member * gap], [rows, member * gap + positions])
        part = relay.reshape(part, (rows, positions, 1))
        hit = relay.equal(part, const(grams[:, member].reshape(1, 1, count)))
        all_equal = hit if all_equal is None else relay.logical_and(all_equal, hit)
    assert all_equal is not None  # an n-gram has a member
    return relay.sum(relay.cast(all_equal, "float32"), 1)
