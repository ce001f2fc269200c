"""A model for several kinds of device as one graph: that of each region, and copies between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.compiler.graph import build_graph
from slipway.compiler.model_graph import COPY, GraphNode, ModelGraph, TensorRef
from slipway.compiler.open_sizes import check_open
from slipway.compiler.optimize import INLINE, optimize
from slipway.compiler.several_devices.placement import (
    CONTROL,
    SERIAL,
    DeviceRegion,
    is_mark,
    is_serial,
    place,
    regions,
)
from slipway.compiler.several_devices.size_order import after_tellers
from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_hash
from slipway.relay import op_registry
from slipway.relay.analysis.told_sizes import two_values
from slipway.relay.construct import bind
from slipway.relay.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType, TupleType, Type, flatten
from slipway.relay.visit import post_order
from slipway.runtime.devices import device
from slipway.target import Target
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.outline_branches import outline_branches
from slipway.transform.graph.pipeline import main_function
from slipway.transform.graph.select_branches import select_branches
from slipway.transform.manager import Setting

Value = tuple[int, int]  # id of a call or variable of the model, and which of its tensors


def graph_over(
    module: IRModule,
    targets: Mapping[int, Target],
    default: int | None,
    params: Mapping[str, object] | None,
    mod_name: str,
    lanes: Mapping[int, int],
    control_only: bool = False,
) -> ModelGraph:
    """Return the graph of "main" with each kernel on its device.

    `default` and `control_only` say where operators without a mark are (see `place`); `lanes` has
    the channels in a block for each kind of device.
    """
    bound = module.update("main", bind(main_function(module), params or {}))
    main = main_function(INLINE.run(bound, Setting(None)))
    main = _with_own_results(outline_branches(select_branches(infer_type(main), False)))
    accelerator = next(kind for kind in targets if kind != 1)
    placed = place(main.body, default, accelerator, control_only)
    unknown = set(placed.values()) - set(targets)
    if unknown:
        raise LoweringError(
            f"a mark in the model asks for {device(min(unknown))}, for whose kind there is no "
            "target: give relay.build one of each kind that on_device names"
        )
    parts = [_Part(region) for region in regions(main.body, placed)]
    read = [v for part in parts for v in part.inputs] + _values(main.body)
    joined = _Joined()
    for part in parts:
        function = part.function(read)
        optimized = optimize(
            IRModule.from_expr(function),
            None,
            targets[part.region.device],
            layout_lanes=lanes[part.region.device],
        )
        graph = build_graph(main_function(optimized), mod_name=mod_name, is_part=True)
        joined.parts.append((part, graph))
    graph = after_tellers(joined.graph_of(main))
    check_open(graph)
    return graph


def has_control_flow(module: IRModule) -> bool:
    """Return whether something in a model is computed or not, or how often, as values say."""
    return any(
        isinstance(expr, If) or (isinstance(expr, Call) and is_call_of(expr, *CONTROL))
        for _, function in module.items()
        if isinstance(function, Function)
        for expr in post_order(function)
    )


def has_serial_work(module: IRModule) -> bool:
    """Return whether a thread of a GPU would have to do much alone: sort a long row, say."""
    functions = [f for _, f in module.items() if isinstance(f, Function)]
    if not any(is_call_of(expr, *SERIAL) for f in functions for expr in post_order(f)):
        return False
    main = infer_type(main_function(INLINE.run(module, Setting(None))))
    return any(isinstance(expr, Call) and is_serial(expr) for expr in post_order(main))


def _with_own_results(main: Function) -> Function:
    """Let an operator compute each result: a parameter that is returned is copied."""

    def own(expr: Expr) -> Expr:
        if isinstance(expr, Tuple):
            return Tuple(tuple(own(field) for field in expr.fields))
        if isinstance(expr, Var | Constant) and isinstance(expr.checked_type, TensorType):
            return op_registry.make("copy")(expr)  # type: ignore[no-any-return]
        return expr

    body = own(main.body)
    made = main if body is main.body else Function(main.params, body, None, main.attrs)
    return infer_type(made)


def _values(expr: Expr) -> list[Value]:
    """Return the tensors that the value of an expression consists of."""
    match expr:
        case Tuple():
            return [value for field in expr.fields for value in _values(field)]
        case TupleGetItem():
            inside = expr.tuple_value.checked_type
            assert isinstance(inside, TupleType)
            skipped = sum(len(flatten(field)) for field in inside.fields[: expr.index])
            count = len(flatten(expr.checked_type))
            return _values(expr.tuple_value)[skipped : skipped + count]
        case Call() if is_mark(expr):
            return _values(expr.args[0])
        case _:
            return [(id(expr), i) for i in range(len(flatten(expr.checked_type)))]


class _Part:
    """A region as a function of the values that it reads."""

    def __init__(self, region: DeviceRegion) -> None:
        self.region = region
        self.inputs: dict[Value, Var] = {}
        self.outputs: list[Value] = []
        self._made: dict[int, Expr] = {}
        self._calls = {id(call) for call in region.calls}
        for call in region.calls:
            args = tuple(self._inside(arg) for arg in call.args)
            self._made[id(call)] = Call(call.op, args, call.attrs, call.span)

    def function(self, read: Sequence[Value]) -> Function:
        """Return the region with what others, or the caller, read of it as results."""
        wanted = set(read)
        fields: list[Expr] = []
        for call in self.region.calls:
            for position, _ in enumerate(flatten(call.checked_type)):
                if (id(call), position) in wanted:
                    self.outputs.append((id(call), position))
                    fields.append(_field(self._made[id(call)], call, position))
        return infer_type(Function(tuple(self.inputs.values()), Tuple(tuple(fields))))

    def _inside(self, expr: Expr) -> Expr:
        match expr:
            case Constant():
                return expr
            case Tuple():
                return Tuple(tuple(self._inside(field) for field in expr.fields))
            case TupleGetItem():
                value = self._inside(expr.tuple_value)
                if isinstance(value, Tuple):
                    return value.fields[expr.index]
                return TupleGetItem(value, expr.index)
            case Call() if is_mark(expr):
                return self._inside(expr.args[0])
            case Call() if id(expr) in self._calls:
                return self._made[id(expr)]
            case _:
                return self._taken(expr, expr.checked_type, iter(_values(expr)))

    def _taken(self, expr: Expr, type_: Type, values: Iterator[Value]) -> Expr:
        if isinstance(type_, TupleType):
            return Tuple(tuple(self._taken(expr, field, values) for field in type_.fields))
        value = next(values)
        assert isinstance(type_, TensorType)
        return self.inputs.setdefault(value, Var(f"x{len(self.inputs)}", type_))


def _field(made: Expr, call: Call, position: int) -> Expr:
    type_ = call.checked_type
    while isinstance(type_, TupleType):
        for index, field in enumerate(type_.fields):
            count = len(flatten(field))
            if position < count:
                made, type_ = TupleGetItem(made, index), field
                break
            position -= count
    return made


@dataclass
class _Named:
    """Kernels by what they compute and where, so that equal ones are compiled once."""

    names: dict[tuple[int, int], str]
    taken: set[str]

    def of(self, base: str) -> str:
        """Return `base`, or the first of base_1, base_2, ... that is not taken."""
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


class _Joined:
    def __init__(self) -> None:
        self.parts: list[tuple[_Part, ModelGraph]] = []
        self.graph = ModelGraph()
        self.constants: dict[tuple[int, int], TensorRef] = {}  # by id of an array, and device
        self.where: dict[tuple[Value, int], TensorRef] = {}  # a value on a device
        self.kernels = _Named({}, set())
        self.nodes = _Named({}, set())
        self.exact = _Named({}, set())

    def graph_of(self, main: Function) -> ModelGraph:
        """Return the parts' graphs as one: inputs, parameters, then kernels and copies."""
        self._add_inputs(main)
        self._add_params()
        for part, graph in self.parts:
            self._add_part(part, graph)
        for value in _values(main.body):
            refs = [ref for (known, _), ref in self.where.items() if known == value]
            self.graph.outputs.append(refs[0])  # where it is computed
        return self.graph

    def _add(self, node: GraphNode, device: int) -> TensorRef:
        self.graph.nodes.append(node)
        self.graph.devices.append(device)
        return TensorRef(len(self.graph.nodes) - 1)

    def _add_inputs(self, main: Function) -> None:
        for param in main.params:
            for position, type_ in enumerate(flatten(param.checked_type)):
                value = id(param), position
                users = [part.region.device for part, _ in self.parts if value in part.inputs]
                device = users[0] if users else 1
                name = self.nodes.of(param.name if position == 0 else f"{param.name}_{position}")
                self.graph.inputs.append(name)
                ref = self._add(GraphNode(name, "", (), (type_,)), device)
                self.where[value, device] = ref

    def _add_params(self) -> None:
        """Give each device the constants that its kernels read."""
        for part, graph in self.parts:
            device = part.region.device
            for node in graph.nodes:
                if node.function or node.name not in graph.params:
                    continue
                array = graph.params[node.name]
                if (id(array), device) not in self.constants:
                    name = self.nodes.of(f"p{len(self.graph.params)}")
                    self.graph.params[name] = array
                    self.graph.inputs.append(name)
                    ref = self._add(GraphNode(name, "", (), node.types), device)
                    self.constants[id(array), device] = ref

    def _add_part(self, part: _Part, graph: ModelGraph) -> None:
        device = part.region.device
        given = {var.name: value for value, var in part.inputs.items()}
        own: dict[int, TensorRef] = {}  # number of a node there -> its first tensor here
        for number, node in enumerate(graph.nodes):
            if not node.function:
                if node.name in graph.params:
                    ref = self.constants[id(graph.params[node.name]), device]
                else:
                    ref = self._at(given[node.name], device)
                own[number] = ref
                continue
            inputs = tuple(_moved(ref, own) for ref in node.inputs)
            function = node.function
            if function in graph.kernels:
                function = self._kernel(function, graph.kernels[function], device)
            made = GraphNode(
                self.nodes.of(node.name), function, inputs, node.types, node.layer, node.layers
            )
            own[number] = self._add(made, device)
        for value, ref in zip(part.outputs, graph.outputs, strict=True):
            self.where[value, device] = _moved(ref, own)
        for size, ref in graph.tellers.items():
            exact, teller = graph.exact.get(size), _moved(ref, own)
            if exact is not None:
                size = self.exact.of(size)
                self.graph.exact[size] = replace(exact, tensor=_moved(exact.tensor, own))
            if self.graph.tellers.setdefault(size, teller) != teller:
                raise two_values(size)

    def _at(self, value: Value, device: int) -> TensorRef:
        """Return a value on a device, copied there where it was not."""
        if (value, device) not in self.where:
            ref = next(ref for (known, _), ref in self.where.items() if known == value)
            name = self.nodes.of(f"device_copy_{len(self.graph.nodes)}")
            node = GraphNode(name, COPY, (ref,), (self.graph.type_of(ref),))
            self.where[value, device] = self._add(node, device)
        return self.where[value, device]

    def _kernel(self, name: str, function: Function, device: int) -> str:
        key = structural_hash(function), device
        if key not in self.kernels.names:
            own = self.kernels.of(name)
            self.kernels.names[key] = own
            self.graph.kernels[own] = function
            self.graph.kernel_devices[own] = device
        return self.kernels.names[key]


def _moved(ref: TensorRef, own: Mapping[int, TensorRef]) -> TensorRef:
    first = own[ref.node]
    return TensorRef(first.node, first.index + ref.index)
