"""Where the numbers of a model diverge: in the importer, in a pass, in a kernel, on a device.

One input goes through the model four ways, each held against the one before:

1. the framework that the file is for (ONNX Runtime), where it is installed;
2. the imported graph, operator by operator with the NumPy references;
3. the optimised graph, kernel by kernel with the same references;
4. the compiled kernels, each on the inputs that it has in 3, on this machine or a device.

The first step that gives other numbers than the step before names the culprit: a node of the
file, a pass, or a kernel; a kernel comes with its inputs, which reproduce the difference alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.compiler.model_graph import COPY, NOP, GraphNode, ModelGraph
from slipway.inspect.difference import TOLERANCE, Difference, first_difference
from slipway.relay.dims import at, line_of
from slipway.relay.expr import Call, Expr, Function, Op, Tuple, TupleGetItem
from slipway.relay.interpret import evaluate_call, interpret
from slipway.relay.narrowed import narrowed
from slipway.relay.open_dims import has_open
from slipway.relay.types import TupleType, flatten
from slipway.relay.visit import post_order
from slipway.runtime.model_devices import Caller

Array = np.ndarray[Any, Any]


@dataclass
class Culprit:
    """The first step that gives other numbers: `kind` is import, pass, kernel or executor."""

    kind: str
    name: str
    difference: Difference
    nodes: tuple[str, ...] = ()
    function: Function | None = None
    inputs: list[Array] = field(default_factory=list)
    got: list[Array] = field(default_factory=list)
    wanted: list[Array] = field(default_factory=list)


def as_list(value: Any) -> list[Array]:
    """Return a result as a list of arrays, tuples taken apart."""
    if isinstance(value, tuple):
        return [array for part in value for array in as_list(part)]
    return [np.asarray(value)]


# -- passes ------------------------------------------------------------------------------------


def find_pass(
    steps: Iterator[tuple[str, Function]],
    inputs: Mapping[str, Array],
    wanted: Sequence[Array],
    tolerance: float = TOLERANCE,
) -> Culprit | None:
    """Return the first of the passes after which the graph gives other results."""
    before: Function | None = None
    for name, main in steps:
        if main is before:
            continue
        before = main
        got = as_list(interpret(main, params=inputs))
        found = first_difference(got, wanted, tolerance)
        if found is not None:
            return Culprit("pass", name, found, got=got, wanted=list(wanted))
    return None


# -- kernels -----------------------------------------------------------------------------------


def trace_of(graph: ModelGraph, inputs: Mapping[str, Array]) -> list[list[Array]]:
    """Return the results of every step of a model's graph, by the NumPy references.

    The inputs tell the sizes that the graph leaves open.
    """
    values: list[list[Array]] = []
    sizes: dict[Any, int] = {}
    for node in graph.nodes:
        if not node.function:
            given = inputs.get(node.name)
            value = graph.params[node.name] if given is None else np.asarray(given)
            values.append([value])
            sizes.update(_told(node.types[0], value))
            continue
        arguments = arguments_of(node, values)
        if node.function == NOP:
            shape = tuple(at(extent, sizes) for extent in node.types[0].shape)
            values.append([arguments[0].reshape(shape)])
        elif node.function == COPY:
            values.append(arguments)
        else:
            kernel = graph.kernels[node.function]
            values.append(kernel_reference(_at_sizes(kernel, arguments, sizes), arguments))
    return values


def _told(type_: Any, value: Array) -> dict[Any, int]:
    """Return the open sizes that the shape of a tensor's value tells."""
    found = {}
    for extent, size in zip(type_.shape, value.shape, strict=True):
        line = line_of(extent)
        if line is not None:
            found[line.variable] = line.size(size)
    return found


def _at_sizes(kernel: Function, arguments: Sequence[Array], sizes: Mapping[Any, int]) -> Function:
    """Return a kernel for the sizes of its arguments: attributes may hold open ones."""
    if not sizes and not any(has_open(param.checked_type) for param in kernel.params):
        return kernel
    own = dict(sizes)
    types = [type_ for param in kernel.params for type_ in flatten(param.checked_type)]
    for type_, value in zip(types, arguments, strict=True):
        own.update(_told(type_, value))
    return narrowed(kernel, own)


def arguments_of(node: GraphNode, values: Sequence[Sequence[Array]]) -> list[Array]:
    """Return the inputs of a step from the results of those before."""
    return [values[ref.node][ref.index] for ref in node.inputs]


def kernel_reference(function: Function, arguments: Sequence[Array]) -> list[Array]:
    """Return what a kernel means: its operators' NumPy references on flat arguments."""
    rest = iter(arguments)
    given = [_shaped_like(param.checked_type, rest) for param in function.params]
    environment = dict(zip((id(p) for p in function.params), given, strict=True))
    return as_list(_evaluate(function.body, environment))


def _shaped_like(type_: Any, arrays: Iterator[Array]) -> Any:
    """Return the next arrays as a value of a type: a tuple of one field stays a tuple."""
    if isinstance(type_, TupleType):
        return tuple(_shaped_like(field, arrays) for field in type_.fields)
    return next(arrays)


def _evaluate(root: Expr, known: dict[int, Any]) -> Any:
    """Evaluate dataflow; the interpreter proper takes arrays only, not tuples, as inputs."""
    done = dict(known)
    for expr in post_order(root, into_functions=False):
        if id(expr) in done or isinstance(expr, Op):
            continue
        match expr:
            case Call():
                done[id(expr)] = evaluate_call(expr, [done[id(a)] for a in expr.args])
            case Tuple():
                done[id(expr)] = tuple(done[id(f)] for f in expr.fields)
            case TupleGetItem():
                done[id(expr)] = done[id(expr.tuple_value)][expr.index]
            case _:
                done[id(expr)] = expr.array  # type: ignore[attr-defined]
    return done[id(root)]


def find_kernel(
    graph: ModelGraph,
    trace: Sequence[Sequence[Array]],
    call: Caller,
    tolerance: float = TOLERANCE,
    progress: Callable[[GraphNode], None] | None = None,
) -> Culprit | None:
    """Return the first kernel that gives other results than its reference on the same inputs.

    `call(name, inputs, like)` runs a compiled kernel and returns its results; `like` are arrays
    of their types.  Calls of one kernel on other inputs are all made: a difference may hide.
    """
    for number, node in enumerate(graph.nodes):
        if not node.calls_kernel:
            continue
        if progress is not None:
            progress(node)
        arguments, wanted = arguments_of(node, trace), list(trace[number])
        got = call(node.function, arguments, wanted)
        found = first_difference(got, wanted, tolerance)
        if found is not None:
            return Culprit(
                "kernel", node.layer or node.name, found, node.layers,
                graph.kernels[node.function], arguments, got, wanted,
            )  # fmt: skip
    return None


# -- the importer ------------------------------------------------------------------------------


def node_values(main: Function, inputs: Mapping[str, Array]) -> dict[str, list[Array]]:
    """Return the results of each of the model's nodes in an imported graph, by the references."""
    done: dict[int, Any] = {id(p): np.asarray(inputs[p.name]) for p in main.params}
    last: dict[str, Any] = {}
    for expr in post_order(main.body, into_functions=False):
        if id(expr) in done or isinstance(expr, Op):
            continue
        done[id(expr)] = _evaluate(expr, done)
        if isinstance(expr, Call) and expr.span:
            last[expr.span] = done[id(expr)]
    return {name: as_list(value) for name, value in last.items()}
