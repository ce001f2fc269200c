"""Subgraphs: If; Loop and Scan, unrolled when their number of steps is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.binding import inputs_of
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.values import mapped, tensors_of
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

MAX_STEPS = 1024  # of a loop that is unrolled


@converter("If")
def if_(node: NodeView) -> Any:
    """A constant condition takes its branch; otherwise both become the branches of relay.If."""
    assert node.subgraph is not None
    condition = node.input(0)
    if isinstance(condition, relay.Constant):
        chosen = "then_branch" if condition.array.reshape(-1)[0] else "else_branch"
        return node.subgraph(node.attr(chosen), [])
    try:
        branches: list[Any] = [
            node.subgraph(node.attr(name), []) for name in ("then_branch", "else_branch")
        ]
    except UnsupportedNode as error:
        raise node.unsupported(f"{error}; {_decided_by(node, condition)}") from None
    if condition.tensor_type.rank:
        condition = relay.reshape(condition, ())
    tensors = [[t for value in branch for t in tensors_of(value)] for branch in branches]
    kinds = [[t.type for t in branch] for branch in tensors]
    if kinds[0] != kinds[1] or not kinds[0]:
        raise node.unsupported(
            "the branches give different shapes, which static shapes cannot hold; "
            + _decided_by(node, condition)
        )
    if len(tensors[0]) == 1:
        results: Iterator[Any] = iter([relay.If(condition, tensors[0][0], tensors[1][0])])
    else:
        choice = relay.If(condition, relay.Tuple(tuple(tensors[0])), relay.Tuple(tuple(tensors[1])))
        results = iter(relay.TupleWrapper(choice, len(tensors[0])))
    return [mapped(value, lambda _: next(results)) for value in branches[0]]


def _decided_by(node: NodeView, condition: Expr) -> str:
    """Return what a condition depends on that is only known at run time, and the advice for it."""
    names = [name for name in inputs_of(condition) if name in node.model_inputs]
    if not names:
        return "its condition depends on what is not known while the file is read"
    return (
        f"its condition depends on {', '.join(map(repr, names))}: where that is always the same, "
        "bind it to its value with constants={...} (--bind NAME=VALUE on the command line)"
    )


def _run_body(node: NodeView, body: Any, inputs: Sequence[Any], results: int) -> list[Any]:
    assert node.subgraph is not None
    found: list[Any] = node.subgraph(body, inputs)
    if len(found) != results:
        raise node.unsupported("its body could not be converted")
    return found


@converter("Loop")
def loop(node: NodeView) -> Any:
    """Unrolled: the trip count and the condition of each step must be known."""
    body = node.attr("body")
    limit = MAX_STEPS + 1
    if node.has(0):
        limit = min(limit, int(node.constant(0, "the trip count").reshape(-1)[0]))
    going: Any = node.input(1) if node.has(1) else const(True, "bool")
    carried = list(node.inputs[2:])
    count = len(body.output) - 1 - len(carried)
    gathered: list[list[Any]] = [[] for _ in range(count)]
    step = 0
    while step < limit:
        if not isinstance(going, relay.Constant):
            raise node.unsupported(
                f"how often it runs is not known before: {_decided_by(node, going)}"
            )
        if not going.array.reshape(-1)[0]:
            break
        if step >= MAX_STEPS:
            raise node.unsupported(f"it takes more than {MAX_STEPS} steps")
        counter = const(step, "int64")
        going, *rest = _run_body(node, body, [counter, going, *carried], len(body.output))
        carried = rest[: len(carried)]
        for values, value in zip(gathered, rest[len(carried) :], strict=True):
            values.append(value)
        step += 1
    if count and not step:
        raise node.unsupported("it takes no step, so the shape of its scan outputs is unknown")
    return [*carried, *(relay.stack(values, 0) for values in gathered)]


def _axes(node: NodeView, name: str, count: int) -> tuple[int, ...]:
    return tuple(node.attr(name, (0,) * count))


@converter("Scan")
def scan(node: NodeView) -> Any:
    """Unrolled over the scanned axis."""
    if node.opset < 9:
        return _scan_8(node)
    scanned = int(node.attr("num_scan_inputs"))
    states = [node.input(i) for i in range(len(node.inputs) - scanned)]
    sequences = [node.input(i) for i in range(len(states), len(node.inputs))]
    return _scan(
        node, states, sequences,
        _axes(node, "scan_input_axes", scanned),
        _axes(node, "scan_input_directions", scanned),
    )  # fmt: skip


def _scan_8(node: NodeView) -> Any:
    """The first version: a batch axis in front of everything; each sample scans by itself."""
    if node.has(0):
        raise node.unsupported("sequences of different lengths")
    scanned = int(node.attr("num_scan_inputs"))
    everything = [node.input(i) for i in range(1, len(node.inputs))]
    batch = everything[0].tensor_type.shape[0]
    directions = _axes(node, "directions", scanned)
    results = []
    for sample in range(batch):
        own = [
            relay.squeeze(relay.strided_slice(x, [sample], [sample + 1], axes=[0]), [0])
            for x in everything
        ]
        cut = len(own) - scanned
        results.append(_scan(node, own[:cut], own[cut:], (0,) * scanned, directions))
    return [relay.stack(values, 0) for values in zip(*results, strict=True)]


def _scan(
    node: NodeView, states: list[Any], sequences: list[Any], axes: Sequence[int],
    directions: Sequence[int],
) -> list[Any]:  # fmt: skip
    body = node.attr("body")
    first = sequences[0].tensor_type
    steps = first.shape[axes[0] % first.rank]
    if steps > MAX_STEPS:
        raise node.unsupported(f"it takes more than {MAX_STEPS} steps")
    count = len(body.output) - len(states)
    out_axes = _axes(node, "scan_output_axes", count)
    out_directions = _axes(node, "scan_output_directions", count)
    gathered: list[list[Any]] = [[] for _ in range(count)]
    for step in range(steps):
        slices = []
        for x, axis, backward in zip(sequences, axes, directions, strict=True):
            at = steps - 1 - step if backward else step
            cut = relay.strided_slice(x, [at], [at + 1], axes=[axis])
            slices.append(relay.squeeze(cut, [axis]))
        found = _run_body(node, body, [*states, *slices], len(body.output))
        states = found[: len(states)]
        for values, value in zip(gathered, found[len(states) :], strict=True):
            values.append(value)
    outputs = []
    for values, axis, backward in zip(gathered, out_axes, out_directions, strict=True):
        outputs.append(relay.stack(values[::-1] if backward else values, axis))
    return [*states, *outputs]
