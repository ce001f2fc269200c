"""The order of kernels of several devices where values decide sizes: first who tells a size."""

from __future__ import annotations

from dataclasses import replace

from slipway.compiler.model_graph import ModelGraph, TensorRef
from slipway.compiler.open_sizes import open_sizes
from slipway.errors import LoweringError


def after_tellers(graph: ModelGraph) -> ModelGraph:
    """Return the graph with kernels in their order, but what speaks of a size after who tells it.

    Regions of devices are in the order of what they read, and a kernel that fills a tensor of a
    size that another device decides reads nothing there.  Raises LoweringError where a size
    depends on values of itself.
    """
    tellers = {size: ref.node for size, ref in graph.tellers.items() if size not in graph.exact}
    if not tellers:
        return graph
    order: list[int] = []
    placed: set[int] = set()
    entered: set[int] = set()
    for number in range(len(graph.nodes)):
        pending = [(number, False)]
        while pending:
            one, is_ready = pending.pop()
            if one in placed:
                continue
            if is_ready:
                placed.add(one)
                order.append(one)
                continue
            if one in entered:
                raise LoweringError(
                    "the size of a relay.sized(...) depends on values of that size themselves"
                )
            entered.add(one)
            pending.append((one, True))
            pending += [(n, False) for n in reversed(_needed(graph, one, tellers))]
    return _reordered(graph, order)


def _needed(graph: ModelGraph, number: int, tellers: dict[str, int]) -> list[int]:
    """Return the nodes that a node needs before it: what it reads, and who tells its sizes."""
    node = graph.nodes[number]
    needed = [ref.node for ref in node.inputs]
    if node.function:
        sizes = [size.name for size in open_sizes(node.types)]
        needed += [tellers[size] for size in sizes if size in tellers]
    return needed


def _reordered(graph: ModelGraph, order: list[int]) -> ModelGraph:
    at = {old: new for new, old in enumerate(order)}

    def moved(ref: TensorRef) -> TensorRef:
        return TensorRef(at[ref.node], ref.index)

    nodes = [graph.nodes[old] for old in order]
    return replace(
        graph,
        nodes=[replace(n, inputs=tuple(map(moved, n.inputs))) for n in nodes],
        devices=[graph.devices[old] for old in order],
        outputs=list(map(moved, graph.outputs)),
        tellers={size: moved(ref) for size, ref in graph.tellers.items()},
        exact={s: replace(e, tensor=moved(e.tensor)) for s, e in graph.exact.items()},
    )
