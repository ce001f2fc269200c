"""Stand-ins for the results of unsupported nodes, so that the nodes behind them are checked too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.frontends.onnx.reader import onnx_package, value_type
from slipway.relay.expr import Var
from slipway.relay.types import TensorType

MAX_INFERRED_BYTES = 1 << 27  # a larger model is not copied for shape inference


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
                dim.dim_value = size
        try:
            return onnx.shape_inference.infer_shapes(fixed)
        except Exception:  # what it finds inconsistent we find too, and say where
            return self.proto
