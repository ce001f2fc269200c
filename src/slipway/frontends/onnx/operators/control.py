"""Subgraphs: If; Loop and Scan, unrolled when their number of steps is known, loops elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.binding import inputs_of
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.control.branches import alike
from slipway.frontends.onnx.control.count import LoopCount, loop_count
from slipway.frontends.onnx.control.while_loop import while_loop
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.values import mapped, tensors_of
from slipway.frontends.steps import run_steps
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

MAX_STEPS = 1024  # of a loop that is unrolled
FEW_STEPS = 16  # of a scan that is


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
    pairs = [alike(one, other) for one, other in zip(*branches, strict=True)]
    branches = [[pair[side] for pair in pairs] for side in (0, 1)]
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
    """Unrolled where the trip count and the condition of each step are known, else a while_loop."""
    going: Any = node.input(1) if node.has(1) else const(True, "bool")
    limit = node.input(0) if node.has(0) else None
    most = int(limit.array.reshape(-1)[0]) if isinstance(limit, relay.Constant) else None
    if limit is None or most is not None:
        found = _unrolled(node, going, MAX_STEPS + 1 if most is None else most)
        if found is not None:
            return found
    return _counted_loop(node, limit, going, most)


def counted_loop(node: NodeView, rows: int | None) -> list[Any]:
    """Return a Loop that runs as often as its inputs say, with room for so many rows."""
    limit = node.input(0) if node.has(0) else None
    return _counted_loop(node, limit, node.input(1) if node.has(1) else const(True, "bool"), rows)


def _counted_loop(node: NodeView, limit: Any, going: Any, most: int | None) -> list[Any]:
    if limit is None or (most is not None and most > MAX_STEPS):
        count = loop_count(node, going, node.inputs[2:])
        if count is not None and count.most is not None and count.most <= MAX_STEPS:
            return _as_counted(node, going, count)
    if most is not None and most > MAX_STEPS and len(node.outputs) > len(node.inputs) - 2:
        raise node.unsupported(f"it takes more than {MAX_STEPS} steps")
    number = None if limit is None else relay.reshape(relay.cast(limit, "int64"), ())
    flag: Any
    if isinstance(going, relay.Constant):
        flag = const(bool(going.array.reshape(-1)[0]), "bool")
    else:
        flag = relay.reshape(relay.cast(going, "bool"), ())
    trips = None if limit is None else node.sizes.of(limit)
    trip_count = None
    if trips is not None and trips.size == 1 and isinstance(trips.flat[0], SymbolDim):
        high = trips.flat[0].high
        if high is not None and high <= MAX_STEPS and most in (None, high):
            most, trip_count = high, trips.flat[0]
    return while_loop(node, number, flag, node.inputs[2:], most, trip_count)


def _as_counted(node: NodeView, going: Any, count: LoopCount) -> list[Any]:
    """Return a Loop of which the condition says how often it runs, or at most runs."""
    carried = node.inputs[2:]
    if count.is_exact:
        trips = count.size if isinstance(count.size, SymbolDim) else None
        always = const(True, "bool")
        return while_loop(node, count.value, always, carried, count.most, trips, is_counted=True)
    flag = relay.reshape(relay.cast(going, "bool"), ())
    return while_loop(node, None, flag, carried, count.most)


def _unrolled(node: NodeView, going: Any, limit: int) -> list[Any] | None:
    """Return the results of a loop's steps, one after another; None where they are not known."""
    body = node.attr("body")
    carried = list(node.inputs[2:])
    count = len(body.output) - 1 - len(carried)
    gathered: list[list[Any]] = [[] for _ in range(count)]
    step = 0
    while step < limit:
        if not isinstance(going, relay.Constant) or step >= MAX_STEPS:
            return None
        if not going.array.reshape(-1)[0]:
            break
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
    count = len(body.output) - len(states)
    out_axes = _axes(node, "scan_output_axes", count)
    out_directions = _axes(node, "scan_output_directions", count)
    if is_open(steps) or steps > FEW_STEPS:
        last, rows = _as_loop(node, states, sequences, axes, directions)
        return [*last, *map(_of_all_steps, rows, out_axes, out_directions)]
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


def _as_loop(
    node: NodeView, states: list[Any], sequences: list[Any], axes: Sequence[int],
    directions: Sequence[int],
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Return the last states, and the outputs with their steps in front."""
    body = node.attr("body")

    def step(kept: list[Any], slices: list[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        found = _run_body(node, body, [*kept, *slices], len(body.output))
        for old, new in zip(kept, found, strict=False):
            if new.checked_type != old.checked_type:
                raise node.unsupported(
                    f"its state changes from {old.checked_type} to {new.checked_type}"
                )
        return found[: len(kept)], found[len(kept) :]

    ordered = []
    for x, axis, backward in zip(sequences, axes, directions, strict=True):
        front = x if backward == 0 else relay.reverse(x, axis)
        ordered.append(_moved(front, axis % x.tensor_type.rank, 0))
    return run_steps(step, states, ordered)


def _of_all_steps(rows: Any, axis: int, backward: int) -> Any:
    """Return the rows of all steps with their axis where an output has it."""
    rows = relay.reverse(rows, 0) if backward else rows
    return _moved(rows, 0, axis % rows.tensor_type.rank)


def _moved(x: Any, source: int, target: int) -> Any:
    order = [a for a in range(x.tensor_type.rank) if a != source]
    order.insert(target, source)
    return x if source == target else relay.transpose(x, order)
