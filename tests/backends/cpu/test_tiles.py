"""How work is cut: registers, parts for cores, what is worth a second core."""

import pytest

from slipway.backends.cpu.parts import (
    positions_per_part,
    prefetch_steps,
    rows_per_part,
    worth_sharing,
)
from slipway.backends.cpu.tile import (
    MicroKernel,
    Tile,
    all_rows,
    choose_line_tile,
    choose_tile,
    dividing,
    fma,
    follows_lines,
    lane_indexed_fma,
    mmla,
    step_cost,
    vector_registers,
    widest_tile,
)
from slipway.target import Target

WIDE = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")
NARROW = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("positions", "chunks"), [(1, 1), (49, 6), (196, 3), (3136, 16)])
def test_a_tile_fits_the_registers(target, positions, chunks):
    tile = choose_tile(fma(target), positions, chunks)
    assert 1 <= tile.rows <= positions
    assert 1 <= tile.vectors <= chunks
    assert (tile.rows + 1) * tile.vectors + 1 <= vector_registers(target)


@pytest.mark.parametrize(
    ("words", "product", "tile"), [("", 1, Tile(4, 2)), (" -mattr=+relaxed-simd", 0, Tile(3, 3))]
)
def test_all_values_of_a_step_fit_the_registers_of_an_engine(words, product, tile):
    """Of 16 it keeps one, and a product that is not fused takes another."""
    target = Target("llvm -mtriple=wasm32" + words)
    tallest = {tile.vectors: tile.rows for tile in fma(target).tiles(100, 12)}
    assert set(tallest) == {1, 2, 3, 4}
    for vectors, rows in tallest.items():
        taken = rows * vectors + rows + vectors + product
        assert taken <= 15 < taken + vectors + 1
    assert choose_tile(fma(target), 144, 12) == tile


@pytest.mark.parametrize("words", ["", " -mattr=+relaxed-simd"])
def test_steps_are_unrolled_while_their_operands_fit_the_registers(words):
    """A product of integers takes a register, fused or not, and 15 do not hold a second step."""
    engine = fma(Target("llvm -mtriple=wasm32" + words), temporaries=1)
    assert choose_tile(engine, 100, 8) == Tile(4, 2)
    assert engine.most_steps(Tile(4, 2), 2) == engine.most_steps(Tile(3, 2), 2) == 1
    assert engine.most_steps(Tile(2, 2), 4) == 2
    assert engine.most_steps(Tile(1, 1), 16) == 6
    assert fma(WIDE).most_steps(Tile(3, 2), 2) == 2  # it loads what it multiplies next


def test_the_number_of_cores_cuts_no_layer():
    """Threads share its tiles when it runs, each a stretch of them."""
    tile = Tile(14, 2)
    targets = [Target(f"{WIDE} -num-cores={cores}") for cores in (1, 2, 4)]
    assert {positions_per_part(784, 38_000, 1_500, 1, tile, t) for t in targets} == {784}


def test_parts_divide_the_tiles_where_that_takes_few_more():
    """28 rows of an image of 861 KB: 3 parts of 10 would compute 2 rows twice."""
    assert positions_per_part(784, 861_184, 294_912, 4, Tile(28, 2), WIDE) == 7 * 28


def test_parts_of_an_image_fit_the_second_level_that_the_target_has():
    small, large = (Target(f"{WIDE} -num-cores=1 -l2-cache-bytes={size << 20}") for size in (1, 8))
    given = 12_544, 3 << 20, 1_500, 4, Tile(14, 2)
    assert positions_per_part(*given, large) == 12_544
    assert positions_per_part(*given, small) * (3 << 20) / 12_544 <= 0.8 * (1 << 20) + 14 * 256


def test_tiles_follow_the_units_of_the_core():
    """One multiply-add at a time with a short latency is busy with fewer sums."""
    slow = Target(f"{WIDE} -fma-units=1 -fma-latency=2")
    assert step_cost(2, 1, slow) < step_cost(2, 1, WIDE)
    assert step_cost(14, 2, slow) > 1.8 * step_cost(14, 2, WIDE)


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_lines_of_a_tiles_rows_stay_in_the_first_level_cache(target):
    """Rows that are a multiple of 4 KB apart fall on one set, of WIDE's cache or its like."""
    for depth in (64, 768, 1000, 1024, 3072, 4096):
        tile = choose_tile(fma(target, row_bytes=4 * depth), 1000, 6)
        assert target.core.fits_ways(tile.rows, 4 * depth)
        if target.core.fits_ways(31, 4 * depth):
            assert tile == choose_tile(fma(target), 1000, 6)
    assert WIDE.core.fits_ways(8, 4096)
    assert not WIDE.core.fits_ways(9, 4096)
    assert WIDE.core.fits_ways(31, 4096 + 64)


def test_planes_are_cut_only_where_they_do_not_divide_among_the_cores():
    two = Target(f"{WIDE} -num-cores=2")
    assert rows_per_part(56, 8, two) == 56
    assert rows_per_part(56, 1, two) == 28
    assert rows_per_part(7, 1, two) == 7  # too few rows to pay for a halo


def test_a_cut_for_several_numbers_of_cores_serves_each_of_them():
    """The busiest core has at most a quarter more to do than with the best cut for its number."""
    counts = WIDE.core_counts
    assert len(counts) > 1
    for height, planes in [(56, 1), (56, 3), (112, 2), (28, 12), (300, 1)]:

        def busiest(rows, cores, height=height, planes=planes):
            return -(-planes * -(-height // rows) // cores) * rows

        chosen = rows_per_part(height, planes, WIDE)
        for cores in counts:
            assert busiest(chosen, cores) <= 1.25 * min(
                busiest(-(-height // parts), cores) for parts in range(1, height // 8 + 1)
            ), (height, planes, cores)


def test_short_work_stays_on_one_core():
    assert not worth_sharing(500_000, WIDE)
    assert worth_sharing(3_000_000, WIDE)
    assert worth_sharing(500_000, NARROW)  # takes four times as many cycles there
    assert worth_sharing(262_144, WIDE, weight_bytes=1 << 20)  # waits for its weights


def test_weights_are_asked_for_ahead_where_a_vector_is_a_line():
    target = Target("llvm -mcpu=x86-64-v4")
    assert prefetch_steps(16, target) == 32
    assert prefetch_steps(8, target) == prefetch_steps(4, target) == 0
    assert prefetch_steps(16, Target("llvm -mcpu=x86-64-v4 -cache-line-bytes=32")) == 64
    assert prefetch_steps(16, Target("llvm -mcpu=x86-64-v4 -cache-line-bytes=128")) == 0


def test_a_tile_that_divides_the_blocks():
    kernel = fma(WIDE)
    assert 33 % choose_tile(kernel, 49, 33, legal=dividing(33)).vectors == 0
    assert choose_tile(kernel, 49, 7, legal=dividing(7)).vectors == 1


@pytest.mark.parametrize("width", [7, 14, 20, 32, 37, 56])
def test_a_tile_of_lines_crosses_no_edge(width):
    """It is one of whole lines or within one, and none of those takes less for all of them."""
    tile = choose_line_tile(fma(WIDE), 9, width, 1)
    assert tile.rows <= width or tile.rows % width == 0
    kernel = fma(WIDE)

    def cycles(one):
        if follows_lines(one.rows, width):
            return kernel.all_cycles(one, 9 * width, 1)
        return 9 * kernel.all_cycles(one, width, 1)

    legal = [t for t in kernel.tiles(9 * width, 1) if t.rows <= width or t.rows % width == 0]
    assert cycles(tile) == min(map(cycles, legal))


@pytest.mark.parametrize("make", [fma, lane_indexed_fma, mmla])
@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_no_micro_kernel_takes_more_registers_than_there_are(make, target):
    kernel: MicroKernel = make(target)
    every = set(kernel.tiles(100, 12))
    assert len(every) > 4
    assert all(kernel.registers(tile) <= vector_registers(target) for tile in every)
    best = choose_tile(kernel, 100, 12)
    assert kernel.all_cycles(best, 100, 12) == min(kernel.all_cycles(t, 100, 12) for t in every)


def test_temporaries_of_an_instruction_leave_fewer_sums():
    tallest = [max(t.rows for t in fma(WIDE, 1, n).tiles(100, 1)) for n in (0, 4)]
    assert tallest == [30, 26]


def test_a_tile_of_all_rows_cuts_columns_into_equal_parts():
    kernel = all_rows(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"), spare=4)
    assert widest_tile(kernel, 1, 13) == Tile(1, 7)  # twelve registers: two parts
    assert widest_tile(kernel, 3, 4) == Tile(3, 4)


def test_a_step_by_lanes_counts_its_instructions():
    """6 rows by 4 vectors, by hand: 24 products, 1.5 groups, two pairs of weights, and the loop."""
    kernel, tile = lane_indexed_fma(NARROW, 4), Tile(6, 1)
    units = NARROW.core.fma_bits // 128
    assert kernel.all_cycles(tile, 6, 1) == pytest.approx((24 + 1.5 + 2 + 1) / units)


def test_two_narrow_vectors_take_no_longer_than_a_whole_one_that_fills_the_units():
    """So it is on Zen 4, whose units take a whole vector at once; others have two such units."""
    zen, skylake = Target("llvm -mcpu=znver4"), Target("llvm -mcpu=skylake-avx512")
    narrow, whole = (step_cost(12, 2, zen, True, bits) for bits in (256, 512))
    assert narrow == pytest.approx(whole / 2, rel=0.1)
    assert step_cost(12, 2, skylake, True, 256) == step_cost(12, 2, skylake, True)
    assert step_cost(1, 1, zen, True, 128) == step_cost(1, 1, zen, True)  # the latency's
