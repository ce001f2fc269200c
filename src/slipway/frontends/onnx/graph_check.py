"""What must hold of an ONNX file before its nodes are looked at: names, versions."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, Protocol

from slipway.errors import ModelError
from slipway.frontends.onnx.reader import onnx_package


class ModelLike(Protocol):
    """What is read of a ModelProto."""

    functions: Any
    graph: Any


class NodeLike(Protocol):
    """What is read of a NodeProto."""

    input: Sequence[str]
    attribute: Any


def opset_of(proto: Any, wanted: int | None = None) -> int:
    """Return the version of ONNX's own operators that a model uses, or the one that is `wanted`.

    Raises ModelError for a version that the onnx package does not know.
    """
    if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool)):
        raise ModelError(f"opset is {wanted!r}; it must be an integer")
    found = 1  # files of the first version name no opset
    for entry in proto.opset_import:
        if entry.domain in ("", "ai.onnx"):
            found = int(entry.version)
            break
    version = found if wanted is None else wanted
    newest = onnx_package().defs.onnx_opset_version()
    if not 1 <= version <= newest:
        what = "the model uses" if wanted is None else "the argument opset asks for"
        hint = (
            "Update the onnx package, or export the model with an older opset"
            if version > newest
            else "Opsets begin with 1; export the model again"
        )
        raise ModelError(f"{what} opset {version}; the installed onnx knows 1 to {newest}. {hint}.")
    return version


def check_names(proto: ModelLike) -> None:
    """Raise ModelError where a name of the model stands for two values.

    ONNX asks for static single assignment in each graph; a value with two makers would be one of
    them without a word.
    """
    bodies: list[tuple[Any, list[str]]] = [(f, list(f.input)) for f in proto.functions]
    for function in proto.functions:
        _check_outputs(list(function.output), f"the function {function.name!r}")
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        where = "the model" if graph is proto.graph else f"the subgraph {graph.name!r}"
        inputs = [i.name for i in graph.input]
        _check_outputs([o.name for o in graph.output], where)
        weights = [t.name for t in graph.initializer]
        weights += [t.values.name for t in graph.sparse_initializer]
        for names, what in ((inputs, "inputs"), (weights, "initializers")):
            twice = _twice(names)
            if twice is not None:
                raise ModelError(f"two {what} of {where} are called {twice!r}; rename one of them")
        bodies.append((graph, [*inputs, *weights]))
        graphs += _subgraphs(graph)
    for body, given in bodies:
        made = set(given)
        for node in body.node:
            for name in node.output:
                if name and name in made:
                    raise ModelError(
                        f"the node {node.name or node.op_type!r} makes {name!r}, which is made or "
                        "given already: a name stands for one value, so the model is damaged"
                    )
                made.add(name)


def in_order(proto: Any) -> Any:
    """Return a model each of whose nodes comes after those that make what it reads.

    ONNX asks for that order, and other runtimes put the nodes into it.  The model is copied where
    it is changed; nodes that wait for each other keep their places, for the importer to name.
    """
    if all(_sorted(body) is None for body in _bodies(proto)):
        return proto
    made = type(proto)()
    made.CopyFrom(proto)
    for body in _bodies(made):
        order = _sorted(body)
        if order is not None:
            nodes = [type(body.node[0])() for _ in order]
            for node, number in zip(nodes, order, strict=True):
                node.CopyFrom(body.node[number])
            del body.node[:]
            body.node.extend(nodes)
    return made


def _bodies(proto: Any) -> list[Any]:
    """Return the graphs and functions of a model, an inner one before what holds it."""
    found = [*proto.functions, proto.graph]
    for body in found:  # grows
        found += _subgraphs(body)
    return found[::-1]


def _sorted(body: Any) -> list[int] | None:
    """Return the order in which the nodes can be computed, or None where they have it already.

    Of those that are ready the first comes first.
    """
    maker = {name: number for number, n in enumerate(body.node) for name in n.output if name}
    reads = [
        {maker[name] for name in names_read(node) if name in maker} - {number}
        for number, node in enumerate(body.node)
    ]
    if all(needed < number for number, found in enumerate(reads) for needed in found):
        return None
    waiting = [len(found) for found in reads]
    readers: list[list[int]] = [[] for _ in reads]
    for number, found in enumerate(reads):
        for needed in found:
            readers[needed].append(number)
    ready = [number for number, count in enumerate(waiting) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for reader in readers[number]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    return order if len(order) == len(reads) else None


def names_read(node: NodeLike) -> list[str]:
    """Return the names that a node reads, those that its subgraphs read included."""
    found: list[str] = []
    nodes: list[Any] = [node]
    while nodes:
        inner = nodes.pop()
        found += inner.input
        for attribute in inner.attribute:
            if attribute.type == 5:
                nodes += attribute.g.node
                found += [o.name for o in attribute.g.output]
    return found


def _subgraphs(body: Any) -> list[Any]:
    found = [a.g for node in body.node for a in node.attribute if a.type == 5]
    return found + [g for node in body.node for a in node.attribute for g in a.graphs]


def _check_outputs(names: list[str], where: str) -> None:
    twice = _twice(names)
    if twice is not None:
        raise ModelError(
            f"two outputs of {where} are called {twice!r}; give one of them another name, with an "
            "Identity node"
        )


def _twice(names: list[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            return name
        seen.add(name)
    return None
