"""Weights as blocks: found, stored, and taken by a graph."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule
from slipway.relay.analysis import sparse_dense
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(6)


def test_products_with_weights_in_blocks():
    x = relay.var("x", shape=(2, 12))
    first, second = relay.var("w", shape=(8, 12)), relay.var("v", shape=(3, 8))
    mod = IRModule.from_expr(
        relay.Function([x, first, second], relay.nn.dense(relay.nn.dense(x, first), second))
    )
    sparse = np.zeros((8, 12), "float32")
    sparse[2:4, 3:6], sparse[6, 0], sparse[7, 11] = RNG.normal(size=(2, 3)), 2.0, 3.0
    dense = RNG.normal(size=(3, 8)).astype("float32")
    params = {"w": sparse, "v": dense}
    found = sparse_dense.process_params(mod["main"], params, (2, 3), 0.8)
    assert found == (["w"], [[3, 2, 3, 3, 5]])
    assert sorted(params) == ["v", "w.data", "w.indices", "w.indptr"]
    assert params["w.indptr"].numpy().tolist() == [0, 0, 1, 1, 3]
    made = relay.transform.DenseToSparse(found.weight_name, found.weight_shape)(mod)
    names = [p.name_hint for p in made["main"].params]
    assert names == ["x", "w.data", "w.indices", "w.indptr", "v"]
    value = RNG.normal(size=(2, 12)).astype("float32")
    bound = relay.bind_params_by_name(made["main"], params)
    found_values = interpret(IRModule.from_expr(bound), value)
    np.testing.assert_allclose(found_values, value @ sparse.T @ dense.T, rtol=1e-5, atol=1e-5)
    with pytest.raises(ArgumentValueError, match="block_size must divide"):
        sparse_dense.process_params(mod["main"], {"w": sparse}, (3, 3), 0.8)
