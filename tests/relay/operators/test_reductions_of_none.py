"""A reduced axis of one step or none: the start is the result where there is no step."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.contrib.graph_executor import GraphModule


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("high", [1, 4])
@pytest.mark.parametrize("axis", [1, 2])
def test_a_sum_over_an_open_axis_that_has_no_elements(axis, high, target):
    shape = [2, 3, 4]
    shape[axis] = relay.Dim("n", 0, high)
    x = relay.var("x", shape=tuple(shape))
    results = [relay.sum(x, axis=axis), relay.max(x, axis=axis), relay.prod(x, axis=axis)]
    mod = slipway.IRModule.from_expr(relay.Function([x], relay.Tuple(results)))
    run = GraphModule(relay.build(mod, target=target)["default"](slipway.cpu(0)))
    for count in (high, 0, high):  # what the run before has left is no result
        sizes = [count if a == axis else n for a, n in enumerate((2, 3, 4))]
        given = np.random.default_rng(count).standard_normal(sizes).astype(np.float32)
        run.run(x=given)
        wanted = given.sum(axis), given.max(axis, initial=-np.inf), given.prod(axis)
        for number, want in enumerate(wanted):
            found = run.get_output(number).numpy()
            # The identity of a maximum is the lowest number there is.
            np.testing.assert_allclose(np.maximum(found, -1e38), np.maximum(want, -1e38), rtol=1e-5)
