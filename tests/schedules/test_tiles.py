"""How work is cut: registers, parts for cores, what is worth a second core."""

import pytest

from slipway.schedules.cpu.tiles import (
    Tile,
    choose_tile,
    even_tasks,
    positions_per_part,
    rows_per_part,
    steps_ahead,
    vector_registers,
    worth_sharing,
)
from slipway.target import Target

WIDE = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")
NARROW = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("positions", "chunks"), [(1, 1), (49, 6), (196, 3), (3136, 16)])
def test_a_tile_fits_the_registers(target, positions, chunks):
    tile = choose_tile(positions, chunks, target)
    assert 1 <= tile.rows <= positions
    assert 1 <= tile.vectors <= chunks
    assert (tile.rows + 1) * tile.vectors + 1 <= vector_registers(target)


def test_a_layer_of_one_panel_is_cut_for_every_core():
    tile = Tile(14, 2)
    sizes = [positions_per_part(784, 38_000, 1_500, 1, tile, cores) for cores in (1, 2, 4)]
    assert sizes == [784, 392, 196]
    assert positions_per_part(784, 38_000, 12_000, 8, tile, 2) == 784  # panels enough


def test_planes_are_cut_only_where_they_do_not_divide_among_the_cores():
    assert rows_per_part(56, 8, 2) == 56
    assert rows_per_part(56, 1, 2) == 28
    assert rows_per_part(7, 1, 2) == 7  # too few rows to pay for a border


def test_short_work_stays_on_one_core():
    assert not worth_sharing(500_000, WIDE)
    assert worth_sharing(3_000_000, WIDE)
    assert worth_sharing(500_000, NARROW)  # takes four times as many cycles there
    assert worth_sharing(262_144, WIDE, weight_bytes=1 << 20)  # waits for its weights


def test_weights_are_asked_for_ahead_where_a_vector_is_a_line():
    assert steps_ahead(16) == 32
    assert steps_ahead(8) == steps_ahead(4) == 0


def test_a_tile_that_divides_the_blocks():
    assert 33 % choose_tile(49, 33, WIDE, divides=True).vectors == 0
    assert choose_tile(49, 7, WIDE, divides=True).vectors == 1


@pytest.mark.parametrize(
    ("pieces", "cores", "tasks"), [(16, 1, 1), (16, 2, 2), (16, 6, 16), (7, 2, 7)]
)
def test_equal_tasks(pieces, cores, tasks):
    assert even_tasks(pieces, cores) == tasks
