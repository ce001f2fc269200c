"""`from_pytorch`: a program of ``torch.export`` becomes a relay function.

Nodes are converted in the program's order.  Whatever depends on constants only is folded at once.
What cannot be converted is gathered and reported for the whole model in one error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.errors import (
    InternalError,
    ModelError,
    SlipwayError,
    defects_named,
    internal_error,
    passed_through_others,
)
from slipway.frontends.binding import Constants, bound_constant, check_input_names
from slipway.frontends.budget import ImportBudget, import_budget
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.folding import ConstantFolder
from slipway.frontends.report import NodeReport, ReportBook
from slipway.frontends.torch.complex import (
    COMPLEX,
    OWN,
    Complex,
    complex_constant,
    convert_complex,
    is_complex,
)
from slipway.frontends.torch.control import REGIONS
from slipway.frontends.torch.converters import Converter, NodeView, load_converters
from slipway.frontends.torch.found import BRINGING, READING, ReadNumbers, computed
from slipway.frontends.torch.functions.fake_quant import kept_as_they_are
from slipway.frontends.torch.known_values import known_results
from slipway.frontends.torch.open_sizes import ProgramDims
from slipway.frontends.torch.program import (
    DTYPES,
    Info,
    InputInfos,
    exported_program,
    user_inputs,
)
from slipway.frontends.torch.scalars import along_scalar, has_axis_of_scalar
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.types import TensorType
from slipway.runtime.ndarray import array_of_tensor

IGNORED = (
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range",
    "sym_constrain_range_for_size", "_linalg_check_errors",
)  # fmt: skip

NOTHING = Constant(np.zeros(0, "float32"))
SIZES = ("SymInt", "SymBool", "SymFloat")  # torch's stand-ins for what a program asks of its sizes


@defects_named("importing the program")
def from_pytorch(
    model: Any,
    input_infos: InputInfos = None,
    custom_convert_map: Mapping[str, Callable[[NodeView], Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    freeze_params: bool = True,
    *,
    constants: Constants | None = None,
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """Import a PyTorch model through ``torch.export``.

    `model` is an ExportedProgram, the path of a .pt2 file, an nn.Module (exported in evaluation
    mode), or a traced or scripted module.  `input_infos` is a list of (name, shape) or
    (name, (shape, dtype)), in the order of the inputs; a module needs it, a program takes its
    names from it, and its shapes where it leaves dimensions open; names that the program has itself
    may come in any order, and not all of them.  An empty `default_dtype` is that of the program.
    `custom_convert_map` adds
    converters by operator ("aten::relu", "mylib::op"); each takes a `NodeView`.  With
    `freeze_params` weights are constants of the graph; without, they are its parameters.
    `use_parser_friendly_name` replaces the dots in the weights' names.  `constants` binds inputs to
    values: they are inputs no longer, and what depends on them alone is folded.

    Returns the module, whose "main" takes the program's inputs, and the weights by name.  Buffers
    that the model writes to become inputs, and their new values outputs after the model's own.
    Raises ModelError for what cannot be exported and for everything unsupported at once.
    """
    importer = _importer(model, input_infos, custom_convert_map, default_dtype)
    importer.constants = dict(constants or {})
    importer.freeze = freeze_params
    importer.friendly = use_parser_friendly_name
    with import_budget(importer.weights_bytes()) as importer.budget:
        function = importer.main()
    return IRModule((("main", function),)), importer.params


@defects_named("importing the program")
def check_pytorch(
    model: Any,
    input_infos: InputInfos = None,
    default_dtype: str = "float32",
    *,
    constants: Constants | None = None,
) -> list[NodeReport]:
    """Return what the importer makes of every node of a model, without stopping at any.

    The arguments are those of `from_pytorch`.  Raises ModelError for what cannot be exported.
    """
    importer = _importer(model, input_infos, None, default_dtype)
    importer.constants = dict(constants or {})
    importer.book.survey = True
    with import_budget(importer.weights_bytes()) as importer.budget:
        importer.survey()
    return importer.book.entries


def _importer(
    model: Any, input_infos: InputInfos, extra: Mapping[str, Any] | None, default_dtype: str
) -> _Importer:
    program, infos = exported_program(model, input_infos, default_dtype)
    made = {name.removeprefix("aten::"): f for name, f in (extra or {}).items()}
    return _Importer(program, infos, {**load_converters(), **made})


class _Importer:
    def __init__(
        self, program: Any, infos: Sequence[Info], converters: dict[str, Converter]
    ) -> None:
        self.program = program
        self.infos = list(infos)
        self.converters = converters
        self.freeze = True
        self.friendly = False
        self.constants: dict[str, Any] = {}
        self.folder = ConstantFolder()
        self.book = ReportBook()
        self.params: dict[str, np.ndarray[Any, Any]] = {}
        self.budget = ImportBudget(0, 1)
        self.dims = ProgramDims(program.range_constraints)
        self.found: dict[int, Any] = {}  # where masks hold, by the id of the mask
        self.numbers = ReadNumbers(self.dims)
        self.depth = 0  # of the nested programs around a node

    def weights_bytes(self) -> int:
        """Return the bytes of the tensors that the program holds."""
        held = [*self.program.state_dict.values(), *self.program.constants.values()]
        return sum(t.numel() * t.element_size() for t in held if hasattr(t, "element_size"))

    # -- the program -----------------------------------------------------------------------------

    def main(self) -> Function:
        params, outputs = self.survey()
        if self.book.problems:
            raise self.book.error()
        names = tuple(name for name, _ in outputs)
        values = self.numbers.told([value for _, value in outputs])
        if not values:
            raise ModelError("the program has no tensor among its outputs")
        body = values[0] if len(values) == 1 else Tuple(tuple(values))
        return Function(tuple(params), body, None, (("output_names", names),))

    def survey(self) -> tuple[list[Var], list[tuple[str, Expr]]]:
        """Convert everything that can be; return the inputs, and the named outputs."""
        signature = self.program.graph_signature
        written = {s.target for s in signature.output_specs if s.kind.name == "BUFFER_MUTATION"}
        written -= kept_as_they_are(self.program)
        names = [i[0] for i in self.infos] or user_inputs(self.program)
        check_input_names(self.constants, list(names))
        self._state_sizes()
        values: dict[Any, Any] = {}
        inputs, states, weights = [], [], []
        infos = iter(self.infos)
        nodes = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(nodes, signature.input_specs, strict=True):
            if spec.kind.name == "USER_INPUT":
                values[node] = self._user_input(node, spec, infos)
                if isinstance(values[node], Var):
                    inputs.append(values[node])
            elif spec.target in written:
                values[node] = Var(str(spec.target), self._type(node.meta["val"], spec.target))
                states.append(values[node])
            else:
                values[node] = self._weight(node, spec)
                if isinstance(values[node], Var):
                    weights.append(values[node])
        if next(infos, None) is not None:
            raise ModelError(
                f"input_infos names {len(self.infos)} inputs, but the program has {len(inputs)}"
            )
        results = self._graph(self.program.graph_module, values)
        outputs = []
        for spec, result in zip(signature.output_specs, results, strict=True):
            if isinstance(result, Complex):
                raise ModelError(
                    f"the result {spec.arg.name!r} is complex, which Slipway does not have: return "
                    "torch.view_as_real(x)"
                )
            if spec.kind.name == "BUFFER_MUTATION" and spec.target not in written:
                continue
            if isinstance(result, Expr) and spec.kind.name in ("USER_OUTPUT", "BUFFER_MUTATION"):
                outputs.append((str(spec.target or spec.arg.name), result))
        order = [s.target for s in signature.output_specs if s.kind.name == "BUFFER_MUTATION"]
        outputs.sort(key=lambda pair: pair[0] in order)
        return [*inputs, *states, *weights], outputs

    def _state_sizes(self) -> None:
        """Give the program's open sizes the numbers, names and ranges that the infos have."""
        inputs = user_inputs(self.program)
        for value, (name, shape, _) in zip(inputs.values(), self.infos, strict=False):
            if len(shape) != len(value.shape):
                continue  # the input's type is compared later
            for size, extent in zip(value.shape, shape, strict=True):
                expr = getattr(getattr(size, "node", None), "expr", None)
                if expr is not None:
                    self.dims.state(expr, extent)
                elif is_open(extent):
                    raise ModelError(
                        f"input_infos leaves a size of {name!r} open ({extent}), and the program "
                        f"was exported for {int(size)}: export it with dynamic_shapes"
                    )

    def _user_input(self, node: Any, spec: Any, infos: Any) -> Any:
        value = node.meta.get("val")
        if not hasattr(value, "shape"):
            return getattr(spec.arg, "value", value)  # a number or None, fixed by the export
        kind = self._type(value, node.name)
        if value.dtype.is_complex:
            raise ModelError(
                f"the input {node.name!r} holds {_dtype(value)}, which Slipway does not have: take "
                "torch.view_as_real(x), and begin with torch.view_as_complex"
            )
        info = next(infos, None)
        name = info[0] if info else node.name
        if name in self.constants:
            return bound_constant(name, self.constants[name], kind.shape, kind.dtype)
        if info is None and self.infos:
            raise ModelError(
                f"input_infos names {len(self.infos)} inputs, but the program has more "
                f"({node.name!r} of type {kind})"
            )
        if info is None:
            return Var(node.name, kind)
        name, shape, dtype = info
        if (shape, dtype) != (kind.shape, kind.dtype):
            raise ModelError(
                f"input_infos says that {name!r} is {TensorType(shape, dtype)}, but the program "
                f"was exported for {kind}"
            )
        return Var(name, kind)

    def _weight(self, node: Any, spec: Any) -> Any:
        target = spec.target
        program = self.program
        held = program.state_dict.get(target)
        if held is None:
            held = program.constants.get(target)
        if held is None or not hasattr(held, "detach"):
            return held  # a token or a custom object: whoever reads it reports it
        self._type(node.meta["val"], target)
        array = array_of_tensor(held)
        if array.dtype.kind == "c":
            return complex_constant(array)
        name = target.replace(".", "_") if self.friendly else target
        if array.dtype.kind == "f" or array.size > 16:
            self.params[name] = array
        if self.freeze or array.dtype.kind != "f":
            return Constant(array)
        return Var(name, TensorType(array.shape, array.dtype.name))

    # -- nodes -----------------------------------------------------------------------------------

    def _graph(self, module: Any, values: dict[Any, Any]) -> list[Any]:
        """Convert the nodes after the placeholders; return the outputs."""
        for node in module.graph.nodes:
            match node.op:
                case "placeholder":
                    continue
                case "get_attr":
                    values[node] = self._attribute(module, node.target)
                case "output":
                    given = _resolved(node.args[0], values)
                    return given if isinstance(given, list) else [given]
                case _:
                    self._visit(module, node, values)
        raise ModelError("the program has no output")

    @staticmethod
    def _attribute(module: Any, target: str) -> Any:
        held = module
        for part in target.split("."):
            held = getattr(held, part)
        if hasattr(held, "detach"):
            array = array_of_tensor(held)
            return complex_constant(array) if array.dtype.kind == "c" else Constant(array)
        return held

    def _visit(self, module: Any, node: Any, values: dict[Any, Any]) -> None:
        name, kind = _name_of(node), str(node.target)
        self.budget.take_node(name)
        if node.target is operator.getitem:
            values[node] = self._item(node, values)
            if values[node] is None:
                source = str(node.args[0].target)
                self._fail(node, values, name, source, f"its result {node.args[1]} is not made")
            return
        try:
            if type(node.meta.get("val")).__name__ in SIZES:
                values[node] = self._size(node, values)
                return
            made = self._converted(node, values, name)
        except (ModelError, InternalError, MemoryError):
            raise
        except SlipwayError as error:
            self._fail(node, values, name, kind, str(error))
            return
        except Exception as error:
            # torch checked the arguments when it exported the program.
            if passed_through_others(error):  # a converter of the user's
                raise
            defect = internal_error(f"converting the node {name!r} ({kind})", error)
            if not self.book.survey:
                raise defect from error
            self._fail(node, values, name, kind, str(defect))
            return
        several = isinstance(node.meta.get("val"), (list, tuple))
        values[node] = made if several else made[0] if made else None
        self.book.done(name, kind, [m for m in made if isinstance(m, Expr)], node.name)

    @staticmethod
    def _item(node: Any, values: dict[Any, Any]) -> Any:
        return values[node.args[0]][node.args[1]]

    def _fail(self, node: Any, values: dict[Any, Any], name: str, kind: str, why: str) -> None:
        """Report a node; variables of the types that torch knows stand for its results."""
        self.book.problem(name, kind, why, node.name)
        found = node.meta.get("val")
        several = isinstance(found, (list, tuple))
        made = [self._stand_in(name, v) for v in (found if several else [found])]
        values[node] = made if several else made[0]

    def _type(self, value: Any, name: Any) -> TensorType:
        """Return the type of torch's stand-in for a tensor; of a complex one that of its parts."""
        dtype = COMPLEX.get(_dtype(value), _dtype(value))
        if dtype not in DTYPES:
            raise ModelError(
                f"{name!r} holds {dtype}, which Slipway does not have: convert the module before "
                "the export, as module.float() does"
            )
        return TensorType(tuple(map(self.dims.of, value.shape)), dtype)

    def _stand_in(self, name: str, value: Any) -> Any:
        try:
            if not hasattr(value, "dtype"):
                return value
            made = [Var(name, self._type(value, name)) for _ in range(2)]
            return Complex(*made) if value.dtype.is_complex else made[0]
        except (ModelError, UnsupportedNode):
            return None

    def _size(self, node: Any, values: dict[Any, Any]) -> Any:
        """Return what a node computes of sizes: a dimension, or a tensor of a float or a truth.

        A number that is read from a tensor is a dimension too, or the tensor where it is no
        integer.  None for what only assertions read.
        """
        found = node.meta["val"]
        if _only_asserted(node):
            return None
        if _plain_name(node.target) in READING:
            return self.numbers.read(found, values[node.args[0]], _name_of(node))
        if type(found).__name__ == "SymInt":
            return self.dims.of(found)
        view = NodeView("", _name_of(node), {}, {}, ())
        view.numbers = self.numbers.tensors
        return computed(view, node.target, _resolved(node.args, values))

    def _converted(self, node: Any, values: dict[Any, Any], name: str) -> list[Any]:
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return self._region(node, values)
        space, _, plain = schema.name.partition("::")
        if plain in IGNORED:
            return []
        convert = self.converters.get(plain if space == "aten" else f"{space}::{plain}")
        if convert is None and plain not in OWN:
            return known_results(node, [values.get(n) for n in node.all_input_nodes], values)
        fakes = _bound(schema, node.args, node.kwargs)
        found = node.meta.get("val")
        brought = self._brought(node, found) if plain in BRINGING else frozenset()
        outputs = [
            self._type(v, name) if hasattr(v, "dtype") else None
            for v in (found if isinstance(found, (list, tuple)) else [found])
        ]
        view = NodeView(
            plain, name,
            {key: _resolved(value, values) for key, value in fakes.items()},
            {key: _fake(value) for key, value in fakes.items()},
            outputs,
            {u.args[1] for u in node.users if u.target is operator.getitem and u.users},
        )  # fmt: skip
        view.found, view.brought, view.numbers = self.found, brought, self.numbers.tensors
        several = found if isinstance(found, (list, tuple)) else [found]
        touched = any(map(is_complex, view.arguments.values())) or any(
            getattr(getattr(v, "dtype", None), "is_complex", False) for v in several
        )
        with op_registry.span(name):
            made: Any
            if touched or not convert:
                made = convert_complex(convert, view)
            else:
                made = along_scalar(convert, view) if has_axis_of_scalar(view) else convert(view)
        if isinstance(made, TupleWrapper):
            made = list(made)
        elif not isinstance(made, list):
            made = [made]
        return [
            self._folded(m, outputs[i] if i < len(outputs) else None) for i, m in enumerate(made)
        ]

    def _brought(self, node: Any, found: Any) -> frozenset[Any]:
        """Return the sizes that a node brings: at most as many as one of its tensors has."""
        given = [n.meta.get("val") for n in node.all_input_nodes]
        rooms = [self.dims.most(v.shape) for v in given if hasattr(v, "shape")]
        if "slice" in str(node.target):
            shape = given[0].shape
            rooms = [self.dims.most((shape[node.args[1] if len(node.args) > 1 else 0],))]
        elif "unique" in str(node.target):
            axis = _bound(node.target._schema, node.args, node.kwargs).get("dim")
            rooms = rooms if axis is None else [self.dims.most((given[0].shape[axis],))]
        known = [room for room in rooms if room is not None]
        unbounded = any(kind in str(node.target) for kind in ("repeat", "bincount"))
        is_bounded = len(known) == len(rooms) and not unbounded
        most = max(known, default=0) if is_bounded else None
        several = found if isinstance(found, (list, tuple)) else [found]
        sizes = [size for one in several for size in getattr(one, "shape", ())]
        made = [self.dims.bring(size, most) for size in sizes]
        return frozenset(d for d in made if d is not None)

    def _folded(self, made: Any, wanted: TensorType | None) -> Any:
        """Return a result with its constant parts computed; its type must be that of torch."""
        if made is None:
            return None
        if isinstance(made, Complex):
            return Complex(self._folded(made.real, wanted), self._folded(made.imag, wanted))
        folded = self.folder.fold(made)
        if wanted is not None and folded.type != wanted:
            raise UnsupportedNode(f"it was converted to {folded.type}, but torch has {wanted}")
        return folded

    def _region(self, node: Any, values: dict[Any, Any]) -> list[Any]:
        """A higher-order operator: its regions are converted in the place where they run."""
        kind = getattr(node.target, "__name__", str(node.target))
        arguments = [_resolved(a, values) for a in (*node.args, *node.kwargs.values())]
        if kind == "with_effects" and _plain_name(arguments[1]) in IGNORED:
            return [NOTHING] * len(node.meta["val"])  # a token, which orders effects
        convert = REGIONS.get(kind)
        if convert is None:
            raise UnsupportedNode("nested programs of this kind are not served")

        repeats = kind != "cond"
        found = node.meta.get("val")

        def tell(index: int, axis: int, most: int) -> Any:
            """Return the dimension of a result that the branches make of unequal sizes."""
            return None if self.depth else self.dims.bring(found[index].shape[axis], most)

        def region(inner: Any, inputs: Sequence[Any]) -> list[Any]:
            placeholders = [n for n in inner.graph.nodes if n.op == "placeholder"]
            before = set(self.numbers.tensors)
            self.depth += 1
            results = self._graph(inner, dict(zip(placeholders, inputs, strict=True)))
            self.depth -= 1
            if not repeats:
                return self.numbers.told(results)
            own = [dim for dim in self.numbers.tensors if dim not in before]
            return self.numbers.told(results, own)

        return convert(region, [*arguments, tell]) if kind == "cond" else convert(region, arguments)


def _plain_name(target: Any) -> str:
    """Return the name of an operator without its namespace."""
    schema = getattr(target, "_schema", None)
    return str(schema.name.partition("::")[2]) if schema else ""


def _only_asserted(node: Any) -> bool:
    """Return whether assertions alone read a size, or sizes and truths that they alone read."""
    return all(
        _plain_name(user.target) in IGNORED
        or (type(user.meta.get("val")).__name__ in SIZES and _only_asserted(user))
        for user in node.users
    )


def _bound(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of its schema, defaults filled in."""
    found = {}
    for position, argument in enumerate(schema.arguments):
        if position < len(args):
            found[argument.name] = args[position]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        else:
            found[argument.name] = argument.default_value if argument.has_default_value() else None
    return found


def _resolved(value: Any, values: Mapping[Any, Any]) -> Any:
    """Return an argument with the nodes in it replaced by what they became."""
    if isinstance(value, (list, tuple)):
        return [_resolved(v, values) for v in value]
    if hasattr(value, "users"):  # a node of the program
        return values.get(value)
    return value


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _fake(value: Any) -> Any:
    return value.meta.get("val") if hasattr(value, "users") else value


def _name_of(node: Any) -> str:
    """Return the path of the module that the node came from, with the node's own name appended."""
    stack = node.meta.get("nn_module_stack") or {}
    path = str(list(stack.values())[-1][0]) if stack else ""
    path = path.removeprefix("L['self']").replace("L__self___", "").strip(".")
    return f"{path}.{node.name}" if path else str(node.name)
