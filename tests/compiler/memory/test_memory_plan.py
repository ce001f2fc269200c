import itertools
import random
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.compiler.memory_plan import (
    ALGORITHMS,
    Block,
    Plan,
    Pool,
    Share,
    check_plan,
    heuristics,
    lower_bound,
    place,
    plan,
    plan_svg,
    plan_table,
)
from slipway.compiler.memory_plan.optimal import _Searcher, search_below
from slipway.compiler.memory_plan.place import Placement
from slipway.errors import LoweringError


def blocks_strategy(most=14, alignments=(1, 4, 16, 64)):
    block = st.builds(
        lambda size, first, length, align: (size, first, first + length, align),
        st.integers(1, 5000),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from(alignments),
    )
    return st.lists(block, max_size=most).map(
        lambda rows: [Block(f"t{i}", *row) for i, row in enumerate(rows)]
    )


@st.composite
def chain_with_shares(draw):
    """A chain of kernels with a skip now and then; some outputs may take over their inputs."""
    count = draw(st.integers(2, 9))
    last = [i + 1 + draw(st.sampled_from([0, 0, 0, 2])) for i in range(count)]
    sizes = draw(st.lists(st.integers(1, 300), min_size=count, max_size=count))
    blocks = [Block(f"t{i}", sizes[i], i, last[i], 4) for i in range(count)]
    shares = []
    for i in range(count - 1):
        if last[i] == i + 1 and draw(st.booleans()):
            exact = draw(st.booleans())
            lead = 0 if exact else draw(st.integers(0, 40))
            shares.append(Share(i + 1, i, lead, exact))
    return blocks, shares


@settings(deadline=None, max_examples=50)
@given(blocks_strategy(), st.sampled_from(["best", *ALGORITHMS]))
def test_every_plan_is_valid_and_not_below_the_bound(blocks, algorithm):
    result = plan(blocks, algorithm)
    check_plan(result)
    assert result.size_bytes >= lower_bound(blocks)


@settings(deadline=None, max_examples=50)
@given(chain_with_shares(), st.sampled_from(["best", *ALGORITHMS]))
def test_every_plan_with_shares_is_valid_and_not_below_the_bound(case, algorithm):
    blocks, shares = case
    result = plan(blocks, algorithm, shares=shares)
    check_plan(result)
    assert result.size_bytes >= result.lower_bound_bytes


@settings(deadline=None, max_examples=40)
@given(blocks_strategy(most=6, alignments=(1,)))
def test_optimal_is_as_small_as_the_best_of_all_orders(blocks):
    """Lowest-first placement in the right order is optimal, so trying every order is an oracle."""
    layout = Placement(blocks, (), (Pool("p"),))
    placed = [layout.place(order) for order in itertools.permutations(range(len(blocks)))]
    oracle = min(sum(layout.peak(*both)) for both in placed)
    result = plan(blocks, "optimal")
    assert result.size_bytes == oracle
    assert result.proven


def test_optimal_beats_the_heuristics_where_they_fail():
    """At alignment 1 the bound is 12, and largest first wastes 2 bytes."""
    blocks = [
        Block("a", 4, 0, 2, 1),
        Block("b", 5, 0, 0, 1),
        Block("c", 3, 0, 1, 1),
        Block("d", 5, 1, 2, 1),
        Block("e", 3, 2, 4, 1),
        Block("f", 7, 3, 4, 1),
    ]
    result = plan(blocks, "optimal")
    check_plan(result)
    assert result.proven
    assert result.size_bytes == min(plan(blocks, a).size_bytes for a in ALGORITHMS)


def test_unfinished_search_is_not_called_proven():
    blocks = [Block(f"t{i}", 97 + 13 * (i * 7 % 11), i // 2, i // 2 + i % 5, 16) for i in range(60)]
    result = plan(blocks, "optimal", time_budget_s=0.0)
    check_plan(result)
    assert result.proven == (result.size_bytes == result.lower_bound_bytes)


def test_chain_of_equal_tensors_needs_two_slots():
    blocks = [Block(f"t{i}", 1024, i, i + 1) for i in range(10)]
    assert plan(blocks).size_bytes == 2048 == lower_bound(blocks)


@pytest.mark.parametrize("exact", [True, False])
def test_chain_in_place_needs_one_slot(exact):
    blocks = [Block(f"t{i}", 1000, i, i + 1) for i in range(10)]
    shares = [Share(i + 1, i, 0, exact) for i in range(9)]
    result = plan(blocks, shares=shares)
    check_plan(result)
    assert result.size_bytes == 1000 == result.lower_bound_bytes


def test_depthwise_lead_is_all_that_is_added():
    blocks = [Block("in", 1000, 0, 1, 1), Block("out", 1000, 1, 2, 1)]
    for algorithm in ("best", *ALGORITHMS):
        result = plan(blocks, algorithm, shares=[Share(1, 0, 120)])
        check_plan(result)
        assert result.size_bytes == 1120 == result.lower_bound_bytes


def test_same_blocks_give_the_same_plan():
    blocks = [Block(f"t{i}", 97 + 13 * (i * 7 % 11), i // 2, i // 2 + i % 5, 16) for i in range(60)]
    assert plan(blocks, "hill_climb") == plan(blocks, "hill_climb")
    assert plan(blocks[:20], "optimal") == plan(blocks[:20], "optimal")


def test_pools_are_filled_in_the_order_of_preference():
    blocks = [
        Block("hot", 400, 0, 1),
        Block("cold", 900, 0, 1),
        Block("dma", 100, 0, 1, 64, ("b",)),
    ]
    pools = [Pool("a", 512), Pool("b")]
    result = plan(blocks, pools=pools)
    check_plan(result)
    assert [result.pools[p].name for p in result.pool_of] == ["a", "b", "b"]
    assert result.size_bytes == result.pool_bytes(0) + result.pool_bytes(1)


@settings(deadline=None, max_examples=50)
@given(blocks_strategy(), st.integers(1000, 8000), st.sampled_from(["best", *ALGORITHMS]))
def test_every_plan_with_two_pools_is_valid(blocks, limit, algorithm):
    check_plan(plan(blocks, algorithm, pools=[Pool("fast", limit), Pool("slow")]))


def test_pools_too_small_name_the_tensors_at_the_peak():
    blocks = [Block("conv1", 4000, 0, 1), Block("conv2", 3000, 1, 2), Block("tail", 10, 2, 3)]
    for algorithm in ("best", *ALGORITHMS):
        with pytest.raises(LoweringError, match=r"7000 B at step 1.*sram 6000 B.*conv1 4000 B"):
            plan(blocks, algorithm, pools=[Pool("sram", 6000)])


def test_unknown_pool_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'srm'.*there are sram"):
        plan([Block("a", 1, 0, 0, 1, ("srm",))], pools=[Pool("sram")])


def test_checker_finds_an_overlap():
    blocks = (Block("a", 64, 0, 2), Block("b", 64, 1, 3))
    with pytest.raises(AssertionError, match=r"share bytes"):
        check_plan(Plan(blocks, (0, 0), 128, 128, "by hand"))


def test_checker_finds_an_output_that_overtakes_its_input():
    blocks = (Block("a", 64, 0, 1, 1), Block("b", 64, 1, 2, 1))
    share = (Share(1, 0, 8),)
    check_plan(Plan(blocks, (8, 0), 72, 72, "by hand", share))
    with pytest.raises(AssertionError, match=r"share bytes"):
        check_plan(Plan(blocks, (7, 0), 72, 72, "by hand", share))
    longer = (Block("a", 64, 0, 2, 1), blocks[1])
    with pytest.raises(AssertionError, match=r"lives on"):
        check_plan(Plan(longer, (8, 0), 72, 72, "by hand", share))


def test_checker_finds_a_block_outside_the_arena_and_a_misaligned_one():
    with pytest.raises(AssertionError, match="outside"):
        check_plan(Plan((Block("a", 64, 0, 2),), (0,), 32, 64, "by hand"))
    with pytest.raises(AssertionError, match="aligned"):
        check_plan(Plan((Block("a", 64, 0, 2),), (32,), 128, 64, "by hand"))


def test_unknown_algorithm_names_the_known_ones():
    with pytest.raises(ValueError, match="greedy_by_size"):
        plan([], "greedy_by_siez")


def test_picture_has_one_rectangle_per_block_and_the_table_one_line():
    blocks = [Block(f"t<{i}>", 100 * (i + 1), i, i + 1) for i in range(5)]
    result = plan(blocks)
    root = ET.fromstring(plan_svg(result, "a & b"))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert [t.split(":")[0] for t in titles] == [b.name for b in blocks]
    lines = plan_table(result).splitlines()
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "912 B by greedy_by_size, equal to the lower bound"


def test_the_exact_search_looks_only_at_the_steps_of_the_block_it_placed(monkeypatch):
    """In a long model a block lives in few steps; all of them at each move took seconds."""
    blocks = [Block(f"b{i}", 64 * (3 + i * 7 % 11), i, i + 2 + i % 3) for i in range(100)]
    looked, wrong = [], []
    original = _Searcher.hopeless

    class Counted(list):
        def __getitem__(self, step):
            looked.append(step)
            return super().__getitem__(step)

        def __iter__(self):
            return (self[step] for step in range(len(self)))

    def hopeless(self, *placed):
        plain, self.floor = self.floor, Counted(self.floor)
        found = original(self, *placed)
        self.floor = plain
        alive = [
            [b for i, b in enumerate(blocks) if self.offsets[i] < 0 and b.first <= t <= b.last]
            for t in self.steps
        ]
        rest = [sum(b.size_bytes for b in there) for there in alive]
        wrong.append(
            found
            != any(
                r and max(floor, placed[-1]) + r > self.limit
                for floor, r in zip(plain, rest, strict=True)
            )
        )
        return found

    monkeypatch.setattr(_Searcher, "hopeless", hopeless)
    search_below(blocks, (), lower_bound(blocks), 3000)
    assert len(wrong) > 20
    assert not any(wrong)
    assert len(looked) <= 5 * len(wrong)


@pytest.mark.parametrize("seed", range(12))
def test_many_blocks_are_placed_as_few_are(seed, monkeypatch):
    """Where lists of neighbours would be too long, arrays give the same offsets."""
    rng = random.Random(seed)
    blocks, shares = [], []
    for n in range(rng.choice((3, 30, 120))):
        first = rng.randrange(60)
        span = rng.choice((0, 1, 5, 60))
        blocks.append(Block(f"b{n}", rng.randrange(1, 900), first, first + span,
                            rng.choice((1, 16, 64))))  # fmt: skip
    for out, into in zip(range(0, len(blocks) - 1, 2), range(1, len(blocks), 2), strict=False):
        if blocks[out].first == blocks[into].last:
            shares.append(Share(out, into, rng.randrange(64), rng.random() < 0.3))
    pools = [Pool("small", 4000), Pool("large")] if seed % 3 == 0 else [Pool("workspace")]
    found = []
    for limit in (10**9, -1):
        monkeypatch.setattr(place, "_LONG", limit)
        layout = place.Placement(blocks, shares, pools)
        orders = [order(layout) for order in heuristics.START_ORDERS]
        orders += [heuristics.outputs_first(layout, order) for order in orders]
        neighbours = [layout.neighbours(n) for n in range(len(blocks))]
        assert [len(others) for others in neighbours] == layout.conflicts
        found.append(([layout.place(order) for order in orders], neighbours))
    assert found[0] == found[1]


def test_outputs_that_take_over_each_other_are_moved_ahead_as_a_chain():
    """A chain in place: each output lies below its input, so the last one is placed first."""
    count = 2000
    blocks = [Block(f"b{n}", 64, n, n + 1) for n in range(count)]
    layout = place.Placement(blocks, [Share(n + 1, n, 1) for n in range(count - 1)], [Pool("w")])
    assert heuristics.outputs_first(layout, list(range(count))) == list(range(count))[::-1]


def test_blocks_that_all_live_at_once_are_placed_in_linear_many_steps():
    """2,000 steps of a stack: no list of who lives with whom is made."""
    blocks = [Block(f"b{n}", 64 + n, n, 2000) for n in range(2000)]
    layout = place.Placement(blocks, (), [Pool("w")])
    offsets, _ = layout.place(heuristics.greedy_by_size(layout))
    assert len(layout.neighbours(7)) == 1999
    assert "_neighbours" not in vars(layout)
    sizes = sorted((-(-b.size_bytes // 64) * 64 for b in blocks), reverse=True)
    assert sorted(offsets) == np.cumsum([0, *sizes[:-1]]).tolist()
