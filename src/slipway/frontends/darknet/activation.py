"""Activations of Darknet, by their number in its ``struct layer``."""

from __future__ import annotations

from collections.abc import Callable

from slipway import relay
from slipway.frontends.darknet.kinds import ACTIVATION
from slipway.relay.expr import Expr


def _constant(value: float) -> Expr:
    return relay.const(value, "float32")


def _where(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return relay.where(condition, then, otherwise)


def _plse(x: Expr) -> Expr:
    low = _constant(0.01) * (x + _constant(4.0))
    high = _constant(0.01) * (x - _constant(4.0)) + _constant(1.0)
    middle = _constant(0.125) * x + _constant(0.5)
    inner = _where(relay.greater(x, _constant(4.0)), high, middle)
    return _where(relay.less(x, _constant(-4.0)), low, inner)


def _stair(x: Expr) -> Expr:
    n, half = relay.floor(x), relay.floor(x / _constant(2.0))
    even = relay.equal(n, relay.floor(n / _constant(2.0)) * _constant(2.0))
    return _where(even, half, (x - n) + half)


def _elu(x: Expr, alpha: float = 1.0, scale: float = 1.0) -> Expr:
    low = _constant(alpha) * (relay.exp(relay.minimum(x, _constant(0.0))) - _constant(1.0))
    return _constant(scale) * _where(relay.greater(x, _constant(0.0)), x, low)


def _lhtan(x: Expr) -> Expr:
    high = _constant(0.001) * (x - _constant(1.0)) + _constant(1.0)
    inner = _where(relay.greater(x, _constant(1.0)), high, x)
    return _where(relay.less(x, _constant(0.0)), _constant(0.001) * x, inner)


def _softplus(x: Expr) -> Expr:
    """log(1 + e**x), written so that no exponential overflows."""
    tail = relay.log(_constant(1.0) + relay.exp(relay.negative(relay.abs(x))))
    out: Expr = relay.maximum(x, _constant(0.0)) + tail
    return out


def _gelu(x: Expr) -> Expr:
    inner = _constant(0.797885) * x + _constant(0.035677) * x * x * x
    out: Expr = _constant(0.5) * x * (_constant(1.0) + relay.tanh(inner))
    return out


ACTIVATIONS: dict[int, Callable[[Expr], Expr]] = {
    ACTIVATION.LOGISTIC: lambda x: relay.sigmoid(x),
    ACTIVATION.RELU: lambda x: relay.nn.relu(x),
    ACTIVATION.RELIE: lambda x: relay.nn.leaky_relu(x, alpha=0.01),
    ACTIVATION.LINEAR: lambda x: x,
    ACTIVATION.RAMP: lambda x: relay.nn.relu(x) + _constant(0.1) * x,
    ACTIVATION.TANH: lambda x: relay.tanh(x),
    ACTIVATION.PLSE: _plse,
    ACTIVATION.LEAKY: lambda x: relay.nn.leaky_relu(x, alpha=0.1),
    ACTIVATION.ELU: _elu,
    ACTIVATION.LOGGY: lambda x: _constant(2.0) * relay.sigmoid(x) - _constant(1.0),
    ACTIVATION.STAIR: _stair,
    ACTIVATION.HARDTAN: lambda x: relay.clip(x, -1.0, 1.0),
    ACTIVATION.LHTAN: _lhtan,
    ACTIVATION.SELU: lambda x: _elu(x, 1.6732, 1.0507),
    ACTIVATION.RELU6: lambda x: relay.clip(x, 0.0, 6.0),
    ACTIVATION.SWISH: lambda x: x * relay.sigmoid(x),
    ACTIVATION.MISH: lambda x: x * relay.tanh(_softplus(x)),
    ACTIVATION.GELU: _gelu,
}
