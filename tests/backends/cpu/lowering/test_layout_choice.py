"""In what blocks the weights of a product of one row lie."""

import pytest

from slipway.backends.cpu.graph import panel_units
from slipway.backends.cpu.lowering.layout_choice import row_block
from slipway.target import Target


@pytest.mark.parametrize(
    ("units", "widest", "lanes", "block"),
    [
        (1024, 32, 4, 32), (1000, 32, 4, 32), (10, 32, 4, 12), (1, 32, 4, 0), (7, 32, 4, 8),
        (1024, 24, 4, 24), (1000, 24, 4, 24), (16, 24, 4, 16), (20, 24, 4, 20), (12, 24, 4, 12),
        (10, 24, 4, 12), (3, 24, 4, 4), (1, 24, 4, 0), (40, 24, 4, 20),
        (1024, 64, 8, 64), (1000, 64, 8, 64), (333, 64, 8, 56), (100, 64, 8, 56), (80, 64, 8, 40),
        (150, 64, 8, 40), (50, 64, 8, 56), (30, 64, 8, 32), (10, 64, 8, 4), (2, 64, 8, 0),
        (1000, 64, 16, 64), (333, 64, 16, 48), (150, 64, 16, 32), (100, 64, 16, 64),
        (80, 64, 16, 48), (40, 64, 16, 48), (20, 64, 16, 8), (16, 64, 16, 16),
    ],
)  # fmt: skip
def test_blocks_of_one_row_pad_little(units, widest, lanes, block):
    """What is padded is read: 333 units in blocks of 64 took 1.14 of their time in those of 48."""
    assert row_block(units, widest, lanes) == block


@pytest.mark.parametrize("features", ["", " -mattr=+relaxed-simd"])
def test_engines_hold_the_weights_of_a_step_beside_its_sums(features):
    """Of V8's registers: six vectors of weights, as many of sums, a value and a product."""
    assert panel_units(Target(f"llvm -mtriple=wasm32{features}"), 4, 1, 1024) == 24
    assert panel_units(Target("llvm -mcpu=x86-64-v3"), 8, 1, 1024) == 64
