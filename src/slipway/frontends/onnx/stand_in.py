"""Stand-ins for the results of unsupported nodes, so that the nodes behind them are checked too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.frontends.onnx.einsum import is_equation
from slipway.frontends.onnx.reader import onnx_package, value_type
from slipway.relay.expr import Var
from slipway.relay.types import ANY, TensorType

MAX_INFERRED_BYTES = 1 << 27  # a larger model is not copied for shape inference
MAX_LENGTH = 1 << 16  # of an integer vector: inference makes a shape of as many dimensions of it
INTEGERS = (6, 7)  # TensorProto.INT32, INT64


class StandIns:
    """Variables of the types that the file, or ONNX's own shape inference, gives to names.

    `shapes` are those of the inputs.  Nothing is computed before the first question.
    """

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.shapes: Mapping[str, tuple[int, ...]] = {}
        self._types: dict[str, TensorType] | None = None

    def of(self, name: str) -> Var | None:
        """Return a variable in the place of the value `name`; None if its type is not known."""
        if self._types is None:
            self._types = self._find()
        known = self._types.get(name)
        return None if known is None else Var(name, known)

    def _find(self) -> dict[str, TensorType]:
        found: dict[str, TensorType] = {}
        graphs = [self._inferred().graph]
        while graphs:
            graph = graphs.pop()
            for info in (*graph.value_info, *graph.output):
                try:
                    dims, dtype = value_type(info.name, info.type)
                    if all(isinstance(d, int) and d > 0 for d in dims):
                        found.setdefault(info.name, TensorType(dims, dtype))
                except Exception:  # a sequence, or no tensor type at all: it stays unknown
                    continue
            graphs += [a.g for n in graph.node for a in n.attribute if a.type == 5]
        return found

    def _inferred(self) -> Any:
        onnx = onnx_package()
        # Functions that call themselves would not end there; ours are bounded.
        if self.proto.functions or self.proto.ByteSize() > MAX_INFERRED_BYTES:
            return self.proto
        fixed = onnx.ModelProto()
        fixed.CopyFrom(self.proto)
        for info in fixed.graph.input:
            dims = info.type.tensor_type.shape.dim
            for dim, size in zip(dims, self.shapes.get(info.name, ()), strict=False):
                if size is not ANY:
                    dim.dim_value = size
        if any(_is_long(info) for info in (*fixed.graph.input, *fixed.graph.value_info)):
            return self.proto
        if not all(_is_sound(node) for node in _all_nodes(fixed.graph)):
            return self.proto
        try:
            return onnx.shape_inference.infer_shapes(fixed)
        except Exception:  # what it finds inconsistent we find too, and say where
            return self.proto


def _is_long(info: Any) -> bool:
    tensor = info.type.tensor_type
    dims = tensor.shape.dim
    return len(dims) == 1 and dims[0].dim_value > MAX_LENGTH and tensor.elem_type in INTEGERS


def _all_nodes(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of its subgraphs."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node
            graphs += [a.g for a in node.attribute if a.type == 5]


def _is_sound(node: Any) -> bool:
    """Tell whether inference survives a node: of these two it trusts what they say.

    A malformed equation keeps it busy for ever, a part beyond `num_outputs` ends the process.
    """
    if node.op_type == "Einsum":
        texts = [a.s for a in node.attribute if a.name == "equation"]
        return all(is_equation(t.decode("latin-1")) for t in texts)
    counts = [a.i for a in node.attribute if a.name == "num_outputs"]
    return node.op_type != "Split" or all(count == len(node.output) for count in counts)
