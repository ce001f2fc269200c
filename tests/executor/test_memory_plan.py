import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.executor.memory_plan import ALGORITHMS, Block, Plan, check_plan, lower_bound, plan


def blocks_strategy():
    block = st.builds(
        lambda size, first, length, align: (size, first, first + length, align),
        st.integers(1, 5000),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from([1, 4, 16, 64]),
    )
    return st.lists(block, max_size=25).map(
        lambda rows: [Block(f"t{i}", *row) for i, row in enumerate(rows)]
    )


@given(blocks_strategy(), st.sampled_from(["best", *ALGORITHMS]))
def test_every_plan_is_valid_and_not_below_the_bound(blocks, algorithm):
    result = plan(blocks, algorithm)
    check_plan(result)
    assert result.size_bytes >= lower_bound(blocks) or not blocks


def test_chain_of_equal_tensors_needs_two_slots():
    blocks = [Block(f"t{i}", 1024, i, i + 1) for i in range(10)]
    assert plan(blocks).size_bytes == 2048 == lower_bound(blocks)


def test_checker_finds_an_overlap():
    blocks = (Block("a", 64, 0, 2), Block("b", 64, 1, 3))
    with pytest.raises(AssertionError, match=r"share bytes"):
        check_plan(Plan(blocks, (0, 0), 128, 128, "by hand"))


def test_checker_finds_a_block_outside_the_arena_and_a_misaligned_one():
    with pytest.raises(AssertionError, match="outside"):
        check_plan(Plan((Block("a", 64, 0, 2),), (0,), 32, 64, "by hand"))
    with pytest.raises(AssertionError, match="aligned"):
        check_plan(Plan((Block("a", 64, 0, 2),), (32,), 128, 64, "by hand"))


def test_unknown_algorithm_names_the_known_ones():
    with pytest.raises(ValueError, match="greedy_by_size"):
        plan([], "greedy_by_siez")
