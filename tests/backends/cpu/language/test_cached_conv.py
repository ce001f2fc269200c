"""A causal convolution whose state stays from run to run: in parts as at once."""

import numpy as np
import pytest

from slipway import relay
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.mark.parametrize("target", ["llvm -mcpu=native", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize(("channels", "taps"), [(24, 3), (5, 4), (16, 2)])
def test_parts_are_as_the_whole(channels, taps, target):
    n = relay.Dim("n", 1, 9)
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((channels, taps)).astype("float32")
    x = relay.var("x", shape=(n, channels))
    state = relay.var("state", shape=(taps - 1, channels))
    position = relay.var("position", shape=(1,), dtype="int32")
    made = relay.nn.cached_conv1d(x, relay.const(weight), state, position)
    library = relay.build(relay.Function([x, state, position], made), target=target)
    module = GraphModule(library["default"](cpu()))
    data = rng.standard_normal((20, channels)).astype("float32")
    padded = np.concatenate([np.zeros((taps - 1, channels)), data])
    want = sum(weight[:, t] * padded[t : t + len(data)] for t in range(taps))
    for _ in range(2):  # the state of before counts for nothing at position 0
        done = 0
        for rows in (1, 2, 9, 1, 1, 6):
            part = data[done : done + rows]
            module.run(x=part, position=np.array([done], np.int32))
            found = module.get_output(0).numpy()
            np.testing.assert_allclose(found, want[done : done + rows], rtol=1e-5, atol=1e-5)
            done += rows
