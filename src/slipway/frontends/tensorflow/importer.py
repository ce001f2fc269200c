"""`from_tensorflow`: a frozen GraphDef becomes a relay function, by way of ONNX.

tf2onnx, which needs TensorFlow, writes the graph as ONNX; `from_onnx` imports that.  Inputs and
outputs keep the names of their nodes.  A node that decodes a picture becomes an input: pictures
are decoded before a model runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
UINT8 = 4  # of TensorFlow's data types


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
    open.  `outputs` are names of nodes, as "softmax" or "split:1"; by default the last node of the
    graph.  Inputs and outputs are laid out as the graph has them, whatever `layout` is: kernels
    choose their own; `convert_config` is classic's, and has no effect.

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
    known = {node.name for node in definition.node}
    wanted = list(outputs or [definition.node[-1].name])
    for name in wanted:
        if _node_of(name) not in known:
            raise ModelError(f"the graph has no node {_node_of(name)!r} to take as an output")
    inputs = [n.name for n in reached(definition, wanted) if n.op.startswith("Placeholder")]
    check_input_names(shapes, inputs)
    model = _as_onnx(definition, inputs, wanted, shapes)
    return from_onnx(model, {name: shapes[name] for name in inputs if name in shapes} or None)


def _node_of(name: str) -> str:
    """Return the node that a tensor's name or a control edge belongs to."""
    return name.removeprefix("^").partition(":")[0]


def reached(definition: Any, outputs: Sequence[str]) -> Iterator[Any]:
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
    for name in dict.fromkeys(pictures.values()):
        node = type(made.node[0])(name=name, op="Placeholder")
        node.attr["dtype"].type = UINT8
        for extent in shapes[name]:
            node.attr["shape"].shape.dim.add().size = extent
        kept.insert(0, node)
    for node in kept:
        for i, source in enumerate(node.input):
            if _node_of(source) in pictures:
                node.input[i] = pictures[_node_of(source)]
    del made.node[:]
    made.node.extend(kept)
    return made


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
