"""Convolutions whose model has its channels in blocks, and pools over axes in any order."""

import itertools

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay.layout import transform_array

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(2, 16, 9, 8)).astype("float32")


def run(body, given, opt_level=3):
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with tvm.transform.PassContext(opt_level=opt_level):
        executor = relay.create_executor("graph", mod=module, target="llvm -mcpu=znver4")
        return executor.evaluate()(given).numpy()


def convolved(kernel, data_layout, kernel_layout, out_layout, groups, opt_level):
    given = transform_array(DATA, "NCHW", data_layout)
    weight = relay.const(transform_array(kernel, "OIHW", kernel_layout))
    body = relay.nn.conv2d(
        relay.var("x", shape=given.shape), weight, padding=(1, 1), groups=groups,
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
    )  # fmt: skip
    found = run(relay.nn.relu(body), given, opt_level)
    return transform_array(found, out_layout or data_layout, "NCHW")


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize(
    ("data", "kernel", "out", "groups"),
    [
        ("NCHW16c", "OIHW16i16o", "", 1), ("NCHW4c", "OIHW4o", "", 1),
        ("NCHW4c", "OIHW", "NCHW8c", 1), ("NHWC4c", "HWIO", "", 1),
        ("NCHW8c", "OIHW1i8o", "", 16), ("NCHW4c", "OIHW", "NCHW", 2),
        ("NCHW", "OIHW8o", "NCHW8c", 1), ("HWNC4c", "IOHW", "CHWN", 1),
    ],
)  # fmt: skip
def test_blocks_of_channels(data, kernel, out, groups, opt_level):
    weight = RNG.normal(size=(16, 16 // groups, 3, 3)).astype("float32")
    found = convolved(weight, data, kernel, out, groups, opt_level)
    wanted = convolved(weight, "NCHW", "OIHW", "", groups, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_kernel_without_a_type_has_blocks():
    x, w = relay.var("x", shape=(1, 4, 5, 5, 4)), relay.var("w")
    call = relay.nn.conv2d(
        x, w, channels=8, kernel_size=(3, 3), data_layout="NCHW4c", kernel_layout="OIHW4i8o"
    )
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(call))["main"]
    assert str(typed.params[1].type) == "Tensor[(1, 4, 3, 3, 4, 8), float32]"
    assert str(typed.ret_type) == "Tensor[(1, 2, 3, 3, 4), float32]"


def test_blocks_of_no_divisor_are_refused():
    x, w = relay.var("x", shape=(1, 3, 5, 5, 4)), relay.var("w", shape=(6, 12, 3, 3))
    with pytest.raises(TypeInferenceError, match="blocks of 4, which do not divide its extent 6"):
        relay.nn.conv2d(x, w, data_layout="NCHW4c")
    with pytest.raises(TypeInferenceError, match="no order of the axes 'NCHW'"):
        relay.nn.conv2d(x, w, data_layout="NCHW4h")


@pytest.mark.parametrize("kernel", ["OIHW4o", "OIHW4i4o", "OIHW"])
def test_convert_layout_and_back(kernel):
    x = relay.var("x", shape=(2, 16, 9, 8))
    weight = relay.const(RNG.normal(size=(32, 16, 3, 3)).astype("float32"))
    bias = relay.const(RNG.normal(size=32).astype("float32"))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weight, padding=(1, 1)), bias))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(y, (2, 2), (2, 2))))
    wanted = relay.create_executor("graph", mod=module).evaluate()(DATA).numpy()
    there = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW4c", kernel]})(module)
    assert "NCHW4c" in str(there["main"])
    back = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(there)
    for changed in (there, back):
        found = relay.create_executor("graph", mod=changed).evaluate()(DATA).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


ORDERS = ["".join(letters) for letters in itertools.permutations("NCHW")]


@pytest.mark.parametrize("layout", [*ORDERS, "NHWC4c", "HWNC4c", "NHCW8c", "NCHW16c", "CHWN4c"])
def test_pools_over_axes_in_any_order(layout):
    given = transform_array(DATA, "NCHW", layout)
    x, plain = relay.var("x", shape=given.shape), relay.var("x", shape=DATA.shape)
    for pool in (relay.nn.max_pool2d, relay.nn.avg_pool2d):
        found = run(pool(x, (2, 3), (2, 2), layout=layout), given)
        wanted = run(pool(plain, (2, 3), (2, 2)), DATA)
        np.testing.assert_allclose(
            transform_array(found, layout, "NCHW"), wanted, rtol=1e-5, atol=1e-6
        )
