"""One step of an optimiser: the operators of the domain ai.onnx.preview.training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

DOMAIN = "ai.onnx.preview.training"


class _Step:
    """The inputs of an optimiser: rate, count, then groups of one tensor per parameter."""

    def __init__(self, node: NodeView, groups: int) -> None:
        tensors = len(node.inputs) - 2
        if tensors % groups:
            raise node.unsupported(
                f"it has {tensors} tensors, which are not {groups} per parameter"
            )
        self.node, self.count = node, tensors // groups
        self.rate, self.step = (self._scalar(i) for i in (0, 1))

    def _scalar(self, index: int) -> Any:
        return relay.reshape(self.node.input(index), ())

    def number(self, name: str, default: float = 0.0) -> Any:
        """Return an attribute as a constant in the parameters' dtype."""
        return self.constant(self.node.attr(name, default))

    def constant(self, value: float) -> Any:
        return const(value, self.node.type(2).dtype)

    def tensors(self, parameter: int) -> list[Any]:
        """Return the tensors of one parameter, one of each group."""
        chosen = range(2 + parameter, len(self.node.inputs), self.count)
        return [self.node.input(i) for i in chosen]

    def gradient(self, x: Expr, g: Any) -> Any:
        """Return the gradient with that of the squared norm."""
        return relay.add(relay.multiply(self.number("norm_coefficient"), x), g)

    def outputs(self, results: list[tuple[Any, ...]]) -> list[Any]:
        """Return the results grouped as the inputs are."""
        return [value for group in zip(*results, strict=True) for value in group]


@converter(f"{DOMAIN}.Adagrad")
def adagrad(node: NodeView) -> Any:
    """Steps divided by the root of the sum of squared gradients."""
    step = _Step(node, 3)
    dtype = node.type(2).dtype
    slow = relay.multiply(relay.cast(step.step, dtype), step.number("decay_factor"))
    rate = relay.divide(relay.cast(step.rate, dtype), relay.add(step.constant(1.0), slow))
    results = []
    for parameter in range(step.count):
        x, g, h = step.tensors(parameter)
        g = step.gradient(x, g)
        h = relay.add(h, relay.multiply(g, g))
        size = relay.add(relay.sqrt(h), step.number("epsilon"))
        results.append((relay.subtract(x, relay.divide(relay.multiply(rate, g), size)), h))
    return step.outputs(results)


@converter(f"{DOMAIN}.Adam")
def adam(node: NodeView) -> Any:
    """Steps along the running mean of gradients, divided by the root of that of their squares."""
    step = _Step(node, 4)
    dtype = node.type(2).dtype
    one = step.constant(1.0)
    alpha, beta = step.number("alpha", 0.9), step.number("beta", 0.999)
    count, rate = relay.cast(step.step, dtype), relay.cast(step.rate, dtype)
    grown = relay.sqrt(relay.subtract(one, relay.power(beta, count)))
    corrected = relay.divide(
        relay.multiply(rate, grown), relay.subtract(one, relay.power(alpha, count))
    )
    started = relay.greater(step.step, const(0, step.step.tensor_type.dtype))
    rate = relay.where(started, corrected, rate)
    kept = relay.subtract(one, step.number("norm_coefficient_post"))
    results = []
    for parameter in range(step.count):
        x, g, v, h = step.tensors(parameter)
        g = step.gradient(x, g)
        v = relay.add(relay.multiply(alpha, v), relay.multiply(relay.subtract(one, alpha), g))
        squared = relay.multiply(g, g)
        h = relay.add(relay.multiply(beta, h), relay.multiply(relay.subtract(one, beta), squared))
        size = relay.add(relay.sqrt(h), step.number("epsilon"))
        x = relay.subtract(x, relay.divide(relay.multiply(rate, v), size))
        results.append((relay.multiply(kept, x), v, h))
    return step.outputs(results)


@converter(f"{DOMAIN}.Momentum")
def momentum(node: NodeView) -> Any:
    """Steps along a running sum of gradients, Nesterov's with a look ahead."""
    step = _Step(node, 3)
    mode = node.attr("mode", "standard")
    if mode not in ("standard", "nesterov"):
        raise node.unsupported(f"mode {mode!r}")
    rate = relay.cast(step.rate, node.type(2).dtype)
    alpha, one = step.number("alpha"), step.constant(1.0)
    started = relay.greater(step.step, const(0, step.step.tensor_type.dtype))
    beta = relay.where(started, step.number("beta"), one)
    results = []
    for parameter in range(step.count):
        x, g, v = step.tensors(parameter)
        g = step.gradient(x, g)
        v = relay.add(relay.multiply(alpha, v), relay.multiply(beta, g))
        way = relay.add(g, relay.multiply(alpha, v)) if mode == "nesterov" else v
        results.append((relay.subtract(x, relay.multiply(rate, way)), v))
    return step.outputs(results)
