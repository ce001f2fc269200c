"""`from_onnx`: an ONNX graph becomes a relay function.

Nodes are converted in file order (ONNX requires topological order).  Whatever depends on
constants only is folded at once, so that shapes, axes and pads computed inside the graph are
known where an operator needs them.  What cannot be converted is gathered and reported for the
whole model in one error.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import (
    InternalError,
    ModelError,
    SlipwayError,
    defects_named,
    internal_error,
)
from slipway.frontends.binding import Constants
from slipway.frontends.budget import current_budget, import_budget
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.folding import ConstantFolder
from slipway.frontends.onnx.converters import (
    Converter,
    DependsOnInputs,
    NodeView,
    load_converters,
)
from slipway.frontends.onnx.counted import cut_to_declared
from slipway.frontends.onnx.declared import DECLARED
from slipway.frontends.onnx.found import FoundSizes
from slipway.frontends.onnx.functions import body_of, bound_nodes, called, has_body
from slipway.frontends.onnx.graph_check import check_names, in_order, names_read, opset_of
from slipway.frontends.onnx.implied import with_implied
from slipway.frontends.onnx.inputs import inputs_of
from slipway.frontends.onnx.meanings import port_meanings
from slipway.frontends.onnx.node_check import check_node, check_values, objection_to
from slipway.frontends.onnx.node_names import export_node_renamed_model, name_of
from slipway.frontends.onnx.open_sizes import (
    SizeTrial,
    bounds_of,
    extents_of,
    names_that_meet,
    open_sizes,
    shapes_of_dims,
)
from slipway.frontends.onnx.operators.ml.dictionaries import without_dictionaries
from slipway.frontends.onnx.operators.ml.texts import without_texts
from slipway.frontends.onnx.reader import (
    Weights,
    array_of,
    is_aside,
    open_model,
    unheld,
    weights_bytes,
)
from slipway.frontends.onnx.settled_values import (
    Values,
    presumed,
    settled_values,
    unknown_values,
)
from slipway.frontends.onnx.sparse import dense_array
from slipway.frontends.onnx.stand_in import StandIns
from slipway.frontends.onnx.values import (
    Counted,
    Value,
    mapped,
    names_of,
    tensors_of,
)
from slipway.frontends.report import NodeReport, ReportBook
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.depth import levels
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.expr import Constant, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.meaning import meanings_attribute
from slipway.relay.types import TensorType, is_open

MAX_DEPTH = 1000  # of functions that call functions
CALL_NODES = 7  # what the call of a function takes from the budget beside its nodes


@defects_named("importing the model")
def from_onnx(
    model: Any,
    shape: Mapping[str, Any] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Any = None,
    export_node_renamed_model_path: str | os.PathLike[str] | None = None,
    *,
    constants: Constants | None = None,
    dims: Mapping[str, Any] | None = None,
    counted: bool = True,
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """Import an ONNX model: a ModelProto, a path or bytes.

    `shape` gives inputs their shapes; it is needed where the model leaves a dimension open.  For a
    sequence it lists the shapes of the elements, which become inputs ``x.0``, ``x.1``, ...; for an
    optional input None says that it is missing.  ``relay.Any()`` leaves a dimension open, where the
    operators allow that.
    `dtype`, as a dictionary, overrides the element type of inputs.  `opset` overrides the file's.
    With `freeze_params` weights are constants of the graph; without, they are its parameters.
    `convert_config` is classic TVM's: its "use_nt_batch_matmul" changes nothing here, because a
    product is laid out when it is compiled, and any other key is refused.
    `export_node_renamed_model_path`: where to write the model with a name for every node, the one
    that the module tells it by.
    `constants` binds inputs to values: they are inputs no longer, and what depends on them alone is
    folded, so that an If on one takes its branch.
    `dims` says what the file's names of dimensions (dim_param) stand for: ``{"batch": (1, 8)}`` for
    a range that one library runs, ``{"batch": 4}`` for a size; and how long the result of a Range
    becomes whose limit is computed.

    An output whose size depends on the data has room for the most there can be, and a second output
    ``x.count`` says how much of it is used; the function's attribute "counted_outputs" lists such
    outputs with the axis that is meant.  With `counted` False it is as long as what is found, as
    onnxruntime's, which the graph executor runs (`relay.sized`).

    Returns the module, whose "main" takes the graph's inputs under their names, and the weights
    by name.  Raises ModelError for a file that cannot be read and for what is not supported.
    """
    _check_config(convert_config)
    if export_node_renamed_model_path is not None:
        export_node_renamed_model(model, export_node_renamed_model_path)
    proto, weights = open_model(model)
    proto = in_order(proto)
    overrides = dtype if isinstance(dtype, Mapping) else {}
    with import_budget(weights_bytes(proto, weights)):
        importer = _Importer(proto, weights, opset_of(proto, opset), freeze_params, constants)
        told = told_shapes(shape, extents_of(dims))
        given, importer.found.bounds = shapes_of_dims(proto, told, dims), bounds_of(proto, dims)
        with open_sizes(proto, given, lambda shapes: _trial(importer, shapes, overrides)):
            function = importer.main(given, overrides, counted)
    return IRModule((("main", function),)), importer.params


def _check_config(config: Any) -> None:
    """Raise ModelError for what `convert_config` asks and the importer does not do."""
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise ModelError(
            f"convert_config is a dictionary of options, got {type(config).__name__}; leave it out"
        )
    for key, value in config.items():
        if key != "use_nt_batch_matmul" or not isinstance(value, bool):
            raise ModelError(
                f"convert_config={{{key!r}: {value!r}}} is nothing that from_onnx knows how to do; "
                "leave it out"
            )


@defects_named("importing the model")
def check_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    *,
    constants: Constants | None = None,
    dims: Mapping[str, Any] | None = None,
) -> list[NodeReport]:
    """Return what the importer makes of every node of a model, without stopping at any.

    The arguments are those of `from_onnx`.  Raises ModelError for a file that cannot be read.
    """
    proto, weights = open_model(model)
    proto = in_order(proto)
    overrides = dtype if isinstance(dtype, Mapping) else {}
    with import_budget(weights_bytes(proto, weights)):
        importer = _Importer(proto, weights, opset_of(proto, opset), True, constants)
        importer.book.survey = True
        told = told_shapes(shape, extents_of(dims))
        given, importer.found.bounds = shapes_of_dims(proto, told, dims), bounds_of(proto, dims)
        with open_sizes(proto, given, lambda shapes: _trial(importer, shapes, overrides)):
            importer.survey(dict(given or {}), overrides)
    return importer.book.entries


def _trial(like: _Importer, shapes: dict[str, Any], overrides: Mapping[str, str]) -> SizeTrial:
    """Read the model with these shapes; return the nodes that fail, and the outputs' shapes."""
    with import_budget(weights_bytes(like.proto, like.weights)):
        importer = _Importer(like.proto, like.weights, like.opset, True, like.constants)
        _, results = importer.survey(shapes, overrides)
    names = [o.name for o in importer.graph.output]
    pairs = zip(names, results, strict=False)  # fewer results where there are problems
    made = {name: value.tensor_type.shape for name, value in pairs if isinstance(value, Expr)}
    return SizeTrial(importer.book.problems, made)


class _Poisoned(Exception):
    """An input comes from a node that could not be converted."""


class _Importer:
    def __init__(
        self,
        proto: Any,
        weights: Weights,
        opset: int,
        freeze: bool,
        constants: Constants | None = None,
        values: Values | None = None,
    ) -> None:
        check_names(proto)
        proto, columns = without_dictionaries(proto)
        proto, texts = without_texts(proto)
        self.texts = {**texts, **columns}
        self.proto, self.weights = proto, weights
        self.constants = dict(constants or {})
        self.graph = proto.graph
        self.converters = load_converters()
        self.opset = opset
        # A file may be of other domains alone, and import nothing of ONNX's own.
        self.versions = {
            e.domain: int(e.version) for e in proto.opset_import if e.domain not in ("", "ai.onnx")
        }
        self.freeze = freeze
        self.params: dict[str, np.ndarray[Any, Any]] = {}
        self.param_vars: list[Var] = []
        self.folder = ConstantFolder()
        self.sizes, self.found = SizeValues(), FoundSizes()
        self.values = values  # of small integer inputs, as far as shapes settle them
        self.presumes = False  # whether shapes are all that is asked of the nodes
        self.wants_values = False  # whether a node must know what depends on the inputs
        self.is_open = False  # whether an input has an open dimension
        self.book = ReportBook()
        self.stand_ins = StandIns(proto)
        self.budget = current_budget()
        self.read = {name for node in proto.graph.node for name in names_read(node)}
        self.misfits: dict[Hashable, str] = {}
        self.calls: list[
            tuple[str, str, str]
        ] = []  # whose bodies are being converted, the outer first
        self.functions = {called(f, f.name): f for f in proto.functions}  # model-local ones

    # -- graphs ----------------------------------------------------------------------------------

    def main(
        self, shapes: dict[str, Any], overrides: Mapping[str, str], counted_outputs: bool
    ) -> Function:
        inputs, results = self.survey(shapes, overrides)
        if self.book.problems:
            others = "".join(f", {n!r} {told}" for n, told in self.stand_ins.replaced.items())
            raise self.book.error(f", opset {self.opset}{others}")
        if not counted_outputs:
            results = [self.found.cut(value) for value in results]
        named = list(zip((o.name for o in self.graph.output), results, strict=True))
        names = tuple(n for name, value in named for n in names_of(name, value))
        tensors = [tensor for value in results for tensor in tensors_of(value)]
        if not tensors:
            raise ModelError("the model has no output tensor: its outputs are empty")
        body = tensors[0] if len(tensors) == 1 else Tuple(tuple(tensors))
        used = [v for v in self.param_vars if v.name in self.params]
        attrs: tuple[tuple[str, Any], ...] = (("output_names", names),)
        counted = tuple((n, value.axis) for n, value in named if isinstance(value, Counted))
        if counted:
            attrs += (("counted_outputs", counted),)
        attrs += meanings_attribute(*port_meanings(self.proto, names, self.texts))
        return Function((*inputs, *used), body, None, attrs)

    def survey(
        self, shapes: dict[str, Any], overrides: Mapping[str, str]
    ) -> tuple[list[Var], list[Value]]:
        """Convert everything that can be; return the inputs, and the outputs that were made."""
        inputs, results = self._survey(shapes, overrides)
        if not self.wants_values or self.values is not None:
            return inputs, results
        values = self._settled(unknown_values(inputs), shapes, overrides)
        if values:
            other = self._with_values(values)
            found = other._survey(shapes, overrides)
            if len(other.book.problems) < len(self.book.problems) and not self._clashes(found[1]):
                self.__dict__.update(other.__dict__)
                return found
        return inputs, results

    def _clashes(self, results: Sequence[Value]) -> bool:
        """Return whether an output has another shape than the file states."""
        return any(
            isinstance(value, Expr)
            and self.stand_ins.shape(info.name) not in (None, value.tensor_type.shape)
            for info, value in zip(self.graph.output, results, strict=False)
        )

    def _with_values(self, values: Values) -> _Importer:
        other = _Importer(self.proto, self.weights, self.opset, self.freeze, self.constants, values)
        other.book.survey, other.texts = self.book.survey, self.texts
        return other

    def _settled(
        self, unknown: Values, shapes: dict[str, Any], overrides: Mapping[str, str]
    ) -> Values:
        """Return the values of small integer inputs that the shapes of the outputs settle."""
        if not unknown:
            return {}
        trial = self._with_values(unknown)
        trial.presumes = True
        _, results = trial._survey(shapes, overrides)
        pairs = []
        for info, value in zip(self.graph.output, results, strict=False):
            stated = self.stand_ins.shape(info.name)
            if isinstance(value, Expr) and stated is not None:
                pairs.append((value.tensor_type.shape, stated))
        return settled_values(unknown, pairs)

    def _survey(
        self, shapes: dict[str, Any], overrides: Mapping[str, str]
    ) -> tuple[list[Var], list[Value]]:
        graph = self.graph
        values = self._initializers(graph)
        unread = self._note_unheld(graph, values)
        known = {**values, **unread}
        given = inputs_of(graph, known, shapes, overrides, self.constants, self.stand_ins)
        values.update(given)
        tensors = [tensor for value in given.values() for tensor in tensors_of(value)]
        inputs = [tensor for tensor in tensors if isinstance(tensor, Var)]
        self.stand_ins.shapes = {v.name: v.tensor_type.shape for v in inputs}
        self.is_open = any(is_open(d) for v in inputs for d in v.tensor_type.shape)
        self.found.enter(inputs)
        for var in inputs:
            if self.values and var.name in self.values:
                self.sizes.enter(var, self.values[var.name])
                self.is_open = True
        self._check_operators(graph)
        with levels(min(len(self.functions), MAX_DEPTH)):  # none calls itself, see `_function`
            return inputs, self._nodes(graph, values, unread)

    def _note_unheld(self, graph: Any, known: Mapping[str, Any]) -> dict[str, str]:
        """Note the nodes that read inputs of strings and the like; return why, by input.

        One that no node reads is left for `inputs_of` to refuse.
        """
        why = {i.name: unheld(i.name, i.type) for i in graph.input if i.name not in known}
        readers = [(n, name) for n in graph.node for name in n.input if why.get(name)]
        for node, name in readers:
            self._note(node, why[name])
        return {name: why[name] for _, name in readers}

    def _initializers(self, graph: Any) -> dict[str, Value]:
        values: dict[str, Value] = {"": None}
        for tensor in graph.initializer:
            array = self.weights[tensor.name] if is_aside(tensor) else array_of(tensor)
            values[tensor.name] = self._initializer(tensor.name, array)
        for sparse in graph.sparse_initializer:
            name = self.budget.node = sparse.values.name
            values[name] = self._initializer(name, dense_array(sparse))
        return values

    def _initializer(self, name: str, array: np.ndarray[Any, Any]) -> Value:
        is_float = dtypes.is_float(array.dtype.name)
        if is_float or array.size > 16:
            self.params[name] = array
        # Integers are mostly shapes and axes: they stay constants in either mode.
        return Constant(array) if self.freeze or not is_float else self._parameter(name, array)

    def _parameter(self, name: str, array: np.ndarray[Any, Any]) -> Var:
        made = Var(name, TensorType(array.shape, array.dtype.name))
        self.param_vars.append(made)
        return made

    # -- nodes -----------------------------------------------------------------------------------

    def _check_operators(self, graph: Any) -> None:
        """Note every operator of a graph that has no converter, before converting.

        Not those of subgraphs: of two branches perhaps only one is read.
        """
        for node in graph.node:
            if called(node, node.op_type) in self.functions or self._converter(node) is not None:
                continue
            if not has_body(node.op_type, node.domain, self.opset):
                self._note(node, _no_converter(node))

    def _converter(self, node: Any) -> Converter | None:
        own = node.domain in ("", "ai.onnx")
        return self.converters.get(node.op_type if own else f"{node.domain}.{node.op_type}")

    def _note(self, node: Any, problem: str) -> None:
        self.book.problem(name_of(node), str(node.op_type), problem, _key_of(node))

    def _nodes(
        self, graph: Any, values: dict[str, Value], poisoned: Iterable[str] = ()
    ) -> list[Value]:
        self._convert_all(graph.node, values, poisoned)
        results: list[Value] = []
        for info in graph.output:
            value = values.get(info.name)
            if value is None and not self.book.problems:
                raise ModelError(f"no node makes the output {info.name!r}: the model is damaged")
            if value is not None:
                results.append(value)
        return results

    def _convert_all(
        self, nodes: Iterable[Any], values: dict[str, Value], outer: Iterable[str] = ()
    ) -> None:
        """Convert nodes in order, adding their results to `values`; `outer` is poisoned already."""
        poisoned = set(outer)
        for node in nodes:
            try:
                found = self._node(node, values, poisoned)
            except _Poisoned:
                self.book.unchecked(name_of(node), str(node.op_type), _key_of(node))
            except (ModelError, InternalError, MemoryError):
                raise
            except SlipwayError as error:
                self.wants_values |= isinstance(error, DependsOnInputs)
                self._note(node, str(error) + self._meeting(node, values))
            except Exception as error:
                self._note(node, self._misfit(node, values, error))
            else:
                values.update(zip(node.output, found, strict=False))
                if not self.calls:
                    tensors = [t for v in found if v is not None for t in tensors_of(v)]
                    self.book.done(name_of(node), node.op_type, tensors, _key_of(node))
                continue
            for name in node.output:
                is_asked = name in self.read and not self.calls
                made = self.stand_ins.of(name) if is_asked else None
                if made is None:
                    poisoned.add(name)
                else:
                    values[name] = made

    def _meeting(self, node: Any, values: dict[str, Value]) -> str:
        """Return advice on names of open sizes that meet in a node which is to join its inputs."""
        given = [values.get(name) for name in node.input]
        shapes = [v.tensor_type.shape for v in given if isinstance(v, Expr)]
        return names_that_meet(node.op_type, shapes)

    def _misfit(self, node: Any, values: dict[str, Value], error: Exception) -> str:
        """Return what ONNX itself holds against a node that a converter failed on.

        Raises InternalError when it holds nothing against it: then the defect is ours.
        """
        key = (node.op_type, type(error), str(error))
        if key not in self.misfits:
            self.misfits[key] = objection_to(node, values, self.opset)
        if self.misfits[key]:
            return f"its attributes or inputs do not fit: {self.misfits[key]}"
        defect = internal_error(f"converting the node {name_of(node)!r} ({node.op_type})", error)
        if not self.book.survey:
            raise defect from error
        return str(defect)

    def _node(self, node: Any, values: dict[str, Value], poisoned: set[str]) -> list[Value]:
        self.budget.take_node(name_of(node))
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
        if not self.calls:  # a function has its own names
            inputs = with_implied(node, inputs, self.stand_ins.shape)
        convert = self._converter(node)
        local = self.functions.get(called(node, node.op_type))
        if local is None:
            check_node(node, max(self.opset, self.versions.get(node.domain, 1)))
        if convert is None or local is not None:
            function = local or body_of(node, inputs, self.opset)
            if function is None:
                raise UnsupportedNode(_no_converter(node))
            return self._function(node, function, inputs)
        view = NodeView(
            node, inputs, self.opset, self._subgraph(values, poisoned), self.stand_ins.shapes,
            self.sizes,
        )  # fmt: skip
        check_values(view)
        with op_registry.span(view.name):
            made = self._converted(convert, view)
        if isinstance(made, TupleWrapper):
            made = list(made)
        elif not isinstance(made, list):
            made = [made]
        return [mapped(m, self._folded) for m in made]

    def _folded(self, made: Any) -> Expr:
        found = self.folder.fold(made)
        return self.sizes.settled(found) if self.is_open else found

    def _converted(self, convert: Converter, view: NodeView) -> Any:
        """Convert a node; where a shape depends on a value, with the shapes that are declared."""
        settle = None if self.calls else DECLARED.get(view.kind)  # a function has its own names
        try:
            if view.kind != "Identity" and any(isinstance(v, Counted) for v in view.inputs):
                self.is_open = True
                return self.found.through(convert, view)
            made = presumed(view) if self.presumes else None
            made = convert(view) if made is None else made
        except DependsOnInputs:
            made = self.found.once(convert, view, settle, lambda: self._declared(view))
            if made is None:
                raise
            self.is_open |= bool(self.found.told_sizes)
        several = made if isinstance(made, list) else [made]
        if any(isinstance(value, Counted) for value in several) and not self.calls:
            return cut_to_declared(several, self._declared(view))
        return made

    def _declared(self, view: NodeView) -> list[tuple[int, ...] | None]:
        """Return the shapes that the file states, or implies, for the results of a node."""
        return [self.stand_ins.shape(name) for name in view.outputs]

    def _function(self, node: Any, function: Any, inputs: list[Value]) -> list[Value]:
        """Convert the body of a function in the place of its call."""
        key = called(node, node.op_type)
        if key in self.calls:
            round_trip = [name for _, name, _ in self.calls[self.calls.index(key) :]]
            raise ModelError(
                "the functions of the model call each other without end: "
                + " calls ".join([*round_trip[:8], *["..."][: len(round_trip) - 8], node.op_type])
            )
        if len(self.calls) >= MAX_DEPTH:
            raise ModelError(
                f"the functions of the model call each other more than {MAX_DEPTH} deep, at "
                f"{node.op_type}: inline them (onnx.inliner.inline_local_functions)"
            )
        self.budget.take_nodes(CALL_NODES)
        values: dict[str, Value] = dict.fromkeys(function.input)
        values.update(zip(function.input, inputs, strict=False))
        values[""] = None
        outer = self.opset
        self.opset = next(
            (e.version for e in function.opset_import if e.domain in ("", "ai.onnx")), outer
        )
        self.calls.append(key)
        mark = self.book.mark()
        self._check_operators(function)
        self._convert_all(bound_nodes(function, node, outer), values)
        self.calls.pop()
        self.opset = outer
        inner = self.book.take(mark)
        if inner:
            reasons = dict.fromkeys(f"{e.kind}: {e.detail}" for e in inner)
            raise UnsupportedNode(f"its definition needs {'; '.join(reasons)}")
        results = [values.get(name) for name in function.output]
        if any(r is None for r, name in zip(results, node.output, strict=False) if name):
            raise UnsupportedNode("an output of its definition is not made")
        return results

    def _subgraph(self, outer: dict[str, Value], poisoned: set[str]) -> Any:
        """Return what converts a subgraph of a node: (graph, inputs) -> its result expressions.

        Of a trial nothing is noted: its error says what stands against it.
        """

        def convert(graph: Any, inputs: Sequence[Value], is_trial: bool = False) -> list[Value]:
            self.is_open |= any(_has_open(value) for value in inputs)
            mark = self.book.mark()
            values = {**outer, **self._initializers(graph)}
            values.update((i.name, v) for i, v in zip(graph.input, inputs, strict=True))
            self._check_operators(graph)
            results = self._nodes(graph, values, poisoned)
            inner = self.book.take(mark) if is_trial else []
            if inner:
                raise UnsupportedNode("; ".join(f"{e.kind}: {e.detail}" for e in inner))
            if len(results) < len(graph.output):  # its own nodes tell why, each under its name
                raise UnsupportedNode("a node of its subgraph cannot be imported")
            return results

        return convert


def _has_open(value: Value) -> bool:
    """Return whether a tensor has an open dimension."""
    return isinstance(value, Expr) and any(map(is_open, value.tensor_type.shape))


def _key_of(node: Any) -> tuple[str, ...]:
    return (name_of(node), node.op_type, *node.output)


def _no_converter(node: Any) -> str:
    where = f" in the domain {node.domain!r}" if node.domain else ""
    return f"there is no converter for it{where}"
