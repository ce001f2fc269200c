"""In what blocks the weights of a product of one row lie."""

import pytest

from slipway.backends.cpu.graph import panel_units
from slipway.backends.cpu.lowering.layout_choice import row_block
from slipway.target import Target


@pytest.mark.parametrize(
    ("units", "widest", "block"),
    [
        (1024, 32, 32), (1000, 32, 32), (10, 32, 4), (1, 32, 0),
        (1024, 24, 24), (1000, 24, 24), (16, 24, 16), (20, 24, 20), (12, 24, 12), (10, 24, 12),
        (3, 24, 4), (1, 24, 0), (40, 24, 20),
    ],
)  # fmt: skip
def test_blocks_pad_little(units, widest, block):
    assert row_block(units, widest) == block


@pytest.mark.parametrize("features", ["", " -mattr=+relaxed-simd"])
def test_engines_hold_the_weights_of_a_step_beside_its_sums(features):
    """Of V8's registers: six vectors of weights, as many of sums, a value and a product."""
    assert panel_units(Target(f"llvm -mtriple=wasm32{features}"), 4, 1, 1024) == 24
    assert panel_units(Target("llvm -mcpu=x86-64-v3"), 8, 1, 1024) == 64
