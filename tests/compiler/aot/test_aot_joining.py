"""Tensors laid beside each other by copies of blocks, on microcontrollers."""

import numpy as np
import pytest
from aot_models import build
from tests.compiler.aot.test_aot import compile_shared, reference, run

import slipway as tvm
from slipway import relay

TARGET = "c -keys=arm_cpu -mcpu=cortex-m4"


def joined(dtype, shapes, axis, change=None):
    """A model that joins its inputs, the first of them twice."""
    inputs = [relay.var(f"x{i}", shape=s, dtype=dtype) for i, s in enumerate(shapes)]
    made = relay.concatenate([*inputs, inputs[0]], axis)
    return tvm.IRModule.from_expr(relay.Function(inputs, change(made) if change else made)), {}


@pytest.mark.parametrize(
    ("dtype", "shapes", "axis", "change", "families"),
    [
        ("int8", [(1, 3, 5), (1, 4, 5)], 1, None, ["joining"]),
        ("int8", [(3, 2, 7), (3, 2, 6)], -1, None, ["joining"]),
        ("float32", [(2, 3), (2, 1)], 1, None, ["joining"]),
        ("int16", [(5,), (3,)], 0, lambda x: relay.reshape(x, (1, 13, 1)), ["joining"]),
        ("int8", [(4, 3), (4, 9)], 1, None, []),  # blocks of three bytes
        ("int8", [(1, 8), (1, 4)], 1, lambda x: relay.maximum(x, relay.const(np.int8(3))), []),
        ("int8", [(0, 8), (3, 8)], 0, None, []),
    ],
)
def test_joined_tensors_are_those_of_the_reference(dtype, shapes, axis, change, families, tmp_path):
    model = joined(dtype, shapes, axis, change)
    lib = build(model, TARGET)
    assert [k.family for k in lib.library.values()] == families
    rng = np.random.default_rng(1)
    inputs = {f"x{i}": rng.integers(-99, 99, s).astype(dtype) for i, s in enumerate(shapes)}
    _, outputs = run(compile_shared(lib, tmp_path), lib, inputs)
    np.testing.assert_array_equal(outputs[0], reference(model, inputs)[0])
