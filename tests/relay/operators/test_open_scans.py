"""Running sums and products along open axes, and beside them: the numbers at every size."""

import numpy as np
import pytest

import slipway
from slipway import relay

N, T, C = relay.Dim("n", 1, 4), relay.Dim("t", 1, 128), relay.Dim("c", 1, 40)
SIZES = [(1, 1, 1), (4, 128, 40), (2, 33, 16), (3, 100, 17), (1, 128, 15)]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((N, T, 64), 1), ((N, T, C), 1), ((N, T, C), -1), ((N, 64, T), -1), ((T,), 0), ((T, C), 0)],
)
def test_running_sums(shape, axis, exclusive):
    x = relay.var("x", shape=shape)
    function = relay.Function([x], relay.cumsum(x, axis, exclusive=exclusive))
    model = slipway.compile(slipway.IRModule.from_expr(function), "llvm", quiet=True)
    rng = np.random.default_rng(0)
    for n, t, c in SIZES:
        named = {"n": n, "t": t, "c": c}
        value = rng.integers(-9, 9, [named.get(str(d), d) for d in shape]).astype(np.float32)
        wanted = value.cumsum(axis)
        np.testing.assert_array_equal(model(value), wanted - value if exclusive else wanted)
