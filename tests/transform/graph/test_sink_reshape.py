"""Reshapes behind products: bias, activation and sums end up in the product's kernel."""

import numpy as np
import pytest

from slipway import relay
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.transform.graph.fuse_ops import fuse_ops
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.sink_reshape import sink_reshape

RNG = np.random.default_rng(0)


def normal(*shape):
    return relay.const(RNG.standard_normal(shape).astype(np.float32))


def product(x, units=6):
    """A dense layer on the last axis of (2, 4, 8), as importers write it."""
    flat = relay.nn.dense(relay.reshape(x, (8, 8)), normal(units, 8))
    return relay.reshape(flat, (2, 4, units))


def kernels(function):
    calls = post_order(fuse_ops(function), into_functions=False)
    names = [
        [e.op.name for e in post_order(c.op.body) if isinstance(e, relay.Call)]
        for c in calls
        if isinstance(c, relay.Call)
    ]
    return [k for k in names if set(k) != {"reshape"}]


@pytest.mark.parametrize(
    ("epilogue", "want"),
    [
        (lambda y, x: y + normal(6), ["nn.dense", "add"]),
        (lambda y, x: y + normal(1, 1, 6), ["nn.dense", "add"]),
        (lambda y, x: relay.nn.relu(y * normal(1)), ["nn.dense", "multiply", "nn.relu"]),
        (lambda y, x: relay.tanh(y) * y, ["nn.dense", "tanh", "multiply"]),
        (lambda y, x: relay.strided_slice(x, [0], [6], axes=[2]) + y, ["nn.dense", "add"]),
    ],
)
def test_elementwise_joins_the_product(epilogue, want):
    x = relay.var("x", shape=(2, 4, 8))
    function = IRModule.from_expr(epilogue(product(x), x))["main"]
    done = simplify_expr(sink_reshape(function))
    assert want in kernels(done)
    data = RNG.standard_normal((2, 4, 8)).astype(np.float32)
    np.testing.assert_allclose(interpret(done, data), interpret(function, data), rtol=1e-6)


@pytest.mark.parametrize("factors", [0.003, [0.001, 0.002, 0.003, 0.004, 0.005, 0.006]])
def test_requantisation_joins_an_integer_product(factors):
    """Else its sums, four bytes each, go to memory and back."""
    x = relay.var("x", shape=(2, 4, 8), dtype="int8")
    weight = relay.const(RNG.integers(-128, 128, (8, 6)).astype(np.int8))
    sums = relay.qnn.op.dense_packed(relay.reshape(x, (8, 8)), weight)
    scaled = relay.qnn.op.rescale_by(relay.reshape(sums, (2, 4, 6)), np.float64(factors))
    function = IRModule.from_expr(relay.clip(scaled + relay.const(3), -128, 127))["main"]
    done = simplify_expr(sink_reshape(function))
    assert ["qnn.dense_packed", "qnn.rescale", "add", "clip"] in kernels(done)
    data = RNG.integers(-128, 128, (2, 4, 8)).astype(np.int8)
    np.testing.assert_array_equal(interpret(done, data), interpret(function, data))


def test_a_bias_along_another_axis_stays():
    x = relay.var("x", shape=(2, 4, 8))
    function = IRModule.from_expr(product(x) + normal(4, 1))["main"]
    assert sink_reshape(function) is function


def test_a_reshape_of_anything_else_stays():
    x = relay.var("x", shape=(2, 4, 8))
    function = IRModule.from_expr(relay.reshape(relay.exp(x), (8, 8)) + normal(8))["main"]
    assert sink_reshape(function) is function


@pytest.mark.parametrize(
    "epilogue",
    [
        lambda y: relay.nn.prelu(y, normal(6), axis=2),
        lambda y: relay.nn.prelu(y, normal(4), axis=1),
        lambda y: relay.broadcast_to(y, (2, 4, 6)) * y,
        lambda y: relay.broadcast_to(y, (3, 2, 4, 6)),
        lambda y: relay.qnn.op.quantize(y, normal(6), relay.const(0), axis=2),
        lambda y: relay.nn.bias_add(y, normal(4), axis=1),
    ],
)
def test_what_names_an_axis_stays_behind_the_reshape(epilogue):
    x = relay.var("x", shape=(2, 4, 8))
    function = IRModule.from_expr(epilogue(product(x)))["main"]
    done = sink_reshape(function)
    assert done.ret_type == function.ret_type
    data = RNG.standard_normal((2, 4, 8)).astype(np.float32)
    np.testing.assert_allclose(interpret(done, data), interpret(function, data), rtol=1e-6)


def test_a_product_of_one_element_keeps_its_rank():
    x = relay.var("x", shape=(1, 1, 8))
    y = relay.reshape(relay.nn.dense(relay.reshape(x, (1, 8)), normal(1, 8)), (1, 1, 1))
    function = IRModule.from_expr(relay.sigmoid(y) * normal(1, 1, 1) + y)["main"]
    done = simplify_expr(sink_reshape(function))
    data = RNG.standard_normal((1, 1, 8)).astype(np.float32)
    np.testing.assert_allclose(interpret(done, data), interpret(function, data), rtol=1e-6)


@pytest.mark.parametrize("shape", [(6, 1), (1, 6, 1), (1, 6, 9), (9,)])
def test_axes_of_one_are_put_where_the_product_has_them(shape):
    """A convolution over one axis, as one of an image of one row, and a bias of each channel."""
    x = relay.var("x", shape=(1, 4, 9))
    image = relay.nn.conv2d(relay.reshape(x, (1, 4, 1, 9)), normal(6, 4, 1, 3), padding=(0, 1))
    body = relay.nn.relu(relay.reshape(image, (1, 6, 9)) + normal(*shape))
    function = IRModule.from_expr(body)["main"]
    done = simplify_expr(sink_reshape(function))
    assert kernels(done) == [["nn.conv2d", "add", "nn.relu"]]
    data = RNG.standard_normal((1, 4, 9)).astype(np.float32)
    np.testing.assert_allclose(
        interpret(done, data), interpret(function, data), rtol=1e-5, atol=1e-5
    )
