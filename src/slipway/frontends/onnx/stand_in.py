"""Stand-ins for the results of unsupported nodes, so that the nodes after them are checked too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.errors import SlipwayError
from slipway.frontends.onnx.isolated import ModelRefused, inferred
from slipway.frontends.onnx.reader import is_aside, onnx_package, value_type
from slipway.relay.expr import Var
from slipway.relay.types import TensorType, is_open

MAX_VALUE_BYTES = 1 << 12  # a larger initializer is no shape: inference gets its type alone
_ELEMENTWISE = frozenset((  # of the first operand, whose shape the result has
    "Abs", "Cast", "CastLike", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Identity", "LeakyRelu",
    "Log", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus",
    "Sqrt", "Tanh",
))  # fmt: skip
MAX_INFERRED_BYTES = 1 << 27  # a larger model is not copied for shape inference


class StandIns:
    """Variables of the types that the file, or ONNX's own shape inference, gives to names.

    `shapes` are those of the inputs.  Nothing is computed before the first question, and inference
    (in a process of its own, see `isolated`) is asked only for what the file does not say.  Where
    inputs are `replaced`, which have another size in the file, the shapes it says are of that size
    and do not count.
    """

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.shapes: Mapping[str, tuple[int, ...]] = {}
        self.replaced: dict[str, str] = {}  # inputs of another shape than the file's
        self._declared: dict[str, TensorType] | None = None
        self._users: dict[str, str] | None = None  # what is computed from it, element by element
        self._inferred: dict[str, TensorType] | None = None

    def of(self, name: str) -> Var | None:
        """Return a variable in the place of the value `name`; None if its type is not known."""
        if self._declared is None:
            zeros = self._zeros_are_sizes()
            self._declared = {} if self.replaced else _types(self.proto.graph, zeros)
        known = self._declared.get(name)
        if known is None:
            if self._inferred is None:
                self._inferred = self._infer()
            known = self._inferred.get(name)
        return None if known is None else Var(name, known)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of the value `name`; None if it is not known.

        Inference goes forward only, and ends where a shape is a value.  Of a sum along axes that
        are an input the file may say the shape that its logarithm has: that is its own.
        """
        if self._users is None:
            self._users = {
                node.input[0]: node.output[0]
                for part in _graphs(self.proto.graph)
                for node in part.node
                if node.op_type in _ELEMENTWISE and not node.domain and node.input and node.output
            }
        seen: set[str] = set()
        while name not in seen:
            known = self.of(name)
            if known is not None:
                return known.tensor_type.shape
            seen.add(name)
            name = self._users.get(name, name)
        return None

    def _zeros_are_sizes(self) -> bool:
        """Return whether an extent of 0 is meant; some exporters write it for an open size."""
        for info in self.proto.graph.input:
            dims = info.type.tensor_type.shape.dim
            for dim, size in zip(dims, self.shapes.get(info.name, ()), strict=False):
                if dim.WhichOneof("value") == "dim_value" and dim.dim_value == 0 and size != 0:
                    return False
        return True

    def _infer(self) -> dict[str, TensorType]:
        bare = _without_weights(self.proto)
        if bare.ByteSize() > MAX_INFERRED_BYTES:
            return {}
        for info in bare.graph.input:
            dims = info.type.tensor_type.shape.dim
            for dim, size in zip(dims, self.shapes.get(info.name, ()), strict=False):
                if not is_open(size):
                    dim.dim_value = size
                elif dim.HasField("dim_value"):
                    dim.Clear()
        for part in _graphs(bare.graph) if self.replaced else ():
            del part.value_info[:]
            for info in part.output:
                info.ClearField("type")
        try:
            return _types(inferred(bare).graph, self._zeros_are_sizes())
        except ModelRefused:  # what it finds inconsistent we find too, and say where
            return {}


def _types(graph: Any, zeros: bool) -> dict[str, TensorType]:
    """Return the types of the values of a graph, and of its subgraphs, that are known in full."""
    found: dict[str, TensorType] = {}
    for part in _graphs(graph):
        for info in (*part.value_info, *part.output):
            try:
                dims, dtype = value_type(info.name, info.type)
                if all(isinstance(d, int) and (d > 0 or zeros) for d in dims):
                    found.setdefault(info.name, TensorType(dims, dtype))
            except (SlipwayError, UnicodeDecodeError):  # a sequence, or no tensor at all
                continue
    return found


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and its subgraphs."""
    graphs = [graph]
    while graphs:
        part = graphs.pop()
        yield part
        graphs += [a.g for n in part.node for a in n.attribute if a.type == 5]


def _without_weights(proto: Any) -> Any:
    """Return a copy of the model in which large initializers are inputs of their type."""
    onnx = onnx_package()
    bare = onnx.ModelProto()
    # No texts of the file's: they may be bytes that are none, and inference needs none of them.
    bare.ir_version = proto.ir_version
    bare.opset_import.extend(proto.opset_import)
    bare.functions.extend(proto.functions)
    graph, made = proto.graph, bare.graph
    made.name = "graph"
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(made, name).extend(getattr(graph, name))
    listed = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.ByteSize() <= MAX_VALUE_BYTES and not is_aside(tensor):
            made.initializer.append(tensor)
        elif tensor.name not in listed:
            shape = list(tensor.dims)
            made.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, shape)
            )
    # A domain that the file does not import ends the inference at its first node.
    imported = {entry.domain for entry in bare.opset_import}
    for domain in {n.domain for part in _graphs(made) for n in part.node} - imported:
        bare.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    return bare
