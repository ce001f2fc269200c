"""Values of a graph in blocks of channels, and operators that read them so and stay in blocks.

Elementwise operators, pooling, reductions over the image, joins along the channels: each takes the
layout that its operand is held in.  A plain operand is brought into it where that pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from slipway.backends.cpu.lowering.blocked_value import (
    Blocked,
    as_plain_value,
    filled,
    plain_layout,
    reshaped,
    transformed,
)
from slipway.backends.cpu.lowering.layout_choice import best_block, block_size
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Tuple
from slipway.relay.layout import parse_layout
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.types import TensorType
from slipway.relay.visit import rebuild
from slipway.target.costs import ANY_CORE, Costs

_POOLS = tuple(
    f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "global_avg", "global_max") for n in SPATIAL
)
_REDUCTIONS = ("mean", "sum", "max", "min")
# They give a finite number for zero, and for each other's results.
_FINITE = {
    "add", "cast", "subtract", "multiply", "maximum", "minimum", "negative", "clip", "sigmoid",
    "tanh",
    "nn.relu", "nn.leaky_relu",
}  # fmt: skip


class BlockedValues:
    """The values of a graph while it is rewritten: plain ones, and those that are held in blocks.

    Tables know expressions by their identity.
    """

    costs: Costs = ANY_CORE

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.plain: dict[int, Expr] = {}
        self.blocked: dict[int, Blocked] = {}
        self.packed: dict[tuple[int, str], Expr] = {}
        self.moved: dict[tuple[int, str], tuple[Expr, Expr]] = {}  # what was moved, and the result
        self.made: list[Expr] = []

    def as_plain(self, expr: Expr) -> Expr:
        """Return the value without blocks; one expression for all its readers."""
        known = self.plain.get(id(expr))
        if known is None:
            if id(expr) in self.blocked:
                known = as_plain_value(self.blocked[id(expr)])
            else:
                known = rebuild(expr, self.as_plain)
            self.plain[id(expr)] = known
        return known

    def as_blocked(self, expr: Expr, layout: str) -> Expr:
        """The value in `layout`: as it is, moved between blocks, or from the plain value.

        One expression for all its readers.
        """
        found = self.blocked.get(id(expr))
        if found is not None and found.layout == layout:
            return found.expr
        key = id(expr), layout
        if key not in self.moved:
            divides = expr.tensor_type.shape[1] % parse_layout(layout).block_of("C") == 0
            if found is None or found.is_filled or not divides:
                plain = plain_layout(expr.tensor_type.rank)
                moved = filled(self.as_plain(expr), plain, layout)
            else:
                moved = transformed(found.expr, found.layout, layout)
            self.moved[key] = expr, moved
        return self.moved[key][1]

    def pack(self, weight: Expr, source: str, target: str) -> Expr:
        """The weight in another layout, padded; one expression for all its readers."""
        key = id(weight), target
        if key not in self.packed:
            self.packed[key] = filled(self.as_plain(weight), source, target)
        return self.packed[key]

    def keep(self, expr: Constant) -> Constant:
        """Hold on to a new constant: tables here know expressions by their identity."""
        self.made.append(expr)
        return expr


class BlockedReaders(BlockedValues):
    """The rules of operators that take the layout of what they read."""

    def readers_of_blocks(self) -> dict[str, Callable[[Call], Blocked | Expr | None]]:
        """Return the rules by operator; pointwise ones have `elementwise`."""
        return {
            "nn.bias_add": self.bias_add,
            "nn.float_parts": self.float_parts,
            "concatenate": self.concatenate,
            "nn.contrib_interleave": self.interleave,
            "image.resize": self.resize,
            **dict.fromkeys(_POOLS, self.pool),
            **dict.fromkeys(_REDUCTIONS, self.reduction),
        }

    def float_parts(self, call: Call) -> Blocked | None:
        """Parts along the channels of whole blocks: so many blocks of each."""
        held = self.blocked.get(id(call.args[0]))
        attrs: Any = call.attrs
        if held is None or held.is_filled or attrs.axis != 1:
            return None
        return Blocked(call.with_args((held.expr,)), held.layout, held.channels * len(attrs.parts))

    def elementwise(self, call: Call) -> Blocked | None:
        """Broadcasts over equal layouts: operands of full rank in blocks, scalars as they are."""
        out = call.tensor_type
        held = [a for a in call.args if id(a) in self.blocked]
        if not held or out.rank != held[0].tensor_type.rank:
            return None
        whole = next((a for a in held if a.tensor_type.shape == out.shape), held[0])
        layout = self.blocked[id(whole)].layout
        filled = out.shape[1] % parse_layout(layout).block_of("C") != 0
        if filled and not (call.op.name in _FINITE or self.divides_by_scalar(call)):
            return None
        args: list[Expr] = []
        for argument in call.args:
            converted = self.operand(argument, layout, out)
            if converted is None:
                return None
            args.append(converted)
        return Blocked(call.with_args(tuple(args)), layout, out.shape[1])

    @staticmethod
    def divides_by_scalar(call: Call) -> bool:
        """Return whether a call divides by one number, which leaves zeros finite."""
        return call.op.name == "divide" and call.args[1].tensor_type.size == 1

    def operand(self, argument: Expr, layout: str, out: TensorType) -> Expr | None:
        """Return an operand of a pointwise operator for `layout`; None where it has none."""
        given = argument.tensor_type
        if given.size == 1 and (given.shape != out.shape or id(argument) not in self.blocked):
            plain = self.as_plain(argument)
            return plain if given.rank == 0 else reshaped(plain, ())
        shape = (1,) * (out.rank - given.rank) + given.shape
        if shape[1] == out.shape[1]:
            if given.rank == out.rank:
                return self.as_blocked(argument, layout)
            plain = self.as_plain(argument)
            return filled(reshaped(plain, shape), plain_layout(out.rank), layout)
        return None  # broadcast along the channels: the plain layout serves better

    def bias_add(self, call: Call) -> Blocked | None:
        """Return the sum with a bias in the same blocks."""
        held = self.blocked.get(id(call.args[0]))
        if held is None or call.attrs.axis not in (1, 1 - len(held.plain)):
            return None
        ones = (1,) * (len(held.plain) - 2)
        bias = filled(
            reshaped(self.as_plain(call.args[1]), (1, -1, *ones)), held.plain, held.layout
        )
        added = op_registry.get("add")(held.expr, bias, span=call.span)
        return Blocked(added, held.layout, held.channels)

    def pool(self, call: Call) -> Blocked | None:
        """Return a pool of data in blocks, whose windows are whole vectors."""
        held = self.blocked.get(id(call.args[0])) or self.worth_blocking(call)
        if held is None or call.attrs.layout != held.plain:
            return None
        attrs = call.attrs.replace(layout=held.layout)
        return Blocked(Call(call.op, (held.expr,), attrs, call.span), held.layout, held.channels)

    def worth_blocking(self, call: Call) -> Blocked | None:
        """The plain data of a pool in blocks, where its windows read each element often enough.

        Along an image's rows each tap would ask of each lane whether it is in the padding; the
        fewer lanes, the more vectors do so.  Not where windows take fewer steps by their rows first
        (`schedules.pool.rows`): of a volume, or too large for registers.
        """
        attrs, data = call.attrs, call.args[0].tensor_type
        if not hasattr(attrs, "pool_size") or data.dtype != "float32" or data.rank > 5:
            return None
        block = block_size(data.shape[1], self.lanes)
        if block < 4 or 4 * prod(attrs.pool_size) < self.lanes * prod(attrs.strides):
            return None
        *others, last = attrs.pool_size
        row = call.tensor_type.shape[-1]
        is_narrow, is_large = block < self.lanes, sum(attrs.pool_size) > self.costs.run_taps
        if (data.rank == 5 or is_large) and not is_open(row):
            steps = (prod(others) * attrs.strides[-1] + last) * -(-row // self.lanes)
            gain = 1 if data.rank == 5 or is_narrow else 2  # than whole vectors in memory's order
            if gain * steps * block < prod(attrs.pool_size) * row:
                return None
        layout = f"{plain_layout(data.rank)}{block}c"
        return Blocked(self.as_blocked(call.args[0], layout), layout, data.shape[1])

    def resize(self, call: Call) -> Blocked | None:
        """A resampling of spatial axes, whose elements are whole vectors in blocks.

        Interpolation pays for bringing plain data into blocks: in a row each lane has its own
        places and weights.
        """
        held, data = self.blocked.get(id(call.args[0])), call.args[0].tensor_type
        attrs = call.attrs
        if call.tensor_type.shape[:2] != data.shape[:2]:
            return None
        if held is None:
            several = 3 <= data.rank <= 5 and data.shape[1] >= 8 and data.dtype == "float32"
            if attrs.method == "nearest_neighbor" or not several:
                return None
            layout = f"{plain_layout(data.rank)}{best_block(data.shape[1], self.lanes)}c"
            held = Blocked(self.as_blocked(call.args[0], layout), layout, data.shape[1])
        scales = (*attrs.scales, 1.0) if attrs.scales else ()
        attrs = attrs.replace(size=(0, 0, *attrs.size[2:], 0), scales=scales)
        return Blocked(Call(call.op, (held.expr,), attrs, call.span), held.layout, held.channels)

    def reduction(self, call: Call) -> Blocked | None:
        """A reduction over spatial axes only, which stay where they are."""
        held = self.blocked.get(id(call.args[0]))
        axes = getattr(call.attrs, "axis", None)
        if held is None or axes is None or not call.attrs.keepdims or call.attrs.exclude:
            return None
        rank = len(held.plain)
        normal = {a % rank for a in (axes if isinstance(axes, Sequence) else (axes,))}
        if normal & {0, 1}:
            return None
        attrs = call.attrs.replace(axis=tuple(sorted(normal)))
        return Blocked(Call(call.op, (held.expr,), attrs, call.span), held.layout, held.channels)

    def concatenate(self, call: Call) -> Blocked | None:
        """Return a join along the channels of values in equal, whole blocks."""
        (joined,) = call.args
        if not isinstance(joined, Tuple) or call.attrs.axis not in (1, 1 - call.tensor_type.rank):
            return None
        held = [self.blocked.get(id(f)) for f in joined.fields]
        found = [h for h in held if h is not None and not h.is_filled]
        layouts = {h.layout for h in found}
        if len(layouts) != 1 or len(found) < len(held):
            return None
        fields = Tuple(tuple(h.expr for h in found))
        made = Call(call.op, (fields,), call.attrs.replace(axis=1), call.span)
        return Blocked(made, layouts.pop(), call.tensor_type.shape[1])

    def interleave(self, call: Call) -> Blocked | None:
        """Pixels put in order, as whole vectors of channels; padding between them is zeros."""
        (parts,) = call.args
        assert isinstance(parts, Tuple)
        held = [h for h in (self.blocked.get(id(f)) for f in parts.fields) if h is not None]
        if 2 * len(held) <= len(parts.fields):
            return None
        layout, together = held[0].layout, call.attrs.together
        channels = call.tensor_type.shape[1]
        if together > 1 and channels % parse_layout(layout).block_of("C"):
            return None  # blocks of two remainders
        fields = Tuple(tuple(self.as_blocked(f, layout) for f in parts.fields))
        return Blocked(Call(call.op, (fields,), call.attrs, call.span), layout, channels)
