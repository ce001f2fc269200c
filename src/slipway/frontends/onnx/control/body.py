"""The body of a Loop of unknown length, converted once for all iterations.

A state whose axis changes by as much in each iteration has a size that is a formula of the
iteration's number, `begin + change * iteration`: a dimension as others are, in types, in what is
computed of shapes and in the kernels.  Between the iterations it is the beginning of a tensor with
room for the largest.  A state to which an iteration appends without reading it needs no size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.relay.analysis.told_sizes import spoken_of, upper_end
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Expr, Tuple, Var
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView


@dataclass(frozen=True)
class Appended:
    """What each iteration appends along an axis of a tensor that grows, and does not read."""

    axis: int
    piece: Expr


@dataclass(frozen=True)
class Room:
    """A state whose axis has `begin` elements at first, and `change` more in each iteration."""

    axis: int
    begin: Any
    change: int
    size: Any  # in an iteration
    type: TensorType  # with room for the largest

    def state_type(self, iterations: int = 0) -> TensorType:
        """Return the type of the state in an iteration, or so many iterations later."""
        return _resized(self.type, self.axis, self.size + self.change * iterations)

    def present(self, room: Expr) -> Expr:
        """Return the state, which is the beginning of the tensor with the room."""
        return relay.strided_slice(room, [0], [self.size], axes=[self.axis])

    def first(self, value: Expr) -> Expr:
        """Return the tensor with the room that holds a value."""
        empty = zeros(self.type)
        if self.begin == 0:
            return empty
        return relay.dynamic_update_slice(empty, value, const([0], "int64"), [self.axis])

    def after(self, room: Expr, state: Expr, value: Expr, count: Expr) -> Expr:
        """Return the tensor with a new state in it, where the old one has `count` elements."""
        piece = appended_to(state, value, self.axis)
        if piece is None:
            piece, count = value, const([0], "int64")
        return relay.dynamic_update_slice(room, piece, count, [self.axis])

    def count(self, first: Expr, iterations: Expr) -> Expr:
        """Return the number of elements after so many iterations, (1,), from the first value."""
        begin: Expr
        if is_open(self.begin):
            shape = relay.shape_of(first, "int64")
            begin = relay.strided_slice(shape, [self.axis], [self.axis + 1])
        else:
            begin = const([self.begin], "int64")
        more = relay.multiply(relay.reshape(iterations, (1,)), const([self.change], "int64"))
        count: Expr = relay.add(begin, more)
        return count


@dataclass(frozen=True)
class Body:
    """What a body makes of its states, of which some are `appended` to, and some in a `Room`."""

    states: list[Var]
    again: Expr
    new: list[Expr]
    scans: list[Expr]
    appended: Mapping[int, Appended]
    rooms: Mapping[int, Room] = field(default_factory=dict)
    iteration: SymbolDim | None = None

    def changed(self) -> list[int]:
        """Return the states that change their type otherwise than is known."""
        found = []
        for number, (value, state) in enumerate(zip(self.new, self.states, strict=True)):
            room = self.rooms.get(number)
            wanted = state.checked_type if room is None else room.state_type(1)
            if number not in self.appended and value.checked_type != wanted:
                found.append(number)
        return found


def body_of(
    node: NodeView, control: Sequence[Var], types: Sequence[TensorType], most: int | None
) -> Body:
    """Return the body of a Loop that runs at most `most` times, from the types of its states.

    Raises UnsupportedNode for states that change their type in other ways.
    """
    try:
        body = _with_types(node, control, types, is_trial=True)
    except UnsupportedNode as error:
        if most is None:  # the rows that the file states may say it yet
            raise DependsOnInputs(str(error)) from None
        body = None  # it may need to know that sizes change
    if body is not None and not body.changed():
        return body
    if most is None:
        assert body is not None
        raise _changes(node, body, body.changed()[0], types, most)
    iteration = relay.Dim(f"{_identifier(node.name)}_iteration", 0, max(most, 2) - 1)
    rooms = {} if body is None else _rooms(node, body, types, iteration, most)
    node.sizes.enter(control[0], _element(iteration))
    inner = [rooms[i].state_type() if i in rooms else t for i, t in enumerate(types)]
    found = _converted(node, control, inner, is_trial=False)
    made = Body(found.states, found.again, found.new, found.scans, found.appended, rooms, iteration)
    if made.changed():
        raise _changes(node, made, made.changed()[0], types, most)
    for scan in made.scans:
        if iteration.variables[0] in spoken_of(scan):
            raise node.unsupported(
                f"what one iteration adds to a scan output is {scan.checked_type}, of another size "
                "in each"
            )
    return made


def _with_types(
    node: NodeView, control: Sequence[Var], types: Sequence[TensorType], is_trial: bool
) -> Body:
    """Return a body for states of these types.

    A state without elements has one for now: what is appended to it would else be all there is.
    """
    filled = [TensorType(tuple(1 if d == 0 else d for d in t.shape), t.dtype) for t in types]
    if filled != list(types):
        body = _converted(node, control, filled, is_trial)
        changes = {*body.appended, *body.changed()}
        if all(i in changes for i, (a, b) in enumerate(zip(types, filled, strict=True)) if a != b):
            return body
    return _converted(node, control, types, is_trial)


def _converted(
    node: NodeView, control: Sequence[Var], types: Sequence[TensorType], is_trial: bool
) -> Body:
    assert node.subgraph is not None
    states = [Var(f"state{i}", t) for i, t in enumerate(types)]
    found = node.subgraph(node.attr("body"), [*control, *states], is_trial)
    if any(not isinstance(value, Expr) for value in found):
        raise node.unsupported("its body gives what is no tensor, in a loop of unknown length")
    again, *after = found
    new, scans = after[: len(states)], after[len(states) :]
    return Body(states, again, new, scans, _appended(new, states, found))


def _appended(
    new: Sequence[Expr], states: Sequence[Var], found: Sequence[Expr]
) -> dict[int, Appended]:
    """Return the states to which an iteration appends, and which it does not read."""
    uses = Counter(id(child) for e in post_order(Tuple(tuple(found))) for child in children(e))
    made = {}
    for number, (value, state) in enumerate(zip(new, states, strict=True)):
        if value.checked_type == state.checked_type or not is_call_of(value, "concatenate"):
            continue
        axis = value.attrs.axis % state.tensor_type.rank
        piece = appended_to(state, value, axis)
        if uses[id(state)] != 1 or uses[id(value)] != 1 or is_open(state.tensor_type.shape[axis]):
            continue  # it is read, or a number of its elements is not known
        if piece is not None and not any(map(is_open, piece.tensor_type.shape)):
            made[number] = Appended(axis, piece)
    return made


def appended_to(state: Expr, value: Expr, axis: int) -> Expr | None:
    """Return what a value has behind a state along an axis, if it is one with more behind it."""
    if not is_call_of(value, "concatenate") or value.attrs.axis % state.tensor_type.rank != axis:
        return None
    (parts,) = value.args
    if not isinstance(parts, Tuple) or parts.fields[0] is not state or len(parts.fields) < 2:
        return None
    pieces = list(parts.fields[1:])
    return pieces[0] if len(pieces) == 1 else relay.concatenate(pieces, axis)


def _rooms(
    node: NodeView, body: Body, types: Sequence[TensorType], iteration: Any, most: int
) -> dict[int, Room]:
    """Return the rooms of the states that a first conversion shows to change."""
    made = {}
    for number in body.changed():
        old, new = body.states[number].tensor_type, body.new[number].tensor_type
        axes = [a for a, (d, e) in enumerate(zip(old.shape, new.shape, strict=False)) if d != e]
        if old.rank != new.rank or old.dtype != new.dtype or len(axes) != 1:
            raise _changes(node, body, number, types, most)
        (axis,) = axes
        begin, change = types[number].shape[axis], new.shape[axis] - old.shape[axis]
        if is_open(change) or upper_end(begin) is None:
            raise _changes(node, body, number, types, most)
        low = begin.low if isinstance(begin, SymbolDim) else begin
        if low + change * most < 0:
            raise _changes(node, body, number, types, most)
        room = upper_end(begin) + max(change * most, 0)
        made[number] = Room(
            axis, begin, change, begin + change * iteration, _resized(new, axis, room)
        )
    return made


def _changes(
    node: NodeView, body: Body, number: int, types: Sequence[TensorType], most: int | None
) -> UnsupportedNode:
    """Return the error for a state of which it is not known how large it becomes."""
    before, after = types[number], body.new[number].checked_type
    text = f"what it carries changes from {before} to {after} (state {number})"
    if most is None:
        return DependsOnInputs(
            f"{text}, and nothing bounds how often it runs: bind the trip count to a value with "
            "constants={...} (--bind NAME=VALUE on the command line)"
        )
    return node.unsupported(
        f"{text}, in a loop of unknown length; a state may change by as much along one axis in "
        "each iteration"
    )


def _element(value: Any) -> np.ndarray[Any, Any]:
    """Return a scalar of objects."""
    made = np.empty((), object)
    made[()] = value
    return made


def zeros(type_: TensorType) -> Expr:
    """Return zeros of a type, which may be open."""
    if any(map(is_open, type_.shape)):
        return relay.zeros(type_.shape, type_.dtype)
    return const(np.zeros(type_.shape, type_.dtype))


def _resized(type_: TensorType, axis: int, extent: Any) -> TensorType:
    return TensorType((*type_.shape[:axis], extent, *type_.shape[axis + 1 :]), type_.dtype)


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    return found if found[:1].isalpha() else f"loop_{found}"
