"""Values in blocks of channels, and the calls that bring them there and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Expr
from slipway.relay.layout import parse_layout
from slipway.relay.ops.nn.windows import SPATIAL


@dataclass(frozen=True)
class Blocked:
    """A value in blocks; `channels` of those in it are the graph's, the others are padding."""

    expr: Expr
    layout: str
    channels: int

    @property
    def block(self) -> int:
        """The channels of a block."""
        return parse_layout(self.layout).block_of("C")

    @property
    def plain(self) -> str:
        """The layout without blocks."""
        return self.layout.rstrip("0123456789c")

    @property
    def is_filled(self) -> bool:
        """Whether the last block holds channels that are not the graph's."""
        return self.channels % self.block != 0


def plain_layout(rank: int) -> str:
    """Return the layout of data with `rank` axes, "NCHW" for four."""
    return "NC" + SPATIAL[rank - 2]


def as_plain_value(value: Blocked) -> Expr:
    """Return the graph's value: its channels, without the padding of the last block."""
    plain = transformed(value.expr, value.layout, value.plain)
    if not value.is_filled:
        return plain
    make: Any = op_registry.make("strided_slice")
    return make(plain, [0], [value.channels], axes=[1])  # type: ignore[no-any-return]


def filled(expr: Expr, source: str, target: str) -> Expr:
    """Return the plain value in blocks, with zeros at the end of axes that they do not divide."""
    blocks = parse_layout(target)
    if target == f"{source}1c":  # nothing moves
        return reshaped(expr, (*expr.tensor_type.shape, 1))
    sizes = zip(source, expr.tensor_type.shape, strict=True)
    missing = [-size % blocks.block_of(axis) for axis, size in sizes]
    if any(missing):
        make: Any = op_registry.make("nn.pad")
        expr = make(expr, [(0, more) for more in missing])
    return transformed(expr, source, target)


def transformed(expr: Expr, source: str, target: str) -> Expr:
    """Return a value in another layout."""
    make: Any = op_registry.make("layout_transform")
    return make(expr, source, target)  # type: ignore[no-any-return]


def reshaped(expr: Expr, shape: tuple[int, ...]) -> Expr:
    """Return a value in another shape."""
    make: Any = op_registry.make("reshape")
    return make(expr, shape)  # type: ignore[no-any-return]
