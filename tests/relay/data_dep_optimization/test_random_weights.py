"""Models whose weights become random ones with many zeros."""

import numpy as np
import pytest

import slipway as tvm
from slipway import nd, relay
from slipway.errors import InvalidShapeError
from slipway.topi.sparse.utils import convert_model_dense_to_sparse, sparse_sketch_rules

RNG = np.random.default_rng(0)


def model():
    x, w, k = (relay.var(n, shape=s) for n, s in (("x", (1, 4, 4, 8)), ("w", (16, 32)),
                                                  ("k", (1, 1, 8, 32))))  # fmt: skip
    y = relay.nn.conv2d(x, k, channels=32, kernel_size=1, data_layout="NHWC", kernel_layout="HWIO")
    y = relay.nn.dense(relay.mean(y, axis=[1, 2]), w)
    params = {n: nd.array(RNG.normal(size=s).astype("float32"))
              for n, s in (("w", (16, 32)), ("k", (1, 1, 8, 32)))}  # fmt: skip
    return tvm.IRModule.from_expr(relay.Function([x, w, k], y)), params


def test_weights_of_products_get_zeros_in_blocks():
    mod, params = model()
    with pytest.warns(UserWarning, match="weights stay dense"):
        made, kept = convert_model_dense_to_sparse(mod, params, random_params=True, bs_r=4)
    for name in ("w", "k"):
        values = kept[name].numpy()
        assert values.shape == params[name].shape
        assert 0.75 < np.mean(values == 0) < 0.9
    rows = kept["w"].numpy().reshape(4, 4, 32)
    assert np.all((rows == 0).all(axis=1) | (rows != 0).all(axis=1))
    x = RNG.normal(size=(1, 4, 4, 8)).astype("float32")
    got = relay.create_executor("graph", mod=made).evaluate()(x, **kept).numpy()
    want = (x @ kept["k"].numpy()[0, 0]).mean((1, 2)) @ kept["w"].numpy().T
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert sparse_sketch_rules() == []


def test_weights_of_ones_own_stay_and_blocks_divide_them():
    mod, params = model()
    with pytest.warns(UserWarning, match="weights stay dense"):
        _, kept = convert_model_dense_to_sparse(mod, params)
    np.testing.assert_array_equal(kept["w"].numpy(), params["w"].numpy())
    with pytest.raises(InvalidShapeError, match=r"the weight [wk]: blocks of \(5, 1\)"):
        convert_model_dense_to_sparse(mod, params, random_params=True, bs_r=5)
