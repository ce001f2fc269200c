"""Draw a random graph: operator by operator, as many as wanted."""

from __future__ import annotations

from benchmarks.fuzz_graphs import families  # noqa: F401  the makers enter themselves
from benchmarks.fuzz_graphs.drawing import MAKERS, Drawing
from benchmarks.fuzz_graphs.graph import LEAVES, Graph
from benchmarks.fuzz_graphs.values import Unfit, Value


def draw(seed: int, operators: tuple[int, int] = (2, 9), variant: str = "") -> Graph:
    """Return the graph of a seed, in one of the `VARIANTS`."""
    d = Drawing(seed, variant)
    d.leaf(d.shape(0, 4), d.dtype(), const=0.0)
    wanted = d.int(*operators)
    weights = [w for w, _ in MAKERS]
    made = 0
    for _ in range(wanted * 12):
        if made == wanted:
            break
        before = len(d.nodes)
        try:
            d.pick([m for _, m in MAKERS], weights)(d)
            made += 1
        except Unfit:
            del d.nodes[before:], d.values[before:]
        except ValueError:  # a number drawn from nothing
            if not d.empty:
                raise
            del d.nodes[before:], d.values[before:]
    return Graph(tuple(d.nodes), _outputs(d)).pruned()


def _outputs(d: Drawing) -> tuple[int, ...]:
    """Everything that nothing reads, and now and then something that is read too."""
    read = {a for node in d.nodes for a in node.args}
    calls = [
        n for n, node in enumerate(d.nodes)
        if node.op not in LEAVES and isinstance(d.values[n], Value)
    ]  # fmt: skip
    found = [n for n in calls if n not in read or d.chance(0.1)]
    return tuple(found or calls[-1:] or [0])
