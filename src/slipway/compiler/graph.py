"""The graph that an executor runs: kernels in order, with every tensor's storage.

`build_graph` reads an optimised, fused relay function; `plan_storage` plans the memory.  Nothing
here knows how kernels are compiled: a kernel is a primitive relay function under a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.compiler.memory_plan import Block, Plan, plan
from slipway.compiler.open_sizes import (
    brings_inside,
    check_open,
    in_order_of_sizes,
    largest_bytes,
    no_input_tells,
    told_size,
)
from slipway.errors import LoweringError
from slipway.ir.structural import structural_hash
from slipway.relay.dims import SymbolDim, told_by
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.meaning import NO_MEANINGS, Meanings
from slipway.relay.narrowed import unread_sizes
from slipway.relay.op_registry import call_definition, is_call_of, is_primitive
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order

RESHAPES = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten")
NOP = "__nop"
COPY = "__copy"  # from one device to another
MAX_RANK = 16  # of tensors at run time: crt/include/slipway/tensor.h
_LONGEST_NAME = 80


@dataclass(frozen=True)
class TensorRef:
    """Output `index` of node `node`."""

    node: int
    index: int = 0


@dataclass(frozen=True)
class GraphNode:
    """A model input or parameter (`function` empty), a kernel call, or a reshape in place (NOP).

    `layer` names the model's own node that the kernel's main operator came from, `layers` all
    nodes that the kernel computes something of.
    """

    name: str
    function: str
    inputs: tuple[TensorRef, ...]
    types: tuple[TensorType, ...]
    layer: str = ""
    layers: tuple[str, ...] = ()

    @property
    def calls_kernel(self) -> bool:
        """Return whether it runs code: reshapes in place and copies between devices do not."""
        return self.function not in ("", NOP, COPY)


@dataclass
class ModelGraph:
    """A whole model: nodes in execution order, inputs and parameters first."""

    nodes: list[GraphNode] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    params: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    outputs: list[TensorRef] = field(default_factory=list)
    output_names: tuple[str, ...] = ()  # of all outputs, where the model names them
    names_fields: bool = False  # whether those are the outputs' names in C too
    meanings: Meanings = NO_MEANINGS  # scales and labels, where its file tells them
    input_values: dict[str, dict[str, Any]] = field(default_factory=dict)  # see input_values.py
    kernels: dict[str, Function] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)  # inputs that a run writes: compiler/states.py
    initial: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)  # of states, not zeros
    held: dict[TensorRef, TensorRef] = field(default_factory=dict)  # result -> the state's input
    devices: list[int] = field(default_factory=list)  # kind, of each node; empty: one device
    kernel_devices: dict[str, int] = field(default_factory=dict)  # where `devices` are given
    tellers: dict[str, TensorRef] = field(default_factory=dict)  # of sizes that values decide

    def type_of(self, ref: TensorRef) -> TensorType:
        """Return the type of one tensor."""
        return self.nodes[ref.node].types[ref.index]

    def memory_of(self, ref: TensorRef, known: Mapping[TensorRef, TensorRef]) -> TensorRef:
        """Return the tensor whose memory `ref` lies in; `known` has those of earlier nodes."""
        node = self.nodes[ref.node]
        return known[node.inputs[0]] if node.function == NOP else self.held.get(ref, ref)


def build_graph(
    main: Function, param_names: Mapping[int, str] | None = None, mod_name: str = "default"
) -> ModelGraph:
    """Turn an optimised relay function into the list of kernel calls.

    `param_names` gives names to constants by ``id(Constant.array)``; others are called p0, p1, ...
    Equal kernels are shared.  Raises LoweringError for functions that call themselves.
    """
    return _Builder(dict(param_names or {}), mod_name).build(main)


class _Builder:
    def __init__(self, param_names: dict[int, str], mod_name: str) -> None:
        self.graph = ModelGraph()
        self.param_names = param_names
        self.mod_name = mod_name
        self.values: dict[int, list[TensorRef]] = {}
        self.by_hash: dict[int, str] = {}
        self.by_array: dict[int, TensorRef] = {}  # id of a constant's array, which `graph` holds
        self.sizes: dict[Any, tuple[TensorRef, TensorType]] = {}  # inputs with an axis of a size
        self.untold: list[Any] = []  # sizes that no input gives
        self.taken: set[str] = set()
        self.numbers: dict[tuple[str, int], int] = {}  # the last number that a name was given

    def build(self, main: Function) -> ModelGraph:
        graph = self.graph
        for param in main.params:
            for position, type_ in enumerate(flatten(param.checked_type)):
                name = param.name if position == 0 else f"{param.name}_{position}"
                graph.inputs.append(name)
                ref = self._add(name, "", (), (type_,))
                self.values.setdefault(id(param), []).append(ref)
                for extent in type_.shape:
                    variable = told_by(extent)
                    if variable is not None:
                        self.sizes.setdefault(variable, (ref, type_))
        order = in_order_of_sizes(list(post_order(main.body, into_functions=False)))
        for expr in order:
            if isinstance(expr, Constant):
                self.values[id(expr)] = [self._constant(expr)]
        for expr in order:
            self._visit(expr)
        graph.outputs = list(self.values[id(main.body)])
        check_open(graph)
        if self.untold:  # in a kernel only, so that no type of the graph speaks of it
            raise no_input_tells(SymbolDim(self.untold[0]))
        return graph

    def _add(self, *parts: Any) -> TensorRef:
        node = GraphNode(*parts)
        rank = max((type_.rank for type_ in node.types), default=0)
        if rank > MAX_RANK:
            raise LoweringError(
                f"{node.layer or node.name!r} gives a tensor of {rank} axes; the runtime carries "
                f"at most {MAX_RANK}. Reshape it to fewer axes."
            )
        self.graph.nodes.append(node)
        self.taken.add(parts[0])
        return TensorRef(len(self.graph.nodes) - 1)

    def _constant(self, expr: Constant) -> TensorRef:
        known = self.by_array.get(id(expr.array))
        if known is not None:
            return known
        name = self.param_names.get(id(expr.array), f"p{len(self.graph.params)}")
        while name in self.taken:
            name += "_"
        self.graph.params[name] = expr.array
        self.graph.inputs.append(name)
        ref = self.by_array[id(expr.array)] = self._add(name, "", (), (expr.tensor_type,))
        return ref

    def _visit(self, expr: Expr) -> None:
        match expr:
            case Var() | Op() | Constant() | Function():
                pass
            case Tuple():
                self.values[id(expr)] = [ref for f in expr.fields for ref in self.values[id(f)]]
            case TupleGetItem():
                self.values[id(expr)] = [self.values[id(expr.tuple_value)][expr.index]]
            case Call() if is_primitive(expr.op):
                self.values[id(expr)] = self._kernel(expr)
            case _:
                raise LoweringError(
                    f"the graph executor cannot run a {type(expr).__name__}: a function that "
                    "calls itself needs relay.create_executor('vm'), or relay.while_loop in its "
                    "place"
                )

    def _kernel(self, call: Call) -> list[TensorRef]:
        function, graph = call.op, self.graph
        args = tuple(ref for a in call.args for ref in self.values[id(a)])
        types = tuple(flatten(call.checked_type))
        if _is_reshape(function):
            ref = self._add(f"reshape_nop_{len(self.graph.nodes)}", NOP, args[:1], types)
            return [ref]
        told = told_size(call)
        if told is not None:
            size, at = told
            if graph.tellers.setdefault(str(size), args[at]) != args[at]:
                raise LoweringError(
                    f"the size {size} is that of two values: give each relay.Dim of a "
                    "relay.sized(...) a name of its own"
                )
        elif brings_inside(function):
            raise LoweringError(
                "relay.sized(...) is in a loop or a branch, where no size can be set: compute what "
                "it makes outside"
            )
        for variable in unread_sizes(function):
            if variable not in self.sizes:
                self.untold.append(variable)
                break
            ref, type_ = self.sizes[variable]
            var = Var(f"size_of_{variable.name}", type_)
            function = Function((*function.params, var), function.body, None, function.attrs)
            args = (*args, ref)
        digest = structural_hash(function)
        name = self.by_hash.get(digest)
        if name is None:
            name = self._kernel_name(function)
            self.by_hash[digest] = name
            self.graph.kernels[name] = function
        ref = self._add(self._node_name(name), name, args, types, *_layers_of(function))
        if told is not None:
            self.sizes.setdefault(told[0].formula, (ref, types[0]))
        return [TensorRef(ref.node, i) for i in range(len(types))]

    def _kernel_name(self, function: Function) -> str:
        return self._unique(content_name(function, f"tvmgen_{self.mod_name}_"), self.graph.kernels)

    def _node_name(self, kernel: str) -> str:
        return self._unique(kernel, self.taken)

    def _unique(self, base: str, taken: Any) -> str:
        """Return `base`, or the first of base_1, base_2, ... that is not taken.

        Names only become more: what was taken when `base` was last asked for, still is.
        """
        key = base, id(taken)
        name, number = base, self.numbers.get(key, 0)
        if number:
            name = f"{base}_{number}"
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self.numbers[key] = number
        return name


def content_name(function: Function, prefix: str = "") -> str:
    """Return `prefix` and the operators of a kernel as an identifier, which equal kernels share."""
    if function.attr("Compiler"):
        return f"{function.attr('global_symbol')}_call"
    names = [
        e.op.name.replace(".", "_")
        for e in post_order(function.body, into_functions=False)
        if isinstance(e, Call)
    ]
    base = re.sub(r"[^A-Za-z0-9_]", "_", f"{prefix}fused_" + "_".join(names))
    if len(base) > _LONGEST_NAME:
        digest = structural_hash(function) & 0xFFFFFFFF
        base = f"{base[: _LONGEST_NAME - 9].rstrip('_')}_{digest:08x}"
    return base


def _is_reshape(function: Function) -> bool:
    """Return whether a kernel only gives its first parameter another shape."""
    expr: Expr = function.body
    while isinstance(expr, Call) and is_call_of(expr, *RESHAPES):
        expr = expr.args[0]
    return expr is not function.body and isinstance(expr, Var) and expr is function.params[0]


def _layers_of(function: Function) -> tuple[str, tuple[str, ...]]:
    """Return the model's node behind the kernel's hardest operator, and all of its nodes."""
    best, found = -1, ""
    every: dict[str, None] = {}
    for expr in post_order(function.body, into_functions=False):
        definition = call_definition(expr)
        if definition is None or not isinstance(expr, Call) or not expr.span:
            continue
        every[expr.span] = None
        if int(definition.pattern) > best:
            best, found = int(definition.pattern), expr.span
    return found, tuple(every)


@dataclass(frozen=True)
class TensorStorage:
    """Where a tensor lies; those of one `group` share bytes, `offset` None: not in the arena."""

    group: int
    offset: int | None


@dataclass(frozen=True)
class StoragePlan:
    """The storage of every tensor, and the plan of the arena.

    A graph on several devices has a plan for each kind, `by_device`; offsets are in its own arena.
    """

    storage: dict[TensorRef, TensorStorage]
    plan: Plan
    by_device: Mapping[int, Plan] = field(default_factory=dict)

    def of(self, node: int, index: int = 0) -> TensorStorage:
        """Return the storage of output `index` of node `node`."""
        return self.storage[TensorRef(node, index)]


def plan_storage(graph: ModelGraph, algorithm: str = "best", alignment: int = 1) -> StoragePlan:
    """Plan the arena of everything but parameters and states, which keep memory of their own.

    Inputs and outputs live for the whole run, so that they survive repeated runs; the others from
    the node that makes them to the last that reads them.  A reshape in place shares its input's
    bytes.  Every tensor begins at a multiple of `alignment` bytes, and of what the planner takes.
    """
    last = len(graph.nodes)
    root: dict[TensorRef, TensorRef] = {}
    lives: dict[TensorRef, tuple[int, int]] = {}
    for number, node in enumerate(graph.nodes):
        for ref in node.inputs:
            base = root[ref]
            if base in lives:
                lives[base] = lives[base][0], number
        for position in range(len(node.types)):
            ref = TensorRef(number, position)
            root[ref] = graph.memory_of(ref, root)
            if node.function not in ("", NOP) and root[ref] == ref:
                lives[ref] = number, number
        if not node.function and node.name not in {*graph.params, *graph.states}:
            lives[TensorRef(number)] = 0, number
    inputs = [TensorRef(n) for n, node in enumerate(graph.nodes) if not node.function]
    for ref in (*inputs, *graph.outputs):
        if root[ref] in lives:
            lives[root[ref]] = lives[root[ref]][0], last
    device_of = graph.devices or [0] * len(graph.nodes)
    offset_of: dict[TensorRef, int] = {}
    plans: dict[int, Plan] = {}
    for device in sorted(set(device_of or [0])):
        own = {r: life for r, life in lives.items() if device_of[r.node] == device}
        blocks = [
            Block(
                graph.nodes[r.node].name,
                -(-max(1, largest_bytes(graph.type_of(r))) // alignment) * alignment,
                first,
                end,
            )
            for r, (first, end) in own.items()
        ]
        plans[device] = plan(blocks, algorithm)
        offset_of.update(zip(own, plans[device].offsets, strict=True))
    groups: dict[Any, int] = {}
    storage = {}
    for ref, base in root.items():
        offset = offset_of.get(base)
        key = base if offset is None else (device_of[base.node], offset)
        storage[ref] = TensorStorage(groups.setdefault(key, len(groups)), offset)
    return StoragePlan(storage, next(iter(plans.values())), plans if graph.devices else {})
