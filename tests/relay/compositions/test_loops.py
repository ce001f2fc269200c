"""``relay.loops.while_loop``: classic loops by Python functions."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay.loops import while_loop


@pytest.mark.parametrize("kind", ["debug", "vm", "graph"])
def test_a_loop_uses_what_lies_around_it(kind):
    i, total = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(3,))
    step, last = relay.var("step", shape=(3,)), relay.var("last", shape=(), dtype="int32")
    loop = while_loop(
        lambda i, s: relay.less(i, last),
        [i, total],
        lambda i, s: [relay.add(i, relay.const(1)), relay.add(s, step)],
    )
    body = loop(relay.const(0), relay.const(np.zeros(3, "float32")))
    run = relay.create_executor(kind, mod=relay.Function([step, last], body)).evaluate()
    for iterations in (0, 1, 7):
        count, found = run(np.float32([1, 2, 3]), np.int32(iterations))
        assert count.numpy() == iterations
        np.testing.assert_array_equal(found.numpy(), np.float32([1, 2, 3]) * iterations)


def test_a_variable_that_grows_is_refused_by_name():
    x = relay.var("x", shape=(2,))
    with pytest.raises(TypeInferenceError, match=r"'x' is .*\(2,\).*\(4,\)"):
        while_loop(
            lambda x: relay.less(relay.sum(x), relay.const(9.0)),
            [x],
            lambda x: [relay.concatenate([x, x], 0)],
        )
