"""Operators on sequences and optionals: all done while the model is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.binding import inputs_of
from slipway.frontends.budget import take_nodes
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.reader import DTYPE_OF
from slipway.frontends.onnx.values import Optional, Sequence
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const


def _sequence(node: NodeView, index: int = 0) -> Sequence:
    given = node.inputs[index] if index < len(node.inputs) else None
    if isinstance(given, Optional):
        given = given.value
    if not isinstance(given, Sequence):
        raise node.unsupported(f"input {index} must be a sequence")
    return given


def _known(node: NodeView, index: int, what: str) -> np.ndarray[Any, Any]:
    """Return integers that decide which elements a sequence has; a range of them is not enough."""
    given = node.input(index)
    found = node.sizes.of(given)
    if found is None or any(map(is_open, found.flat)):
        names = [name for name in inputs_of(given) if name in node.model_inputs]
        bound = f" of {', '.join(map(repr, names))}" if names else ""
        raise node.unsupported(
            f"{what} (input {index}) depends on what is not known while the file is read, where "
            f"sequences exist: bind the value{bound} with constants={{...}} (--bind NAME=VALUE on "
            "the command line)"
        )
    return found.astype(np.int64)


def _position(node: NodeView, index: int, sequence: Sequence) -> int:
    return sequence.position(int(_known(node, index, "the position").reshape(-1)[0]))


@converter("SequenceEmpty")
def sequence_empty(node: NodeView) -> Any:
    """No elements yet."""
    return Sequence((), DTYPE_OF.get(node.attr("dtype", 1), ""))


@converter("SequenceConstruct")
def sequence_construct(node: NodeView) -> Any:
    """The inputs in order."""
    items = tuple(node.input(i) for i in range(len(node.inputs)))
    return Sequence(items, items[0].tensor_type.dtype)


@converter("SequenceInsert")
def sequence_insert(node: NodeView) -> Any:
    """One more element, at the end or before a position."""
    sequence, item = _sequence(node), node.input(1)
    size = len(sequence.items)
    position = int(_known(node, 2, "the position").reshape(-1)[0]) if node.has(2) else size
    if not -size <= position <= size:
        raise node.unsupported(f"the position {position} is outside a sequence of {size}")
    position = position + size if position < 0 else position
    items = (*sequence.items[:position], item, *sequence.items[position:])
    return Sequence(items, item.tensor_type.dtype)


@converter("SequenceErase")
def sequence_erase(node: NodeView) -> Any:
    """One element less."""
    sequence = _sequence(node)
    position = _position(node, 1, sequence) if node.has(1) else len(sequence.items) - 1
    return Sequence(sequence.items[:position] + sequence.items[position + 1 :], sequence.dtype)


@converter("SequenceAt")
def sequence_at(node: NodeView) -> Any:
    """The element at a position."""
    sequence = _sequence(node)
    return sequence.items[_position(node, 1, sequence)]


@converter("SequenceLength")
def sequence_length(node: NodeView) -> Any:
    """How many elements there are."""
    return const(len(_sequence(node).items), "int64")


@converter("SplitToSequence")
def split_to_sequence(node: NodeView) -> Any:
    """Parts along an axis: of one element, of a given length, or of given lengths."""
    x, axis = node.input(0), node.attr("axis", 0) % max(node.rank(), 1)
    extent = node.type().shape[axis]
    keep = bool(node.attr("keepdims", 1)) or node.has(1)
    if not node.has(1):
        take_nodes(extent)
        lengths = [1] * extent
    else:
        given = _known(node, 1, "the lengths")
        if given.ndim:
            lengths = [int(n) for n in given]
        else:
            chunk = int(given)
            if chunk <= 0:
                raise node.unsupported(f"the parts have the length {chunk}")
            take_nodes(-(-extent // chunk))
            lengths = [min(chunk, extent - at) for at in range(0, extent, chunk)]
    if sum(lengths) != extent or min(lengths, default=0) < 0:
        raise node.unsupported(f"the lengths {lengths} do not add up to the extent {extent}")
    items, at = [], 0
    for length in lengths:
        part = relay.strided_slice(x, [at], [at + length], axes=[axis])
        items.append(part if keep else relay.squeeze(part, [axis]))
        at += length
    return Sequence(tuple(items), node.type().dtype)


@converter("ConcatFromSequence")
def concat_from_sequence(node: NodeView) -> Any:
    """The elements joined along an axis, or stacked along a new one."""
    items, axis = list(_sequence(node).items), node.attr("axis")
    if not items:
        raise node.unsupported("the sequence is empty")
    if node.attr("new_axis", 0):
        return relay.stack(items, axis)
    return items[0] if len(items) == 1 else relay.concatenate(items, axis)


@converter("Optional")
def optional(node: NodeView) -> Any:
    """An input that may be missing."""
    return Optional(node.inputs[0] if node.inputs else None)


@converter("OptionalHasElement")
def optional_has_element(node: NodeView) -> Any:
    """Whether it is there."""
    given = node.inputs[0] if node.inputs else None
    there = given.value is not None if isinstance(given, Optional) else given is not None
    return const(there, "bool")


@converter("OptionalGetElement")
def optional_get_element(node: NodeView) -> Any:
    """What is there."""
    given = node.inputs[0] if node.inputs else None
    found = given.value if isinstance(given, Optional) else given
    if found is None:
        raise node.unsupported("the optional is empty")
    return found
