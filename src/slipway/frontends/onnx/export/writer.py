"""How a relay function becomes nodes: names of values, constants, and functions inside others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order

OPSET_VERSIONS = tuple(range(13, 19))
Given = list[Any]  # of each argument: the name of its value, or a tuple of names
Write = Callable[["Writer", Call, Given], Any]


def kind_of(expr: Expr) -> TensorType:
    """Return the type of an expression that gives one tensor."""
    kind = expr.checked_type
    assert isinstance(kind, TensorType)
    return kind


def shape_of(expr: Expr) -> list[int]:
    """Return the extents of an expression that gives one tensor."""
    return [int(d) for d in kind_of(expr).shape]


class Unwritten(Exception):
    """An operator, or a form of one, that ONNX has no counterpart for; the text says which."""


class Writer:
    """Gathers the nodes and initializers of one model."""

    def __init__(
        self, onnx: ModuleType, writers: Mapping[str, Write],
        params: dict[str, np.ndarray[Any, Any]], opset: int,
    ) -> None:  # fmt: skip
        self.onnx, self.writers, self.params, self.opset = onnx, writers, params, opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[int, Any] = {}
        self.unknown: list[str] = []
        self.count = 0

    def model(self, function: Function, name: str) -> Any:
        """Return the model of a function."""
        helper, inputs = self.onnx.helper, []
        for param in function.params:
            self.names[id(param)] = param.name_hint
            if param.name_hint in self.params:
                self.constant(self.params[param.name_hint], param.name_hint)
            else:
                inputs.append(self.info(param.name_hint, param.checked_type))
        names = self.written(function.body)
        if self.unknown:
            raise ModelError(
                "to_onnx has no counterpart for the operators: "
                f"{', '.join(sorted(set(self.unknown)))}"
            )
        outputs = []
        for number, (one, kind) in enumerate(
            zip(names, flatten(function.body.checked_type), strict=True)
        ):
            made = f"output_{number}"
            self.node("Identity", [one], outputs=[made])
            outputs.append(self.info(made, kind))
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        opset = helper.make_opsetid("", self.opset)
        version = helper.find_min_ir_version_for([opset])
        return helper.make_model(graph, opset_imports=[opset], ir_version=version)

    def written(self, body: Expr) -> list[Any]:
        """Write everything that `body` needs; return the names of its tensors."""
        for expr in post_order(body):
            if id(expr) not in self.names:
                self._visit(expr)
        found = self.names[id(body)]
        return list(found) if isinstance(found, tuple) else [found]

    def graph_of(
        self, function: Function, given: Sequence[Any], inputs: Iterable[Any] = (),
        before: Callable[[list[Any]], list[Any]] | None = None,
    ) -> Any:  # fmt: skip
        """Return the graph inside a node that computes a function of `given` names.

        It reads what stands outside by its name.  `inputs` are the graph's own; `before` makes the
        graph's outputs of the function's.
        """
        kept_nodes, kept_names = self.nodes, dict(self.names)
        self.nodes = []
        self.names |= {id(param): name for param, name in zip(function.params, given, strict=True)}
        names = self.written(function.body)
        names = [self.node("Identity", [name]) for name in (before(names) if before else names)]
        nodes, self.nodes, self.names = self.nodes, kept_nodes, kept_names
        outputs = [self.onnx.ValueInfoProto(name=name) for name in names]
        return self.onnx.helper.make_graph(nodes, f"graph_{self._next()}", list(inputs), outputs)

    def _next(self) -> int:
        self.count += 1
        return self.count

    def new_name(self, word: str = "value") -> str:
        """Return a name that nothing else has."""
        return f"{word}_{self._next()}"

    def info(self, name: str, kind: Any) -> Any:
        """Return what ONNX says of an input or output."""
        if any(is_open(d) for d in kind.shape):
            raise ModelError(
                f"to_onnx writes fixed sizes; {name!r} is {kind}: "
                "give it sizes by relay.transform.FixShapes first"
            )
        shape = [int(d) for d in kind.shape]
        return self.onnx.helper.make_tensor_value_info(name, self.number_of(kind.dtype), shape)

    def number_of(self, dtype: str) -> int:
        """Return the number that ONNX has for a type of elements."""
        if dtype == "bfloat16":
            return int(self.onnx.TensorProto.BFLOAT16)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def constant(self, value: Any, name: str = "") -> str:
        """Enter an initializer; return its name."""
        name = name or self.new_name("constant")
        array = np.asarray(value, order="C")
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, *values: int) -> str:
        """Enter a vector of int64."""
        return self.constant(np.array(values, "int64"))

    def scalar(self, value: float, dtype: str) -> str:
        """Enter one number."""
        return self.constant(np.array(value, dtype))

    def node(
        self, kind: str, inputs: Sequence[str], outputs: list[str] | None = None, **attributes: Any
    ) -> str:
        """Add a node; return the name of its first output."""
        made = outputs or [self.new_name()]
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), made, **given))
        return made[0]

    def several(self, kind: str, inputs: Sequence[str], count: int, **attributes: Any) -> Any:
        """Add a node of several outputs; return their names."""
        made = [self.new_name() for _ in range(count)]
        self.node(kind, inputs, made, **attributes)
        return tuple(made)

    def cast(self, name: str, dtype: str) -> str:
        """Add a conversion."""
        return self.node("Cast", [name], to=self.number_of(dtype))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """Give the same elements another shape."""
        return self.node("Reshape", [name, self.whole(*shape)])

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """Move axes, where any is moved."""
        if list(order) == sorted(order):
            return name
        return self.node("Transpose", [name], perm=list(order))

    def _visit(self, expr: Expr) -> None:
        made: Any = ""
        match expr:
            case Constant():
                made = self.constant(expr.array)
            case Tuple():
                made = tuple(self.names[id(f)] for f in expr.fields)
            case TupleGetItem():
                whole = self.names[id(expr.tuple_value)]
                made = whole[expr.index] if isinstance(whole, tuple) else ""
            case Call() if isinstance(expr.op, Op):
                made = self._call(expr, expr.op.name)
            case Var() | Op() | Function():
                return
            case _:
                self.unknown.append(type(expr).__name__)
        self.names[id(expr)] = made

    def _call(self, call: Call, name: str) -> Any:
        write = self.writers.get(name)
        try:
            if write is None:
                raise Unwritten(name)
            return write(self, call, [self.names[id(a)] for a in call.args])
        except Unwritten as what:
            self.unknown.append(str(what))
        kinds = flatten(call.checked_type)
        return "" if isinstance(call.checked_type, TensorType) else ("",) * len(kinds)
