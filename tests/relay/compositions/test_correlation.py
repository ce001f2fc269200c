"""nn.correlation as classic TVM's formula says, element by element."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TypeInferenceError

RNG = np.random.default_rng(3)


def by_formula(a, b, kernel, far, stride1, stride2, padding, multiply):
    a, b = (np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))) for x in (a, b))
    halo, reach = far + kernel // 2, far // stride2
    side = 2 * reach + 1
    height, width = (-(-(n - 2 * halo) // stride1) for n in a.shape[2:])
    out = np.zeros((len(a), side * side, height, width))
    for n, q, i, j in np.ndindex(out.shape):
        y, x = i * stride1 + far, j * stride1 + far
        down, right = (q // side - reach) * stride2, (q % side - reach) * stride2
        own = a[n, :, y : y + kernel, x : x + kernel]
        other = b[n, :, y + down : y + down + kernel, x + right : x + right + kernel]
        out[n, q, i, j] = (own * other if multiply else np.abs(own - other)).mean()
    return out


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    "options", [(1, 4, 1, 1, 4, True), (3, 3, 1, 2, 4, True), (5, 2, 2, 1, 4, False)]
)
def test_displacements(options, target):
    a, b = (RNG.standard_normal((1, 3, 10, 11)).astype("float32") for _ in range(2))
    x, y = (relay.var(n, shape=a.shape) for n in "xy")
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.correlation(x, y, *options)))
    run = relay.create_executor("graph", mod, tvm.cpu(), target).evaluate()
    want = by_formula(a.astype("float64"), b.astype("float64"), *options)
    np.testing.assert_allclose(run(a, b).numpy(), want, rtol=1e-4, atol=1e-5)


def test_errors_name_the_argument():
    x, y = relay.var("x", shape=(1, 3, 8, 8)), relay.var("y", shape=(1, 3, 8, 9))
    for args, words in (
        ((x, y), "'data2' must be"),
        ((x, x, 2), "'kernel_size' must be odd"),
        ((x, x, 1, 4), "'max_displacement' leaves nothing"),
    ):
        with pytest.raises(TypeInferenceError, match=words):
            relay.nn.correlation(*args).checked_type  # noqa: B018
    with pytest.raises(TypeInferenceError, match="'layout' must be NCHW"):
        relay.nn.correlation(x, x, layout="NHWC")


def test_open_heights_give_the_numbers_of_fixed_ones():
    rng = np.random.default_rng(5)

    def built(height):
        a, b = (relay.var(n, shape=(1, 3, height, 8)) for n in "ab")
        body = relay.nn.correlation(a, b, 1, 1, 1, 1, (1, 1, 1, 1))
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([a, b], body)), target="llvm")
        return tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))

    opened = built(relay.Dim("h", 6, 20))
    for height in (6, 11, 20):
        given = {n: rng.standard_normal((1, 3, height, 8)).astype("float32") for n in "ab"}
        results = []
        for module in (opened, built(height)):
            module.run(**given)
            results.append(module.get_output(0).numpy())
        np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-6)
