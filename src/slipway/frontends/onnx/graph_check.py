"""What must hold of an ONNX file before its nodes are looked at: names, versions."""

from __future__ import annotations

from typing import Any

from slipway.errors import ModelError
from slipway.frontends.onnx.reader import onnx_package


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


def check_names(proto: Any) -> None:
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


def names_read(node: Any) -> list[str]:
    """Return the names that a node reads, those that its subgraphs read included."""
    found: list[str] = []
    nodes = [node]
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
