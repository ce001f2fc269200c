"""`from_onnx`: an ONNX graph becomes a relay function.

Nodes are converted in file order (ONNX requires topological order).  Whatever depends on
constants only is folded at once, so that shapes, axes and pads computed inside the graph are
known where an operator needs them.  What cannot be converted is gathered and reported for the
whole model in one error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.errors import ModelError, TypeInferenceError, did_you_mean
from slipway.frontends.folding import ConstantFolder
from slipway.frontends.onnx.converters import Converter, NodeView, UnsupportedNode, load_converters
from slipway.frontends.onnx.functions import body_of, bound_nodes, has_body
from slipway.frontends.onnx.reader import array_of, load_model, value_type
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.types import TensorType

MAX_NAMES = 8  # nodes named per problem in the report
MAX_NODES = 200_000
MAX_DEPTH = 32  # of functions that call functions


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Any = None,
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """Import an ONNX model: a ModelProto, a path or bytes.

    `shape` gives inputs their shapes; it is needed where the model leaves a dimension open.
    `dtype`, as a dictionary, overrides the element type of inputs.  `opset` overrides the file's.
    With `freeze_params` weights are constants of the graph; without, they are its parameters.

    Returns the module, whose "main" takes the graph's inputs under their names, and the weights
    by name.  Raises ModelError for a file that cannot be read and for what is not supported.
    """
    proto = load_model(model)
    version = opset or _opset(proto)
    overrides = dtype if isinstance(dtype, Mapping) else {}
    importer = _Importer(load_converters(), version, freeze_params)
    importer.functions = {(f.domain, f.name): f for f in proto.functions}
    function = importer.main(proto.graph, dict(shape or {}), overrides)
    return IRModule((("main", function),)), importer.params


def _opset(proto: Any) -> int:
    for entry in proto.opset_import:
        if entry.domain in ("", "ai.onnx"):
            return int(entry.version)
    return 1  # files of the first version name no opset


class _Poisoned(Exception):
    """An input comes from a node that could not be converted."""


class _Importer:
    def __init__(self, converters: dict[str, Converter], opset: int, freeze: bool) -> None:
        self.converters = converters
        self.opset = opset
        self.freeze = freeze
        self.params: dict[str, np.ndarray[Any, Any]] = {}
        self.param_vars: list[Var] = []
        self.folder = ConstantFolder()
        self.problems: dict[tuple[str, str], list[str]] = {}
        self.converted = 0
        self.depth = 0  # of function bodies being converted
        self.functions: dict[tuple[str, str], Any] = {}  # model-local ones, by domain and name

    # -- graphs ----------------------------------------------------------------------------------

    def main(
        self, graph: Any, shapes: dict[str, Sequence[int]], overrides: Mapping[str, str]
    ) -> Function:
        values = self._initializers(graph)
        inputs = self._inputs(graph, values, shapes, overrides)
        values.update((v.name, v) for v in inputs)
        self._check_operators(graph)
        results = self._nodes(graph, values)
        if self.problems:
            raise ModelError(self._report())
        body = results[0] if len(results) == 1 else Tuple(tuple(results))
        names = tuple(o.name for o in graph.output)
        used = [v for v in self.param_vars if v.name in self.params]
        attrs = (("output_names", names),)
        return Function((*inputs, *used), body, None, attrs)

    def _initializers(self, graph: Any) -> dict[str, Expr | None]:
        values: dict[str, Expr | None] = {"": None}
        for tensor in graph.initializer:
            array = array_of(tensor)
            # Integers are mostly shapes and axes: they stay constants in either mode.
            if self.freeze or array.dtype.kind != "f":
                values[tensor.name] = Constant(array)
            else:
                values[tensor.name] = self._parameter(tensor.name, array)
            if array.dtype.kind == "f" or array.size > 16:
                self.params[tensor.name] = array
        return values

    def _parameter(self, name: str, array: np.ndarray[Any, Any]) -> Var:
        made = Var(name, TensorType(array.shape, array.dtype.name))
        self.param_vars.append(made)
        return made

    def _inputs(
        self,
        graph: Any,
        known: Mapping[str, Any],
        shapes: dict[str, Sequence[int]],
        overrides: Mapping[str, str],
    ) -> list[Var]:
        # Before IR version 4 initializers were listed among the inputs too.
        infos = [i for i in graph.input if i.name not in known]
        names = [i.name for i in infos]
        for name in [*shapes, *overrides]:
            if name not in names:
                raise ModelError(
                    f"the model has no input {name!r}; its inputs are {', '.join(names)}."
                    f"{did_you_mean(name, names)}"
                )
        made = []
        for info in infos:
            dims, dtype = value_type(info)
            dims = self._fixed(info.name, dims, shapes.get(info.name))
            made.append(Var(info.name, TensorType(dims, overrides.get(info.name, dtype))))
        return made

    @staticmethod
    def _fixed(name: str, dims: tuple[Any, ...], given: Sequence[int] | None) -> tuple[int, ...]:
        if given is None:
            if any(not isinstance(d, int) for d in dims):
                example = ", ".join(str(d) if isinstance(d, int) else "1" for d in dims)
                shown = ", ".join(str(d) for d in dims)
                raise ModelError(
                    f"the input {name!r} has shape ({shown}), which is not fixed: "
                    f"pass shape={{{name!r}: ({example})}}"
                )
            return dims
        wanted = tuple(int(d) for d in given)
        clash = dims != ("?",) and (
            len(wanted) != len(dims)
            or any(
                isinstance(d, int) and d not in (0, w) for d, w in zip(dims, wanted, strict=True)
            )
        )
        if clash:
            shown = ", ".join(str(d) for d in dims)
            raise ModelError(
                f"shape gives the input {name!r} the shape {wanted}, but the model has ({shown})"
            )
        return wanted

    # -- nodes -----------------------------------------------------------------------------------

    def _check_operators(self, graph: Any) -> None:
        """Note every operator that has no converter, subgraphs included, before converting."""
        graphs = [graph]
        while graphs:
            for node in graphs.pop().node:
                graphs += [a.g for a in node.attribute if a.type == 5]
                key = (node.domain, node.op_type)
                if key in self.functions or self._converter(node) is not None:
                    continue
                if has_body(node.op_type, node.domain, self.opset):
                    continue
                where = f" in the domain {node.domain!r}" if node.domain else ""
                self._note(node, f"there is no converter for it{where}")

    def _converter(self, node: Any) -> Converter | None:
        own = node.domain in ("", "ai.onnx")
        return self.converters.get(node.op_type if own else f"{node.domain}.{node.op_type}")

    def _note(self, node: Any, problem: str) -> None:
        name = node.name or (node.output[0] if node.output else "?")
        self.problems.setdefault((node.op_type, problem), []).append(name)

    def _nodes(self, graph: Any, values: dict[str, Expr | None]) -> list[Expr]:
        self._convert_all(graph.node, values)
        results = []
        for info in graph.output:
            value = values.get(info.name)
            if value is None and not self.problems:
                raise ModelError(f"no node makes the output {info.name!r}: the model is damaged")
            if value is not None:
                results.append(value)
        return results

    def _convert_all(self, nodes: Iterable[Any], values: dict[str, Expr | None]) -> None:
        """Convert nodes in order; each adds its results to `values`."""
        poisoned: set[str] = set()
        for node in nodes:
            try:
                found = self._node(node, values, poisoned)
            except _Poisoned:
                poisoned.update(node.output)
                continue
            except (UnsupportedNode, TypeInferenceError) as error:
                self._note(node, str(error))
                poisoned.update(node.output)
                continue
            except ModelError:
                raise
            except Exception as error:  # a node that breaks its operator's rules
                self._note(node, f"its attributes or inputs do not fit ({_first_line(error)})")
                poisoned.update(node.output)
                continue
            values.update(zip(node.output, found, strict=False))

    def _node(self, node: Any, values: dict[str, Expr | None], poisoned: set[str]) -> list[Expr]:
        self.converted += 1
        if self.converted > MAX_NODES:
            raise ModelError(f"the model has more than {MAX_NODES} nodes after unrolling its loops")
        if poisoned.intersection(node.input):
            raise _Poisoned
        inputs = []
        for name in node.input:
            if name not in values:
                raise ModelError(
                    f"the node {node.name or node.op_type!r} reads {name!r}, which no node before "
                    "it makes: the model is damaged or its nodes are out of order"
                )
            inputs.append(values[name])
        convert = self._converter(node)
        local = self.functions.get((node.domain, node.op_type))
        if convert is None or local is not None:
            function = local or body_of(node, inputs, self.opset)
            if function is None:
                raise _Poisoned  # noted by _check_operators
            return self._function(node, function, inputs)
        view = NodeView(node, inputs, self.opset, self._subgraph(values, poisoned))
        with op_registry.span(view.name):
            made = convert(view)
        if isinstance(made, TupleWrapper):
            made = list(made)
        elif not isinstance(made, list):
            made = [made]
        return [self.folder.fold(m) for m in made]

    def _function(self, node: Any, function: Any, inputs: list[Expr | None]) -> list[Expr]:
        """Convert the body of a function in the place of its call."""
        if self.depth >= MAX_DEPTH:
            raise ModelError(
                f"the functions of the model call each other without end: {node.op_type}"
            )
        values: dict[str, Expr | None] = dict.fromkeys(function.input)
        values.update(zip(function.input, inputs, strict=False))
        values[""] = None
        outer = self.opset
        self.opset = next(
            (e.version for e in function.opset_import if e.domain in ("", "ai.onnx")), outer
        )
        self.depth += 1
        before = sum(len(names) for names in self.problems.values())
        self._check_operators(function)
        self._convert_all(bound_nodes(function, node, outer), values)
        self.depth -= 1
        self.opset = outer
        results = [values.get(name) for name in function.output]
        if any(r is None for r, name in zip(results, node.output, strict=False) if name):
            if before == sum(len(names) for names in self.problems.values()):
                raise UnsupportedNode("an output of its definition is not made")
            raise _Poisoned
        return results  # type: ignore[return-value]

    def _subgraph(self, outer: dict[str, Expr | None], poisoned: set[str]) -> Any:
        """Return what converts a subgraph of a node: (graph, inputs) -> its result expressions."""

        def convert(graph: Any, inputs: Sequence[Expr]) -> list[Expr]:
            values = {**outer, **self._initializers(graph)}
            values.update((i.name, v) for i, v in zip(graph.input, inputs, strict=True))
            return self._nodes(graph, values)

        return convert

    # -- the report ------------------------------------------------------------------------------

    def _report(self) -> str:
        kinds = len({kind for kind, _ in self.problems})
        nodes = sum(len(names) for names in self.problems.values())
        lines = [
            f"the model uses {kinds} operator{'s' * (kinds != 1)} that Slipway cannot import "
            f"({nodes} node{'s' * (nodes != 1)}, opset {self.opset}):"
        ]
        for (kind, problem), names in sorted(self.problems.items()):
            shown = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
            lines.append(f"  {kind} x {len(names)} ({shown}): {problem}")
        return "\n".join(lines)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
