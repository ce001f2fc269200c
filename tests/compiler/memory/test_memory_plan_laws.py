"""The parts of the memory planner against their definitions, tried out byte by byte."""

import itertools
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiler.memory.plan_problems import is_valid, may_lie, problems

from slipway.compiler.memory_plan import (
    Block,
    Plan,
    Pool,
    Share,
    check_plan,
    lower_bound,
    place,
    place_constants,
    plan,
)
from slipway.compiler.memory_plan.heuristics import (
    greedy_by_conflicts,
    greedy_by_size,
    hill_climb,
    linear_scan,
    outputs_first,
)
from slipway.compiler.memory_plan.place import Placement
from slipway.errors import LoweringError

ONE = (Pool("p"),)


@pytest.mark.parametrize("most", [1000, -1])
@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_each_block_is_placed_as_low_as_it_can_lie(most, case, random):
    """With a list of who lives together, and where there would be too many for one."""
    blocks, shares = case
    order = list(range(len(blocks)))
    random.shuffle(order)
    with mock.patch.object(place, "_LONG", most):
        offsets, pools = Placement(blocks, shares, ONE).place(order)
    assert set(pools) <= {0}
    for n, index in enumerate(order):
        unit = blocks[index].alignment_bytes
        tried = (
            at
            for at in itertools.count(0, unit)
            if all(may_lie(blocks, shares, index, at, o, offsets[o]) for o in order[:n])
        )
        assert offsets[index] == next(tried)


@settings(max_examples=300, deadline=None)
@given(problems(most=4), st.data())
def test_the_checker_accepts_what_the_definition_does(case, data):
    blocks, shares = case
    offsets = [
        data.draw(st.integers(-1, 5)) * b.alignment_bytes if b.size_bytes else 0 for b in blocks
    ]
    size = max(0, *(o + b.size_bytes for o, b in zip(offsets, blocks, strict=True)))
    result = Plan(tuple(blocks), tuple(offsets), size, 0, "drawn", tuple(shares))
    fine = min(offsets) >= 0 and is_valid(blocks, shares, offsets)
    if fine:
        check_plan(result)
    else:
        with pytest.raises(AssertionError, match=r"outside|share bytes"):
            check_plan(result)


@settings(max_examples=60, deadline=None)
@given(problems(most=4))
def test_no_plan_is_smaller_than_the_bound_and_none_than_the_proven_one(case):
    """All offsets of all blocks are tried below the size that is said to be the smallest."""
    blocks, shares = case
    result = plan(blocks, "optimal", shares=shares)
    assert is_valid(blocks, shares, result.offsets)
    assert result.lower_bound_bytes == lower_bound(blocks, shares) <= result.size_bytes
    top = result.size_bytes - 1
    spans = [range(0, top - b.size_bytes + 1, b.alignment_bytes) for b in blocks]
    smaller = any(is_valid(blocks, shares, offsets) for offsets in itertools.product(*spans))
    if result.proven:
        assert not smaller
    below = result.lower_bound_bytes - 1
    spans = [range(0, below - b.size_bytes + 1, b.alignment_bytes) for b in blocks]
    assert not any(is_valid(blocks, shares, offsets) for offsets in itertools.product(*spans))


@settings(max_examples=200, deadline=None)
@given(problems(most=8))
def test_the_bound_is_the_fullest_step(case):
    """Without shares: sizes rounded up to the common alignment, but for the one on top."""
    blocks, _ = case
    unit = min(b.alignment_bytes for b in blocks)
    rounded = [-(-b.size_bytes // unit) * unit for b in blocks]
    sums = []
    for step in range(9):
        alive = [i for i, b in enumerate(blocks) if b.first <= step <= b.last]
        if alive:
            saved = max(rounded[i] - blocks[i].size_bytes for i in alive)
            sums.append(sum(rounded[i] for i in alive) - saved)
    assert lower_bound(blocks) == max(sums)


def pair(sizes, units, *share):
    blocks = [Block("in", sizes[0], 0, 1, units[0]), Block("out", sizes[1], 1, 2, units[1])]
    return lower_bound(blocks, [Share(1, 0, *share)] if share else [])


@pytest.mark.parametrize(
    ("sizes", "units", "share", "bound"),
    [
        ((5, 5), (4, 16), (), 13),  # 16-aligned at 0, the other at 8
        ((5, 1), (4, 6), (), 7),  # at 0 and 6: to an alignment of 4 it would be 9
        ((100, 100), (1, 1), (1000,), 200),  # a lead that leaves nothing to save
        ((100, 100), (1, 1), (100,), 200),
        ((100, 100), (1, 1), (99,), 199),
        ((100, 100), (1, 1), (0,), 100),
        ((100, 1), (64, 64), (0,), 100),  # no less than the larger
        ((1, 100), (64, 64), (0,), 100),
    ],
)
def test_bounds_of_two_blocks(sizes, units, share, bound):
    assert pair(sizes, units, *share) == bound


def test_nothing_to_place_needs_nothing():
    assert lower_bound([]) == 0
    result = plan([])
    assert (result.size_bytes, result.proven) == (0, True)
    assert plan([], "optimal").size_bytes == 0


def test_what_is_not_said_of_shares_and_plans():
    assert Share(1, 0) == Share(1, 0, 0, False)
    assert Block("a", 1, 0, 0).alignment_bytes == 64
    empty = Plan((), (), 0, 0, "by hand", pools=(Pool("a"), Pool("b")))
    assert [empty.pool_bytes(n) for n in (0, 1)] == [0, 0]
    assert not empty.proven


# -- orders ----------------------------------------------------------------------------------------

ROWS = [("a", 8, 0, 3), ("b", 8, 1, 1), ("c", 16, 3, 4), ("d", 4, 2, 5), ("e", 16, 4, 5)]
BLOCKS = [Block(*row, 1) for row in ROWS]


def names(order):
    return "".join(BLOCKS[i].name for i in order)


def test_orders():
    layout = Placement(BLOCKS, [], ONE)
    assert names(greedy_by_size(layout)) == "ceabd"
    # Meeting: a with b, c, d; b with a; c with a, d, e; d with a, c, e; e with c, d.
    assert names(greedy_by_conflicts(layout)) == "cadeb"
    assert names(linear_scan(layout)) == "abdce"
    together = [Block("x", 4, 0, 1, 1), Block("y", 9, 0, 1, 1), Block("z", 9, 1, 1, 1)]
    assert linear_scan(Placement(together, [], ONE)) == [1, 0, 2]
    assert greedy_by_size(Placement(together, [], ONE)) == [1, 2, 0]


def test_outputs_come_before_the_inputs_that_they_lie_below():
    chain = [Block(n, 8, i, i + 1, 1) for i, n in enumerate("abcd")]
    shares = [Share(1, 0, 2), Share(2, 1, 2), Share(3, 2, 0, exact=True)]
    layout = Placement(chain, shares, ONE)
    assert outputs_first(layout, [0, 1, 2, 3]) == [2, 1, 0, 3]
    assert outputs_first(layout, [3, 0, 2, 1]) == [3, 2, 1, 0]
    assert outputs_first(layout, [1, 0, 3, 2]) == [2, 1, 0, 3]


def test_climbing_finds_what_no_order_does():
    """Where every greedy order of random blocks stays above the bound, it gets lower."""
    import random

    left = 0
    for seed in range(20):
        rng = random.Random(seed)
        blocks = []
        for n in range(30):
            first = rng.randrange(10)
            blocks.append(Block(f"t{n}", rng.randrange(1, 40), first, first + rng.randrange(6), 1))
        layout = Placement(blocks, [], ONE)
        bound = lower_bound(blocks)

        def peak(order, layout=layout):
            return sum(layout.peak(*layout.place(order)))

        greedy = min(peak(o(layout)) for o in (greedy_by_size, greedy_by_conflicts, linear_scan))
        climbed = hill_climb(layout, bound)
        assert sorted(climbed) == list(range(30))
        assert bound <= peak(climbed) <= greedy
        if greedy > bound:
            left += 1
            assert peak(climbed) < greedy
    assert left > 5


# -- pools and constants ---------------------------------------------------------------------------


def test_a_pool_is_filled_to_its_last_byte():
    blocks = [Block("a", 64, 0, 1), Block("b", 64, 0, 1)]
    result = plan(blocks, pools=[Pool("fast", 64), Pool("slow", 64)])
    assert sorted(result.pool_of) == [0, 1]
    assert plan(blocks, pools=[Pool("fast", 128)]).size_bytes == 128
    for algorithm in ("best", "optimal", "greedy_by_size", "hill_climb"):
        with pytest.raises(LoweringError, match="128 B at step 0"):
            plan(blocks, algorithm, pools=[Pool("fast", 127)])


def test_plans_in_two_pools_are_not_called_proven():
    blocks = [Block("a", 64, 0, 1), Block("b", 64, 0, 1)]
    assert plan(blocks).proven
    for algorithm in ("best", "optimal", "linear_scan"):
        result = plan(blocks, algorithm, pools=[Pool("fast", 64), Pool("slow", 64)])
        assert not result.proven
        assert result.size_bytes == 128


def test_a_block_outside_its_pools_is_found():
    block = Block("a", 8, 0, 0, 8, ("b",))
    pools = (Pool("a", 8), Pool("b", 16))
    check_plan(Plan((block,), (8,), 16, 8, "by hand", (), pools, (1,)))
    with pytest.raises(AssertionError, match="lies in a, not in"):
        check_plan(Plan((block,), (0,), 16, 8, "by hand", (), pools, (0,)))
    with pytest.raises(AssertionError, match="outside b"):
        check_plan(Plan((block,), (16,), 24, 8, "by hand", (), pools, (1,)))
    with pytest.raises(AssertionError, match="outside"):
        check_plan(Plan((block,), (-8,), 24, 8, "by hand", (), pools, (1,)))
    both = (Block("x", 8, 0, 1, 8), Block("y", 8, 1, 2, 8))
    check_plan(Plan(both, (0, 0), 16, 8, "by hand", (), pools, (0, 1)))  # in other pools


def test_constants_fill_the_first_pool_with_room():
    pools = [Pool("fast", 64), Pool("slow", 32)]
    assert place_constants({"a": 40, "b": 16, "c": 17}, pools, 16) == {
        "a": "fast", "c": "slow", "b": "fast"
    }  # fmt: skip
    assert place_constants({"a": 64, "b": 32}, pools) == {"a": "fast", "b": "slow"}
    # 40 is followed by 48, as constants begin at multiples of 16.
    assert place_constants({"a": 40, "b": 17}, pools) == {"a": "fast", "b": "slow"}
    assert place_constants({"a": 40, "b": 24}, pools, 8) == {"a": "fast", "b": "fast"}
    assert place_constants({"a": 1, "b": 1}, [Pool("x", 17)]) == {"a": "x", "b": "x"}
    assert place_constants({"a": 65}, [*pools, Pool("rest")], 1) == {"a": "rest"}
    assert place_constants({"a": 64}, [*pools, Pool("rest")], 1) == {"a": "fast"}
    with pytest.raises(LoweringError, match=r"need 98 B.*fast 64 B, slow 32 B.*a of 65 B"):
        place_constants({"a": 65, "b": 33}, pools)
    assert place_constants({"a": 1 << 30}, [*pools, Pool("rest")]) == {"a": "rest"}
