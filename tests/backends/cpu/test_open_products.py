"""Products of two computed matrices whose batch, rows and columns are open."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.backends.size_versions import size_versions
from slipway.target import Target

N, T, S = relay.Dim("n", 1, 4), relay.Dim("t", 1, 70), relay.Dim("s", 8, 40)
PRODUCTS = {
    "scores": ((N, T, 24), (N, T, 24), True),
    "values": ((N, T, T), (N, T, 24), False),
    "two lengths": ((N, T, 24), (N, 24, S), False),
    "one right matrix": ((N, T, 24), (1, 24, 24), False),
    "one left matrix": ((1, T, 24), (N, 24, S), False),
}


def product(name):
    left, right, transposed = PRODUCTS[name]
    x, y = relay.var("x", shape=left), relay.var("y", shape=right)
    made = relay.nn.batch_matmul(x, y, transpose_b=transposed)
    return relay.Function([x, y], made)


@pytest.mark.parametrize("name", PRODUCTS)
def test_an_open_batch_keeps_its_tiles(name):
    """Sum by sum they take three times as long, and no number tells."""
    target = Target("llvm -mcpu=x86-64-v3")
    function = slipway.IRModule.from_expr(product(name).with_attr("Primitive", 1))["main"]
    found = size_versions(function, target)
    parts = [v.function for v in found[1] if v.low >= 8] if found else [function]
    for part in parts:
        assert schedule_primitive(part, target).implementation.startswith("batch_matmul.")


@pytest.mark.parametrize("name", PRODUCTS)
def test_numbers_at_every_size(name):
    model = slipway.compile(slipway.IRModule.from_expr(product(name)), "llvm", quiet=True)
    left, right, transposed = PRODUCTS[name]
    rng = np.random.default_rng(0)
    for n, t, s in [(1, 1, 8), (4, 70, 40), (1, 33, 17), (3, 8, 9), (2, 5, 40)]:
        sizes = {"n": n, "t": t, "s": s}
        x, y = (
            rng.standard_normal([sizes.get(str(d), d) for d in shape]).astype(np.float32)
            for shape in (left, right)
        )
        wanted = x.astype(float) @ (y.mT if transposed else y).astype(float)
        np.testing.assert_allclose(model(x, y), wanted, rtol=1e-5, atol=1e-5)
