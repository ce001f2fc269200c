"""Small problems of the memory planner, and by the definition which offsets solve them."""

import itertools
from dataclasses import replace

from hypothesis import strategies as st

from slipway.compiler.memory_plan import Block, Share


@st.composite
def problems(draw, most=6, alike=False):
    """Blocks of few bytes, so that every offset can be tried, and shares of outputs with inputs.

    With `alike`, some of the blocks differ in their shares only.
    """
    count = draw(st.integers(1, most))
    blocks = []
    for n in range(count):
        if alike and blocks and draw(st.booleans()):
            blocks.append(replace(draw(st.sampled_from(blocks)), name=f"t{n}"))
            continue
        first = draw(st.integers(0, 4))
        last = first + draw(st.integers(0, 3))
        size, unit = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 4]))
        blocks.append(Block(f"t{n}", size, first, last, unit))
    shares = []
    for out, into in itertools.permutations(range(count), 2):
        if blocks[into].last == blocks[out].first and blocks[into].first < blocks[out].first:
            kind = draw(st.sampled_from(["none", "lead", "exact"]))
            if kind != "none":
                lead = draw(st.integers(0, 5))
                shares.append(Share(out, into, lead, kind == "exact"))
    return blocks, shares


def may_lie(blocks, shares, a, at_a, b, at_b):
    """Tell by the definition whether two blocks may lie at these offsets."""
    if blocks[a].last < blocks[b].first or blocks[b].last < blocks[a].first:
        return True
    bytes_a = set(range(at_a, at_a + blocks[a].size_bytes))
    if bytes_a.isdisjoint(range(at_b, at_b + blocks[b].size_bytes)):
        return True
    for share in shares:
        for (out, at_out), (into, at_into) in (((a, at_a), (b, at_b)), ((b, at_b), (a, at_a))):
            if (share.output, share.input) == (out, into):
                lead = at_into - at_out
                return lead == share.lead_bytes if share.exact else lead >= share.lead_bytes
    return False


def is_valid(blocks, shares, offsets):
    pairs = itertools.combinations(range(len(blocks)), 2)
    return all(may_lie(blocks, shares, a, offsets[a], b, offsets[b]) for a, b in pairs)
