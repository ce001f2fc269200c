"""Fourier transforms: products with constant matrices, one axis after another."""

from __future__ import annotations

from math import prod
from typing import Any

from slipway import relay
from slipway.frontends.fourier import fourier
from slipway.frontends.torch.complex import Complex, own
from slipway.frontends.torch.converters import NodeView, like
from slipway.relay.expr import Expr


def _along(parts: list[Expr], axis: int, length: int, inverse: bool, onesided: bool) -> list[Expr]:
    """Return both parts of the transform along an axis; one of a real spectrum's inverse.

    The inverse is not divided by the length.
    """
    rank = parts[0].tensor_type.rank
    order = [a for a in range(rank) if a != axis] + [axis]
    moved = relay.transpose(relay.stack(parts, rank), (*order, rank))
    found = fourier(moved, length, inverse, onesided)
    if inverse:
        found = relay.multiply(found, like(length, found))
    back = relay.transpose(found, (*(order.index(a) for a in range(rank)), rank))
    if back.tensor_type.shape[-1] == 1:
        return [relay.squeeze(back, [rank])]
    return [relay.squeeze(part, [rank]) for part in relay.split(back, 2, rank)]


def _normal(node: NodeView, parts: list[Expr], lengths: list[int]) -> Any:
    """Return the result as torch normalises it: not, by the root of the count, or by the count."""
    count = prod(lengths)
    scale = {0: 1.0, 1: count**-0.5, 2: 1 / count}[int(node.arg("normalization", 0))]
    if scale != 1:
        parts = [relay.multiply(part, like(scale, part)) for part in parts]
    return parts[0] if len(parts) == 1 else Complex(*parts)


@own("_fft_r2c")
def real_to_complex(node: NodeView) -> Any:
    """Of real numbers; along the last of the axes named only half of the result, if asked for."""
    x, shape = node.input(), node.shape()
    *others, last = node.axes()
    parts = _along([x], last, shape[last], False, bool(node.arg("onesided", False)))
    for axis in others:
        parts = _along(parts, axis, shape[axis], False, False)
    return _normal(node, parts, [shape[a] for a in (*others, last)])


@own("_fft_c2c")
def complex_to_complex(node: NodeView) -> Any:
    """Of complex numbers, there or back."""
    given = node.arguments["self"]
    parts = [given.real, given.imag]
    shape = given.real.tensor_type.shape
    axes = [a % len(shape) for a in node.ints("dim")]
    for axis in axes:
        parts = _along(parts, axis, shape[axis], not node.arg("forward", True), False)
    return _normal(node, parts, [shape[a] for a in axes])


@own("_fft_c2r")
def complex_to_real(node: NodeView) -> Any:
    """Of half a spectrum back to real numbers."""
    given = node.arguments["self"]
    parts = [given.real, given.imag]
    shape = given.real.tensor_type.shape
    *others, last = (a % len(shape) for a in node.ints("dim"))
    for axis in others:
        parts = _along(parts, axis, shape[axis], True, False)
    length = int(node.arg("last_dim_size"))
    parts = _along(parts, last, length, True, True)
    return _normal(node, parts, [*(shape[a] for a in others), length])
