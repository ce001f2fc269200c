"""TreeEnsemble of ONNX 1.16: nodes and leaves in two tables, which refer to each other by place."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.ml.linear import post_transformed
from slipway.frontends.onnx.operators.ml.trees import MEMBER, Array, Trees, together

# By their numbers in the file.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MODES = np.array(
    ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", MEMBER]
)


@converter("ai.onnx.ml.TreeEnsemble")
def tree_ensemble(node: NodeView) -> Any:
    """What the leaves of all trees give each target together."""
    if node.rank() != 2:
        raise node.unsupported(f"its input is {node.type()}: a row for each sample is served")
    how = _named(node, "aggregate_function", 1, _AGGREGATES)
    kind = _named(node, "post_transform", 0, _TRANSFORMS)
    return post_transformed(node, together(_trees(node), node.input(0), how), kind)


def _named(node: NodeView, attribute: str, usual: int, names: tuple[str, ...]) -> str:
    number = int(node.attr(attribute, usual))
    if not 0 <= number < len(names):
        raise node.unsupported(f"{attribute} {number}: there are 0 to {len(names) - 1}")
    return names[number]


def _trees(node: NodeView) -> Trees:
    """Return the nodes, with the leaves behind them."""
    dtype = node.type().dtype

    def of(name: str, kind: Any = np.int64) -> Array:
        return np.asarray(node.attr(name, ())).reshape(-1).astype(kind)

    modes, features, limits = of("nodes_modes"), of("nodes_featureids"), of("nodes_splits", dtype)
    targets, weights = of("leaf_targetids"), of("leaf_weights", dtype)
    ways = {"true": of("nodes_truenodeids"), "false": of("nodes_falsenodeids")}
    ends = {"true": of("nodes_trueleafs"), "false": of("nodes_falseleafs")}
    missing = of("nodes_missing_value_tracks_true", bool)
    count, leaves, roots = modes.size, weights.size, of("tree_roots")
    lists = (features, limits, *ways.values(), *ends.values())
    if {each.size for each in lists} != {count} or missing.size not in (0, count):
        raise node.unsupported(f"its lists of nodes have other lengths than its {count} modes")
    if targets.size != leaves or not count:
        raise node.unsupported(f"it has {targets.size} targets for {leaves} weights of leaves")
    if modes.min() < 0 or modes.max() >= len(_MODES):
        raise node.unsupported(f"nodes of the modes {sorted({*modes.tolist()})}")
    _within(node, "tree_roots", roots, count)
    following = {}
    for way, to in ways.items():
        leaf = ends[way] != 0
        _within(node, f"nodes_{way}nodeids", to[leaf], leaves)
        _within(node, f"nodes_{way}nodeids", to[~leaf], count)
        following[way] = np.concatenate([np.where(leaf, to + count, to), count + np.arange(leaves)])
    outputs = node.attr("n_targets", 1)
    _within(node, "leaf_targetids", targets, outputs)
    table = np.zeros((count + leaves, outputs), dtype)
    table[count + np.arange(leaves), targets] = weights
    says = np.zeros(table.shape, bool)
    says[count + np.arange(leaves), targets] = True
    pad = np.zeros(leaves, np.int64)
    return Trees(
        node, np.concatenate([_MODES[modes], np.full(leaves, "LEAF")]),
        np.concatenate([features, pad]), np.concatenate([limits, pad.astype(dtype)]),
        np.concatenate([missing if missing.size else np.zeros(count, bool), pad.astype(bool)]),
        following["true"], following["false"], roots, table, says,
        _members(node, _MODES[modes] == MEMBER, leaves, dtype),
    )  # fmt: skip


def _within(node: NodeView, name: str, values: Array, count: int) -> None:
    outside = values[(values < 0) | (values >= count)]
    if outside.size:
        raise node.unsupported(f"{name} has {outside[0]}, and there are {count}")


def _members(node: NodeView, wanted: Array, leaves: int, dtype: str) -> Array | None:
    """Return the set of each node that asks whether a value is in one, padded with NaN.

    The file has the sets one after the other, with a NaN between them.
    """
    if not wanted.any():
        return None
    values = np.asarray(node.attr("membership_values", ())).reshape(-1).astype(dtype)
    ends = [*np.flatnonzero(np.isnan(values)), values.size]
    starts = [0, *(end + 1 for end in ends)]
    sets = [values[start:end] for start, end in zip(starts, ends, strict=False)]
    if values.size and np.isnan(values[-1]):
        sets.pop()
    if len(sets) != int(wanted.sum()):
        raise node.unsupported(
            f"membership_values has {len(sets)} sets for {int(wanted.sum())} nodes that want one"
        )
    table = np.full((wanted.size + leaves, max(map(len, sets))), np.nan, dtype)
    for at, members in zip(np.flatnonzero(wanted), sets, strict=True):
        table[at, : members.size] = members
    return table
