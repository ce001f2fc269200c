"""`from_tensorflow`: a frozen GraphDef becomes a relay function, by way of ONNX.

tf2onnx, which needs TensorFlow, writes the graph as ONNX; `from_onnx` imports that.  Inputs and
outputs keep the names of their nodes.  A node that decodes a picture becomes an input: pictures
are decoded before a model runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from slipway.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MissingPackageError,
    ModelError,
    defects_named,
)
from slipway.frontends.binding import check_input_names
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.function import IRModule

OPSET = 17
LAYOUTS = ("NCHW", "NHWC")
DECODERS = ("DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBmp", "DecodeGif")
FLOAT, UINT8 = 1, 4  # of TensorFlow's data types
NO_INPUT = "slipway_no_input"
# Nodes that stand for others: what a function, a branch or a loop computes.
CALLS = (
    "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase",
    "While", "StatelessWhile", "Merge",
)  # fmt: skip


class GraphDefLike(Protocol):
    """A GraphDef of TensorFlow."""

    node: Any


class NodeDefLike(Protocol):
    """A NodeDef of TensorFlow."""

    name: str
    op: str
    input: Sequence[str]
    attr: Mapping[str, Any]


@defects_named("importing the model")
def from_tensorflow(
    graph: object,
    layout: str | None = "NHWC",
    shape: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None,
    convert_config: object = None,
) -> tuple[IRModule, dict[str, Any]]:
    """Import a frozen graph of TensorFlow: a GraphDef, or a `tf.Graph` without variables.

    `shape` gives the shapes of inputs by name; it is needed where the graph leaves a dimension
    open.  `outputs` are names of nodes, as "softmax" or "split:1" (functions' tensors too, as
    "split:output:1"); by default all that the last
    node of the graph gives, and all variables of a loop that it ends.  Inputs and outputs are laid
    out as the graph has them, whatever `layout` is: kernels choose their own; `convert_config` is
    classic's, and has no effect.

    Returns the module and the parameters by name.  Raises ModelError for what cannot be converted,
    and ArgumentTypeError for what is no graph.
    """
    del convert_config
    if layout not in (None, *LAYOUTS):
        raise ArgumentValueError(f"from_tensorflow: layout is {layout!r}, not NCHW or NHWC")
    definition = graph.as_graph_def() if hasattr(graph, "as_graph_def") else graph
    if type(definition).__name__ != "GraphDef":
        raise ArgumentTypeError(
            "from_tensorflow takes a GraphDef or a tf.Graph, not "
            f"{type(graph).__module__}.{type(graph).__name__}"
        )
    shapes = {_node_of(name): s for name, s in told_shapes(shape).items()}
    definition = without_decoders(definition, shapes)
    if not definition.node:
        raise ModelError("the graph has no nodes")
    known = {node.name: node for node in definition.node}
    wanted = list(outputs or last_results(definition))
    for name in wanted:
        if _node_of(name) not in known:
            raise ModelError(f"the graph has no node {_node_of(name)!r} to take as an output")
    wanted = [_by_number(name, known) for name in wanted]
    inputs = [n.name for n in reached(definition, wanted) if n.op.startswith("Placeholder")]
    check_input_names(shapes, inputs)
    if inputs:
        model = _as_onnx(definition, inputs, wanted, shapes)
    else:  # tf2onnx asks for one
        _add_input(definition, NO_INPUT, FLOAT, ())
        model = _as_onnx(definition, [NO_INPUT], wanted, {NO_INPUT: ()})
        kept = [i for i in model.graph.input if i.name != NO_INPUT]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    return from_onnx(model, {name: shapes[name] for name in inputs if name in shapes} or None)


def _node_of(name: str) -> str:
    """Return the node that a tensor's name or a control edge belongs to."""
    return name.removeprefix("^").partition(":")[0]


def reached(definition: GraphDefLike, outputs: Sequence[str]) -> Iterator[Any]:
    """Yield the nodes that outputs depend on, in the order of the graph."""
    nodes = {node.name: node for node in definition.node}
    found: set[str] = set()
    left = [_node_of(name) for name in outputs]
    while left:
        name = left.pop()
        if name not in found and name in nodes:
            found.add(name)
            left += [_node_of(i) for i in nodes[name].input]
    return (node for node in definition.node if node.name in found)


def without_decoders(definition: Any, shapes: Mapping[str, Sequence[int]]) -> Any:
    """Return a copy of a graph in which decoded pictures are inputs, called as their bytes were."""
    made = type(definition)()
    made.CopyFrom(definition)
    pictures = {
        node.name: _node_of(node.input[0])
        for node in made.node
        if node.op in DECODERS and node.input and _node_of(node.input[0]) in shapes
    }
    kept = [n for n in made.node if n.name not in pictures and n.name not in pictures.values()]
    del made.node[:]
    for name in dict.fromkeys(pictures.values()):
        _add_input(made, name, UINT8, shapes[name])
    for node in kept:
        for i, source in enumerate(node.input):
            if _node_of(source) in pictures:
                node.input[i] = pictures[_node_of(source)]
    made.node.extend(kept)
    return made


def _add_input(definition: Any, name: str, kind: int, shape: Sequence[int]) -> None:
    node = definition.node.add(name=name, op="Placeholder")
    node.attr["dtype"].type = kind
    node.attr["shape"].shape.SetInParent()  # without it the rank is open
    for extent in shape:
        node.attr["shape"].shape.dim.add().size = extent


def last_results(definition: GraphDefLike) -> list[str]:
    """Return the names of all that the last node gives, and of all variables of its loop.

    A node that gives nothing, which functions end with, is none.
    """
    given = [node for node in definition.node if _results_of(node)]
    last = (given or definition.node)[-1]
    if last.op == "Exit":
        nodes = {node.name: node for node in definition.node}
        loop = _loop_of(last, nodes)
        ends = [node for node in definition.node if node.op == "Exit"]
        return [node.name for node in ends if loop and _loop_of(node, nodes) == loop] or [last.name]
    count = _results_of(last)
    return [last.name] if count <= 1 else [f"{last.name}:{number}" for number in range(count)]


def _loop_of(end: NodeDefLike, nodes: Mapping[str, NodeDefLike]) -> str:
    """Return the name of the loop that an Exit leaves: that of the Enter of its variable."""
    node: NodeDefLike | None = end
    for kind in ("Switch", "Merge", "Enter"):
        node = nodes.get(_node_of(node.input[0]) if node and node.input else "")
        if node is None or node.op not in (kind, f"Ref{kind}"):
            return ""
    return str(node.attr["frame_name"].s) if node else ""


def _results_of(node: NodeDefLike) -> int:
    """Return how many tensors a node gives."""
    return sum(count for _, count in _given_by(node))


def _given_by(node: NodeDefLike) -> list[tuple[str, int]]:
    """Return the names of a node's results, each with how many tensors it is."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(node.op)
    if definition is None:
        return [("output", 1)]
    found = []
    for given in definition.output_arg:
        if given.type_list_attr:
            count = len(node.attr[given.type_list_attr].list.type)
        else:
            count = node.attr[given.number_attr].i if given.number_attr else 1
        found.append((given.name, count))
    return found


def _by_number(name: str, nodes: Mapping[str, NodeDefLike]) -> str:
    """Return a tensor's name as graphs have it for one that functions have, node:result:number."""
    node, _, tail = name.partition(":")
    result, _, number = tail.partition(":")
    if not number.isdigit() or node not in nodes:
        return name
    before = 0
    for given, count in _given_by(nodes[node]):
        if given == result:
            return f"{node}:{before + int(number)}"
        before += count
    raise ModelError(f"the node {node!r} has no result {result!r} to take as an output")


def _with_ends(definition: Any, tensors: Sequence[str]) -> tuple[Any, list[str]]:
    """Return a graph with an Identity behind each of the tensors that a call gives; and the names.

    TensorFlow's optimiser keeps the nodes that are asked for, so that a call of a function or the
    end of a branch would neither be expanded nor become an ONNX If.
    """
    import tensorflow

    nodes = {node.name: node for node in definition.node}

    def origin(name: str) -> str:
        """Return the kind of the node that a tensor comes from, through Identities."""
        node, seen = nodes[_node_of(name)], set[str]()
        while node.op == "Identity" and node.name not in seen:
            seen.add(node.name)
            node = nodes.get(_node_of(node.input[0]), node)
        return str(node.op)

    called = {function.signature.name for function in definition.library.function}.union(CALLS)
    if called.isdisjoint(map(origin, tensors)):
        return definition, list(tensors)
    graph, ends = tensorflow.Graph(), list(tensors)
    try:
        with graph.as_default():
            tensorflow.import_graph_def(definition, name="")
            for number, name in enumerate(tensors):
                if origin(name) in called:
                    tensor = graph.get_tensor_by_name(name)
                    ends[number] = tensorflow.identity(tensor, f"slipway_end_{number}").name
    except Exception:  # tf2onnx says what is wrong with the graph, in its own words
        return definition, list(tensors)
    return graph.as_graph_def(add_shapes=True), ends


def _as_onnx(
    definition: Any,
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
) -> Any:
    try:
        from tf2onnx import convert
    except ImportError as error:
        raise MissingPackageError(
            "from_tensorflow needs TensorFlow and tf2onnx, which writes its graphs as ONNX: "
            f"pip install tensorflow tf2onnx ({error})"
        ) from None
    ends = [name if ":" in name else f"{name}:0" for name in outputs]
    definition, ends = _with_ends(definition, ends)
    renamed = {f"{name}:0": name for name in inputs}
    renamed |= {end: name for end, name in zip(ends, outputs, strict=True)}
    try:
        model, _ = convert.from_graph_def(
            definition,
            input_names=[f"{name}:0" for name in inputs],
            output_names=ends,
            opset=OPSET,
            shape_override={f"{name}:0": list(s) for name, s in shapes.items()},
            tensors_to_rename=renamed,
        )
    except Exception as error:  # tf2onnx and TensorFlow raise many unrelated classes
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"tf2onnx cannot write the graph as ONNX: {reason}") from error
    unknown = sorted({f"{n.name} ({n.op_type})" for n in model.graph.node if n.domain == "tf"})
    if unknown:
        raise ModelError("tf2onnx has no ONNX for:\n  " + "\n  ".join(unknown))
    return model
