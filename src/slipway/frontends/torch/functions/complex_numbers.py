"""Functions of complex numbers: roots, circular and hyperbolic ones, running products."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.angle import is_negative, length_of
from slipway.frontends.torch.complex import Complex, divided, logarithm_of, own, parts
from slipway.frontends.torch.converters import NodeView, like
from slipway.relay.expr import Expr


@own("sqrt", "rsqrt")
def root(node: NodeView) -> Any:
    """The root whose real part is positive; for rsqrt its inverse."""
    real, imag = parts(node)
    # Of the number divided by four, whose length does not overflow.
    scaled = [relay.multiply(part, like(0.25, part)) for part in (real, imag)]
    length = length_of(*scaled)
    large = relay.sqrt(relay.multiply(relay.add(length, relay.abs(scaled[0])), like(2, length)))
    nothing = relay.equal(large, like(0, large))
    small = relay.divide(relay.abs(imag), relay.multiply(
        relay.where(nothing, like(1, large), large), like(2, large)
    ))  # fmt: skip
    left = is_negative(real)
    one, two = relay.where(left, small, large), relay.where(left, large, small)
    found = Complex(one, relay.where(is_negative(imag), relay.negative(two), two))
    if node.kind == "sqrt":
        return found
    return divided(Complex(like(1, one), like(0, one)), found)


@own("sin", "cos", "sinh", "cosh")
def wave(node: NodeView) -> Any:
    """Products of a circular function of one part and a hyperbolic one of the other."""
    real, imag = parts(node)
    if node.kind == "sin":
        return Complex(
            relay.multiply(relay.sin(real), relay.cosh(imag)),
            relay.multiply(relay.cos(real), relay.sinh(imag)),
        )
    if node.kind == "cos":
        return Complex(
            relay.multiply(relay.cos(real), relay.cosh(imag)),
            relay.negative(relay.multiply(relay.sin(real), relay.sinh(imag))),
        )
    one, two = (relay.sinh, relay.cosh) if node.kind == "sinh" else (relay.cosh, relay.sinh)
    return Complex(
        relay.multiply(one(real), relay.cos(imag)), relay.multiply(two(real), relay.sin(imag))
    )


def _tanh(real: Expr, imag: Expr) -> Complex:
    """sinh(2 a) + i sin(2 b) over cosh(2 a) + cos(2 b), from tanh(a) and tan(b)."""
    flat = relay.tanh(real)
    inverse = relay.divide(like(1, real), relay.cosh(real))
    inverse = relay.multiply(inverse, inverse)
    cosine, sine = relay.cos(imag), relay.sin(imag)
    below = relay.add(
        relay.multiply(cosine, cosine),
        relay.multiply(relay.multiply(sine, sine), relay.multiply(flat, flat)),
    )
    return Complex(
        relay.divide(flat, below),
        relay.divide(relay.multiply(relay.multiply(sine, cosine), inverse), below),
    )


@own("tanh", "tan")
def quotient(node: NodeView) -> Any:
    """The sine over the cosine, circular (tan(z) = -i tanh(i z)) or hyperbolic."""
    real, imag = parts(node)
    if node.kind == "tanh":
        return _tanh(real, imag)
    found = _tanh(relay.negative(imag), real)
    return Complex(found.imag, relay.negative(found.real))


@own("sigmoid")
def sigmoid(node: NodeView) -> Any:
    """Half of tanh(z / 2), and one half."""
    real, imag = (relay.multiply(part, like(0.5, part)) for part in parts(node))
    found = _tanh(real, imag)
    half = like(0.5, real)
    return Complex(
        relay.add(relay.multiply(found.real, half), half), relay.multiply(found.imag, half)
    )


@own("log2", "log10")
def scaled_logarithm(node: NodeView) -> Any:
    """The logarithm to another base."""
    found = logarithm_of(*parts(node))
    scale = 1 / np.log(float(node.kind[3:]))
    return Complex(*(relay.multiply(p, like(scale, p)) for p in (found.real, found.imag)))
