"""Products of matrices, and activations that have their own node."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, shape_of
from slipway.relay.expr import Expr


@converter("FullyConnected", "_npx_fully_connected")
def _fully_connected(node: NodeView) -> Any:
    data, weight = node[0], node[1]
    shape = node.shape
    if node.flag("flatten", True):
        shape = (shape[0], math.prod(shape[1:]))
    rows = relay.reshape(data, (math.prod(shape[:-1]), shape[-1]))
    units = node.integer("num_hidden")
    made = relay.nn.dense(rows, weight, units=units)
    if not node.flag("no_bias"):
        made = relay.nn.bias_add(made, node[2], axis=-1)
    return relay.reshape(made, (*shape[:-1], units))


@converter("Activation", "_npx_activation")
def _activation(node: NodeView) -> Any:
    kind, x = node.text("act_type"), node.data
    if kind == "relu":
        return relay.nn.relu(x)
    if kind in ("sigmoid", "tanh"):
        return getattr(relay, kind)(x)
    if kind == "softrelu":
        return softrelu(node, x)
    if kind == "softsign":
        return relay.divide(x, relay.add(relay.abs(x), node.const(1.0)))
    if kind == "log_sigmoid":
        return relay.negative(softrelu(node, relay.negative(x)))
    if kind == "mish":
        return relay.multiply(x, relay.tanh(softrelu(node, x)))
    raise node.unsupported(f"its act_type is {kind!r}")


def softrelu(node: NodeView, x: Expr) -> Any:
    """Return log(1 + exp(x)) without exp of a large number."""
    logarithm = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), node.const(1.0)))
    return relay.add(relay.nn.relu(x), logarithm)


@converter("LeakyReLU", "_npx_leaky_relu")
def _leaky(node: NodeView) -> Any:
    kind, x = node.text("act_type", "leaky"), node.data
    slope = node.real("slope", 0.25)
    if kind == "leaky":
        return relay.nn.leaky_relu(x, alpha=slope)
    if kind == "rrelu":  # outside of training the slope is the mean of its bounds
        low, high = node.real("lower_bound", 0.125), node.real("upper_bound", 0.334)
        return relay.nn.leaky_relu(x, alpha=(low + high) / 2)
    if kind == "prelu":
        axis = 1 if len(node.shape) > 1 else 0
        slopes = relay.broadcast_to(relay.reshape(node[1], (-1,)), (node.shape[axis],))
        return relay.nn.prelu(x, slopes, axis=axis)
    if kind == "elu":
        return _elu(node, slope)
    if kind == "selu":
        return relay.multiply(_elu(node, 1.6732632423543772), node.const(1.0507009873554805))
    if kind == "gelu":
        spread = relay.erf(relay.multiply(x, node.const(math.sqrt(0.5))))
        return relay.multiply(
            relay.multiply(x, node.const(0.5)), relay.add(spread, node.const(1.0))
        )
    raise node.unsupported(f"its act_type is {kind!r}")


def _elu(node: NodeView, slope: float) -> Any:
    x = node.data
    below = relay.multiply(
        relay.subtract(relay.exp(relay.minimum(x, node.const(0.0))), node.const(1.0)),
        node.const(slope),
    )
    return relay.where(relay.greater(x, node.const(0.0)), x, below)


@converter("dot")
def _dot(node: NodeView) -> Any:
    """Contract the last axis of the first with the first axis of the second."""
    a, b = node[0], node[1]
    if node.flag("transpose_a"):
        a = relay.transpose(a, [*range(1, len(shape_of(a))), 0])
    if node.flag("transpose_b"):
        rank = len(shape_of(b))
        b = relay.transpose(b, [rank - 1, *range(rank - 1)])
    left, right = shape_of(a), shape_of(b)
    rows = relay.reshape(a, (math.prod(left[:-1]), left[-1]))
    columns = relay.reshape(b, (right[0], math.prod(right[1:])))
    made = relay.nn.matmul(rows, columns)
    return relay.reshape(made, (*left[:-1], *right[1:]) or (1,))


@converter("batch_dot", "linalg_gemm2", "_linalg_gemm2", "_npx_batch_dot")
def _batch_dot(node: NodeView) -> Any:
    shape = node.shape
    if len(shape) < 3:
        a, b = (relay.expand_dims(v, 0) for v in node.inputs)
    else:
        a, b = (relay.reshape(v, (math.prod(shape_of(v)[:-2]), *shape_of(v)[-2:]))
                for v in node.inputs)  # fmt: skip
    made = relay.nn.batch_matmul(
        a, b, transpose_a=node.flag("transpose_a"), transpose_b=node.flag("transpose_b")
    )
    if "gemm2" in node.op and (factor := node.real("alpha", 1.0)) != 1.0:
        made = relay.multiply(made, node.const(factor))
    return relay.reshape(made, (*shape[:-2], *shape_of(made)[-2:]))


@converter("softmax", "log_softmax", "softmin", "_npx_softmax", "_npx_log_softmax")
def _softmax(node: NodeView) -> Any:
    axis, x = node.axis("axis", -1), node.data
    if node.op == "softmin":
        x = relay.negative(x)
    if (temperature := node.real("temperature", 1.0) if node.has("temperature") else 1.0) != 1.0:
        x = relay.divide(x, node.const(temperature))
    made = relay.nn.log_softmax if "log" in node.op else relay.nn.softmax
    if not node.flag("use_length"):
        return made(x, axis=axis)
    return _softmax_of_length(node, x, axis)


def _softmax_of_length(node: NodeView, x: Any, axis: int) -> Any:
    """Softmax of the first elements along an axis, whose number the second input gives; 0 after."""
    if "log" in node.op:
        raise node.unsupported("log_softmax with use_length")
    rank = len(node.shape)
    positions = relay.reshape(
        relay.arange(relay.const(node.shape[axis], "int32"), dtype="int32"),
        tuple(node.shape[axis] if i == axis else 1 for i in range(rank)),
    )
    counts = relay.expand_dims(relay.cast(node[1], "int32"), axis)
    inside = relay.less(positions, counts)
    lowest = node.const(-1e30 if node.dtype != "float16" else -6e4)
    inner = relay.nn.softmax(relay.where(inside, x, lowest), axis=axis)
    return relay.where(inside, inner, node.const(0.0))


@converter("SoftmaxActivation")
def _softmax_activation(node: NodeView) -> Any:
    if node.text("mode", "instance") == "channel":
        return relay.nn.softmax(node.data, axis=1)
    return relay.reshape(relay.nn.softmax(relay.nn.batch_flatten(node.data), axis=1), node.shape)
