"""The exact search for a plan against its definition, tried out byte by byte."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.compiler.memory.plan_problems import is_valid, problems

from slipway.compiler.memory_plan import Block, Share, lower_bound
from slipway.compiler.memory_plan.optimal import FEW, _Searcher, search_below


@settings(max_examples=300, deadline=None)
@given(problems(most=4, alike=True), st.integers(0, 6))
@example(
    (
        [*(Block(f"t{n}", 3, 3, 3, 1) for n in range(3)), Block("t3", 1, 2, 3, 4)],
        [Share(0, 3, 2)],  # which must lie above the two that are like it, at 6
    ),
    1,
)
@example(
    (
        [
            Block("t0", 4, 0, 2, 4),
            Block("t1", 5, 2, 3, 4),
            Block("t2", 6, 3, 3, 1),
            Block("t3", 5, 2, 3, 4),
        ],
        [Share(2, 1, 2), Share(2, 3, 1), Share(3, 0, 2)],  # alike, and both share
    ),
    3,
)
def test_the_search_finds_a_plan_below_the_limit_if_there_is_one(case, over):
    blocks, shares = case
    shares = [share for share in shares if not share.exact]
    limit = over + lower_bound(blocks, shares) - 1
    spans = [range(0, limit - b.size_bytes + 1, b.alignment_bytes) for b in blocks]
    possible = any(is_valid(blocks, shares, offsets) for offsets in itertools.product(*spans))
    found = search_below(blocks, shares, limit)
    assert found.complete
    assert found.work >= 0
    assert (found.offsets is not None) == possible
    if found.offsets is not None:
        assert is_valid(blocks, shares, found.offsets)
        tops = [o + b.size_bytes for o, b in zip(found.offsets, blocks, strict=True)]
        assert max(tops) <= limit


def test_a_search_that_runs_out_of_work_or_time_says_so():
    blocks = [Block(f"t{n}", 5 + n * 7 % 11, n // 3, n // 3 + 2, 4) for n in range(14)]
    bound = lower_bound(blocks)
    short = search_below(blocks, (), bound - 1, work=14)
    assert (short.offsets, short.complete) == (None, False)
    assert short.work >= 14
    late = search_below(blocks, (), bound, time_budget_s=0.0)
    assert (late.offsets, late.complete) == (None, False)
    many = [Block(f"t{n}", 1, n, n, 1) for n in range(351)]
    assert search_below(many, (), 1) == search_below(many, (), 1)
    refused = search_below(many, (), 1)
    assert (refused.complete, refused.work) == (False, 0)
    assert search_below(blocks, (), 10 * bound, time_budget_s=600.0).offsets is not None
    assert search_below(many[:350], (), 1).offsets == [0] * 350


def saved(blocks, share):
    """The most bytes that an output has in common with its input, tried out."""
    out, into = blocks[share.output], blocks[share.input]
    return max(
        len(range(max(0, at), min(out.size_bytes, at + into.size_bytes)))
        for at in range(share.lead_bytes, share.lead_bytes + out.size_bytes + 1)
    )


@settings(max_examples=60, deadline=None)
@given(problems(most=5, alike=True), st.integers(0, 3))
@example(([Block("a", 3, 0, 1, 1), Block("b", 2, 1, 2, 1)], [Share(1, 0, 5)]), 1)
def test_a_search_is_given_up_where_a_step_cannot_take_what_is_to_come(case, over):
    """By the definition: the fill of each step, and the sizes to come less what shares save."""
    blocks, shares = case
    original = _Searcher.hopeless
    answers = []

    def hopeless(searcher, index, last):
        offsets = searcher.offsets
        wanted = False
        for step in {b.first for b in blocks}:
            there = [i for i, b in enumerate(blocks) if b.first <= step <= b.last]
            tops = [offsets[i] + blocks[i].size_bytes for i in there if offsets[i] >= 0]
            coming = sum(blocks[i].size_bytes for i in there if offsets[i] < 0)
            coming -= sum(
                saved(blocks, share)
                for share in shares
                if not share.exact and blocks[share.output].first == step
            )
            wanted |= max([last, *tops]) + coming > searcher.limit
        found = original(searcher, index, last)
        answers.append((found, wanted))
        return found

    limit = lower_bound(blocks, shares) - 1 + over
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Searcher, "hopeless", hopeless)
        search_below(blocks, shares, limit, work=300)
    assert all(found == wanted for found, wanted in answers), answers


@settings(max_examples=60, deadline=None)
@given(problems(most=5, alike=True), st.integers(0, 3))
def test_what_is_tried_at_a_node_and_in_which_order(case, over):
    """The lowest place first, of equals what fills most; of blocks alike without shares one."""
    blocks, shares = case
    sharing = {n for s in shares if not s.exact for n in (s.output, s.input)}
    run, descend = _Searcher.run, _Searcher._descend
    nodes = []

    def kind(index):
        block = blocks[index]
        return block.size_bytes, block.first, block.last, block.alignment_bytes

    def watched_run(searcher, unplaced, last):
        tried = []
        nodes.append(tried)
        found = run(searcher, unplaced, last)
        nodes.pop()
        alone = [i for i, _ in tried if i not in sharing]
        assert len(set(map(kind, alone))) == len(alone)
        if tried and not found and searcher.complete:
            left = set(unplaced) - {i for i, _ in tried}
            assert left.isdisjoint(sharing)
            assert set(map(kind, left)) <= set(map(kind, alone))
        steps = sorted({block.first for block in blocks})
        filled = [
            (at, -blocks[i].size_bytes * sum(blocks[i].first <= s <= blocks[i].last for s in steps))
            for i, at in tried
        ]
        assert filled == sorted(filled)
        return found

    def watched_descend(searcher, index, offset, rest):
        nodes[-1].append((index, offset))
        return descend(searcher, index, offset, rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Searcher, "run", watched_run)
        patch.setattr(_Searcher, "_descend", watched_descend)
        search_below(blocks, shares, lower_bound(blocks, shares) - 1 + over, work=300)


def test_the_work_that_is_counted_is_that_of_looking_at_neighbours(monkeypatch):
    """Sixty tensors that all meet: a look at one is one at 59."""
    looked, lowest = [], _Searcher.lowest

    def counted(self, index, last):
        looked.append(len(self.neighbours[index]))
        return lowest(self, index, last)

    monkeypatch.setattr(_Searcher, "lowest", counted)
    blocks = [Block(str(n), 1000 + 37 * n, n // 7, 40 + n % 11, 64) for n in range(60)]
    found = search_below(blocks, (), lower_bound(blocks), work=3000)
    assert not found.complete
    assert sum(looked) < 1.2 * FEW * 3000
