"""RemoveDeadChannels: channels that are constant for every input are computed no longer.

    conv(x, w1) with filters of zeros  ->  conv(x, w1 without them)
    conv(that, w2)                     ->  conv(that, w2 without their rows) + their constant part

Channels flow from a convolution or product through elementwise operators, pools and depthwise
convolutions to the convolutions and products that sum over them.  All tensors on the way form one
group.  A channel of a group is removed when each summing reader sees one value in it (see
`channel_ranges`), which its padding holds too; then its part of the sums is a number, added there.
Values stay bit for bit.  A group that reaches anything else keeps its channels, and a graph without
dead channels is returned as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rebuild
from slipway.transform.graph.integers.channel_ranges import Array, ChannelRange, channel_ranges

SUMS = ("qnn.conv2d_nhwc", "qnn.dense_packed")
DEPTHWISE = "qnn.depthwise_conv2d_nhwc"
ELEMENTWISE = (
    "add", "subtract", "multiply", "maximum", "minimum", "left_shift", "qnn.rescale", "clip",
    "nn.relu", "cast", "copy",
)  # fmt: skip
FIRST_ONLY = ("qnn.lookup", "nn.max_pool2d", "qnn.avg_pool2d", "reshape")


def remove_dead_channels(function: Function) -> Function:
    """Return `function` without channels that are constant; the same object if there are none."""
    exprs = post_order(function.body, into_functions=False)
    if not any(is_call_of(e, *SUMS) for e in exprs):
        return function
    groups = _Groups(function, exprs)
    ranges = channel_ranges(function.body)
    kept = groups.live_channels(ranges)
    if not kept:
        return function
    body = _Rewrite(groups, ranges, kept).run(exprs)
    return Function(function.params, body, None, function.attrs)


@dataclass(eq=False)
class _Group:
    """Tensors that share their channels."""

    channels: int
    parent: _Group | None = None
    blocked: bool = False
    readers: list[Call] = field(default_factory=list)

    def root(self) -> _Group:
        group = self
        while group.parent is not None:
            group = group.parent
        return group


class _Groups:
    """The groups of a graph, by expression id."""

    def __init__(self, function: Function, exprs: list[Expr]) -> None:
        self.of: dict[int, _Group] = {}
        for expr in exprs:
            kind = expr.type
            if isinstance(kind, TensorType) and kind.rank and not isinstance(expr, Constant):
                self.of[id(expr)] = _Group(kind.shape[-1])
        for expr in exprs:
            self._enter(expr)
        self._block(function.body)

    def find(self, expr: Expr) -> _Group | None:
        group = self.of.get(id(expr))
        return None if group is None else group.root()

    def _block(self, expr: Expr) -> None:
        group = self.find(expr)
        if group is not None:
            group.blocked = True

    def _join(self, one: Expr, other: Expr) -> None:
        a, b = self.find(one), self.find(other)
        if a is None or b is None or a is b:
            return
        b.parent = a
        a.blocked |= b.blocked
        a.readers += b.readers

    def _enter(self, expr: Expr) -> None:
        if isinstance(expr, Constant):
            return
        if isinstance(expr, Var) or not isinstance(expr, Call) or not isinstance(expr.op, Op):
            self._block_all(expr)
            return
        name = expr.op.name
        if name in SUMS and isinstance(expr.args[1], Constant) and _ungrouped(expr):
            group = self.find(expr.args[0])
            if group is not None:
                group.readers.append(expr)
        elif name == DEPTHWISE and isinstance(expr.args[1], Constant):
            times = expr.tensor_type.shape[-1] // expr.args[0].tensor_type.shape[-1]
            if times == 1:
                self._join(expr.args[0], expr)
            else:
                self._block(expr.args[0])
                if expr.args[0].tensor_type.shape[-1] != 1:
                    self._block(expr)
        elif name in ELEMENTWISE:
            for argument in expr.args:
                self._follow(argument, expr)
        elif name in FIRST_ONLY:
            self._follow(expr.args[0], expr)
            for argument in expr.args[1:]:
                self._block(argument)
            if getattr(expr.attrs, "layout", "NHWC") != "NHWC":
                self._block(expr)
        else:
            self._block_all(expr)

    def _follow(self, source: Expr, expr: Expr) -> None:
        """The result has the channels of `source`, or `source` has one for all of them."""
        given = source.type
        if not isinstance(given, TensorType) or isinstance(source, Constant):
            if isinstance(source, Constant) and not _is_per_channel(source):
                self._block(expr)
            return
        if given.rank and given.shape[-1:] == expr.tensor_type.shape[-1:]:
            self._join(source, expr)
        else:
            self._block(source)
            if not given.rank or given.shape[-1] != 1:
                self._block(expr)

    def _block_all(self, expr: Expr) -> None:
        self._block(expr)
        for child in children(expr):
            self._block(child)

    def live_channels(self, ranges: dict[int, ChannelRange]) -> dict[int, Array]:
        """Return the indices to keep, for each group (by id) that loses channels."""
        kept: dict[int, Array] = {}
        for group in {id(g.root()): g.root() for g in self.of.values()}.values():
            if group.blocked or not group.readers:
                continue
            dead = np.ones(group.channels, bool)
            for reader in group.readers:
                dead &= _removable(reader, ranges)
            if dead.all():
                dead[0] = False  # a tensor keeps one channel at least
            if dead.any():
                kept[id(group)] = np.flatnonzero(~dead)
        return kept


def _ungrouped(call: Call) -> bool:
    return getattr(call.attrs, "groups", 1) == 1


def _is_per_channel(constant: Constant) -> bool:
    """Return whether a constant has no axis but the last."""
    return all(d == 1 for d in constant.array.shape[:-1])


def _removable(reader: Call, ranges: dict[int, ChannelRange]) -> Array:
    """Which channels of its data have one value for `reader`, on the padding too."""
    known = ranges.get(id(reader.args[0]))
    if known is None:
        return np.zeros(reader.args[0].tensor_type.shape[-1], bool)
    if any(getattr(reader.attrs, "padding", ())):
        inside: Array = np.logical_and(known.constant, known.low == reader.attrs.pad_value)
        return inside
    return known.constant


class _Rewrite:
    def __init__(
        self, groups: _Groups, ranges: dict[int, ChannelRange], kept: dict[int, Array]
    ) -> None:
        self.groups = groups
        self.ranges = ranges
        self.kept = kept
        self.new: dict[int, Expr] = {}
        self.parts: dict[int, Array] = {}  # new sums -> what was added for removed channels

    def run(self, exprs: list[Expr]) -> Expr:
        for expr in exprs:
            self.new[id(expr)] = self._one(expr)
        return self.new[id(exprs[-1])]

    def _keep(self, expr: Expr) -> Array | None:
        group = self.groups.find(expr)
        return None if group is None else self.kept.get(id(group))

    def _one(self, expr: Expr) -> Expr:
        keep = self._keep(expr)
        if is_call_of(expr, *SUMS) and isinstance(expr, Call):
            return self._sum(expr, keep)
        if keep is None or not isinstance(expr, Call):
            made: Expr = rebuild(expr, lambda child: self.new[id(child)])
            if isinstance(made, Call) and is_call_of(made, "add"):
                return self._joined_add(made, list(made.args))
            return made
        with op_registry.span(expr.span):
            args = [self._argument(a, expr, keep) for a in expr.args]
            if is_call_of(expr, DEPTHWISE):
                weight = expr.args[1]
                assert isinstance(weight, Constant)
                args[1] = Constant(np.asarray(weight.array[..., keep], order="C"))
            if is_call_of(expr, "reshape"):
                shape = (*expr.tensor_type.shape[:-1], len(keep))
                return op_registry.make("reshape")(args[0], shape, True)  # type: ignore[no-any-return]
            if is_call_of(expr, "add"):
                return self._joined_add(expr, args)
            return expr.with_args(tuple(args))

    def _argument(self, argument: Expr, expr: Call, keep: Array) -> Expr:
        if isinstance(argument, Constant):
            per_channel = argument.array.ndim and argument.array.shape[-1] > 1
            if not per_channel or is_call_of(expr, *FIRST_ONLY):
                return argument
            return Constant(np.asarray(argument.array[..., keep], order="C"))
        return self.new[id(argument)]

    def _sum(self, call: Call, keep: Array | None) -> Expr:
        inner = self._keep(call.args[0])
        weight = call.args[1]
        if not isinstance(weight, Constant) or (keep is None and inner is None):
            return rebuild(call, lambda child: self.new[id(child)])  # type: ignore[no-any-return]
        array: Any = weight.array
        part: Any = None
        if inner is not None:
            known = self.ranges[id(call.args[0])]
            gone = np.setdiff1d(np.arange(known.low.size), inner)
            sums = array[..., gone, :].astype(np.int64) * known.low[gone, None]
            part = sums.sum(axis=tuple(range(array.ndim - 1)))
            array = array[..., inner, :]
        if keep is not None:
            array = array[..., keep]
            part = None if part is None else part[keep]
        with op_registry.span(call.span):
            data = self.new[id(call.args[0])]
            made = call.with_args((data, Constant(np.asarray(array, order="C"))))
            if part is None or not part.any():
                return made
            dtype = call.tensor_type.dtype
            added: Expr = op_registry.make("add")(made, Constant(part.astype(dtype)))
            self.parts[id(added)] = part
            return added

    def _joined_add(self, call: Call, args: list[Expr]) -> Expr:
        """(sums + part) + bias becomes sums + (part + bias)."""
        lhs, rhs = args
        if id(lhs) in self.parts and isinstance(lhs, Call) and isinstance(rhs, Constant):
            total = rhs.array + self.parts[id(lhs)].astype(rhs.array.dtype)
            return call.with_args((lhs.args[0], Constant(total)))
        same = all(a is b for a, b in zip(args, call.args, strict=True))
        return call if same else call.with_args((lhs, rhs))
