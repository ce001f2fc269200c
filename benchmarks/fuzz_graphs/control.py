"""Operators over functions of their own: scan, branch, while_loop; their bodies are drawn too.

A body is a graph whose first nodes are its parameters.  The oracle runs it turn by turn, on the
values and the bounds that the turn before has left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.fuzz_graphs.drawing import MAKERS, Drawing, check, maker
from benchmarks.fuzz_graphs.graph import LEAVES, Graph, Node, evaluate, rule
from benchmarks.fuzz_graphs.values import Unfit, Value, leaf, need

ITERATIONS = 5  # of a loop, at most


class Body(Drawing):
    """A graph that is being drawn as the inside of another: all its leaves are constants."""

    def __init__(self, outer: Drawing, given: list[Value]) -> None:
        super().__init__(0)
        self.rng, self.kind, self.most = outer.rng, outer.kind, min(outer.most, 600)
        for value in given:
            super().append(Node("input", array=value.stored()))
        self.values[: len(given)] = given
        self.parameters = len(given)

    def append(self, node: Node) -> int:
        return super().append(replace(node, op="const") if node.op == "input" else node)

    def grow(self, operators: int) -> None:
        """Draw so many operators, other than those with functions of their own."""
        plain = [(w, m) for w, m in MAKERS if m.__module__ != __name__]
        weights, makers = zip(*plain, strict=True)
        for _ in range(operators * 6):
            before = len(self.nodes)
            try:
                self.pick(makers, weights)(self)
                operators -= 1
            except (Unfit, ValueError):
                del self.nodes[before:], self.values[before:]
            if not operators:
                break

    def like(self, wanted: Value) -> int:
        """A node of this shape and dtype that is computed, and is not only itself."""
        same = [n for n, v in enumerate(self.values) if _same(v, wanted)]
        made = [n for n in same if self.nodes[n].op not in LEAVES]
        if made and self.chance(0.7):
            return made[-1]
        other = self.pick(same)
        if wanted.dtype == "bool":
            return self.call("logical_xor", other, self.pick(same))
        name = self.pick(["maximum", "minimum", "subtract", "add"])
        return self.call(name, other, self.pick(same))

    def graph(self, outputs: list[int]) -> Graph:
        """What was drawn, with these results; unread nodes but no parameters are dropped."""
        count = self.parameters
        whole = Graph(tuple(self.nodes), (*range(count), *outputs)).pruned()
        return Graph(whole.nodes, whole.outputs[count:])


def _same(value, wanted: Value) -> bool:
    fits = isinstance(value, Value) and value.dtype == wanted.dtype
    return fits and value.shape == wanted.shape


def run(body: Graph, given: list[Value]) -> list[Value]:
    """Return what a body makes of its parameters."""
    for node, value in zip(body.nodes, given, strict=False):
        need(node.array.shape == value.shape and node.array.dtype.name == value.dtype)
    values = evaluate(body, given)
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            check(each)
    return [values[o] for o in body.outputs]


@rule("scan")
def _scan(attrs, *given):
    body, kept, run_over = attrs["body"], attrs["states"], attrs["sequences"]
    states = list(given[:kept])
    sequences, others = given[kept : kept + run_over], given[kept + run_over :]
    steps = len(sequences[0].exact) if run_over else attrs["steps"]
    need(steps > 0)
    rows: dict[int, list[Value]] = {}
    for t in reversed(range(steps)) if attrs["reverse"] else range(steps):
        slices = [Value(s.exact[t], s.error[t], s.dtype) for s in sequences]
        made = run(body, [*states, *slices, *others])
        states, rows[t] = made[:kept], made[kept:]
    return [*states, *(_stacked([rows[t][i] for t in range(steps)]) for i in range(len(rows[0])))]


def _stacked(values: list[Value]) -> Value:
    exact, error = (np.stack([getattr(v, name) for v in values]) for name in ("exact", "error"))
    return Value(exact, error, values[0].dtype)


@rule("branch")
def _branch(attrs, condition, *others):
    need(condition.certain)
    body = attrs["then_body"] if bool(condition.exact) else attrs["else_body"]
    for name in ("then_body", "else_body"):  # both must be able to be taken
        run(attrs[name], list(others))
    return run(body, list(others))


@rule("while_loop")
def _while(attrs, *given):
    states, others = list(given[: attrs["states"]]), given[attrs["states"] :]
    for _ in range(2 * ITERATIONS):
        (going,) = run(attrs["condition"], [*states, *others])
        need(going.certain)
        if not bool(going.exact):
            return states
        states = run(attrs["body"], [*states, *others])
    raise Unfit("a loop without an end")


def _drawn_values(d: Drawing, minimum: int, most: int) -> list[int]:
    """Some earlier tensors, small enough to be gone through many times."""
    count = d.int(minimum, most)
    return [d.find(lambda v: v.exact.size <= 300) for _ in range(count)]


@maker(1.2)
def scan(d):
    states = _drawn_values(d, 1, 2)
    steps = d.int(1, ITERATIONS)
    sequences = []
    for _ in range(d.int(0, 2)):
        shape = (steps, *d.shape(0, 2, 60))
        sequences.append(d.leaf(shape, d.pick([d.dtype(), d.value(states[0]).dtype]), const=0.3))
    others = _drawn_values(d, 0, 2)
    slices = [leaf(np.asarray(d.value(s).exact[0]).astype(d.value(s).dtype)) for s in sequences]
    given = [*(d.value(s) for s in states), *slices, *(d.value(o) for o in others)]
    body = Body(d, given)
    body.grow(d.int(1, 4))
    outputs = [body.like(d.value(s)) for s in states]
    fits = [n for n, v in enumerate(body.values) if isinstance(v, Value)]
    outputs += [body.pick(fits[len(given) // 2 :]) for _ in range(d.int(0, 2))]
    return d.call(
        "scan", *states, *sequences, *others, body=body.graph(outputs), states=len(states),
        sequences=len(sequences), reverse=d.chance(0.3), steps=None if sequences else steps,
    )  # fmt: skip


@maker(0.8)
def branch(d):
    others = _drawn_values(d, 1, 3)
    condition = d.leaf((), "bool", const=0.1)
    results = [d.value(d.pick(others)) for _ in range(d.int(1, 2))]
    bodies = []
    for _ in range(2):
        body = Body(d, [d.value(o) for o in others])
        body.grow(d.int(0, 3))
        bodies.append(body.graph([body.like(r) for r in results]))
    return d.call("branch", condition, *others, then_body=bodies[0], else_body=bodies[1])


@maker(0.8)
def while_loop(d):
    states = _drawn_values(d, 1, 2)
    others = _drawn_values(d, 0, 1)
    iterations = d.leaf((), d.pick(["int32", "int64"]), 0, ITERATIONS, const=0.2)
    given = [d.value(n) for n in (iterations, *states, *others)]
    test = Body(d, given)
    zero = test.append_const(np.zeros((), given[0].dtype))
    going = test.call("greater", 0, zero)
    if d.chance(0.3):
        going = test.call("logical_and", going, test.append_const(np.array(d.chance(0.9))))
    body = Body(d, given)
    less = body.call("subtract", 0, body.append_const(np.ones((), given[0].dtype)))
    body.grow(d.int(1, 3))
    made = [less, *(body.like(d.value(s)) for s in states)]
    return d.call(
        "while_loop", iterations, *states, *others, condition=test.graph([going]),
        body=body.graph(made), states=1 + len(states),
    )  # fmt: skip
