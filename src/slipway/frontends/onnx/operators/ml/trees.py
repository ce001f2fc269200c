"""Ensembles of trees: one table of nodes, which every row walks down in all trees at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.ml.linear import (
    chosen,
    labels_of,
    logistic_pair,
    numbers_of,
    of_two,
    rows_of,
    transformed,
)
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

_MODES = {
    "BRANCH_LEQ": relay.less_equal, "BRANCH_LT": relay.less, "BRANCH_GTE": relay.greater_equal,
    "BRANCH_GT": relay.greater, "BRANCH_EQ": relay.equal, "BRANCH_NEQ": relay.not_equal,
}  # fmt: skip
MEMBER = "BRANCH_MEMBER"
MAX_DEPTH = 256
Array = np.ndarray[Any, Any]


@dataclass
class Trees:
    """The nodes of all trees in one table; a leaf leads to itself.

    A node sends a row on to `yes` where its feature is related to the limit by the mode, else to
    `no`. A leaf gives each target its weight; `says` is whether it has one. `members` are the sets
    of values, padded with NaN, of nodes of the mode BRANCH_MEMBER.
    """

    node: NodeView
    modes: Array
    features: Array
    limits: Array
    missing: Array
    yes: Array
    no: Array
    roots: Array
    weights: Array
    says: Array
    members: Array | None = None

    def __post_init__(self) -> None:
        self.features = np.where(self.modes == "LEAF", 0, self.features)
        self.depth = self._depth(self.modes == "LEAF")

    def _depth(self, leaf: Array) -> int:
        """Return how many steps lead from the roots to all leaves."""
        here, steps = np.unique(self.roots), 0
        while not leaf[here].all():
            here, steps = np.unique(np.concatenate([self.yes[here], self.no[here]])), steps + 1
            if steps > MAX_DEPTH:
                raise self.node.unsupported(
                    f"its trees are deeper than {MAX_DEPTH}, or lead back into themselves"
                )
        return steps

    def leaves(self, x: Expr) -> Any:
        """Return the leaf of each row in each tree."""
        rows, width = x.tensor_type.shape
        if int(self.features.max()) >= width or int(self.features.min()) < 0:
            raise self.node.unsupported(
                f"it reads column {int(self.features.max())} of {width} columns"
            )
        zeros = relay.zeros((rows, 1), "int32")
        at = relay.add(zeros, const(self.roots.astype(np.int32).reshape(1, -1)))
        tables = {
            "feature": self.features, "yes": self.yes, "no": self.no, "limit": self.limits,
            "missing": self.missing,
        }  # fmt: skip
        used = sorted({*self.modes} - {"LEAF"})
        for mode in used[1:]:
            tables[mode] = self.modes == mode
        for _ in range(self.depth):

            def of(name: str, at: Any = at) -> Any:
                table = tables[name]
                table = table.astype(np.int32) if table.dtype == np.int64 else table
                return relay.take(const(table), at, mode="fast")

            def holding(mode: str, value: Any, of: Any = of, at: Any = at) -> Any:
                if mode != MEMBER:
                    return _MODES[mode](value, of("limit"))
                sets = relay.take(const(self.members), at, 0, mode="fast")
                return relay.any(relay.equal(relay.expand_dims(value, 2), sets), 2)

            value = relay.gather(x, 1, of("feature"))
            holds = holding(used[0], value)
            for mode in used[1:]:
                holds = relay.where(of(mode), holding(mode, value), holds)
            if self.missing.any():
                nan = relay.logical_and(relay.isnan(value), of("missing"))
                holds = relay.logical_or(holds, nan)
            # A kernel for each step: one of all steps would have each of them in several places.
            at = relay.annotation.stop_fusion(relay.where(holds, of("yes"), of("no")))
        return at

    def parts(self, x: Expr) -> Any:
        """Return what each tree gives each row: rows, trees, targets."""
        return relay.take(const(self.weights), self.leaves(x), 0, mode="fast")


def numbered_trees(node: NodeView, targets: str, count: int) -> Trees:
    """Return the trees of an operator whose nodes are named by tree and number."""

    def ints(name: str) -> Array:
        return np.array(node.attr(name, ()), np.int64)

    trees, ids = ints("nodes_treeids"), ints("nodes_nodeids")
    features, limits = ints("nodes_featureids"), numbers_of(node, "nodes_values")
    modes = np.array(node.attr("nodes_modes", ()))
    missing = ints("nodes_missing_value_tracks_true").astype(bool)
    yes, no = ints("nodes_truenodeids"), ints("nodes_falsenodeids")
    lengths = {each.size for each in (trees, ids, features, limits, yes, no)}
    if lengths != {modes.size} or not trees.size or missing.size not in (0, ids.size):
        raise node.unsupported(f"lists of its nodes have {sorted(lengths)} entries")
    unknown = {*modes} - {"LEAF", *_MODES}
    if unknown:
        raise node.unsupported(f"nodes of the mode {', '.join(sorted(unknown))}")
    position = {key: at for at, key in enumerate(zip(trees, ids, strict=True))}
    itself, leaf = np.arange(ids.size), modes == "LEAF"
    weights = np.zeros((ids.size, count), np.float32)
    says = np.zeros((ids.size, count), bool)

    def following(to: Array) -> Array:
        return np.array(
            [
                at if end else position[tree, number]
                for at, tree, number, end in zip(itself, trees, to, leaf, strict=True)
            ]
        )

    parts = zip(
        ints(f"{targets}_treeids"), ints(f"{targets}_nodeids"), ints(f"{targets}_ids"),
        numbers_of(node, f"{targets}_weights"), strict=True,
    )  # fmt: skip
    try:
        yes, no = following(yes), following(no)
        for tree, number, target, weight in parts:
            if not 0 <= target < count:
                raise node.unsupported(f"{targets}_ids has {target}, and there are {count}")
            weights[position[tree, number], target] += weight
            says[position[tree, number], target] = True
    except KeyError as error:
        raise node.unsupported(f"there is no node (tree, number) {error}") from None
    missing = missing if missing.size else np.zeros(ids.size, bool)
    roots = np.array([np.flatnonzero(trees == tree)[0] for tree in dict.fromkeys(trees)])
    return Trees(node, modes, features, limits, missing, yes, no, roots, weights, says)


AGGREGATES = {"SUM": relay.sum, "AVERAGE": relay.mean, "MIN": relay.min, "MAX": relay.max}


def together(trees: Trees, x: Expr, how: str) -> Any:
    """Return what the leaves of all trees give together, for each row and target."""
    limit = {"MIN": np.inf, "MAX": -np.inf}.get(how)
    if limit is not None:  # a leaf without a weight says nothing
        trees.weights = np.where(trees.says, trees.weights, trees.weights.dtype.type(limit))
    made = AGGREGATES[how](trees.parts(x), 1)
    if limit is not None:
        zero = const(np.zeros((), trees.weights.dtype))
        made = relay.where(relay.isinf(made), zero, made)
    return made


@converter("ai.onnx.ml.TreeEnsembleRegressor")
def tree_ensemble_regressor(node: NodeView) -> Any:
    """What the leaves of all trees give together."""
    trees = numbered_trees(node, "target", node.attr("n_targets", 1))
    how = node.attr("aggregate_function", "SUM")
    node.choice("aggregate_function", "SUM", AGGREGATES)
    made = together(trees, rows_of(node), how)
    base = numbers_of(node, "base_values")
    return transformed(node, relay.add(made, const(base)) if base.size else made)


@converter("ai.onnx.ml.TreeEnsembleClassifier")
def tree_ensemble_classifier(node: NodeView) -> Any:
    """The class that the leaves of all trees give most, and what they give each."""
    labels = labels_of(node, ("classlabels_int64s", "classlabels_strings"))
    trees = numbered_trees(node, "class", labels.size)
    scores = relay.sum(trees.parts(rows_of(node)), 1)
    base = numbers_of(node, "base_values")
    ids = np.unique(np.array(node.attr("class_ids", ()), np.int64))
    if labels.size == 2 and ids.size == 1:  # one number decides between two classes
        if base.size > 1:
            raise node.unsupported("base_values for both classes where weights are of one")
        at, share = int(ids[0]), bool((trees.weights >= 0).all())
        score = relay.strided_slice(scores, [0, at], [-1, 1], slice_mode="size")
        score = relay.add(score, const(base)) if base.size else score
        label, both = of_two(score, labels, 0.5 if share else 0.0, share)
        kind = node.attr("post_transform", "NONE")
        # As onnxruntime has it: weights of the second class leave the first one nothing, and of
        # two numbers that are made of one no exponentials are taken.
        if at and not base.size:
            both = transformed(node, scores)
        elif kind == "LOGISTIC":
            both = logistic_pair(score)
        elif not kind.startswith("SOFTMAX"):
            both = transformed(node, both)
        return [label, both]
    if base.size:
        scores = relay.add(scores, const(base))
    return [chosen(scores, labels), transformed(node, scores)]
