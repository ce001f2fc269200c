"""Shapes: reshaped, transposed, joined, repeated, padded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, shape_of


def new_shape(node: NodeView, shape: Sequence[int], code: Sequence[int]) -> list[int]:
    """Return what the codes of `Reshape` make of a shape.

    0 keeps a dimension, -1 is what is left, -2 all that remain, -3 the product of the next two,
    -4 divides one into the two numbers that follow.
    """
    made: list[int] = []
    at, i = 0, 0
    while i < len(code):
        c = code[i]
        if c == 0:
            made.append(shape[at])
            at += 1
        elif c == -2:
            made += shape[at:]
            at = len(shape)
        elif c == -3:
            made.append(shape[at] * shape[at + 1])
            at += 2
        elif c == -4:
            first, second = code[i + 1], code[i + 2]
            first = shape[at] // second if first == -1 else first
            made += [first, shape[at] // first]
            at, i = at + 1, i + 2
        else:
            made.append(c)
            at += 1
        i += 1
    if -1 in made:
        known = math.prod(d for d in made if d != -1)
        made[made.index(-1)] = math.prod(shape) // max(known, 1)
    if math.prod(made) != math.prod(shape):
        raise node.unsupported(f"its shape {tuple(code)} does not fit {tuple(shape)}")
    return made


@converter("Reshape", "reshape")
def _reshape(node: NodeView) -> Any:
    code = node.ints("shape") or node.ints("target_shape")
    if node.flag("reverse"):
        made = new_shape(node, node.shape[::-1], _from_the_right(code))[::-1]
    else:
        made = new_shape(node, node.shape, code)
    return relay.reshape(node.data, tuple(made))


def _from_the_right(code: list[int]) -> list[int]:
    """Return the codes from the right; the two numbers after -4 stay behind it."""
    groups: list[list[int]] = []
    i = 0
    while i < len(code):
        size = 3 if code[i] == -4 else 1
        group = code[i : i + size]
        groups.append([-4, *group[:0:-1]] if size == 3 else group)
        i += size
    return [c for group in reversed(groups) for c in group]


@converter("_npx_reshape", "_np_reshape", "_npi_reshape")
def _numpy_reshape(node: NodeView) -> Any:
    code = node.ints("newshape")
    if any(c < -1 for c in code):
        raise node.unsupported(f"its newshape is {tuple(code)}")
    kept = [node.shape[i] if c == 0 else c for i, c in enumerate(code)]
    return relay.reshape(node.data, tuple(kept))


@converter("reshape_like")
def _reshape_like(node: NodeView) -> Any:
    shape, other = node.shape, shape_of(node[1])
    begin, end = node.integer("lhs_begin", 0), node.value("lhs_end")
    stop = len(shape) if end is None else int(end)
    first, last = node.integer("rhs_begin", 0), node.value("rhs_end")
    till = len(other) if last is None else int(last)
    return relay.reshape(node.data, (*shape[:begin], *other[first:till], *shape[stop:]))


@converter("Flatten", "flatten", "_npx_flatten")
def _flatten(node: NodeView) -> Any:
    return relay.reshape(node.data, (node.shape[0], math.prod(node.shape[1:])))


@converter("transpose", "_np_transpose", "_npi_transpose")
def _transpose(node: NodeView) -> Any:
    return relay.transpose(node.data, node.ints("axes") or None)


@converter("SwapAxis", "SwapAxes", "swapaxes", "_npi_swapaxes")
def _swap(node: NodeView) -> Any:
    order = list(range(len(node.shape)))
    a, b = node.axis("dim1", 0), node.axis("dim2", 0)
    order[a], order[b] = order[b], order[a]
    return relay.transpose(node.data, order)


@converter("expand_dims", "_npi_expand_dims")
def _expand(node: NodeView) -> Any:
    return relay.expand_dims(node.data, node.integer("axis"))


@converter("squeeze", "_np_squeeze", "_npi_squeeze")
def _squeeze(node: NodeView) -> Any:
    axes = node.ints("axis") or [i for i, d in enumerate(node.shape) if d == 1]
    if len(axes) == len(node.shape) and node.op == "squeeze":
        return relay.reshape(node.data, (1,))
    return relay.squeeze(node.data, axes) if axes else node.data


@converter("Concat", "concat", "_npi_concatenate", "_rnn_param_concat")
def _concat(node: NodeView) -> Any:
    if node.op == "_npi_concatenate" and not node.has("axis"):
        return relay.concatenate([relay.reshape(v, (-1,)) for v in node.inputs], axis=0)
    axis = node.axis("axis" if node.op == "_npi_concatenate" else "dim", 1)
    return relay.concatenate(node.inputs, axis=axis)


@converter("stack", "_npi_stack")
def _stack(node: NodeView) -> Any:
    return relay.stack(node.inputs, node.axis("axis", 0, len(node.shape) + 1))


@converter("tile", "_npi_tile")
def _tile(node: NodeView) -> Any:
    return relay.tile(node.data, tuple(node.ints("reps")))


@converter("repeat", "_npi_repeats")
def _repeat(node: NodeView) -> Any:
    data, axis = node.data, node.value("axis")
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    return relay.repeat(data, node.integer("repeats"), int(axis))


@converter("Pad", "pad")
def _pad(node: NodeView) -> Any:
    flat = node.ints("pad_width")
    pairs = [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
    mode = node.text("mode", "constant")
    if mode == "constant":
        return relay.nn.pad(node.data, pairs, node.real("constant_value", 0.0))
    return relay.nn.pad(node.data, pairs, pad_mode=mode)


@converter("reverse", "flip", "_npi_flip")
def _reverse(node: NodeView) -> Any:
    made = node.data
    for axis in node.ints("axis"):
        made = relay.reverse(made, axis)
    return made


@converter("broadcast_axis", "broadcast_axes")
def _broadcast_axis(node: NodeView) -> Any:
    shape = list(node.shape)
    for axis, size in zip(node.ints("axis"), node.ints("size"), strict=True):
        shape[axis] = size
    return relay.broadcast_to(node.data, tuple(shape))


@converter("broadcast_to", "_npi_broadcast_to", "_np_broadcast_to")
def _broadcast_to(node: NodeView) -> Any:
    given = node.ints("shape")
    own = (*[1] * (len(given) - len(node.shape)), *node.shape)
    return relay.broadcast_to(
        node.data, tuple(o if g == 0 else g for g, o in zip(given, own, strict=True))
    )


@converter("broadcast_like")
def _broadcast_like(node: NodeView) -> Any:
    shape, other = list(node.shape), shape_of(node[1])
    if not node.has("lhs_axes"):
        return relay.broadcast_to(node.data, other)
    for mine, its in zip(node.ints("lhs_axes"), node.ints("rhs_axes"), strict=True):
        shape[mine] = other[its]
    return relay.broadcast_to(node.data, tuple(shape))


@converter("diag")
def _diag(node: NodeView) -> Any:
    if len(node.shape) != 1 or node.integer("k", 0) != 0:
        raise node.unsupported("only the main diagonal of a vector is written")
    return relay.matrix_set_diag(relay.zeros((node.shape[0], node.shape[0]), node.dtype), node.data)
