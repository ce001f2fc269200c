"""Products of bfloat16 and float16 are summed in float32, and close to the exact ones."""

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.precision.widen_products import widen_products

RNG = np.random.default_rng(0)


def const(*shape):
    return relay.const((RNG.standard_normal(shape) * 0.1).astype(ml_dtypes.bfloat16))


def var(*shape):
    return relay.var("x", shape=shape, dtype="bfloat16")


CASES = {
    "dense": lambda: (x := var(8, 512), relay.nn.dense(x, const(32, 512))),
    "conv2d": lambda: (
        x := var(1, 32, 9, 9), relay.nn.relu(relay.nn.conv2d(x, const(16, 32, 3, 3)))
    ),
    "batch_matmul": lambda: (x := var(2, 24, 64), relay.nn.batch_matmul(x, x, transpose_b=True)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sums_lose_one_rounding_only(case):
    x, body = CASES[case]()
    function = infer_type(relay.Function([x], body))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    data = RNG.standard_normal(x.type_annotation.shape).astype(ml_dtypes.bfloat16)
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(x=data)
    got = model.get_output(0).numpy().astype("float32")
    wide = relay.interpret.interpret(widen_products(function), data).astype("float32")
    np.testing.assert_allclose(got, wide, rtol=2**-7, atol=1e-3 * np.abs(wide).max())


def test_operands_stay_narrow_where_an_instruction_takes_pairs():
    x, body = CASES["dense"]()
    function = infer_type(relay.Function([x], body))
    (product,) = widen_products(function, lambda call: True).body.args
    assert product.tensor_type.dtype == "float32"
    assert [a.tensor_type.dtype for a in product.args] == ["bfloat16", "bfloat16"]
    data = RNG.standard_normal((8, 512)).astype(ml_dtypes.bfloat16)
    wide = relay.interpret.interpret(widen_products(function), data)
    narrow = relay.interpret.interpret(widen_products(function, lambda call: True), data)
    np.testing.assert_array_equal(narrow, wide)


def test_sums_in_float32_of_the_model_are_kept():
    x = var(4, 8)
    product = relay.nn.dense(x, const(6, 8), out_dtype="float32")
    function = infer_type(relay.Function([x], product))
    assert widen_products(function, lambda call: True) is function
    (data, weight) = widen_products(function).body.args
    assert {data.tensor_type.dtype, weight.tensor_type.dtype} == {"float32"}


def packed(dtype):
    """A product of each form with channels or units in blocks, and what it takes."""
    x = relay.var("x", shape=(1, 32, 5, 5, 8), dtype=dtype)
    w = relay.var("w", shape=(1, 32, 3, 3, 8, 8), dtype=dtype)
    yield (x, w), relay.nn.contrib_conv2d_nchwc(x, w)
    tiles = relay.var("w", shape=(1, 6, 6, 32, 8, 8), dtype=dtype)
    yield (x, tiles), relay.nn.contrib_conv2d_winograd_nchwc(x, tiles, padding=1)
    rows, panel = (
        relay.var(n, shape=s, dtype=dtype) for n, s in (("x", (2, 2048)), ("w", (1, 2048, 8)))
    )
    yield (rows, panel), relay.nn.contrib_dense_pack(rows, panel)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_float16_sums_lose_one_rounding_only_whatever_their_weights(target):
    x, w = (relay.var(n, shape=(3, 4096), dtype="float16") for n in "xw")
    a, b = (RNG.standard_normal((3, 4096)).astype("float16") for _ in range(2))
    function = infer_type(relay.Function([x, w], relay.nn.dense(x, w)))
    library = relay.build(tvm.IRModule.from_expr(function), target=target)
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(x=a, w=b)
    exact = a.astype("float64") @ b.astype("float64").T
    got = model.get_output(0).numpy().astype("float64")
    assert np.abs(got - exact).max() <= 2.0**-11 * np.abs(exact).max() + 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_in_blocks_sum_in_float32(dtype):
    for params, body in packed(dtype):
        function = infer_type(relay.Function(list(params), body))
        (product,) = widen_products(function).body.args
        assert product.tensor_type.dtype == "float32"
        assert {a.tensor_type.dtype for a in product.args} == {"float32"}


def test_other_products_stay():
    x = relay.var("x", shape=(4, 8), dtype="float32")
    weight = relay.const(RNG.standard_normal((6, 8)).astype("float32"))
    function = infer_type(relay.Function([x], relay.nn.dense(x, weight)))
    assert widen_products(function) is function
