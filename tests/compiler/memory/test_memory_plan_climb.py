"""Hill climbing: what is tried, what is kept, and which moves are drawn how often."""

import random
from collections import Counter

import pytest

from slipway.compiler.memory_plan import Block, Pool, Share, heuristics, plan
from slipway.compiler.memory_plan.heuristics import START_ORDERS, hill_climb, outputs_first
from slipway.compiler.memory_plan.place import Placement

ONE = (Pool("p"),)
NEVER = -1  # a total that no plan is as small as


def blocks_of(seed, count, steps=6):
    rng = random.Random(seed)
    firsts = [rng.randrange(steps) for _ in range(count)]
    return [
        Block(f"t{n}", rng.randrange(1, 40), first, first + rng.randrange(4), rng.choice((1, 8)))
        for n, first in enumerate(firsts)
    ]


def layout_of(seed, count, pools=ONE, steps=6):
    blocks = blocks_of(seed, count, steps)
    ends = [(a, b) for a in range(count) for b in range(count) if blocks[a].first == blocks[b].last]
    shares = [Share(a, b, 3) for a, b in ends if blocks[a].first > blocks[b].first]
    return Placement(blocks, shares[: seed % 3], pools)


class Watched:
    """The steps of one climb: the order moved from, and the one that it was moved to."""

    def __init__(self, monkeypatch, layout, moved=heuristics._moved):
        self.layout = layout
        self.steps = []
        self.placed = 0
        self._place = layout.place

        def watched(given, order, offsets, pool_of, rng):
            found = moved(given, list(order), offsets, pool_of, rng)
            assert (offsets, pool_of) == (self._place(order) or ([], []))
            self.steps.append((order, found))
            return found

        def place(order):
            self.placed += 1
            return self._place(order)

        monkeypatch.setattr(heuristics, "_moved", watched)
        monkeypatch.setattr(layout, "place", place)

    def cost(self, order):
        found = self._place(order)
        return float("inf") if found is None else sum(self.layout.peak(*found))

    def starts(self):
        orders = [start(self.layout) for start in START_ORDERS]
        return orders + [outputs_first(self.layout, order) for order in orders]


def shuffled(layout, order, offsets, pool_of, rng):
    """A move from which every order is as near as any other."""
    rng.shuffle(order)
    return order


@pytest.mark.parametrize("seed", range(6))
def test_better_and_equal_orders_are_kept_and_worse_ones_seldom(seed, monkeypatch):
    pools = (Pool("small", 60), Pool("p")) if seed == 5 else ONE
    watched = Watched(monkeypatch, layout_of(seed, 7, pools), shuffled)
    best = hill_climb(watched.layout, NEVER)
    costs = [(watched.cost(order), watched.cost(found)) for order, found in watched.steps]
    assert costs[0][0] == min(map(watched.cost, watched.starts()))
    kept = Counter()
    for n, (order, found) in enumerate(watched.steps[:-1]):
        following = watched.steps[n + 1][0]
        if order == found:
            continue
        assert following in (order, found)
        before, after = costs[n]
        kept["worse" if after > before else "equal" if after == before else "better"] += 1
        if after <= before:
            assert following == found
        else:
            kept["worse and kept"] += following == found
    assert kept["worse"] > 300
    assert kept["equal"] + kept["better"] > 5
    assert 0.01 < kept["worse and kept"] / kept["worse"] < 0.12  # 0.05, within four deviations
    tried = [watched.steps[0][0], *(found for _, found in watched.steps)]
    assert best == min(tried, key=watched.cost)  # of equal ones the first


def test_moves_are_counted_by_blocks(monkeypatch):
    """At most so many moves, fewer of many blocks, and 20 in any case."""
    monkeypatch.setattr(heuristics, "_MOST_MOVES", 50)
    monkeypatch.setattr(heuristics, "_WORK", 200)
    for count, moves in ((2, 50), (6, 50), (7, 48), (40, 25), (201, 20)):
        watched = Watched(monkeypatch, layout_of(3, count, steps=4 * count))
        hill_climb(watched.layout, NEVER)
        assert len(watched.steps) == moves
        assert watched.placed == len(watched.starts()) + 1 + moves


def test_no_move_is_made_where_the_bound_is_reached(monkeypatch):
    for seed in range(5):
        watched = Watched(monkeypatch, layout_of(seed, 9))
        enough = min(map(watched.cost, watched.starts()))
        hill_climb(watched.layout, enough)
        assert not watched.steps
        hill_climb(watched.layout, enough - 1)
        assert watched.steps


def test_a_climb_ends_with_the_move_that_reaches_the_bound(monkeypatch):
    ended = 0
    for seed in range(8):
        watched = Watched(monkeypatch, layout_of(seed, 9), shuffled)
        start = min(map(watched.cost, watched.starts()))
        best = hill_climb(watched.layout, start - 1)
        if watched.cost(best) < start:
            ended += 1
            assert watched.steps[-1][1] == best
            assert all(watched.cost(found) >= start for _, found in watched.steps[:-1])
    assert ended > 2


def test_two_blocks_have_an_order_that_no_start_tries():
    """Larger first wastes 3 bytes on the alignment of the smaller."""
    blocks = [Block("a", 9, 0, 1, 1), Block("b", 5, 0, 1, 4)]
    assert plan(blocks, "greedy_by_size").size_bytes == 17
    assert plan(blocks, "hill_climb").size_bytes == 14


def test_one_block_and_none_have_one_order():
    layout = Placement([Block("a", 9, 0, 1)], (), (Pool("p", 8),))
    assert hill_climb(layout, 9) == [0]
    assert hill_climb(Placement([], (), (Pool("p"),)), 0) == []


def test_a_climb_from_orders_that_do_not_fit_finds_one_that_does():
    """Of 14 B only the order that none of the starts tries fits."""
    blocks = [Block("a", 9, 0, 1, 1), Block("b", 5, 0, 1, 4)]
    layout = Placement(blocks, (), (Pool("p", 14),))
    assert all(layout.place(start(layout)) is None for start in START_ORDERS)
    assert hill_climb(layout, 14) == [1, 0]


# -- the moves -------------------------------------------------------------------------------------


def expected(layout, order, offsets, pool_of):
    """The probability of each order after a move, by the definition of the moves."""
    count = len(order)
    everyone = {block: 1 / count for block in range(count)}
    chosen = everyone
    if offsets:
        ends = [o + b.size_bytes for o, b in zip(offsets, layout.blocks, strict=True)]
        peaks = {p: max(e for e, q in zip(ends, pool_of, strict=True) if q == p) for p in pool_of}
        top = [b for b in range(count) if ends[b] == peaks[pool_of[b]]]
        chosen = Counter({block: 0.2 * share for block, share in everyone.items()})
        for block in top:
            adjacent = [o for o in range(count) if o != block
                    and layout.blocks[o].meets(layout.blocks[block])]  # fmt: skip
            chosen[block] += 0.8 / len(top) * (0.5 if adjacent else 1)
            for other in adjacent:
                chosen[other] += 0.8 / len(top) * 0.5 / len(adjacent)
    found = Counter()
    for block, share in chosen.items():
        at = order.index(block)
        others = [b for b in order if b != block]
        for target in range(count):
            chance = 1 / count
            if at:
                chance = 0.2 / count + (0.8 / at if target < at else 0)
            found[(*others[:target], block, *others[target:])] += share * chance
    return found


@pytest.mark.parametrize(
    "case", ["one pool", "two pools", "not placed", "alone at the peak", "one block"]
)
def test_moves_are_drawn_as_the_definition_says(case):
    blocks = [
        Block("a", 8, 0, 2, 1), Block("b", 4, 0, 1, 1), Block("c", 6, 2, 3, 1),
        Block("d", 6, 3, 4, 1), Block("e", 2, 4, 6, 1),
    ]  # fmt: skip
    pools = (Pool("p"),)
    if case == "two pools":
        pools = (Pool("small", 10), Pool("p"))
    elif case == "alone at the peak":
        blocks.append(Block("f", 30, 7, 7, 1))
    elif case == "one block":
        blocks = blocks[:1]
    layout = Placement(blocks, (), pools)
    order = random.Random(2).sample(range(len(blocks)), len(blocks))
    offsets, pool_of = ([], []) if case == "not placed" else layout.place(order)
    drawn = 4000
    rng = random.Random(7)
    seen = Counter(
        tuple(heuristics._moved(layout, list(order), offsets, pool_of, rng)) for _ in range(drawn)
    )
    wanted = expected(layout, order, offsets, pool_of)
    assert sum(wanted.values()) == pytest.approx(1)
    assert seen.keys() <= wanted.keys()
    for found, chance in wanted.items():
        deviation = (drawn * chance * (1 - chance)) ** 0.5
        assert abs(seen[found] - drawn * chance) <= 4.5 * deviation + 1e-6, found
