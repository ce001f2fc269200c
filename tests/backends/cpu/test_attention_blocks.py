"""Sizes of a fused attention."""

from math import ceil

import pytest

from slipway.backends.cpu.schedules.attention.blocks import choose_blocks, score_bytes, value_lanes
from slipway.backends.cpu.tile import vector_registers
from slipway.target import Target

AVX512 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -num-cores=2")
AVX2 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
NEON = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon")


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON])
@pytest.mark.parametrize("rows", [4, 16, 17, 100, 128, 197, 2048])
@pytest.mark.parametrize("keys", [1, 20, 197, 5000])
def test_sizes_fit(target, rows, keys):
    blocks = choose_blocks(12, rows, keys, 64, 40, target)
    assert blocks.rows <= rows
    assert blocks.rows % blocks.lanes == 0
    assert blocks.rows % blocks.values.rows == 0
    if blocks.chunk < keys:  # sums that are joined chunk by chunk are taken once
        assert ceil(40 / blocks.value_lanes) % blocks.values.vectors == 0
    else:
        assert blocks.value_lanes * blocks.values.vectors <= 40
    assert blocks.rows * blocks.chunk * 4 <= score_bytes(target)
    assert blocks.chunk * (ceil(keys / blocks.chunk) - 1) < keys
    assert blocks.scores.rows <= blocks.chunk
    assert (blocks.rows // blocks.lanes) % blocks.together == 0
    for tile in (blocks.scores, blocks.values):
        assert tile.rows * tile.vectors + tile.vectors < vector_registers(target)


@pytest.mark.parametrize("attributes", ["", " -mattr=+relaxed-simd"])
def test_an_engine_of_webassembly_has_registers_for_all_operands_of_a_step(attributes):
    """It loads all of them before it multiplies, and holds a product unless that is fused."""
    blocks = choose_blocks(3, 197, 197, 64, 64, Target(f"llvm -mtriple=wasm32{attributes}"))
    product = 0 if attributes else 1
    for tile in (blocks.scores, blocks.values):
        sums = tile.rows * tile.vectors
        assert sums >= 8
        assert sums + tile.rows + tile.vectors + product <= 15


def test_rows_waste_little_and_stay_near():
    assert choose_blocks(3, 197, 197, 64, 64, AVX512).rows == 112  # 2 x 112, not 4 x 64
    assert choose_blocks(12, 128, 128, 32, 32, AVX512).rows == 64  # 32 KB of scores
    assert choose_blocks(12, 128, 128, 32, 32, AVX512).chunk == 128
    assert choose_blocks(12, 4096, 4096, 64, 64, AVX512).chunk < 4096


def test_every_core_has_work():
    alone = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -num-cores=1")
    many = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -num-cores=8")
    few, several = (choose_blocks(1, 512, 512, 64, 64, t) for t in (alone, many))
    assert ceil(512 / several.rows) >= 8
    assert few.rows > several.rows
    assert several.parallel
    assert not choose_blocks(1, 8, 8, 8, 8, many).parallel


def test_vectors_along_the_value():
    assert [value_lanes(n, AVX512) for n in (64, 40, 36, 20, 12, 8, 6)] == [16, 8, 16, 16, 4, 8, 4]
    assert [value_lanes(n, AVX2) for n in (64, 36, 12)] == [8, 4, 4]
