"""Make a graph that fails small: fewer outputs, operators replaced by what they give, less data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.fuzz_graphs.graph import LEAVES, PART, Graph, Node, evaluate
from benchmarks.fuzz_graphs.values import Unfit, Value


def shrink(graph: Graph, fails: Callable[[Graph], bool], attempts: int = 300) -> Graph:
    """Return a smaller graph for which `fails` still holds; it asks at most `attempts` times."""
    left = attempts
    for steps in (_fewer_outputs, _cuts, _bypasses, _smaller, _plainer):
        progress = True
        while progress and left > 0:
            progress = False
            for candidate in steps(graph):
                if left <= 0:
                    break
                left -= 1
                if _is_whole(candidate) and fails(candidate):
                    graph, progress = candidate, True
                    break
    return graph


def _is_whole(graph: Graph) -> bool:
    """Whether the oracle can still judge it."""
    try:
        evaluate(graph)
    except Unfit:
        return False
    return any(node.op not in LEAVES for node in graph.nodes)


def _fewer_outputs(graph: Graph) -> Iterator[Graph]:
    if len(graph.outputs) > 1:
        for output in graph.outputs:
            yield replace(graph, outputs=(output,)).pruned()
        for dropped in range(len(graph.outputs)):
            kept = graph.outputs[:dropped] + graph.outputs[dropped + 1 :]
            yield replace(graph, outputs=kept).pruned()


def _with(graph: Graph, number: int, node: Node) -> Graph:
    nodes = (*graph.nodes[:number], node, *graph.nodes[number + 1 :])
    return Graph(nodes, graph.outputs).pruned()


def _cuts(graph: Graph) -> Iterator[Graph]:
    """An operator becomes an input that holds its result; the last ones first.

    What is in front of an output is looked at instead of the output, too.
    """
    values = evaluate(graph)
    for number in reversed(range(len(graph.nodes))):
        node, value = graph.nodes[number], values[number]
        if node.op in LEAVES or number in graph.outputs or not isinstance(value, Value):
            continue
        yield _with(graph, number, Node("input", array=value.stored()))
    for output in graph.outputs:
        for argument in graph.nodes[output].args:
            inner = graph.nodes[argument]
            if inner.op not in LEAVES and isinstance(values[argument], Value):
                yield Graph(graph.nodes, (argument,)).pruned()


def _bypasses(graph: Graph) -> Iterator[Graph]:
    """An operator's readers read its argument, where that has the same shape and dtype."""
    values = evaluate(graph)
    for number, node in enumerate(graph.nodes):
        if node.op in (*LEAVES, PART):
            continue
        for argument in node.args:
            a, b = values[argument], values[number]
            if not (isinstance(a, Value) and isinstance(b, Value)):
                continue
            if a.shape != b.shape or a.dtype != b.dtype:
                continue
            nodes = tuple(
                replace(n, args=tuple(argument if x == number else x for x in n.args))
                for n in graph.nodes
            )
            outputs = tuple(argument if o == number else o for o in graph.outputs)
            yield Graph(nodes, outputs).pruned()


def _smaller(graph: Graph) -> Iterator[Graph]:
    """An extent of the leaves becomes smaller, in all leaves that have it, or in one."""
    leaves = [n for n, node in enumerate(graph.nodes) if node.op in LEAVES]
    extents = sorted({e for n in leaves for e in graph.nodes[n].array.shape if e > 1}, reverse=True)
    for extent in extents:
        for less in dict.fromkeys((1, 2, extent // 2, extent - 1)):
            if not 0 < less < extent:
                continue
            yield _cropped(graph, {n: None for n in leaves}, extent, less)
            for n in leaves:
                for axis, own in enumerate(graph.nodes[n].array.shape):
                    if own == extent:
                        yield _cropped(graph, {n: axis}, extent, less)


def _cropped(graph: Graph, leaves: dict[int, int | None], extent: int, less: int) -> Graph:
    nodes = list(graph.nodes)
    for number, axis in leaves.items():
        array = nodes[number].array
        for a in range(array.ndim):
            if array.shape[a] == extent and axis in (None, a):
                array = np.take(array, range(less), a)
        nodes[number] = replace(nodes[number], array=array)
    for number, node in enumerate(nodes):
        attrs = {
            k: tuple(less if e == extent else e for e in v)
            if k in ("newshape", "shape", "size") and isinstance(v, tuple)
            else (less if k in ("units", "channels") and v == extent else v)
            for k, v in node.attrs.items()
        }
        nodes[number] = replace(node, attrs=attrs)
    return Graph(tuple(nodes), graph.outputs)


def _plainer(graph: Graph) -> Iterator[Graph]:
    """Small whole numbers in the leaves."""
    for number, node in enumerate(graph.nodes):
        if node.op not in LEAVES or node.array.dtype == bool:
            continue
        plain = np.rint(np.clip(node.array.astype(np.float64), -3, 3)).astype(node.array.dtype)
        if not np.array_equal(plain, node.array):
            yield _with(graph, number, replace(node, array=plain))
