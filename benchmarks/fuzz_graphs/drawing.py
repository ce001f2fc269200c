"""Draw a random graph: operator by operator, each held against the oracle as it is drawn.

An operator whose result nobody could judge (not finite, an error as large as the numbers) is
dropped and another drawn, so that what remains has an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz_graphs.graph import PART, Node, evaluate_node
from benchmarks.fuzz_graphs.values import UNIT, Unfit, Value, need

EXTENTS = (1, 2, 3, 5, 7, 13, 17, 31, 33, 65)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SMALL, LARGE = 1500, 40_000  # elements of a tensor
# What else a graph may be of: some of its tensors have no elements; its numbers are bfloat16.
VARIANTS = ("", "empty", "bfloat16")
MAKERS: list[tuple[float, Callable[[Drawing], Any]]] = []


def maker(weight: float = 1.0):
    """Decorator: the function draws a call of some operator, or raises Unfit."""

    def enter(function):
        MAKERS.append((weight, function))
        return function

    return enter


class Drawing:
    """A graph that is being drawn."""

    def __init__(self, seed: int, variant: str = "") -> None:
        assert variant in VARIANTS
        self.empty = variant == "empty"
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Node] = []
        self.values: list[Any] = []
        self.most = LARGE if self.chance(0.05) else SMALL
        kinds = {"float32": 12, "float16": 1, "float64": 1, "integers": 5}
        self.kind = self.pick(list(kinds), list(kinds.values()))
        if variant == "bfloat16":
            self.kind = variant

    # -- chance ----------------------------------------------------------------------------------

    def int(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both possible."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options, weights=None):
        options = list(options)
        need(bool(options))
        if weights is not None:
            weights = np.array(weights, float) / np.sum(weights)
        return options[int(self.rng.choice(len(options), p=weights))]

    def extent(self, most: int = 65) -> int:
        return self.pick([e for e in EXTENTS if e <= most])

    def shape(self, minimum: int = 0, most: int = 4, size: int = 0) -> tuple[int, ...]:
        found: list[int] = []
        room = size or self.most
        for _ in range(self.int(minimum, most)):
            extent = self.pick([e for e in EXTENTS if e <= max(room, 1)] or [1])
            found.append(extent)
            room //= extent
        if self.empty and found and self.chance(0.35):
            found[self.int(0, len(found) - 1)] = 0
        return tuple(found)

    def dtype(self) -> str:
        """The dtype that this graph is mostly of."""
        return self.pick(INTEGERS) if self.kind == "integers" else self.kind

    def axes(self, rank: int, minimum: int = 0) -> tuple[int, ...]:
        """Different axes, some counted from the end."""
        count = self.int(min(minimum, rank), rank)
        chosen = self.rng.permutation(rank)[:count]
        return tuple(int(a) - rank if self.chance(0.3) else int(a) for a in chosen)

    def axis(self, rank: int) -> int:
        need(rank > 0)
        return self.int(-rank, rank - 1)

    # -- tensors ---------------------------------------------------------------------------------

    def array(self, shape, dtype: str, low=None, high=None) -> np.ndarray:
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype in UNIT:
            low, high = (-2.0 if low is None else low), (2.0 if high is None else high)
            return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)
        info = np.iinfo(dtype)
        if low is None and high is None and self.chance(0.5):
            low, high = -20, 20
        low = info.min if low is None else max(int(low), info.min)
        high = info.max if high is None else min(int(high), info.max)
        return np.asarray(self.rng.integers(low, high, shape, dtype, endpoint=True))

    def leaf(self, shape, dtype: str, low=None, high=None, const: float = 0.4) -> int:
        """A new leaf: a constant with probability `const`, else an input."""
        op = "const" if self.chance(const) else "input"
        return self.append(Node(op, array=self.array(tuple(shape), dtype, low, high)))

    def weights(self, shape, dtype: str, low=None, high=None) -> int:
        """A leaf for the weights of a layer: mostly constant."""
        if dtype not in UNIT and low is None:
            low, high = -9, 9
        return self.leaf(shape, dtype, low, high, const=0.85)

    def append_const(self, array) -> int:
        """A constant of exactly this array."""
        return self.append(Node("const", array=np.asarray(array)))

    def append(self, node: Node) -> int:
        self.values.append(evaluate_node(node, self.values))
        self.nodes.append(node)
        return len(self.nodes) - 1

    def call(self, op: str, *args: int, **attrs: Any) -> int:
        """Append a call.  Raises Unfit when its result cannot be judged."""
        try:
            value = evaluate_node(Node(op, args, attrs), self.values)
        except (ValueError, IndexError, ZeroDivisionError) as error:
            raise Unfit(f"{op}: {error}") from error
        several = isinstance(value, list)
        for each in value if several else [value]:
            check(each)
            need(each.exact.size <= 4 * self.most)
        self.values.append(value)
        self.nodes.append(Node(op, args, attrs))
        number = len(self.nodes) - 1
        if several:
            for index in range(len(value)):
                number = self.append(Node(PART, (len(self.nodes) - 1 - index,), {"index": index}))
        return number

    def value(self, number: int) -> Value:
        return self.values[number]

    def find(self, fits: Callable[[Value], bool] = lambda v: True, fresh: float = 0.0) -> int:
        """An earlier tensor that fits, rather a recent one.  Raises Unfit where there is none."""
        found = [
            n for n, v in enumerate(self.values)
            if isinstance(v, Value) and self.nodes[n].op != "const" and fits(v)
        ]  # fmt: skip
        need(bool(found) and not self.chance(fresh))
        return found[-1 - min(int(self.rng.geometric(0.35)) - 1, len(found) - 1)]

    def of_rank(self, rank: int, real: bool | None = None) -> int:
        """A tensor of this rank: an earlier one, an earlier one reshaped, or a new leaf."""

        def fits(v: Value) -> bool:
            return v.exact.ndim == rank and (real is None or v.real == real) and v.dtype != "bool"

        try:
            return self.find(fits, fresh=0.15)
        except Unfit:
            pass
        dtype = self.dtype()
        need(real is None or (dtype in UNIT) == real)
        return self.leaf(self.shape(rank, rank), dtype, const=0.0)


def check(value: Value) -> None:
    """Raise Unfit where most of a tensor could be anything, or numbers grow out of hand."""
    if not value.exact.size:
        return
    need(float(np.mean(~np.isfinite(value.error))) <= 0.2, "uncertain")
    if value.real:
        sure = np.isfinite(value.error)
        need(bool(np.isfinite(value.exact[sure]).all()))
        top = float(np.max(np.abs(value.exact[sure]), initial=0.0))
        need(top < (500.0 if value.dtype == "float16" else 1e5), "large")
        error = float(np.max(value.error[sure], initial=0.0))
        need(error <= 0.02 * max(top, 1e-2), "imprecise")
