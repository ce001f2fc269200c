"""The activations that LSTM, GRU and RNN may ask for by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

# The arguments of an activation, in the order in which the node lists them, and their defaults.
ARGUMENTS: dict[str, dict[str, float]] = {
    "relu": {}, "tanh": {}, "sigmoid": {}, "softsign": {}, "softplus": {},
    "affine": {"alpha": 1.0, "beta": 0.0},
    "leakyrelu": {"alpha": 0.01},
    "thresholdedrelu": {"alpha": 1.0},
    "scaledtanh": {"alpha": 1.0, "beta": 1.0},
    "hardsigmoid": {"alpha": 0.2, "beta": 0.5},
    "elu": {"alpha": 1.0},
}  # fmt: skip


def activation(node: NodeView, name: str, given: Mapping[str, float]) -> Callable[[Any], Any]:
    """Return the function `name` as a rule on expressions; `given` replaces its defaults."""
    kind = name.lower()
    if kind not in ARGUMENTS:
        raise node.unsupported(f"activation {name!r}")
    values = {**ARGUMENTS[kind], **given}
    alpha, beta = (node.like(values.get(key, 0.0)) for key in ("alpha", "beta"))
    zero, one = node.like(0), node.like(1)

    def line(x: Expr) -> Any:
        return relay.add(relay.multiply(x, alpha), beta)

    def elu(x: Expr) -> Any:
        fall = relay.subtract(relay.exp(relay.minimum(x, zero)), one)
        return relay.add(relay.maximum(x, zero), relay.multiply(fall, alpha))

    def softplus(x: Expr) -> Any:
        tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), one))
        return relay.add(relay.maximum(x, zero), tail)

    rules: dict[str, Callable[[Any], Any]] = {
        "relu": relay.nn.relu,
        "tanh": relay.tanh,
        "sigmoid": relay.sigmoid,
        "softsign": lambda x: relay.divide(x, relay.add(relay.abs(x), one)),
        "softplus": softplus,
        "affine": line,
        "leakyrelu": lambda x: relay.nn.leaky_relu(x, values["alpha"]),
        "thresholdedrelu": lambda x: relay.where(relay.greater(x, alpha), x, zero),
        "scaledtanh": lambda x: relay.multiply(relay.tanh(relay.multiply(x, beta)), alpha),
        "hardsigmoid": lambda x: relay.clip(line(x), 0, 1),
        "elu": elu,
    }
    return rules[kind]
