"""A random graph with one size of its inputs left open: compiled once, run at several sizes.

The axes that stay open are those for which the oracle can compute the graph at every size that is
tried: one axis of one input, or all axes of the inputs that are as long.  What the compiler refuses
in words is no finding; a size at which the numbers differ from the oracle's is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.fuzz_graphs.attempt import Options, built
from benchmarks.fuzz_graphs.draw import draw
from benchmarks.fuzz_graphs.drawing import check
from benchmarks.fuzz_graphs.graph import Graph, evaluate, relay_function
from benchmarks.fuzz_graphs.values import Unfit, Value, differs

SIZED = ("newshape", "shape", "size")  # attributes that may hold the size itself
SKIPPED, REFUSED = "skipped: ", "refused: "  # how an answer begins that is no finding
THREADS = (1, 3)


@dataclass(frozen=True)
class Opened:
    """Which axes of which inputs have the open size, its size when drawn, and its range."""

    axes: dict[int, tuple[int, ...]]
    extent: int
    low: int
    high: int


def at_size(graph: Graph, opened: Opened, size: Any, rng: np.random.Generator | None) -> Graph:
    """Return the graph with `size` for the open one, elements drawn from those that were there.

    Without `rng` the arrays stay: `size` is a dimension then, for the attributes alone.
    """
    nodes = []
    for number, node in enumerate(graph.nodes):
        attrs = {
            k: tuple(size if e == opened.extent else e for e in v)
            if k in SIZED and isinstance(v, tuple)
            else v
            for k, v in node.attrs.items()
        }
        array = node.array
        for axis in opened.axes.get(number, ()) if rng is not None else ():
            array = np.take(array, rng.integers(0, opened.extent, size), axis)
        nodes.append(replace(node, attrs=attrs, array=array))
    return Graph(tuple(nodes), graph.outputs)


def openings(graph: Graph, rng: np.random.Generator) -> Iterator[Opened]:
    """Yield ways to open a size, in random order."""
    positions = [(n, a) for n in graph.inputs for a in range(graph.nodes[n].array.ndim)]
    for index in rng.permutation(len(positions)):
        number, axis = positions[index]
        extent = graph.nodes[number].array.shape[axis]
        if extent < 2:
            continue
        low = 1 if rng.random() < 0.5 else max(1, extent - int(rng.integers(1, 4)))
        high = extent + int(rng.integers(1, 20))
        alike: dict[int, tuple[int, ...]] = {}
        for n, a in positions:
            if graph.nodes[n].array.shape[a] == extent:
                alike[n] = (*alike.get(n, ()), a)
        for axes in ({number: (axis,)}, alike, {n: x[:1] for n, x in alike.items()}):
            yield Opened(axes, extent, low, high)
            yield Opened(axes, extent, extent, high)


def judged(graph: Graph, opened: Opened, sizes: list[int], rng: np.random.Generator):
    """Return (graph, values of the outputs) at each size.  Raises Unfit where nothing is known."""
    found = []
    for size in sizes:
        sized = at_size(graph, opened, size, rng)
        values = evaluate(sized)
        for value in values:
            for each in value if isinstance(value, list) else [value]:
                check(each)
        found.append((sized, [values[o] for o in sized.outputs]))
    ranks = {tuple(len(v.shape) for v in values) for _, values in found}
    if len(ranks) > 1:
        raise Unfit("a rank that depends on the size")
    return found


def chosen(graph: Graph, rng: np.random.Generator):
    """Return (opened, what is judged at each size) of the first way that has answers."""
    for opened in openings(graph, rng):
        between = rng.integers(opened.low, opened.high, 2, endpoint=True)
        sizes = [opened.high, opened.low, *map(int, between), opened.extent]
        try:
            return opened, judged(graph, opened, sizes, rng)
        except Unfit:
            continue
    raise Unfit("no size of it can be open")


def attempt_open(seed: int, options: Options) -> str:
    """Return what is wrong with a seed's graph of open size; empty when nothing is."""
    from slipway import relay
    from slipway.errors import InternalError, SlipwayError

    rng = np.random.default_rng([seed, 11])
    graph = draw(seed, (1, 6))
    try:
        opened, tried = chosen(graph, rng)
    except Unfit as error:
        return f"{SKIPPED}{error}"
    dim = relay.Dim("n", opened.low, opened.high)
    shapes = {
        number: tuple(
            dim if axis in axes else extent
            for axis, extent in enumerate(graph.nodes[number].array.shape)
        )
        for number, axes in opened.axes.items()
    }
    try:
        factory = built(relay_function(at_size(graph, opened, dim, None), shapes), options)
    except InternalError as error:
        return f"build: {error}"
    except SlipwayError as error:
        return f"{REFUSED}{' '.join(str(error).split())}"
    except Exception as error:  # whatever else it raises is found
        return f"build: {type(error).__name__}: {error}"
    return _compared(factory, tried)


def _compared(factory: Any, tried: list[tuple[Graph, list[Value]]]) -> str:
    """Run every size in turn, the first once more at the end, and with other threads."""
    from benchmarks.fuzz_graphs.attempt import feeds
    from slipway.runtime import cpu, set_num_threads
    from slipway.runtime.graph import graph_executor

    module = graph_executor.GraphModule(factory["default"](cpu(0)))
    bits: list[list[bytes]] = []
    for threads in THREADS:
        set_num_threads(threads)
        for run, (sized, wanted) in enumerate([*tried, tried[0]]):
            module.set_input(**feeds(sized))
            module.run()
            found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
            for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
                problem = differs(got, want)
                if problem:
                    return f"output {number}, run {run}, {threads} threads: {problem}"
            now = [got.tobytes() for got in found]
            if len(bits) <= run:
                bits.append(now)
            elif bits[run] != now:
                return f"run {run}, {threads} threads: other bits than on 1 thread"
    return "" if bits[0] == bits[-1] else "the first size again: other bits than at first"
