"""The first few of many rows, a lane for each: which rows, and that ties and NaN stay in order."""

import numpy as np
import pytest
from kernel_check import TARGETS

import slipway as tvm
from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.target import Target


def strategy(shape, k, axis, target, dtype="float32"):
    x = relay.var("x", shape=shape, dtype=dtype)
    body = relay.topk(x, k=k, axis=axis).astuple()
    call = body if isinstance(body, relay.Call) else body.fields[0].tuple_value
    function = relay.Function([x], call).with_attr("Primitive", 1)
    return schedule_primitive(function, Target(target)).implementation


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_ascend", [False, True])
@pytest.mark.parametrize(
    ("shape", "k", "axis", "dtype"),
    [
        ((5, 7, 40), 5, -1, "float32"), ((33, 9), 1, 1, "float32"), ((19, 5), 5, 1, "float32"),
        ((3, 20, 37), 4, 1, "float32"), ((50, 21), 3, 0, "float64"), ((70, 33), 4, 1, "int32"),
        ((20, 30), 2, -1, "int64"), ((40, 3, 5), 3, 1, "float32"),
        ((3, 197), 197, -1, "float32"), ((2, 130), 64, 1, "float32"), ((77, 3), 50, 0, "float64"),
        ((2, 65, 3), 40, 1, "int32"), ((2, 33), 33, 1, "int8"), ((3, 100), 100, 1, "float16"),
        ((2, 1500), 1500, 1, "float32"), ((1200, 2), 900, 0, "float64"), ((1, 5000), 0, 1, "int64"),
        ((2, 2000), 1000, 1, "uint8"), ((3, 5000), 20, 1, "float32"), ((2, 3001), 7, 1, "int64"),
        ((2, 1999, 2), 60, 1, "float16"), ((4000, 3), 1, 0, "uint8"), ((70, 3), 1, 1, "float16"),
        ((70, 5), 2, 1, "int8"), ((3, 20, 37), 4, 1, "uint8"), ((40, 9), 1, 1, "int16"),
    ],
)  # fmt: skip
def test_numbers_and_places(target, shape, k, axis, dtype, is_ascend):
    rng = np.random.default_rng(0)
    data = rng.integers(-4, 4, shape).astype(dtype)  # many are equal
    if dtype.startswith("float"):
        data[rng.random(shape) < 0.1] = np.nan
        data[rng.random(shape) < 0.1] = -np.inf
        data[rng.random(shape) < 0.1] = np.inf
    x = relay.var("x", shape=shape, dtype=dtype)
    both = relay.topk(x, k=k, axis=axis, is_ascend=is_ascend, dtype="int64").astuple()
    function = relay.Function([x], both)
    library = relay.build(tvm.IRModule.from_expr(function), target=target)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.set_input(x=data)
    module.run()
    for number, wanted in enumerate(interpret(function, data)):
        np.testing.assert_array_equal(module.get_output(number).numpy(), wanted)


@pytest.mark.parametrize(
    ("shape", "k", "axis", "name"),
    [
        ((256, 64), 5, 1, "topk.lanes"), ((2, 64, 40), 5, 1, "topk.lanes"),
        ((8, 1000), 5, 1, "topk.groups"), ((256, 64), 17, 1, "topk.ranks"),
        ((256, 100_000), 16, 1, "topk.groups"), ((1, 197), 197, 1, "topk.ranks"),
        ((3, 300, 4), 64, 1, "topk.limit"), ((2, 5000), 0, 1, "topk.bytes"),
        ((3, 777), 64, 1, "topk.limit"), ((192, 384), 300, 1, "topk.limit"),
        ((1, 8400), 300, 1, "topk.groups"), ((40, 33), 30, 1, "topk.ranks"),
    ],
)  # fmt: skip
def test_each_way_serves_what_it_is_best_for(shape, k, axis, name):
    assert strategy(shape, k, axis, "llvm -mcpu=skylake-avx512") == name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "int16"])
def test_rows_of_narrow_types_are_lanes_too(dtype):
    assert strategy((6400, 3), 1, 1, "llvm -mcpu=znver4", dtype) == "topk.lanes"
    assert strategy((2, 64, 40), 2, 1, "llvm -mcpu=znver4", dtype) == "topk.lanes"


@pytest.mark.parametrize("is_ascend", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int8", "float16"])
@pytest.mark.parametrize(("length", "k"), [(777, 64), (300, 33), (130, 129), (4001, 30)])
@pytest.mark.parametrize("kind", ["different", "equal", "two", "lowest", "highest"])
def test_up_to_a_limit(length, k, dtype, is_ascend, kind):
    """However many elements stand on the limit, and where the limit is an end of the type."""
    rng = np.random.default_rng(length)
    if dtype.startswith("float"):
        low, high = -np.inf, np.inf
        data = rng.standard_normal((3, length)).astype(dtype)
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        data = rng.integers(low, high, (3, length), endpoint=True).astype(dtype)
    if kind == "equal":
        data[:] = data[0, 0]
    elif kind == "two":
        data = np.where(rng.random(data.shape) < 0.1, data[0, 0], data[0, 1])
    elif kind != "different":
        data[rng.random(data.shape) < 0.9] = low if kind == "lowest" else high
    x = relay.var("x", shape=data.shape, dtype=dtype)
    function = relay.Function([x], relay.topk(x, k=k, is_ascend=is_ascend).astuple())
    library = relay.build(tvm.IRModule.from_expr(function), target="llvm -mcpu=x86-64-v3")
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.run(x=data)
    for number, wanted in enumerate(interpret(function, data)):
        np.testing.assert_array_equal(module.get_output(number).numpy(), wanted)
