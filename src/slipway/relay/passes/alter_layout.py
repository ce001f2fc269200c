"""Carry blocked channel layouts through a graph: NCHW becomes NCHW{c}c.

    nn.conv2d(%x, %w)  ->  layout_transform(
                               nn.contrib_conv2d_nchwc(layout_transform(%x, NCHW, NCHW16c),
                                                       layout_transform(%w, OIHW, OIHW16i16o)),
                               NCHW16c, NCHW)

A value is kept blocked as long as its readers can take it so: elementwise operators, sums of equal
layouts, pooling, joins along the channels.  Transforms remain only where plain readers meet blocked
values; those of constant kernels are folded away by FoldConstant.

Channels that are no multiple of a vector are filled up with zeros to whole vectors where that takes
fewer of them: 40 channels are 3 vectors of 16, or 5 of 8.  Only operators that make finite numbers
of finite numbers work on what is filled up; everything else gets the channels there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple
from slipway.relay.layout import parse_layout
from slipway.relay.op_registry import OpPattern
from slipway.relay.passes.winograd_choice import winograd_tile
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order, rebuild

PLAIN = "NCHW"
_POOLS = ("nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d")
_REDUCTIONS = ("mean", "sum", "max", "min")
# They give a finite number for zero, and for each other's results.
_FINITE = {
    "add", "subtract", "multiply", "maximum", "minimum", "negative", "clip", "sigmoid", "tanh",
    "nn.relu", "nn.leaky_relu",
}  # fmt: skip


@dataclass(frozen=True)
class _Blocked:
    """A value in blocks; `channels` of those in it are the graph's, the others fill it up."""

    expr: Expr
    layout: str
    channels: int

    @property
    def block(self) -> int:
        return parse_layout(self.layout).block_of("C")

    @property
    def is_filled(self) -> bool:
        return self.channels % self.block != 0


def alter_layout(
    function: Function,
    lanes: int,
    winograd: bool = False,
    panel_units: Callable[[int], int] | None = None,
) -> Function:
    """Return `function` with its float32 convolutions on blocks of at most `lanes` channels.

    The result computes the same values; sums over channels are taken in another order.  With
    `winograd`, 3x3 convolutions of stride 1 use F(4x4, 3x3) or F(2x2, 3x3) where it saves time.
    Products with constant weights take those in blocks of at most ``panel_units(rows of data)``
    units, if given.
    """
    lanes = max(4, lanes)
    return _AlterLayout(lanes, winograd, panel_units or (lambda rows: lanes)).run(function)


def block_size(channels: int, lanes: int) -> int:
    """Return the largest power of two that divides `channels`, at most `lanes`; 1 if odd."""
    block = 1
    while block * 2 <= lanes and channels % (block * 2) == 0:
        block *= 2
    return block


def best_block(channels: int, lanes: int) -> int:
    """Return the block, at most `lanes`, in which `channels` take the fewest vectors.

    A vector of few lanes takes as long as one of many; of equals, the smaller block.  1 for fewer
    channels than the smallest vector has.
    """
    if channels < 4:
        return block_size(channels, lanes)
    sizes = [b for b in (4, 8, 16, 32, 64) if b <= lanes]
    return min(sizes, key=lambda b: (-(-channels // b), b))


class _AlterLayout:
    def __init__(self, lanes: int, winograd: bool, panel_units: Callable[[int], int]) -> None:
        self.lanes = lanes
        self.winograd = winograd
        self.panel_units = panel_units
        self.plain: dict[int, Expr] = {}
        self.blocked: dict[int, _Blocked] = {}
        self.packed: dict[tuple[int, str], Expr] = {}
        self.rules: dict[str, Callable[[Call], _Blocked | Expr | None]] = {
            "nn.conv2d": self.conv2d,
            "nn.dense": self.dense,
            "nn.bias_add": self.bias_add,
            "concatenate": self.concatenate,
            **dict.fromkeys(_POOLS, self.pool),
            **dict.fromkeys(_REDUCTIONS, self.reduction),
        }

    def run(self, function: Function) -> Function:
        for expr in post_order(function, into_functions=False):
            if expr is function:
                break
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                result = self.visit_call(expr)
                if isinstance(result, _Blocked):
                    self.blocked[id(expr)] = result
                    continue
                if result is not None:
                    self.plain[id(expr)] = result
                    continue
            if not isinstance(expr, Tuple):  # a Tuple is rebuilt when a plain reader asks for it
                self.plain[id(expr)] = rebuild(expr, self.as_plain)
        body = self.as_plain(function.body)
        return (
            function
            if body is function.body
            else Function(function.params, body, None, function.attrs)
        )

    # -- values --------------------------------------------------------------------------------

    def as_plain(self, expr: Expr) -> Expr:
        known = self.plain.get(id(expr))
        if known is None:
            if id(expr) in self.blocked:
                known = _plain(self.blocked[id(expr)])
            else:
                known = rebuild(expr, self.as_plain)
            self.plain[id(expr)] = known
        return known

    def as_blocked(self, expr: Expr, layout: str) -> Expr:
        """The value in `layout`: as it is, moved between blocks, or from the plain value."""
        found = self.blocked.get(id(expr))
        if found is not None and found.layout == layout:
            return found.expr
        divides = expr.tensor_type.shape[1] % parse_layout(layout).block_of("C") == 0
        if found is None or found.is_filled or not divides:
            return _fill(self.as_plain(expr), PLAIN, layout)
        return _transform(found.expr, found.layout, layout)

    def pack(self, weight: Expr, source: str, target: str) -> Expr:
        """The weight in another layout, filled up; one expression for all its readers."""
        key = id(weight), target
        if key not in self.packed:
            self.packed[key] = _fill(self.as_plain(weight), source, target)
        return self.packed[key]

    # -- operators -----------------------------------------------------------------------------

    def visit_call(self, call: Call) -> _Blocked | Expr | None:
        rule = self.rules.get(call.op.name)
        if rule is not None:
            return rule(call)
        pattern = op_registry.get(call.op.name).pattern
        if pattern <= OpPattern.BROADCAST and isinstance(call.checked_type, TensorType):
            return self.elementwise(call)
        return None

    def conv2d(self, call: Call) -> _Blocked | None:
        attrs = call.attrs
        data, kernel = (a.tensor_type for a in call.args)
        if (
            attrs.data_layout != PLAIN
            or attrs.kernel_layout != "OIHW"
            or getattr(attrs, "out_layout", "") not in ("", PLAIN)
            or data.dtype != "float32"
            or dtypes.canonical(attrs.out_dtype or data.dtype) != data.dtype
        ):
            return None
        if attrs.groups == 1:
            return self.dense_conv(call, data, kernel)
        if attrs.groups == data.shape[1] == kernel.shape[0]:
            return self.depthwise_conv(call, data, kernel)
        return None

    def dense_conv(self, call: Call, data: TensorType, kernel: TensorType) -> _Blocked | None:
        out_block = best_block(kernel.shape[0], self.lanes)
        if out_block < 4:
            return None
        held = self.blocked.get(id(call.args[0]))
        channels = data.shape[1]
        if held is not None:
            in_block = held.block
        else:
            in_block = 1 if channels < 4 else block_size(channels, self.lanes)
        layouts = f"NCHW{in_block}c", f"OIHW{in_block}i{out_block}o", f"NCHW{out_block}c"
        tile = winograd_tile(call, self.lanes) if self.winograd and in_block >= 4 else 0
        if tile:
            return self.winograd_conv(call, layouts, tile)
        read = gcd(channels, in_block)  # the kernel skips the channels that fill up the data
        layouts = layouts[0], f"OIHW{read}i{out_block}o", layouts[2]
        return self.blocked_conv("nn.contrib_conv2d_nchwc", call, layouts)

    def winograd_conv(self, call: Call, layouts: tuple[str, str, str], tile: int) -> _Blocked:
        definition = op_registry.get("nn.contrib_conv2d_winograd_nchwc")
        make: Any = definition.attrs_type
        key = id(call.args[1]), f"winograd {tile}"
        if key not in self.packed:
            packed = self.pack(call.args[1], "OIHW", layouts[1])
            face: Any = op_registry.face("nn.contrib_winograd_weight")
            self.packed[key] = face(packed, tile)
        data = self.as_blocked(call.args[0], layouts[0])
        attrs = make(padding=call.attrs.padding, data_layout=layouts[0], out_layout=layouts[2])
        made = definition(data, self.packed[key], attrs=attrs, span=call.span)
        return _Blocked(made, layouts[2], call.args[1].tensor_type.shape[0])

    def depthwise_conv(self, call: Call, data: TensorType, kernel: TensorType) -> _Blocked | None:
        held = self.blocked.get(id(call.args[0]))
        block = held.block if held is not None else best_block(data.shape[1], self.lanes)
        if block < 4:
            return None
        layouts = f"NCHW{block}c", f"OIHW1i{block}o", f"NCHW{block}c"
        return self.blocked_conv("nn.contrib_depthwise_conv2d_nchwc", call, layouts)

    def blocked_conv(self, op: str, call: Call, layouts: tuple[str, str, str]) -> _Blocked:
        definition = op_registry.get(op)
        old = call.attrs
        assert definition.attrs_type is not None
        data = self.as_blocked(call.args[0], layouts[0])
        kernel = self.pack(call.args[1], "OIHW", layouts[1])
        filters = kernel.tensor_type.shape[0] * parse_layout(layouts[1]).block_of("O")
        attrs = definition.attrs_type(
            strides=old.strides, padding=old.padding, dilation=old.dilation,
            groups=1 if old.groups == 1 else filters,
            data_layout=layouts[0], kernel_layout=layouts[1], out_layout=layouts[2],
        )  # type: ignore[call-arg]  # fmt: skip
        made = definition(data, kernel, attrs=attrs, span=call.span)
        return _Blocked(made, layouts[2], call.args[1].tensor_type.shape[0])

    def dense(self, call: Call) -> Expr | None:
        """A product with constant weights takes them in blocks of units; the data stays plain."""
        data, weight = (a.tensor_type for a in call.args)
        if data.rank != 2:
            return None
        block = block_size(weight.shape[0], self.panel_units(data.shape[0]))
        if (
            not isinstance(call.args[1], Constant)
            or data.dtype != "float32"
            or block < 4
            or (call.attrs.out_dtype or data.dtype) != data.dtype
        ):
            return None
        packed = self.pack(call.args[1], "NK", f"NK{block}n")
        definition = op_registry.get("nn.contrib_dense_pack")
        assert definition.attrs_type is not None
        return definition(
            self.as_plain(call.args[0]), packed, attrs=definition.attrs_type(), span=call.span
        )

    def elementwise(self, call: Call) -> _Blocked | None:
        """Broadcasts over equal layouts: rank-4 operands in blocks, scalars as they are."""
        held = [self.blocked[id(a)] for a in call.args if id(a) in self.blocked]
        out = call.checked_type
        if not held or not isinstance(out, TensorType) or out.rank != 4:
            return None
        layout = held[0].layout
        if held[0].is_filled and not (call.op.name in _FINITE or self.divides_by_scalar(call)):
            return None
        args: list[Expr] = []
        for argument in call.args:
            converted = self.operand(argument, layout, out)
            if converted is None:
                return None
            args.append(converted)
        return _Blocked(call.with_args(tuple(args)), layout, out.shape[1])

    @staticmethod
    def divides_by_scalar(call: Call) -> bool:
        return call.op.name == "divide" and call.args[1].tensor_type.size == 1

    def operand(self, argument: Expr, layout: str, out: TensorType) -> Expr | None:
        given = argument.checked_type
        if not isinstance(given, TensorType):
            return None
        if given.size == 1:
            plain = self.as_plain(argument)
            return plain if given.rank == 0 else _reshape(plain, ())
        shape = (1,) * (4 - given.rank) + given.shape
        if shape[1] == out.shape[1]:
            if given.rank == 4:
                return self.as_blocked(argument, layout)
            return _fill(_reshape(self.as_plain(argument), shape), PLAIN, layout)
        return None  # broadcast along the channels: the plain layout serves better

    def bias_add(self, call: Call) -> _Blocked | None:
        held = self.blocked.get(id(call.args[0]))
        if held is None or call.attrs.axis not in (1, -3):
            return None
        bias = _reshape(self.as_plain(call.args[1]), (1, -1, 1, 1))
        added = op_registry.get("add")(held.expr, _fill(bias, PLAIN, held.layout), span=call.span)
        return _Blocked(added, held.layout, held.channels)

    def pool(self, call: Call) -> _Blocked | None:
        held = self.blocked.get(id(call.args[0]))
        if held is None or call.attrs.layout != PLAIN:
            return None
        attrs = call.attrs.replace(layout=held.layout)
        return _Blocked(Call(call.op, (held.expr,), attrs, call.span), held.layout, held.channels)

    def reduction(self, call: Call) -> _Blocked | None:
        """A reduction over height and width only, whose axes stay where they are."""
        held = self.blocked.get(id(call.args[0]))
        axes = getattr(call.attrs, "axis", None)
        if held is None or axes is None or not call.attrs.keepdims or call.attrs.exclude:
            return None
        normal = {a % 4 for a in (axes if isinstance(axes, Sequence) else (axes,))}
        if not normal <= {2, 3}:
            return None
        attrs = call.attrs.replace(axis=tuple(sorted(normal)))
        return _Blocked(Call(call.op, (held.expr,), attrs, call.span), held.layout, held.channels)

    def concatenate(self, call: Call) -> _Blocked | None:
        (joined,) = call.args
        if not isinstance(joined, Tuple) or call.attrs.axis not in (1, -3):
            return None
        held = [self.blocked.get(id(f)) for f in joined.fields]
        found = [h for h in held if h is not None and not h.is_filled]
        layouts = {h.layout for h in found}
        if len(layouts) != 1 or len(found) < len(held):
            return None
        fields = Tuple(tuple(h.expr for h in found))
        made = Call(call.op, (fields,), call.attrs.replace(axis=1), call.span)
        return _Blocked(made, layouts.pop(), call.tensor_type.shape[1])


def _plain(value: _Blocked) -> Expr:
    plain = _transform(value.expr, value.layout, PLAIN)
    if not value.is_filled:
        return plain
    face: Any = op_registry.face("strided_slice")
    return face(plain, [0], [value.channels], axes=[1])  # type: ignore[no-any-return]


def _fill(expr: Expr, source: str, target: str) -> Expr:
    """The plain value in blocks, with zeros at the end of axes that they do not divide."""
    blocks = parse_layout(target)
    if target == f"{source}1c":  # nothing moves
        return _reshape(expr, (*expr.tensor_type.shape, 1))
    sizes = zip(source, expr.tensor_type.shape, strict=True)
    missing = [-size % blocks.block_of(axis) for axis, size in sizes]
    if any(missing):
        face: Any = op_registry.face("nn.pad")
        expr = face(expr, [(0, more) for more in missing])
    return _transform(expr, source, target)


def _transform(expr: Expr, source: str, target: str) -> Expr:
    face: Any = op_registry.face("layout_transform")
    return face(expr, source, target)  # type: ignore[no-any-return]


def _reshape(expr: Expr, shape: tuple[int, ...]) -> Expr:
    face: Any = op_registry.face("reshape")
    return face(expr, shape)  # type: ignore[no-any-return]
