"""Which tensors of a graph are stored as integers, and which share one scale."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ModelError, did_you_mean
from slipway.frontends.onnx.quantize.graph import Graph

# Sums of products with constant weights; the axis of the output channels in their weights.
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# Activations that run inside the rescaling of what is before them.
TAILS = ("Relu", "Clip")
# Operators of two tensors, or of one, whose integer forms are exact up to one rounding.
ELEMENTWISE = ("Add", "Sub", "Mul")
SINGLE = (
    "AveragePool", "GlobalAveragePool", "ReduceMean", "Sigmoid", "Tanh", "HardSigmoid",
    "HardSwish", "LeakyRelu", "Elu", "Relu", "Clip",
)  # fmt: skip
# Elements change places: the result has the scale of the data.
MOVES = (
    "MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Resize",
    "DepthToSpace", "SpaceToDepth", "Split", "Expand", "Tile", "Pad",
)  # fmt: skip


@dataclass
class Plan:
    """What is quantised: tensors by name; `group` maps each to the one whose range it shares."""

    products: list[Any] = field(default_factory=list)  # nodes whose weights become integers
    tensors: dict[str, Any] = field(default_factory=dict)  # name -> the node (layer) that makes it
    group: dict[str, str] = field(default_factory=dict)
    kept_real: dict[str, str] = field(default_factory=dict)  # node -> why

    def root(self, name: str) -> str:
        """Return the tensor whose range stands for `name`."""
        while self.group.get(name, name) != name:
            name = self.group[name]
        return name

    def share(self, one: str, other: str) -> None:
        """Give two tensors one range."""
        self.group[self.root(other)] = self.root(one)


def make_plan(
    graph: Graph, exclude: Collection[str] = (), first: bool = True, last: bool = True
) -> Plan:
    """Decide what is quantised.

    Products with constant weights, sums, pools and what only moves elements; softmax,
    normalisation and the like stay real.  `exclude` names nodes, or operators ("Gemm"), to leave
    real; without `first` (`last`) so does the first (last) product.  Raises ModelError for an
    unknown name in `exclude`.
    """
    known = {n.name for n in graph.nodes} | {n.op_type for n in graph.nodes}
    for name in exclude:
        if name not in known:
            raise ModelError(f"exclude names {name!r}, no node.{did_you_mean(name, known)}")
    return _Planner(graph, exclude, first, last).run()


class _Planner:
    def __init__(self, graph: Graph, exclude: Collection[str], first: bool, last: bool) -> None:
        self.graph = graph
        self.plan = Plan()
        self.readers = graph.readers
        products = [n for n in graph.nodes if self._product_problem(n) == ""]
        left = [products[0]] * (not first) + [products[-1]] * (not last) if products else []
        self.left = {n.name for n in left} | {
            n.name for n in graph.nodes if n.name in exclude or n.op_type in exclude
        }

    def run(self) -> Plan:
        inside: set[int] = set()  # tails, which belong to the node before them
        for node in self.graph.nodes:
            if id(node) in inside or node.domain not in ("", "ai.onnx"):
                continue
            if node.name in self.left:
                self.plan.kept_real[node.name] = "excluded"
                continue
            kind = node.op_type
            if kind in PRODUCTS:
                problem = self._product_problem(node)
                if problem:
                    self.plan.kept_real[node.name] = problem
                    continue
                if self._constant(node.input[1]):
                    self.plan.products.append(node)
                self._layer(node, inside)
            elif kind in ELEMENTWISE:
                if not any(self._constant(i) for i in node.input):
                    self._layer(node, inside)
            elif kind == "Concat":
                if not any(self._constant(i) for i in node.input):
                    self._layer(node, inside)
                    for name in node.input:
                        self.plan.share(node.output[0], name)
            elif kind in SINGLE and node.input[0] in self.plan.tensors:
                self._layer(node, inside)
            elif kind in MOVES and node.input[0] in self.plan.tensors and self._plain_move(node):
                for name in node.output:
                    if name:
                        self.plan.tensors[name] = node
                        self.plan.share(node.input[0], name)
        return self.plan

    def _constant(self, name: str) -> bool:
        return name in self.graph.constants

    def _product_problem(self, node: Any) -> str:
        """Why a product stays real; "" when it need not."""
        if node.op_type not in PRODUCTS:
            return "no product"
        attribute = self.graph.attribute
        if self._constant(node.input[0]):
            return "its data is constant"
        if node.op_type == "Gemm":
            plain = attribute(node, "alpha", 1.0) == 1.0 and attribute(node, "beta", 1.0) == 1.0
            if not plain or attribute(node, "transA", 0):
                return "it scales or transposes its data"
        if node.op_type == "MatMul":
            return ""
        if not self._constant(node.input[1]):
            return "its weights are not constant"
        if node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1:
            return "it has groups"
        return ""

    def _plain_move(self, node: Any) -> bool:
        if node.op_type == "Resize":
            return bool(self.graph.attribute(node, "mode", b"nearest") == b"nearest")
        if node.op_type == "MaxPool":
            return len([o for o in node.output if o]) == 1
        if node.op_type == "Pad":
            value = self.graph.constants.get(node.input[2]) if len(node.input) > 2 else None
            given = len(node.input) > 2 and bool(node.input[2])
            mode = self.graph.attribute(node, "mode", b"constant")
            return mode == b"constant" and (not given or (value is not None and not value.any()))
        return True

    def _layer(self, node: Any, inside: set[int]) -> None:
        """Store what a node reads, and what it and its tail give, as integers."""
        count = 2 if node.op_type in (*ELEMENTWISE, "MatMul") else 1
        names = node.input if node.op_type == "Concat" else node.input[:count]
        for name in names:
            if not self._constant(name):
                self.plan.tensors.setdefault(name, node)
        end = node
        if node.op_type == "MatMul":
            end = self._bias_after(end) or end
        if node.op_type in (*PRODUCTS, "Add", "Sub"):
            tail = self._sole_reader(end)
            if tail is not None and tail.op_type in TAILS and tail.name not in self.left:
                inside.add(id(tail))
                end = tail
        if end is not node:
            inside.add(id(end))
        self.plan.tensors[end.output[0]] = node

    def _bias_after(self, node: Any) -> Any:
        """Return the Add of a constant vector after a MatMul."""
        reader = self._sole_reader(node)
        if reader is None or reader.op_type != "Add" or reader.name in self.left:
            return None
        other = next((i for i in reader.input if i != node.output[0]), "")
        value = self.graph.constants.get(other)
        return reader if value is not None and value.ndim == 1 else None

    def _sole_reader(self, node: Any) -> Any:
        name = node.output[0]
        found = self.readers.get(name, [])
        if len(found) != 1 or name in self.graph.outputs:
            return None
        reader = found[0]
        clip = reader.op_type == "Clip" and not all(
            self._constant(i) for i in reader.input[1:] if i
        )
        takes = reader.op_type == "Add" or reader.input[0] == name
        return reader if takes and not clip else None
