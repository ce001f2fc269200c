"""The model's graph as it was read, and as it runs: nodes with their inputs, weights left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slipway.compiler.model_graph import COPY, NOP, ModelGraph, TensorRef
from slipway.inspect.profile import operators_text
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order
from slipway.report.data import DrawnNode


def graph_before(module: IRModule, params: Mapping[str, Any]) -> list[DrawnNode]:
    """Return the operators of "main" as the importer made them.

    Tuples are looked through; constants and parameters count as weights of their first reader.
    """
    main = module["main"]
    assert isinstance(main, Function)
    nodes: list[DrawnNode] = []
    sources: dict[int, tuple[int, ...]] = {}  # of an expression: the nodes that its values are of
    weights: dict[int, int] = {}
    for param in main.params:
        size = sum(type_.size_bytes for type_ in flatten(param.checked_type))
        if param.name in params:
            weights[id(param)] = size
            continue
        sources[id(param)] = (len(nodes),)
        nodes.append(DrawnNode(param.name, "input", (), type_text(param)))
    for expr in post_order(main.body, into_functions=False):
        match expr:
            case Constant():
                weights[id(expr)] = expr.array.nbytes
            case Tuple():
                found = [n for part in expr.fields for n in sources.get(id(part), ())]
                sources[id(expr)] = tuple(dict.fromkeys(found))
                weights[id(expr)] = sum(weights.pop(id(part), 0) for part in expr.fields)
            case TupleGetItem():
                sources[id(expr)] = sources.get(id(expr.tuple_value), ())
            case Call():
                inputs = [n for part in expr.args for n in sources.get(id(part), ())]
                own = sum(weights.pop(id(part), 0) for part in expr.args)
                sources[id(expr)] = (len(nodes),)
                layers = (expr.span,) if expr.span else ()
                nodes.append(
                    DrawnNode(
                        label_of(expr.op), "operator", tuple(dict.fromkeys(inputs)),
                        type_text(expr), layers, own,
                    )
                )  # fmt: skip
            case Op() | Var() | Function():
                pass
    ends = sources.get(id(main.body), ())
    return [*nodes, *(DrawnNode("output", "output", (end,), nodes[end].type) for end in ends)]


def graph_after(graph: ModelGraph) -> list[DrawnNode]:
    """Return the kernel calls in their order; reshapes in place and copies are looked through."""
    nodes: list[DrawnNode] = []
    index_of: dict[int, int] = {}
    layer = 0
    for number, node in enumerate(graph.nodes):
        if node.name in graph.params and not node.function:
            continue
        inputs = tuple(dict.fromkeys(index_of[r.node] for r in node.inputs if r.node in index_of))
        if node.function in (NOP, COPY):
            index_of[number] = inputs[0] if inputs else index_of.get(number, 0)
            continue
        index_of[number] = len(nodes)
        types = types_text(node.types)
        if not node.function:
            nodes.append(DrawnNode(node.name, "input", (), types))
            continue
        weights = sum(weights_of(graph, ref) for ref in node.inputs)
        label = operators_text(node.function)
        nodes.append(DrawnNode(label, "operator", inputs, types, node.layers, weights, layer))
        layer += 1
    names = graph.output_names or ("output",) * len(graph.outputs)
    for name, ref in zip(names, graph.outputs, strict=False):
        if ref.node in index_of:
            nodes.append(
                DrawnNode(name, "output", (index_of[ref.node],), types_text([graph.type_of(ref)]))
            )
    return nodes


def weights_of(graph: ModelGraph, ref: TensorRef) -> int:
    """Return the bytes of a tensor that is a parameter, 0 for another."""
    node = graph.nodes[ref.node]
    values = None if node.function else graph.params.get(node.name)
    return 0 if values is None else int(values.nbytes)


def label_of(op: Expr) -> str:
    """Return what to call an operator or a function."""
    return op.name if isinstance(op, Op) else "function"


def type_text(expr: Expr) -> str:
    """Return the types of an expression's values: "float32[1, 8], int64[1]"."""
    return types_text(flatten(expr.checked_type))


def types_text(types: Iterable[TensorType]) -> str:
    """Return types in words: "float32[1, 8], int64[1]"."""
    return ", ".join(f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in types)
