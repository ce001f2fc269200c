"""Graphs before tvmc builds them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.driver.tvmc import TVMCException, transform

X = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype("float32")


def model():
    x = relay.var("x", shape=X.shape)
    w = relay.const(np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype("float32"))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    return tvm.IRModule.from_expr(relay.Function([x], y))


def results(mod):
    return relay.create_executor("graph", mod=mod).evaluate()(X).numpy()


@pytest.mark.parametrize("layouts", ["NHWC", "NHWC:HWIO", ["NHWC:HWIO", "NHWC", "NHWC"]])
def test_layouts_change_and_results_do_not(layouts):
    made = transform.convert_graph_layout(model(), layouts)
    assert 'data_layout="NHWC"' in str(made)
    assert 'kernel_layout="HWIO"' in str(made)
    np.testing.assert_allclose(results(made), results(model()), rtol=1e-5, atol=1e-5)


def test_products_become_those_of_16_bits_and_outputs_keep_their_type():
    args = {
        "mixed_precision": True,
        "mixed_precision_ops": ["nn.conv2d", "nn.dense"],
        "mixed_precision_calculation_type": "float16",
        "mixed_precision_acc_type": "float32",
        "desired_layout": "NHWC",
        "desired_layout_ops": ["nn.conv2d"],
    }
    made = transform.apply_graph_transforms(model(), args)
    assert "float16" in str(made)
    assert 'data_layout="NHWC"' in str(made)
    assert results(made).dtype == np.float32
    np.testing.assert_allclose(results(made), results(model()), rtol=0.02, atol=0.02)
    same = model()
    assert transform.apply_graph_transforms(same, {}) is same


def test_what_cannot_be_says_what_can():
    with pytest.raises(TVMCException, match="2 layouts for 3 operators"):
        transform.convert_graph_layout(model(), ["NHWC", "NCHW"])
    with pytest.raises(TVMCException, match=r"tvmc cannot change layouts: .*XYZW"):
        transform.convert_graph_layout(model(), "XYZW")
    with pytest.raises(TVMCException, match="products change type together"):
        transform.convert_to_mixed_precision(model(), ["nn.conv2d"])
    with pytest.raises(TVMCException, match="acc_type is 'int8'"):
        transform.convert_to_mixed_precision(model(), acc_type="int8")
    with pytest.raises(TVMCException, match=r"tvmc cannot change mixed precision: .*int8"):
        transform.convert_to_mixed_precision(model(), calculation_type="int8")
