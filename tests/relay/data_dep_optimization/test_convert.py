"""Rewrites that change a model's parameters."""

import numpy as np
import pytest

import slipway
from slipway import nd, relay
from slipway.relay import data_dep_optimization as ddo
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 4)).astype(np.float32)
W = RNG.standard_normal((4, 3)).astype(np.float32)


def product(*, shared=False, axes=(1, 0)):
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 3))
    y = relay.nn.dense(x, relay.transpose(w, axes))
    return relay.Function([x, w], relay.add(y, relay.sum(w)) if shared else y)


@pytest.mark.parametrize("axes", [(1, 0), None, (-1, 0)])
def test_transposed_weights_become_parameters(axes):
    params = {"w": nd.array(W)}
    made, new = ddo.simplify_fc_transpose.convert(product(axes=axes), params)
    assert new is params
    assert list(new) == ["w.T"]
    np.testing.assert_array_equal(new["w.T"].numpy(), W.T)
    assert "transpose" not in str(made)
    assert [p.name_hint for p in made.params] == ["x", "w.T"]
    mod = slipway.IRModule.from_expr(made)
    np.testing.assert_allclose(interpret(mod, **{"x": X, "w.T": W.T}), X @ W, rtol=1e-5)


def test_a_weight_that_others_read_stays():
    params = {"w": nd.array(W)}
    made, new = ddo.simplify_fc_transpose.convert(product(shared=True), params)
    assert list(new) == ["w"]
    assert "transpose" in str(made)
    made, new = ddo.simplify_fc_transpose.convert(product(), {})
    assert [p.name_hint for p in made.params] == ["x", "w"]


@pytest.mark.parametrize("kind", [ddo.bsr_dense, ddo.bsr_conv2d])
def test_weights_stay_dense_and_that_is_said(kind):
    func, params = product(), {"w": nd.array(W)}
    with pytest.warns(UserWarning, match="weights stay dense"):
        assert kind.convert(func, params, (16, 1), 0.8) == (func, params)
