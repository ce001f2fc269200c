"""`from_tflite`: a TFLite graph becomes a relay function.

Operators are converted in file order, which is the order of execution.  What depends on constants
only is folded at once.  What cannot be converted is gathered and reported for the whole model in
one error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import (
    InternalError,
    ModelError,
    OpenShapeError,
    SlipwayError,
    defects_named,
    internal_error,
)
from slipway.frontends.binding import Constants, bound_constant, check_input_names
from slipway.frontends.budget import ImportBudget, import_budget
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.folding import ConstantFolder
from slipway.frontends.report import NodeReport, ReportBook
from slipway.frontends.tflite.converters import REFUSED, NodeView, Program, load_converters
from slipway.frontends.tflite.file_model import FileModel, FileTensor, Operator, SubGraph
from slipway.frontends.tflite.reader import load_model
from slipway.frontends.tflite.schema import DTYPES
from slipway.frontends.tflite.signatures import of_signature
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.dims import ANY, is_open
from slipway.relay.expr import Constant, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.meaning import Meaning, meanings_attribute
from slipway.relay.types import TensorType


class OperatorConverter:
    """Stands for the importer's own converters, where a classic script names them."""


@defects_named("importing the model")
def from_tflite(
    model: Any,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    dtype_dict: Mapping[str, str] | None = None,
    op_converter: Any = None,
    *,
    dense_rounding: str = "double",
    constants: Constants | None = None,
    signature: str | None = None,
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """Import a TFLite model: bytes, a path or a ``tflite.Model``.

    `shape_dict` gives inputs their shapes; it is needed where the file leaves a dimension open, and
    may leave it so: a `relay.Dim` stands for every size of its range.
    `dtype_dict` may repeat the inputs' dtypes; one that differs from the file's is an error.
    `op_converter` is `OperatorConverter`, as classic's default; a class of one's own is refused.
    `dense_rounding` says how integer matrix products are requantised: "double" as TensorFlow Lite
    Micro does it and every other operator, "single" as LiteRT does it (see docs/quantization.md).
    `constants` binds inputs to values: they are inputs no longer, and what depends on them alone is
    folded.  `signature` names an entry of the file: its subgraph is imported, under the names that
    the signature gives inputs and outputs.

    Returns the module, whose "main" takes the graph's inputs under their names, and an empty
    dictionary: weights are constants of the graph.  Variables of the model (the state of an LSTM
    or SVDF) become inputs, and their new values outputs behind the model's own.
    Raises ModelError for a file that cannot be read and for what is not supported.
    """
    if op_converter not in (None, OperatorConverter):
        raise ModelError(
            "from_tflite(op_converter=...) takes a converter class of classic TVM, which Slipway "
            "cannot call; leave it out. An operator of your own is a function decorated with "
            'slipway.frontends.tflite.converters.converter("CUSTOM:NAME")'
        )
    description = of_signature(load_model(model), signature)
    if dense_rounding not in ("double", "single"):
        raise ModelError(f'dense_rounding is {dense_rounding!r}; it must be "double" or "single"')
    with _importing(description, told_shapes(shape_dict), dict(dtype_dict or {})) as importer:
        importer.constants = dict(constants or {})
        importer.rounds_once = dense_rounding == "single"
        return IRModule((("main", importer.main()),)), {}


@defects_named("importing the model")
def check_tflite(
    model: Any,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    *,
    constants: Constants | None = None,
    signature: str | None = None,
) -> list[NodeReport]:
    """Return what the importer makes of every operator of a model, without stopping at any.

    Raises ModelError for a file that cannot be read.
    """
    description = of_signature(load_model(model), signature)
    with _importing(description, told_shapes(shape_dict), {}) as importer:
        importer.constants = dict(constants or {})
        importer.book.survey = True
        importer.survey()
    return importer.book.entries


MAX_DEPTH = 16


@defects_named("importing the model")
def initial_state(
    model: Any,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    *,
    signature: str | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return what the variables of a model hold before its first run, by the names of their inputs.

    Real zeros, which an int8 variable stores as its zero point, as TensorFlow Lite Micro and LiteRT
    reset it; but for resource variables that the model itself gives another value (CALL_ONCE).
    Raises ModelError for a file that cannot be read and for what is not supported.
    """
    description = of_signature(load_model(model), signature)
    with _importing(description, told_shapes(shape_dict), {}) as importer:
        function = importer.main()
    names = _unique_names(importer.graph)
    zeros = dict.fromkeys(importer.first, 0)
    zeros |= {names[i]: _zero(importer.graph.tensors[i]) for i in _state(importer.graph)}
    return {
        p.name: importer.initial.get(
            p.name, np.full(p.tensor_type.shape, zeros[p.name], p.tensor_type.dtype)
        )
        for p in function.params
        if p.name in zeros
    }


@contextmanager
def _importing(
    model: FileModel, shapes: dict[str, Sequence[int]], dtypes: dict[str, str]
) -> Iterator[_Importer]:
    """Open the budget of an import, and its importer."""
    arrays = [t.data for graph in model.subgraphs for t in graph.tensors if t.data is not None]
    held = {id(array): array.nbytes for array in arrays}
    with import_budget(sum(held.values())) as budget:
        yield _Importer(model, shapes, dtypes, budget)


class _Poisoned(Exception):
    """An input comes from a node that could not be converted."""


class _Importer(Program):
    def __init__(
        self,
        model: FileModel,
        shapes: dict[str, Sequence[int]],
        dtypes: dict[str, str],
        budget: ImportBudget,
    ) -> None:
        super().__init__()
        self.model = model
        self.budget = budget
        self.graph = model.subgraphs[model.main]
        self.shapes = shapes
        self.dtypes = dtypes
        self.converters = load_converters()
        self.folder = ConstantFolder()
        self.rounds_once = False
        self.constants: dict[str, Any] = {}
        self.book = ReportBook()

    def main(self) -> Function:
        graph, names = self.graph, _unique_names(self.graph)
        params, values = self.survey()
        if self.book.problems:
            raise self.book.error()
        outputs = (*graph.outputs, *_state(graph))
        results = [self._output(graph, values, index) for index in outputs]
        results += [self.variables.get(name, first) for name, first in self.first.items()]
        body = results[0] if len(results) == 1 else Tuple(tuple(results))
        own = self.model.output_names or tuple(names[i] for i in graph.outputs)
        listed = (*own, *(names[i] for i in _state(graph)), *self.first)
        meanings = meanings_attribute(
            {names[i]: _meaning(graph.tensors[i]) for i in graph.inputs},
            [
                _meaning(graph.tensors[i], self.model.labels.get(position, ()))
                for position, i in enumerate(graph.outputs)
            ],
        )
        attrs = (("output_names", listed), *meanings)
        return Function((*params, *self.first.values()), body, None, attrs)

    def call(self, index: int, inputs: Sequence[Expr]) -> list[Expr]:
        """Convert subgraph `index` on these inputs and return its outputs."""
        if not 0 <= index < len(self.model.subgraphs) or index == self.model.main:
            raise UnsupportedNode(f"it refers to subgraph {index}, which the file does not hold")
        graph = self.model.subgraphs[index]
        if self.depth >= MAX_DEPTH:
            raise UnsupportedNode("its subgraphs call each other without end")
        if len(graph.inputs) != len(inputs):
            raise UnsupportedNode(
                f"it gives subgraph {index} {len(inputs)} inputs in place of {len(graph.inputs)}"
            )
        values: dict[int, Expr] = {}
        for tensor in graph.tensors:
            if tensor.data is not None:
                values[tensor.index] = Constant(tensor.data)
        values.update(zip(graph.inputs, inputs, strict=True))
        known = len(self.book.problems)
        self.depth += 1
        self._convert(graph, values)
        self.depth -= 1
        if len(self.book.problems) > known:
            raise UnsupportedNode(f"its subgraph {index} holds operators that are not supported")
        return [self._output(graph, values, i) for i in graph.outputs]

    def survey(self) -> tuple[list[Var], dict[int, Expr]]:
        """Convert everything that can be; return the inputs and the value of each tensor."""
        graph = self.graph
        self._check_names(graph)
        values: dict[int, Expr] = {}
        names = _unique_names(graph)
        params: list[Var] = []
        for index in dict.fromkeys((*graph.inputs, *_state(graph))):
            values[index] = made = self._input(graph.tensors[index], names[index])
            if isinstance(made, Var):
                params.append(made)
        for tensor in graph.tensors:
            if tensor.data is not None and tensor.index not in values:
                values[tensor.index] = Constant(tensor.data)
        self._convert(graph, values)
        return params, values

    def _check_names(self, graph: SubGraph) -> None:
        names = [graph.tensors[i].name for i in graph.inputs]
        check_input_names((*self.shapes, *self.dtypes, *self.constants), names)

    def _input(self, tensor: FileTensor, name: str) -> Expr:
        shape = tensor.signature if -1 in tensor.signature else tensor.shape
        given = self.shapes.get(tensor.name)
        if given is not None:
            wanted = tuple(d if is_open(d) else int(d) for d in given)
            if ANY in wanted:
                raise ModelError(
                    f"the input {tensor.name!r} is given the shape {wanted}: a size that stays "
                    'open has a name and a range, as in relay.Dim("n", 1, 8)'
                )
            fits = len(wanted) == len(shape) and all(
                d in (-1, w) for d, w in zip(shape, wanted, strict=True)
            )
            # Converters write one number as a list of one.
            if not fits and {wanted, tuple(shape)} != {(), (1,)}:
                raise ModelError(
                    f"the input {tensor.name!r} is given the shape {wanted}, but the model has "
                    f"{shape}"
                )
            shape = wanted
        elif -1 in shape:
            shape = tensor.shape  # the file's own example of the open dimensions
        if -1 in shape:
            assumed = {tensor.name: tuple(1 if d == -1 else d for d in shape)}
            raise OpenShapeError(
                f"the model leaves sizes of its inputs open: {tensor.name} {shape}.",
                f"Pass shape_dict={assumed}.",
                {name: tuple(dims) for name, dims in self.shapes.items()} | assumed,
            )
        wanted_dtype = self.dtypes.get(tensor.name, tensor.dtype)
        if wanted_dtype != tensor.dtype:
            raise ModelError(
                f"dtype_dict gives the input {tensor.name!r} the dtype {wanted_dtype}, but the "
                f"model has {tensor.dtype}"
            )
        if tensor.dtype not in DTYPES.values():
            raise ModelError(
                f"the input {tensor.name!r} is of type {tensor.dtype}, which is not supported"
            )
        if tensor.name in self.constants:
            return bound_constant(name, self.constants[tensor.name], shape, tensor.dtype)
        return Var(name, TensorType(shape, tensor.dtype))

    def _output(self, graph: SubGraph, values: dict[int, Expr], index: int) -> Expr:
        if index not in values:
            raise ModelError(
                f"no operator makes the output {graph.tensors[index].name!r}: the model is damaged"
            )
        if graph.tensors[index].dtype.startswith("complex") and not self.depth:
            raise ModelError(
                f"the output {graph.tensors[index].name!r} is complex, which a device is not: cut "
                "the model behind its real part, its imaginary part or its magnitude"
            )
        return values[index]

    # -- operators -------------------------------------------------------------------------------

    def _convert(self, graph: SubGraph, values: dict[int, Expr]) -> None:
        poisoned: set[int] = set()
        for operator in graph.operators:
            name = _node_name(graph, operator)
            try:
                made = self._one(graph, operator, values, poisoned, name)
            except _Poisoned:
                self.book.unchecked(name, operator.kind)
                poisoned.update(operator.outputs)
                continue
            except (ModelError, InternalError, MemoryError):
                raise
            except SlipwayError as error:
                self.book.problem(name, operator.kind, str(error))
                self._stand_in(graph, operator, values, poisoned)
                continue
            except Exception as error:
                defect = internal_error(f"converting {name!r} ({operator.kind})", error)
                if not self.book.survey:
                    raise defect from error
                self.book.problem(name, operator.kind, str(defect))
                self._stand_in(graph, operator, values, poisoned)
                continue
            values.update(zip(operator.outputs, made, strict=False))
            state = _state_of(graph, operator)
            values.update(zip(state, made[len(operator.outputs) :], strict=False))
            self.book.done(name, operator.kind, made)

    def _stand_in(
        self, graph: SubGraph, operator: Operator, values: dict[int, Expr], poisoned: set[int]
    ) -> None:
        """Give what cannot be computed the type that the file says, so that the rest is checked."""
        for index in operator.outputs:
            tensor = graph.tensors[index]
            if tensor.dtype in DTYPES.values() and -1 not in tensor.shape:
                values[index] = Var(tensor.name, TensorType(tensor.shape, tensor.dtype))
            else:
                poisoned.add(index)

    def _one(
        self,
        graph: SubGraph,
        operator: Operator,
        values: dict[int, Expr],
        poisoned: set[int],
        name: str,
    ) -> list[Expr]:
        kinds = [graph.tensors[i].dtype for i in operator.inputs[:1] if i >= 0]
        if kinds and kinds[0].startswith("complex"):
            convert = self.converters.get(f"COMPLEX:{operator.kind}")
            if convert is None and operator.kind in self.converters:
                raise UnsupportedNode("it is not supported on complex numbers")
        else:
            convert = self.converters.get(operator.kind)
        self.budget.take_node(name)
        if convert is None:
            raise UnsupportedNode(REFUSED.get(operator.kind, "there is no converter for it"))
        if poisoned.intersection(operator.inputs):
            raise _Poisoned
        for index in operator.inputs:
            if index >= 0 and index not in values:
                tensor = graph.tensors[index]
                if tensor.dtype not in DTYPES.values():
                    raise UnsupportedNode(f"tensors of type {tensor.dtype} are not supported")
                if 0 in tensor.shape:  # nothing to store: the file gives it no buffer
                    values[index] = Constant(np.zeros(tensor.shape, tensor.dtype))
                    continue
                raise ModelError(
                    f"the operator {name!r} reads {tensor.name!r}, which no operator before it "
                    "makes: the model is damaged or its operators are out of order"
                )
        with op_registry.span(name):
            made: Any = convert(NodeView(operator, graph, values, name, self.rounds_once, self))
        if isinstance(made, TupleWrapper):
            made = list(made)
        elif not isinstance(made, list):
            made = [made]
        return [self.sizes.settled(self.folder.fold(m)) for m in made]


def _state_of(graph: SubGraph, operator: Operator) -> tuple[int, ...]:
    """The variable tensors that an operator updates, in order of its inputs."""
    return tuple(i for i in operator.inputs if i >= 0 and graph.tensors[i].is_variable)


def _state(graph: SubGraph) -> tuple[int, ...]:
    """All variable tensors that operators update."""
    return tuple(dict.fromkeys(i for o in graph.operators for i in _state_of(graph, o)))


def _zero(tensor: FileTensor) -> int:
    """Return what a variable tensor stores for zero when it is reset."""
    found = tensor.quantization
    return found.zero_point if found is not None and tensor.dtype == "int8" else 0


def _meaning(tensor: FileTensor, labels: tuple[str, ...] = ()) -> Meaning:
    """Return what an input or output of the file means to its caller."""
    if len(labels) not in tensor.shape:
        labels = ()
    found = tensor.quantization
    if found is None or found.scales.size != 1 or not found.scale or dtypes.is_float(tensor.dtype):
        return Meaning(labels=labels)
    return Meaning(found.scale, found.zero_point, labels=labels)


def _node_name(graph: SubGraph, operator: Operator) -> str:
    return graph.tensors[operator.outputs[0]].name if operator.outputs else operator.kind


def _unique_names(graph: SubGraph) -> dict[int, str]:
    """Name every tensor; a name that occurs twice gets the tensor's number behind it."""
    taken: set[str] = set()
    own = {tensor.name for tensor in graph.tensors}  # a number behind another must not make these
    names = {}
    order = (*graph.inputs, *graph.outputs, *range(len(graph.tensors)))
    for index in dict.fromkeys(order):
        name = graph.tensors[index].name
        if name in taken:
            name = f"{name}_{index}"
            while name in taken or name in own:
                name += "_"
        names[index] = name
        taken.add(name)
    return names
