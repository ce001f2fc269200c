"""`from_mxnet`: a symbol or a Gluon block of MXNet, or its files, becomes a relay function.

Nodes are converted in the order of the symbol's JSON, and those that no output reads are left out.
What cannot be converted is gathered and reported for the whole model in one error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ArgumentTypeError, ArgumentValueError, ModelError, defects_named
from slipway.frontends.binding import check_input_names
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.mxnet.converters import (
    REFUSED,
    NodeView,
    as_list,
    load_converters,
)  # fmt: skip
from slipway.frontends.mxnet.parameters import read_parameters
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function, Tuple, Var
from slipway.relay.types import TensorType
from slipway.relay.visit import free_vars
from slipway.runtime.ndarray import NDArray, array

Arrays = Mapping[str, Any]
Shapes = Mapping[str, Sequence[int]]


@defects_named("importing the model")
def from_mxnet(
    symbol: object,
    shape: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Arrays | str | Path | None = None,
    aux_params: Arrays | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Import a model of MXNet.

    `symbol` is a `mxnet.Symbol`, a `mxnet.gluon.HybridBlock`, or without MXNet a symbol's JSON:
    its text, the dictionary, or the path of ``model-symbol.json``.  `shape` and `dtype` are those
    of the inputs by name; a block's inputs are called so.  `arg_params` and `aux_params` hold the
    parameters as arrays of MXNet or NumPy; the first may be the path of ``model-0000.params``,
    which holds both.

    Returns the module and the parameters by name.  Raises ModelError for what no model of MXNet
    is, and for everything that is not supported at once.
    """
    if is_of(symbol, "mxnet.gluon.block.Block"):
        if arg_params is not None or aux_params is not None:
            raise ArgumentValueError("from_mxnet: a Gluon block has its parameters: give none")
        symbol, arg_params = traced(symbol, list(shape or {}))
    params: dict[str, np.ndarray[Any, Any]] = {}
    if isinstance(arg_params, str | Path):
        params.update(read_parameters(arg_params))
        arg_params = None
    for given in (arg_params, aux_params):
        params.update({name: numbers(values) for name, values in (given or {}).items()})
    graph = graph_of(symbol)
    shapes = told_shapes(shape)
    importer = _Importer(graph, {**inferred_shapes(symbol, shapes), **shapes}, dtype, params)
    function = importer.main(list(shapes))
    used = {p.name_hint for p in function.params}
    return IRModule((("main", function),)), {
        name: array(values) for name, values in params.items() if name in used
    }


class _Importer:
    def __init__(
        self,
        graph: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        dtype: str | Mapping[str, str],
        params: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        self.nodes: list[Mapping[str, Any]] = list(graph["nodes"])
        self.heads = [(int(h[0]), int(h[1])) for h in graph["heads"]]
        self.shapes = shapes
        self.dtype = dtype
        self.params = params
        self.converters = load_converters()
        self.values: dict[int, list[Any]] = {}
        self.defects: dict[str, None] = {}  # ordered, and each once

    def main(self, named: Sequence[str]) -> Function:
        """Return the function of the whole symbol; `named` are inputs that shapes were given of."""
        check_input_names(
            dict.fromkeys(named, ()), [n["name"] for n in self.nodes if n["op"] == "null"]
        )
        needed = self._reached()
        for number, node in enumerate(self.nodes):
            if number in needed and node["op"] != "null":
                self.values[number] = self._node(node)
        outputs = [self._value(i, n) for i, n in self.heads]
        if self.defects:
            raise ModelError(
                "the model uses what is not supported:\n  " + "\n  ".join(self.defects)
            )
        body: Expr = outputs[0] if len(outputs) == 1 else Tuple(tuple(outputs))
        return Function(tuple(free_vars(body)), body)

    def _reached(self) -> set[int]:
        found: set[int] = set()
        left = [number for number, _ in self.heads]
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                left += [int(entry[0]) for entry in self.nodes[number]["inputs"]]
        return found

    def _value(self, number: int, output: int) -> Any:
        """Return an output of a node; None where it could not be converted."""
        if number not in self.values and self.nodes[number]["op"] == "null":
            self.values[number] = [self._variable(self.nodes[number])]
        made = self.values[number]
        if made and output >= len(made):
            node = self.nodes[number]
            self.defects[f"{node['name']} ({node['op']}): its output {output} is not made"] = None
        return made[output] if output < len(made) else None

    def _variable(self, node: Mapping[str, Any]) -> Any:
        name = str(node["name"])
        if name in self.params:
            values = self.params[name]
            return Var(name, TensorType(values.shape, str(values.dtype)))
        shape = self.shapes.get(name) or attributes(node).get("__shape__")
        if isinstance(shape, str):
            shape = tuple(json.loads(shape.replace("(", "[").replace(")", "]").replace(",]", "]")))
        if shape is None or any(d <= 0 for d in shape):
            self.defects[f"{name}: its shape is not known: give it in shape="] = None
            return None
        dtype = self.dtype if isinstance(self.dtype, str) else self.dtype.get(name, "float32")
        return Var(name, TensorType(shape, str(dtype)))

    def _node(self, node: Mapping[str, Any]) -> list[Any]:
        """Convert a node; the result is empty where it, or what it reads, cannot be."""
        op, name = str(node["op"]), str(node["name"])
        converter = self.converters.get(op)
        inputs = _Inputs(self, [(int(e[0]), int(e[1])) for e in node["inputs"]])
        if converter is None:
            why = REFUSED.get(op, "there is no converter for it")
            self.defects[f"{name} ({op}): {why}"] = None
            return []
        try:
            return list(as_list(converter(NodeView(op, name, attributes(node), inputs.all(op)))))
        except UnsupportedNode as error:
            self.defects[str(error)] = None
        except _MissingInput:
            pass  # told where it comes from
        return []


# Inputs that say what is learned from: no value of the model depends on them.
LABELLED = {
    "SoftmaxOutput", "Softmax", "LinearRegressionOutput", "LogisticRegressionOutput",
    "MAERegressionOutput",
}  # fmt: skip


class _MissingInput(Exception):
    """An input of a node could not be converted."""


class _Inputs:
    def __init__(self, importer: _Importer, entries: list[tuple[int, int]]) -> None:
        self.importer = importer
        self.entries = entries

    def all(self, op: str) -> list[Any]:
        entries = self.entries[:1] if op in LABELLED else self.entries
        found = [self.importer._value(*entry) for entry in entries]
        if any(value is None for value in found):
            raise _MissingInput
        return found


def attributes(node: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a node's attributes, which older versions called "attr" and "param"."""
    found = node.get("attrs") or {**node.get("param", {}), **node.get("attr", {})}
    return {str(k): str(v) for k, v in found.items()}


def graph_of(symbol: object) -> Mapping[str, Any]:
    """Return the JSON of a symbol, of its text, or of the file that has it."""
    if hasattr(symbol, "tojson"):
        symbol = symbol.tojson()
    elif isinstance(symbol, Path) or (isinstance(symbol, str) and "{" not in symbol):
        symbol = Path(symbol).read_text(encoding="utf-8")
    if not isinstance(symbol, str | Mapping):
        raise ArgumentTypeError(
            "from_mxnet takes a Symbol or HybridBlock of MXNet, or a symbol's JSON, not "
            f"{type(symbol).__module__}.{type(symbol).__name__}"
        )
    try:
        graph = json.loads(symbol) if isinstance(symbol, str) else symbol
    except ValueError as error:
        raise ModelError(f"what should be a symbol's JSON is none: {error}") from None
    if not isinstance(graph, Mapping) or "nodes" not in graph or "heads" not in graph:
        raise ModelError("the JSON is not that of a symbol: it has no nodes and heads")
    return graph


def inferred_shapes(symbol: Any, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Return the shapes that MXNet itself infers for the arguments of a symbol, where it can."""
    if not hasattr(symbol, "infer_shape_partial"):
        return {}
    names = set(symbol.list_inputs())
    known = {name: tuple(s) for name, s in shapes.items() if name in names}
    arguments, _, states = symbol.infer_shape_partial(**known)
    pairs = [
        *zip(symbol.list_arguments(), arguments or (), strict=False),
        *zip(symbol.list_auxiliary_states(), states or (), strict=False),
    ]
    return {name: tuple(s) for name, s in pairs if s and all(d > 0 for d in s)}


def traced(block: Any, names: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return the symbol of a Gluon block on inputs of these names, and its parameters."""
    import mxnet

    if not is_of(block, "mxnet.gluon.block.HybridBlock"):
        raise ModelError(f"{type(block).__name__} is no HybridBlock: only those have a symbol")
    found = block(*(mxnet.sym.Variable(name) for name in names or ["data"]))
    if isinstance(found, tuple | list):
        found = mxnet.sym.Group(list(found))
    return found, {name: p.data() for name, p in block.collect_params().items()}


def is_of(value: object, name: str) -> bool:
    """Return whether a value's class, or one it derives from, has this full name."""
    return name in {f"{c.__module__}.{c.__qualname__}" for c in type(value).__mro__}


def numbers(values: object) -> np.ndarray[Any, Any]:
    """Return an array of MXNet, of Slipway or of NumPy as NumPy's."""
    own = getattr(values, "asnumpy", None)
    return np.asarray(values if own is None else own(), order="C")
