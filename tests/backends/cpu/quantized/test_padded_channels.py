"""Data whose channels fill no steps is copied in vectors, with zeros after it."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.schedules.quantized.packed import copy_lanes
from slipway.relay import op_registry
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.mark.parametrize(
    ("read", "written", "lanes"),
    [(64, 64, 64), (13, 16, 4), (29, 32, 8), (61, 64, 8), (127, 128, 16), (65, 68, 4), (3, 4, 2)],
)
def test_few_channels_share_a_vector_with_zeros(read, written, lanes):
    assert copy_lanes(read, written, 64) == lanes


@pytest.mark.parametrize("channels", [13, 29, 61])
@pytest.mark.parametrize("data", ["uint8", "int16"])
def test_vectors_beside_the_data_are_zeros_and_the_padding_is_its_value(channels, data):
    steps = -(-channels // 4) if data == "uint8" else -(-channels // 2)
    depth, kind = (4, "int8") if data == "uint8" else (2, "int16")
    rng = np.random.default_rng(channels)
    weights = rng.integers(-127, 128, (1, 2, 2, steps, 16, depth)).astype(kind)
    given = rng.integers(0, 256, (2, 5, 7, channels)).astype(data)
    definition = op_registry.get("qnn.contrib_conv2d_packed")
    attrs = definition.attrs_type(strides=(3, 2), padding=(1, 1, 1, 0), pad_value=7)
    x = relay.var("x", shape=given.shape, dtype=data)
    call = definition(x, relay.const(weights), attrs=attrs)
    library = relay.build(call.as_function(), target="llvm")
    module = GraphModule(library["default"](tvm.cpu(0)))
    module.set_input(0, given)
    module.run()
    wanted = definition.evaluate(attrs, given, weights)
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)
