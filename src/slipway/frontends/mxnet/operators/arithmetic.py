"""Arithmetic of two arrays, of an array and a number, and functions of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, dtype_of
from slipway.frontends.mxnet.operators.create import closed_pair

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": relay.add, "plus": relay.add, "sub": relay.subtract, "minus": relay.subtract,
    "mul": relay.multiply, "div": relay.divide, "mod": relay.floor_mod, "power": relay.power,
    "maximum": relay.maximum, "minimum": relay.minimum,
}  # fmt: skip
NUMPY = {
    "add": relay.add, "subtract": relay.subtract, "multiply": relay.multiply,
    "true_divide": relay.divide, "mod": relay.floor_mod, "power": relay.power,
    "maximum": relay.maximum, "minimum": relay.minimum,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(relay, name)
    for name in (
        "abs", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "log10", "log2", "negative",
        "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )
} | {
    "arccos": relay.acos, "arccosh": relay.acosh, "arcsin": relay.asin, "arcsinh": relay.asinh,
    "arctan": relay.atan, "arctanh": relay.atanh, "relu": relay.nn.relu, "fix": relay.trunc,
}  # fmt: skip


def _enter(names: tuple[str, ...], function: Callable[[Any, Any], Any]) -> None:
    @converter(*names)
    def convert(node: NodeView) -> Any:
        return function(*closed_pair(node[0], node[1]))


def _enter_scalar(
    names: tuple[str, ...], function: Callable[[Any, Any], Any], number_first: bool
) -> None:
    @converter(*names)
    def convert(node: NodeView) -> Any:
        number = node.const(node.real("scalar", 1.0))
        return function(number, node.data) if number_first else function(node.data, number)


def _enter_unary(names: tuple[str, ...], function: Callable[[Any], Any]) -> None:
    @converter(*names)
    def convert(node: NodeView) -> Any:
        return function(node.data)


for _name, _function in BINARY.items():
    _enter((f"broadcast_{_name}", f"elemwise_{_name}", f"_{_name}", f"_{_name.capitalize()}",
            f"_grad_{_name}"), _function)  # fmt: skip
    _enter_scalar((f"_{_name}_scalar", f"__{_name}_scalar__", f"_{_name.capitalize()}Scalar"),
                  _function, False)  # fmt: skip
    _enter_scalar((f"_r{_name}_scalar", f"__r{_name}_scalar__", f"_R{_name.capitalize()}Scalar"),
                  _function, True)  # fmt: skip
_enter_scalar(("__pow_scalar__",), relay.power, False)
_enter_scalar(("__rpow_scalar__",), relay.power, True)
for _name, _function in NUMPY.items():
    _enter((f"_npi_{_name}", f"_np_{_name}"), _function)
    _enter_scalar((f"_npi_{_name}_scalar",), _function, False)
    _enter_scalar((f"_npi_r{_name}_scalar",), _function, True)
for _name, _of_one in UNARY.items():
    _enter_unary((_name, f"_npi_{_name}", f"_npx_{_name}", f"_np_{_name}"), _of_one)


@converter("square", "_npi_square")
def _square(node: NodeView) -> Any:
    return relay.multiply(node.data, node.data)


@converter("reciprocal", "_npi_reciprocal")
def _reciprocal(node: NodeView) -> Any:
    return relay.divide(node.const(1.0), node.data)


@converter("cbrt", "rcbrt", "_npi_cbrt")
def _root(node: NodeView) -> Any:
    size = relay.power(relay.abs(node.data), node.const(1.0 / 3.0))
    root = relay.multiply(relay.sign(node.data), size)
    return relay.divide(node.const(1.0), root) if node.op == "rcbrt" else root


@converter("log1p", "_npi_log1p")
def _log1p(node: NodeView) -> Any:
    """Return log(1 + x) as 2 atanh(x / (2 + x)), which keeps the digits of a small x."""
    x = node.data
    small = relay.multiply(
        node.const(2.0), relay.atanh(relay.divide(x, relay.add(x, node.const(2.0))))
    )
    plain = relay.log(relay.add(x, node.const(1.0)))
    return relay.where(relay.less(relay.abs(x), node.const(0.5)), small, plain)


@converter("expm1", "_npi_expm1")
def _expm1(node: NodeView) -> Any:
    """Return exp(x) - 1 as 2 t / (1 - t), t = tanh(x / 2), for a small x."""
    x = node.data
    half = relay.tanh(relay.multiply(x, node.const(0.5)))
    small = relay.divide(
        relay.multiply(node.const(2.0), half), relay.subtract(node.const(1.0), half)
    )
    plain = relay.subtract(relay.exp(x), node.const(1.0))
    return relay.where(relay.less(relay.abs(x), node.const(0.5)), small, plain)


@converter("round")
def _round(node: NodeView) -> Any:
    """Round halves away from zero."""
    away = relay.floor(relay.add(relay.abs(node.data), node.const(0.5)))
    return relay.multiply(relay.sign(node.data), away)


@converter("rint", "_npi_rint")
def _rint(node: NodeView) -> Any:
    """Round halves down, as MXNet's does: rint(2.5) is 2, and rint(1.5) is 1."""
    below = relay.floor(node.data)
    fraction = relay.subtract(node.data, below)
    up = relay.cast(relay.greater(fraction, node.const(0.5)), node.dtype)
    return relay.add(below, up)


@converter("degrees", "radians")
def _angle(node: NodeView) -> Any:
    factor = 180.0 / math.pi if node.op == "degrees" else math.pi / 180.0
    return relay.multiply(node.data, node.const(factor))


@converter("broadcast_hypot", "_hypot", "_npi_hypot")
def _hypot(node: NodeView) -> Any:
    a, b = node.inputs
    return relay.sqrt(relay.add(relay.multiply(a, a), relay.multiply(b, b)))


@converter("add_n", "ElementWiseSum", "_sum")
def _sum_of_all(node: NodeView) -> Any:
    made = node.data
    for other in node.inputs[1:]:
        made = relay.add(made, other)
    return made


@converter("clip", "_npi_clip")
def _clip(node: NodeView) -> Any:
    low = node.real("a_min", -math.inf)
    return relay.clip(node.data, low, node.real("a_max", math.inf))


@converter("Cast", "cast", "amp_cast", "_npi_cast")
def _cast(node: NodeView) -> Any:
    return relay.cast(node.data, node.text("dtype", "float32"))


@converter("amp_multicast")
def _common_type(node: NodeView) -> Any:
    """Return all inputs in the widest of their types, or in the narrowest."""
    order = ["float16", "float32", "float64"]
    ranks = [order.index(dtype_of(v)) for v in node.inputs]
    rank = min(ranks) if node.flag("cast_narrow") else max(ranks)
    return [relay.cast(v, order[rank]) for v in node.inputs]


@converter("hard_sigmoid")
def _hard_sigmoid(node: NodeView) -> Any:
    made = relay.multiply(node.data, node.const(node.real("alpha", 0.2)))
    return relay.clip(relay.add(made, node.const(node.real("beta", 0.5))), 0.0, 1.0)


@converter("softsign")
def _softsign(node: NodeView) -> Any:
    return relay.divide(node.data, relay.add(relay.abs(node.data), node.const(1.0)))


@converter("smooth_l1")
def _smooth_l1(node: NodeView) -> Any:
    squared = node.real("scalar", 1.0) ** 2
    size = relay.abs(node.data)
    inner = relay.multiply(relay.multiply(node.data, node.data), node.const(0.5 * squared))
    outer = relay.subtract(size, node.const(0.5 / squared))
    return relay.where(relay.less(size, node.const(1.0 / squared)), inner, outer)


@converter("_contrib_div_sqrt_dim")
def _over_root_of_width(node: NodeView) -> Any:
    return relay.divide(node.data, node.const(math.sqrt(node.shape[-1])))


@converter("_contrib_quadratic", "quadratic")
def _quadratic(node: NodeView) -> Any:
    x = node.data
    made = relay.multiply(relay.multiply(x, x), node.const(node.real("a", 0.0)))
    made = relay.add(made, relay.multiply(x, node.const(node.real("b", 0.0))))
    return relay.add(made, node.const(node.real("c", 0.0)))
