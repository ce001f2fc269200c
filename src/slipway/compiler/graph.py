"""From relay to the graph that an executor runs, and every tensor's storage.

`build_graph` reads an optimised, fused relay function; `plan_storage` plans the memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.compiler.memory_plan import Block, Plan, plan
from slipway.compiler.memory_plan.images import Image, images_of, shared_images
from slipway.compiler.model_graph import NOP, ExactSize, GraphNode, ModelGraph, TensorRef
from slipway.compiler.open_sizes import check_open, largest_bytes, no_input_tells
from slipway.errors import LoweringError
from slipway.ir.structural import structural_hash
from slipway.relay.analysis.told_sizes import (
    brings_inside,
    exact_size,
    in_order_of_sizes,
    ranges_in,
    told_size,
    two_values,
)
from slipway.relay.dims import SymbolDim, told_by
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.narrowed import unread_sizes
from slipway.relay.op_registry import call_definition, is_call_of, is_primitive
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order

RESHAPES = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten")
MAX_RANK = 16  # of tensors at run time: crt/include/slipway/tensor.h
_LONGEST_NAME = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def build_graph(
    main: Function,
    param_names: Mapping[int, str] | None = None,
    mod_name: str = "default",
    is_part: bool = False,
) -> ModelGraph:
    """Turn an optimised relay function into the list of kernel calls.

    `param_names` gives names to constants by ``id(Constant.array)``; others are called p0, p1, ...
    Equal kernels are shared.  Of a part of a model, others may tell its open sizes: the whole is to
    be checked (`check_open`).  Raises LoweringError for functions that call themselves.
    """
    return _Builder(dict(param_names or {}), mod_name).build(main, is_part)


class _Builder:
    def __init__(self, param_names: dict[int, str], mod_name: str) -> None:
        self.graph = ModelGraph()
        self.param_names = param_names
        self.mod_name = mod_name
        self.values: dict[int, list[TensorRef]] = {}
        self.by_hash: dict[tuple[Any, ...], str] = {}
        self.by_array: dict[int, TensorRef] = {}  # id of a constant's array, which `graph` holds
        self.sizes: dict[Any, tuple[TensorRef, TensorType]] = {}  # inputs with an axis of a size
        self.untold: list[Any] = []  # sizes that no input gives
        self.taken: set[str] = set()
        self.numbers: dict[tuple[str, int], int] = {}  # the last number that a name was given

    def build(self, main: Function, is_part: bool) -> ModelGraph:
        graph = self.graph
        for param in main.params:
            for position, type_ in enumerate(flatten(param.checked_type)):
                name = param.name if position == 0 else f"{param.name}_{position}"
                _check_name(name)
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
        if not is_part:
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
                raise two_values(str(size))
        elif brings_inside(function):
            raise LoweringError(
                "relay.sized(...) is in a branch, where no size can be set: compute what it makes "
                "outside"
            )
        for variable in unread_sizes(function):
            if variable not in self.sizes:
                self.untold.append(variable)
                break
            ref, type_ = self.sizes[variable]
            var = Var(f"size_of_{variable.name}", type_)
            function = Function((*function.params, var), function.body, None, function.attrs)
            args = (*args, ref)
        exact = exact_size(call)
        digest = structural_hash(function), *ranges_in(function)
        name = self.by_hash.get(digest)
        if name is None:
            name = self._kernel_name(function)
            self.by_hash[digest] = name
            self.graph.kernels[name] = function
        ref = self._add(self._node_name(name), name, args, types, *_layers_of(function))
        if told is not None:
            self.sizes.setdefault(told[0].formula, (ref, types[0]))
        if exact is not None:
            called, number, axis, at = exact
            called = self._unique(called, graph.tellers)
            graph.tellers[called], graph.exact[called] = args[at], ExactSize(ref, axis, number)
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


def one_line(name: str) -> str:
    """Return a name as the runtime lists it, on a line with others: without control characters."""
    return _CONTROL.sub("_", name)


def _check_name(name: str) -> None:
    """Refuse an input that cannot be asked for by what it is called."""
    if re.search(r"[\0\t\n]", name):
        raise LoweringError(
            f"an input cannot be called {name!r}: the runtime lists names as lines of text. "
            "Give it a name without tabs and ends of lines"
        )


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
    """Where a tensor lies; those of one `group` share bytes, `offset` None: not in the arena.

    `image`, where it is one, is the image of its group.
    """

    group: int
    offset: int | None
    image: Image | None = None


@dataclass(frozen=True)
class StoragePlan:
    """The storage of every tensor, and the plan of the arena.

    A graph on several devices has a plan for each kind, `by_device`; offsets are in its own arena.
    `image_bytes` are those of images beside the arena, without parameters'.
    """

    storage: dict[TensorRef, TensorStorage]
    plan: Plan
    by_device: Mapping[int, Plan] = field(default_factory=dict)
    image_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """The bytes of all tensors that are no parameters."""
        plans = self.by_device.values() or [self.plan]
        return sum(made.size_bytes for made in plans) + self.image_bytes

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
    image_of, images = shared_images(images_of(graph), lives)
    image_bytes = sum(images[n].size_bytes for n in {image_of[r] for r in image_of if r in lives})
    lives = {ref: life for ref, life in lives.items() if ref not in image_of}
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
    key: Any
    storage = {}
    for ref, base in root.items():
        shared = image_of.get(base)
        offset = offset_of.get(base)
        key = base if offset is None else (device_of[base.node], offset)
        if shared is not None:
            key = "image", device_of[base.node], shared
        image = None if shared is None else images[shared]
        storage[ref] = TensorStorage(groups.setdefault(key, len(groups)), offset, image)
    first, *_ = plans.values()
    return StoragePlan(storage, first, plans if graph.devices else {}, image_bytes)
