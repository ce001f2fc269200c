"""Matrix products of batches that are broadcast, against NumPy's; which way each is computed."""

import numpy as np
import pytest

from slipway import relay
from slipway.frontends.product import product_of
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order

SHAPES = [
    ((4, 5), (5, 3)), ((5,), (5, 3)), ((2, 4, 5), (5,)), ((2, 4, 5), (2, 5, 3)),
    ((2, 3, 4, 5), (1, 3, 5, 6)), ((2, 3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (2, 1, 5, 6)),
    ((2, 3, 4, 5), (1, 1, 5, 6)), ((1, 3, 4, 5), (2, 3, 5, 6)), ((1, 3, 4, 5), (2, 1, 5, 6)),
    ((3, 5, 6), (2, 3, 6, 4)), ((2, 3, 2, 7, 8), (2, 1, 2, 8, 9)), ((2, 3, 2, 7, 8), (3, 1, 8, 9)),
    ((2, 3, 2, 7, 8), (1, 3, 1, 8, 9)), ((1, 4, 2, 8, 9), (1, 1, 2, 9, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_as_numpy_has_it(left, right):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in (left, right))
    x, y = relay.var("x", shape=left), relay.var("y", shape=right)
    found = interpret(relay.Function([x, y], product_of(x, y)), a, b)
    np.testing.assert_allclose(found, np.matmul(a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("left", "right", "product", "moves"),
    [
        ((2, 12, 31, 192), (1, 12, 192, 100), (12, 62, 192), 2),
        ((2, 12, 31, 192), (12, 192, 100), (12, 62, 192), 2),
        ((12, 7, 40, 100), (12, 1, 100, 12), (12, 280, 100), 0),  # beside each other already
        ((5, 8, 64, 64), (8, 64, 64), (40, 64, 64), 0),  # to move them takes as long
        ((1, 12, 31, 192), (2, 12, 192, 100), (24, 31, 192), 0),
    ],
)
def test_batches_that_share_a_matrix_are_its_rows(left, right, product, moves):
    x, y = relay.var("x", shape=left), relay.var("y", shape=right)
    calls = [e for e in post_order(product_of(x, y)) if isinstance(e, relay.Call)]
    (made,) = [c for c in calls if c.op.name == "nn.batch_matmul"]
    assert made.args[0].checked_type.shape == product
    assert sum(c.op.name == "transpose" for c in calls) == moves
