"""FlattenAtrousConv: between space_to_batch_nd and batch_to_space_nd a convolution is dilated.

    nn.batch_to_space_nd(nn.relu(nn.conv2d(nn.space_to_batch_nd(%x, b), %w)), b)
        ->  nn.relu(nn.conv2d(%x, %w, dilation=b))

TensorFlow writes dilated convolutions so.  Both operators are compositions here, so that it is
those that are looked for: axes reshaped into blocks, transposed, and reshaped again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.types import TensorType
from slipway.relay.visit import rewrite, use_counts
from slipway.transform.graph.infer_type import infer_type

_INTEGER = ("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc")  # they have one layout, and a zero
_CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", *_INTEGER)
Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class _Batched:
    """Batches that blocks of `data` with `pads` around it were made into."""

    data: Expr
    blocks: tuple[int, ...]
    pads: Pairs
    value: float  # in the pads


def flatten_atrous_conv(function: Function) -> Function:
    """Return a typed `function` with the dilated convolutions that it has in batches."""
    counts = use_counts(function)
    made: dict[int, Expr] = {}

    def rule(expr: Any) -> Expr | None:
        if is_call_of(expr, "strided_slice") and id(expr.args[0]) in made:
            return _on_chain(expr.args[0], counts, lambda conv: _cropped(conv, expr))
        blocks = _blocks_of(expr)
        if blocks is None:
            return None
        found = _on_chain(expr.args[0].args[0].args[0], counts, lambda c: _dilated(c, blocks))
        if found is not None:
            made[id(found)] = found
        return found

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _on_chain(
    expr: Any, counts: Mapping[int, int], change: Callable[[Call], Expr | None]
) -> Expr | None:
    """Return operators of one position over the convolution that `change` makes of theirs."""
    chain: list[Call] = []
    while not is_call_of(expr, *_CONVS):
        if counts.get(id(expr), 1) > 1 or not _keeps_batches(expr):
            return None
        chain.append(expr)
        expr = expr.args[0]
    found = change(expr) if counts.get(id(expr), 1) == 1 else None
    return None if found is None else _over(found, chain)


def _keeps_batches(expr: Any) -> bool:
    """Return whether an operator does the same to every batch and position."""
    if not isinstance(expr, Call) or not expr.args or not isinstance(expr.type, TensorType):
        return False
    if is_call_of(expr, "nn.bias_add"):
        axis: int = expr.attrs.axis
        return axis in (-1, expr.type.rank - 1)
    if not isinstance(expr.op, Op) or not (
        is_call_of(expr, "qnn.rescale") or op_registry.is_pointwise(expr)
    ):
        return False
    if expr.args[0].type is None or expr.args[0].tensor_type.shape != expr.type.shape:
        return False
    others = [a.tensor_type.shape for a in expr.args[1:]]
    return all(all(extent == 1 for extent in shape[:-1]) for shape in others)


def _dilated(conv: Call, blocks: tuple[int, ...]) -> Expr | None:
    """Return the convolution of what the batches were made of; None where it is none."""
    attrs: Any = conv.attrs
    spatial = len(attrs.strides)
    layout = "N" + "DHW"[-spatial:] + "C"
    if not is_call_of(conv, *_INTEGER) and {attrs.data_layout, attrs.out_layout or layout} != {
        layout
    }:
        return None
    before: list[Call] = []  # from batches to the convolution's data
    data: Any = conv.args[0]
    while isinstance(data, Call) and _is_of_one_number(data):
        before.append(data)
        data = data.args[0]
    batched = _batched(data)
    if batched is None or batched.blocks != blocks or len(blocks) > spatial:
        return None
    if any(attrs.padding) or any(step != 1 for step in attrs.strides):
        return None
    if min(map(min, batched.pads)) < 0:
        return None
    if any(map(any, batched.pads)) and _padded_with(batched, before) != getattr(
        attrs, "pad_value", 0
    ):
        return None
    pads = [*batched.pads, *[(0, 0)] * (spatial - len(blocks))]
    dilation = [d * b for d, b in zip(attrs.dilation, (*blocks, 1, 1), strict=False)]
    return _with(conv, _over(batched.data, before), pads, tuple(dilation))


def _over(data: Expr, calls: Sequence[Call]) -> Expr:
    for call in reversed(calls):
        data = Call(call.op, (data, *call.args[1:]), call.attrs, call.span)
    return data


def _is_of_one_number(call: Call) -> bool:
    """Return whether an operator does to each element what it does to a number."""
    return (
        isinstance(call.op, Op)
        and isinstance(call.type, TensorType)
        and op_registry.is_pointwise(call)
        and all(isinstance(a, Constant) and a.tensor_type.rank == 0 for a in call.args[1:])
    )


def _padded_with(batched: _Batched, before: Sequence[Call]) -> float:
    """Return what a convolution of batches reads where they are padded."""
    kind = batched.data.tensor_type.dtype
    value = op_registry.const(batched.value, kind)
    return float(interpret(infer_type(Function((), _over(value, before)))))


def _cropped(conv: Call, part: Call) -> Expr | None:
    """Return a convolution that is padded by as much less as `part` cuts off; None for none."""
    attrs, spatial = conv.attrs, len(conv.attrs.strides)
    cut, kept, kind = part.attrs, part.tensor_type.shape, conv.tensor_type
    if getattr(cut, "axes", None) or any(step != 1 for step in cut.strides or ()):
        return None
    after = [s - b - k for s, b, k in zip(kind.shape, cut.begin, kept, strict=True)]
    if cut.begin[0] or cut.begin[-1] or after[0] or after[-1]:
        return None
    pads = [
        (attrs.padding[i] - cut.begin[1 + i], attrs.padding[i + spatial] - after[1 + i])
        for i in range(spatial)
    ]
    return None if min(map(min, pads)) < 0 else _with(conv, conv.args[0], pads, attrs.dilation)


def _with(conv: Call, data: Expr, pads: Pairs, dilation: tuple[int, ...]) -> Call:
    padding = (*(before for before, _ in pads), *(after for _, after in pads))
    attrs: Any = conv.attrs
    attrs = attrs.replace(padding=padding, dilation=dilation)
    return Call(conv.op, (data, *conv.args[1:]), attrs, conv.span)


def _reordered(expr: Any) -> tuple[Expr, tuple[int, ...], tuple[int, ...]] | None:
    """Return what is reshaped, transposed and reshaped: its first shape and the order of axes."""
    if not is_call_of(expr, "reshape") or not is_call_of(expr.args[0], "transpose"):
        return None
    transpose = expr.args[0]
    inner = transpose.args[0]
    if not is_call_of(inner, "reshape"):
        return None
    kinds = (inner.args[0].type, inner.type, expr.type)
    if any(not isinstance(kind, TensorType) or has_open(kind) for kind in kinds):
        return None
    axes = tuple(transpose.attrs.axes or reversed(range(inner.tensor_type.rank)))
    return inner.args[0], inner.tensor_type.shape, axes


def _batched(expr: Any) -> _Batched | None:
    """Return what a space_to_batch_nd was given."""
    found = _reordered(expr)
    if found is None:
        return None
    data, parts, axes = found
    rank = data.tensor_type.rank
    count = len(parts) - rank
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    if count < 1 or axes != (*inner, 0, *outer, *range(1 + 2 * count, len(parts))):
        return None
    batch, *sizes = data.tensor_type.shape
    blocks = tuple(parts[i] for i in inner)
    cut = [extent for s, b in zip(sizes, blocks, strict=False) for extent in (s // b, b)]
    wanted = [prod(blocks) * batch, *cut[::2], *sizes[count:]]
    if parts != (batch, *cut, *sizes[count:]) or expr.tensor_type.shape != tuple(wanted):
        return None
    if is_call_of(data, "nn.pad") and data.attrs.pad_mode == "constant":
        first, *around = data.attrs.pad_width
        if any(map(any, (first, *around[count:]))):
            return None
        return _Batched(data.args[0], blocks, around[:count], float(data.attrs.pad_value))
    return _Batched(data, blocks, [(0, 0)] * count, 0.0)


def _blocks_of(expr: Any) -> tuple[int, ...] | None:
    """Return the blocks of a batch_to_space_nd, without its crops."""
    found = _reordered(expr)
    if found is None:
        return None
    data, parts, axes = found
    count = len(parts) - data.tensor_type.rank
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i))]
    if count < 1 or axes != (*order, *range(2 * count + 1, len(parts))):
        return None
    blocks = parts[:count]
    batches, *sizes = data.tensor_type.shape
    batch = batches // prod(blocks)
    large = (s * b for s, b in zip(sizes, blocks, strict=False))
    if parts != (*blocks, batch, *sizes) or expr.tensor_type.shape != (
        batch, *large, *sizes[count:]
    ):  # fmt: skip
        return None
    return tuple(blocks)
