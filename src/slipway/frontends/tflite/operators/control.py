"""IF and WHILE over subgraphs, CALL_ONCE, and variables, whose values outlive a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.frontends.tflite.flexbuffer import read_map
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant, Expr, Tuple, Var
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType
from slipway.transform.graph.loop_invariants import looped

MAX_STEPS = 16  # of a loop that is unrolled


def _condition(value: Expr) -> bool | None:
    """Return a truth value that is known, or None."""
    return bool(value.array.reshape(-1)[0]) if isinstance(value, Constant) else None


@converter("IF")
def if_(node: NodeView) -> Any:
    """A known condition takes its subgraph; otherwise both become the branches of relay.If.

    Subgraphs have no effect but on variables; what a branch assigns is a result of it too.
    """
    program = node.program
    inputs = node.inputs[1:]
    numbers = (node.option("then_subgraph_index"), node.option("else_subgraph_index"))
    known = _condition(node[0])
    if known is not None:
        return program.call(numbers[0] if known else numbers[1], inputs)
    before = dict(program.variables)
    branches, after = [], []
    for number in numbers:
        program.variables = {**program.first, **before}
        branches.append(program.call(number, inputs))
        if len(branches[-1]) != len(node.operator.outputs):
            raise node.unsupported(
                f"its subgraph {number} gives {len(branches[-1])} results in place of "
                f"{len(node.operator.outputs)}"
            )
        after.append(dict(program.variables))
    names = list(dict.fromkeys((*after[0], *after[1])))
    after = [{n: held.get(n, program.first[n]) for n in names} for held in after]
    changed = [n for n in names if after[0][n] is not after[1][n]]
    for branch, held in zip(branches, after, strict=True):
        branch += [held[n] for n in changed]
    count = len(node.operator.outputs)
    unequal = {} if program.depth else _with_room(branches, count)
    kinds = [[v.type for v in branch] for branch in branches]
    if kinds[0] != kinds[1]:
        raise node.unsupported("its branches give different shapes")
    condition = node[0]
    if condition.tensor_type.rank:
        condition = relay.reshape(condition, ())
    program.variables = after[0]
    results = _chosen(condition, *branches)
    for i, (axis, sizes) in unequal.items():
        dim = relay.Dim(f"found{program.found}", min(sizes), max(sizes))
        program.found += 1
        taken = relay.where(condition, *(const(np.int64(size)) for size in sizes))
        results[i] = relay.sized(results[i], taken, dim, axis)
    program.variables.update(zip(changed, results[count:], strict=True))
    return results[:count]


def _with_room(branches: list[list[Expr]], count: int) -> dict[int, tuple[int, list[int]]]:
    """Pad results whose sizes differ along one axis to the larger; return the axis and the sizes.

    They are told apart by a size that the condition decides.
    """
    unequal = {}
    for i in range(count):
        types = [branch[i].tensor_type for branch in branches]
        one, other = (t.shape for t in types)
        if types[0].dtype != types[1].dtype or len(one) != len(other):
            continue
        axes = [a for a, (m, n) in enumerate(zip(one, other, strict=True)) if m != n]
        if len(axes) != 1 or any(map(is_open, (one[axes[0]], other[axes[0]]))):
            continue
        sizes = [int(shape[axes[0]]) for shape in (one, other)]
        for branch, size in zip(branches, sizes, strict=True):
            widths = [(0, 0)] * len(one)
            widths[axes[0]] = (0, max(sizes) - size)
            branch[i] = relay.nn.pad(branch[i], widths) if size < max(sizes) else branch[i]
        unequal[i] = axes[0], sizes
    return unequal


def _chosen(condition: Expr, then: Sequence[Expr], other: Sequence[Expr]) -> list[Expr]:
    """Return the results of the branch that a condition takes; only that one is computed."""
    if len(then) < 2:
        return [relay.If(condition, a, b) for a, b in zip(then, other, strict=True)]
    choice = relay.If(condition, Tuple(tuple(then)), Tuple(tuple(other)))
    return list(relay.TupleWrapper(choice, len(then)))


@converter("WHILE")
def while_(node: NodeView) -> Any:
    """Unrolled where the condition of every step is known and they are few, else a while_loop."""
    program = node.program
    condition, body = node.option("cond_subgraph_index"), node.option("body_subgraph_index")
    before = dict(program.variables)
    carried: list[Expr] = node.inputs
    for _ in range(MAX_STEPS):
        (going,) = program.call(condition, carried)
        known = _condition(going)
        if known is None:
            break
        if not known:
            return carried
        carried = program.call(body, carried)
    program.variables = before
    return _while_loop(node, condition, body)


def _while_loop(node: NodeView, condition: int, body: int) -> list[Expr]:
    """Return what a loop of any length carries at the end.

    Variables that its body assigns are carried too, beside the loop's own values.
    """
    program, types = node.program, [value.tensor_type for value in node.inputs]
    states = [Var(f"state{i}", type_) for i, type_ in enumerate(types)]
    before = dict(program.variables)
    program.call(body, states)  # for the names of what it reads and assigns
    held = {n: v for n, v in program.variables.items() if v is not before.get(n, program.first[n])}
    program.variables = {**program.first, **before}
    outside = [program.variables[name] for name in held]
    inside = [Var(name, value.tensor_type) for name, value in zip(held, outside, strict=True)]
    program.variables.update(zip(held, inside, strict=True))
    (going,) = program.call(condition, states)
    if _condition(going):
        raise node.unsupported("it never ends: its condition is always true")
    if any(program.variables[n] is not v for n, v in zip(held, inside, strict=True)):
        raise node.unsupported("its condition assigns a variable")
    new = [*program.call(body, states), *(program.variables[name] for name in held)]
    for number, (value, state) in enumerate(zip(new, [*states, *inside], strict=True)):
        if value.type != (wanted := state.type):
            raise node.unsupported(
                f"what it carries changes from {wanted} to {value.type} (state {number}), "
                "in a loop of unknown length"
            )
    results = looped([*states, *inside], relay.reshape(going, ()), new, [*node.inputs, *outside])
    program.variables = {**program.first, **before}
    program.variables.update(zip(held, results[len(states) :], strict=True))
    return results[: len(states)]


@converter("CALL_ONCE")
def call_once(node: NodeView) -> Any:
    """What the subgraph assigns is the state before the first run (`initial_state`)."""
    program = node.program
    before = program.variables
    program.variables = {}
    program.call(node.option("init_subgraph_index"), [])
    for name, value in program.variables.items():
        if not isinstance(value, Constant):
            raise node.unsupported(f"the initial value of {name!r} is not constant")
        program.initial[name] = value.array
    program.variables = before
    return []


@converter("VAR_HANDLE")
def var_handle(node: NodeView) -> Any:
    """The name of a variable, as a tensor of characters."""
    name = node.option("shared_name", "") or node.name
    container = node.option("container", "")
    whole = f"{container}/{name}" if container else name
    return Constant(np.frombuffer(whole.encode(), np.uint8))


def _variable(node: NodeView) -> str:
    return node.constant(0).tobytes().decode()


@converter("READ_VARIABLE")
def read_variable(node: NodeView) -> Any:
    """The present value; at the beginning of a run it is an input of the function."""
    out = node.out()
    return node.program.variable(_variable(node), TensorType(out.shape, out.dtype))


@converter("ASSIGN_VARIABLE")
def assign_variable(node: NodeView) -> Any:
    """Gives the variable another value, which is an output of the function at the end."""
    name, value = _variable(node), node[1]
    present = node.program.variables.get(name)
    if present is not None and present.type != value.type:
        raise node.unsupported(f"the variable {name!r} is {present.type} and gets {value.type}")
    node.program.variable(name, value.tensor_type)
    node.program.variables[name] = value
    return []


@converter("CUSTOM:CIRCULAR_BUFFER")
def circular_buffer(node: NodeView) -> Any:
    """The last slots of a stream: what was there moves up by one, the input is the last.

    Its content is a variable of the function.  TensorFlow Lite Micro leaves out what follows in all
    but every n-th run (`cycles_max`); here every run computes everything.
    """
    read_map(node.operator.custom_options)  # its options are checked, and have no effect on values
    out, fresh = node.out(), node[0]
    shape, part = out.shape, fresh.tensor_type.shape
    if len(shape) != 4 or len(part) != 4 or part[0] != shape[0] or part[2:] != shape[2:]:
        raise node.unsupported(f"its input {part} is no slot of its output {shape}")
    if shape[1] < part[1]:
        raise node.unsupported(f"its input {part} is longer than its output {shape}")
    name = f"{node.name}_buffer"
    held = node.program.variable(name, TensorType(shape, out.dtype))
    kept = relay.strided_slice(held, [part[1]], [shape[1]], axes=[1])
    moved = relay.concatenate([kept, fresh], 1) if shape[1] > part[1] else fresh
    node.program.variables[name] = moved
    return moved
