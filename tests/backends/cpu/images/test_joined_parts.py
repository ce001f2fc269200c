"""Rows of bytes and halves that are joined, each part copied by itself; what is fused with them."""

import pytest
from kernel_check import TARGETS, run

from slipway import relay


def joined(widths, dtype, pointwise=False):
    parts = [relay.var(f"x{i}", shape=(7, 5, w), dtype=dtype) for i, w in enumerate(widths)]
    if pointwise:
        parts[0] = relay.maximum(parts[0], relay.const(1, dtype))
    whole = relay.concatenate(parts, axis=2)
    return relay.minimum(whole, relay.const(5, dtype)) if pointwise else whole


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pointwise", [False, True])
@pytest.mark.parametrize(
    ("widths", "dtype"),
    [((20, 33), "uint8"), ((4, 70, 5), "int8"), ((40, 40, 40), "float16"), ((11, 129), "int16")],
)
def test_stretches_of_narrow_rows(target, widths, dtype, pointwise):
    assert run(joined(widths, dtype, pointwise), target) == "join.parts"


@pytest.mark.parametrize(
    ("widths", "dtype"),
    [((64, 128), "int8"), ((64, 3, 70), "int8"), ((20, 33), "float32")],
)
def test_whole_vectors_single_elements_and_wide_types_are_joined_in_place(widths, dtype):
    assert run(joined(widths, dtype), "llvm -mcpu=znver4") != "join.parts"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 5, 20)), (2, (2, 9, 3, 23)), (1, (30, 5, 7))])
def test_what_lies_behind_one_another_is_a_stretch_too(target, axis, shape):
    """Along an axis that others lie inside of, each part has a run of memory for each position."""
    for dtype in ("int8", "float16"):
        parts = [relay.var(f"x{i}", shape=shape, dtype=dtype) for i in range(3)]
        assert run(relay.concatenate(parts, axis=axis), target) == "join.parts"


def test_parts_along_the_first_axis_are_joined_in_place():
    parts = [relay.var(f"x{i}", shape=(3, 5, 20), dtype="int8") for i in range(2)]
    assert run(relay.concatenate(parts, axis=0), "llvm -mcpu=znver4") != "join.parts"
