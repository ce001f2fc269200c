"""Averages sum in a dtype that holds the sum: short integers and float16 do not overflow."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.op_registry import make
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor


def run(function, array, target):
    x = relay.var("x", shape=array.shape, dtype=array.dtype.name)
    module = tvm.IRModule.from_expr(relay.Function([x], function(x)))
    library = relay.build(module, target=target)
    executor = graph_executor.GraphModule(library["default"](cpu(0)))
    executor.run(x=array)
    return executor.get_output(0).numpy()


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_integers_at_the_end_of_their_range(dtype, target):
    top = np.iinfo(dtype).max >> (8 if dtype == "int64" else 0)
    array = np.full((1, 16, 12, 17), top, dtype)

    def averages(x):
        return relay.Tuple([
            make("nn.avg_pool2d")(x, (3, 3), padding=(1, 1)),
            make("nn.avg_pool2d")(x, (3, 3), padding=(1, 1), layout="NHWC"),
            make("nn.global_avg_pool2d")(x),
            make("nn.adaptive_avg_pool2d")(x, (5, 4)),
        ])  # fmt: skip

    x = relay.var("x", shape=array.shape, dtype=dtype)
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], averages(x))), target=target)
    executor = graph_executor.GraphModule(library["default"](cpu(0)))
    executor.run(x=array)
    for index in range(4):
        assert (executor.get_output(index).numpy() == top).all(), index


def test_negative_averages_go_towards_zero():
    array = np.array([-128, -127, -127, -127], "int8").reshape(1, 1, 1, 4)
    assert run(lambda x: make("nn.avg_pool2d")(x, (1, 4)), array, "llvm") == -127


@pytest.mark.parametrize("name", ["nn.global_avg_pool2d", "nn.avg_pool2d"])
def test_float16_sums_beyond_its_range(name):
    array = np.full((1, 3, 64, 64), 60.0, "float16")
    more = {} if "global" in name else {"pool_size": (64, 64)}
    assert (run(lambda x: make(name)(x, **more), array, "llvm") == 60.0).all()


def test_sums_over_an_open_size_are_chosen_for_its_upper_end():
    from slipway.relay.dims import Dim
    from slipway.relay.ops.nn.pool import sum_dtype

    assert sum_dtype("int8", Dim("n", 1, 1000)) == "int32"
    assert sum_dtype("int8", Dim("n", 1, 1 << 40)) == "int64"
    assert sum_dtype("int8", Dim("n", 1)) == "int64"


def test_names_that_are_no_text_are_refused():
    import pytest

    from slipway.errors import TypeInferenceError
    from slipway.relay.expr import Var

    with pytest.raises(TypeInferenceError, match="no text"):
        Var(b"\xff", None)
