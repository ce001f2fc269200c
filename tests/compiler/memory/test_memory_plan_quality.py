"""How small plans are, how much the exact search looks at, and what is tried in which order.

The sizes and the work are those that the planners reached once: smaller is welcome, larger is not.
"""

import random

import pytest

from slipway.compiler.memory_plan import (
    ALGORITHMS,
    Block,
    Pool,
    Share,
    check_plan,
    heuristics,
    lower_bound,
    optimal,
    plan,
    planner,
)
from slipway.compiler.memory_plan.optimal import search_below
from slipway.compiler.memory_plan.place import Placement
from slipway.errors import LoweringError


def problem(seed, count, span, steps, units, shared=0.0):
    rng = random.Random(seed)
    blocks = []
    for n in range(count):
        first = rng.randrange(steps)
        size, last = rng.randrange(3, 30), first + rng.randrange(1, span)
        blocks.append(Block(f"t{n}", size, first, last, rng.choice(units)))
    shares = [
        Share(out, into, rng.randrange(6))
        for out, a in enumerate(blocks)
        for into, b in enumerate(blocks)
        if b.last == a.first and b.first < a.first and rng.random() < shared
    ]
    return blocks, shares


CLIMBED = {
    0: 298,
    1: 280,
    2: 249,
    3: 263,
    4: 201,
    5: 232,
    6: 297,
    7: 202,
    8: 179,
    9: 221,
    10: 211,
    11: 183,
    12: 291,
    13: 315,
    14: 297,
    15: 185,
    16: 271,
    17: 255,
    18: 211,
    19: 257,
    20: 259,
    21: 218,
    22: 209,
    23: 179,
}
SEARCHED = {
    0: {4: (True, 1288)},
    1: {0: (False, 2734)},
    2: {},
    3: {},
    4: {},
    5: {},
    6: {4: (True, 90)},
    7: {},
    8: {},
    9: {0: (True, 358), 1: (True, 719), 2: (True, 1832), 4: (True, 66)},
    10: {0: (True, 237), 1: (True, 762), 2: (True, 792), 4: (True, 67)},
    11: {0: (True, 66), 1: (True, 66), 2: (True, 66), 4: (True, 66)},
    12: {},
    13: {4: (True, 2886)},
}
IMPROVED = {
    19: (94, 93, True),
    31: (251, 250, True),
    72: (112, 106, True),
    99: (114, 113, True),
    254: (132, 131, True),
    303: (131, 129, True),
}


@pytest.mark.parametrize("seed", CLIMBED)
def test_climbing_reaches_what_it_reached(seed):
    blocks, shares = problem(seed, 40, 8, 20, (1, 8), 0.3 * (seed % 2))
    layout = Placement(blocks, shares, (Pool("p"),))
    order = heuristics.hill_climb(layout, lower_bound(blocks, shares))
    assert sorted(order) == list(range(40))
    assert sum(layout.peak(*layout.place(order))) <= CLIMBED[seed]


@pytest.mark.parametrize("seed", SEARCHED)
def test_the_search_looks_at_no_more_than_it_did(seed):
    """For each limit: whether there is a plan, and the blocks looked at to know it."""
    blocks, shares = problem(seed, 11, 5, 8, (1, 4, 8), 0.5 * (seed % 3))
    bound = lower_bound(blocks, shares)
    for over, (there, work) in SEARCHED[seed].items():
        found = search_below(blocks, shares, bound + over, 4000)
        assert (found.offsets is not None) == there
        assert found.work <= work, over


@pytest.mark.parametrize("seed", IMPROVED)
def test_the_exact_search_improves_on_every_order(seed):
    blocks, _ = problem(seed, 14, 5, 9, (1, 8))
    most, smallest, proven = IMPROVED[seed]
    assert plan(blocks, "hill_climb").size_bytes <= most
    for algorithm in ("best", "optimal"):
        result = plan(blocks, algorithm)
        check_plan(result)
        assert (result.size_bytes, result.algorithm) == (smallest, "optimal")
        assert result.proven or not proven
    # A pool that no order fits into, but this plan does.
    result = plan(blocks, pools=[Pool("only", smallest)])
    check_plan(result)
    assert (result.size_bytes, result.pools) == (smallest, (Pool("only", smallest),))
    if proven:
        with pytest.raises(LoweringError, match="do not fit"):
            plan(blocks, pools=[Pool("only", smallest - 1)])


@pytest.mark.parametrize("seed", range(16))
def test_the_best_plan_is_the_first_of_the_smallest(seed):
    blocks, shares = problem(seed, 8, 5, 6, (1, 4, 8), 0.5 * (seed % 2))
    each = [plan(blocks, name, shares=shares) for name in ALGORITHMS[:-1]]
    best = plan(blocks, shares=shares)
    smallest = min(p.size_bytes for p in each)
    assert best.size_bytes <= smallest
    if best.size_bytes == smallest:
        first = next(p for p in each if p.size_bytes == smallest)
        assert best.algorithm == first.algorithm
        assert best.offsets == first.offsets
    exact = plan(blocks, "optimal", shares=shares)
    assert exact.size_bytes <= best.size_bytes
    if best.proven:
        assert exact.size_bytes == best.size_bytes
    assert best.proven or best.size_bytes > best.lower_bound_bytes


def test_plans_above_the_bound_are_proven_by_having_seen_all():
    proven = 0
    for seed in range(16):
        blocks, _ = problem(seed, 8, 5, 6, (1, 4, 8))
        best = plan(blocks)
        if best.size_bytes > best.lower_bound_bytes:
            below = search_below(blocks, (), best.size_bytes - 1, planner._BEST_WORK)
            assert best.proven == below.complete
            proven += best.proven
        exact = [Share(1, 0, 0, exact=True)]
        chain = [Block("a", 5, 0, 1, 8), Block("b", 5, 1, 2, 8), Block("c", 3, 1, 2, 8)]
        assert plan(chain, shares=exact).size_bytes == 11
    assert proven > 2


def test_a_plan_with_an_exact_share_is_not_proven_by_a_search_without_it():
    for seed in range(25):
        blocks, shares = problem(seed, 7, 4, 6, (4, 8), 0.8)
        if len(shares) < 2:
            continue
        mixed = [Share(s.output, s.input, 0, exact=n == 0) for n, s in enumerate(shares)]
        result = plan(blocks, shares=mixed)
        check_plan(result)
        assert result.proven == (result.size_bytes == result.lower_bound_bytes)


def test_what_the_search_may_spend(monkeypatch):
    """All of it in the first call, and what that left over in the next."""
    spent = []

    def watched(blocks, shares, limit, work, budget):
        spent.append(work)
        return search_below(blocks, shares, limit, work, budget)

    monkeypatch.setattr(optimal, "search_below", watched)
    seed = 72  # takes several searches
    blocks, _ = problem(seed, 14, 5, 9, (1, 8))
    for algorithm, most in (("optimal", optimal.WORK), ("best", planner._BEST_WORK)):
        spent.clear()
        plan(blocks, algorithm)
        assert len(spent) > 1
        assert spent[0] == most
        assert spent == sorted(spent, reverse=True)
    spent.clear()
    plan([Block("a", 8, 0, 1)])  # greedy reaches the bound
    assert not spent
    assert search_below(blocks * 30, (), 1).work == 0
    assert search_below(blocks, (), 10_000, time_budget_s=600.0).offsets is not None


def test_only_what_is_needed_is_tried(monkeypatch):
    tried = []
    by_order = planner._by_order

    def watched(layout, shares, bound, name):
        tried.append(name)
        return by_order(layout, shares, bound, name)

    monkeypatch.setattr(planner, "_by_order", watched)
    plan([Block("a", 8, 0, 1), Block("b", 8, 1, 2)])
    assert tried == ["greedy_by_size"]


def test_who_does_not_fit_is_said_largest_first_at_the_first_fullest_step():
    blocks = [Block(f"t{n}", 100 + n, 0, 3) for n in range(7)]
    with pytest.raises(LoweringError) as error:
        plan(blocks, pools=[Pool("small", 64)])
    said = str(error.value)
    assert "at step 0" in said
    assert "t6 106 B, t5 105 B, t4 104 B, t3 103 B, t2 102 B. Give" in said
    twice = [Block("a", 9, 0, 0), Block("b", 9, 2, 2)]
    with pytest.raises(LoweringError, match="at step 0"):
        plan(twice, pools=[Pool("small", 8)])


def test_one_order_fits_where_others_do_not():
    """An order whose blocks find no room is no plan, whatever the others found."""
    for seed in range(10):
        blocks, _ = problem(seed, 7, 5, 6, (1, 4, 8))
        sizes = []
        smallest = plan(blocks, "optimal").size_bytes
        for name in ALGORITHMS[:-1]:
            try:
                sizes.append(plan(blocks, name, pools=[Pool("p", smallest)]).size_bytes)
            except LoweringError:
                sizes.append(None)
        result = plan(blocks, pools=[Pool("p", smallest)])
        check_plan(result)
        assert result.size_bytes <= smallest
        assert all(size is None or size <= smallest for size in sizes)
