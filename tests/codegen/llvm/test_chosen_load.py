"""Joined tensors: one body that reads behind a chosen address, where its loops are long enough."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.llvm.chosen_load import chosen_load


def joined(parts, rows, columns, dtype="float32", axis=0):
    """Return a module and inputs of one vector loop over the join of tensors of two blocks each."""
    shape = [2, rows, columns]
    inputs = [te.placeholder(shape, dtype, name=f"x{n}") for n in range(parts)]
    whole = [*shape]
    whole[axis] *= parts

    def element(*at):
        value = inputs[-1][(*at[:axis], at[axis] - shape[axis] * (parts - 1), *at[axis + 1 :])]
        for n in reversed(range(parts - 1)):
            here = inputs[n][(*at[:axis], at[axis] - shape[axis] * n, *at[axis + 1 :])]
            value = te.if_then_else(at[axis] < shape[axis] * (n + 1), here, value)
        return value + te.const(1, dtype)

    y = te.compute(whole, element, name="y")
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[2], 8)[1])
    s[y].parallel(y.op.axis[0])  # a serial loop is cut where the choice changes
    return tvm.build(s, [*inputs, y], target="llvm")


def check(module, parts, rows, columns, dtype="float32", axis=0):
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, (2, rows, columns)).astype(dtype) for _ in range(parts)]
    want = np.concatenate(given, axis) + np.array(1, dtype)
    got = tvm.nd.array(np.zeros(want.shape, dtype))
    module(*(tvm.nd.array(x) for x in given), got)
    np.testing.assert_array_equal(got.numpy(), want)


def selects(module):
    return len(re.findall(r"= select i1 .*, ptr ", module.get_source("raw")))


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "float64"])
@pytest.mark.parametrize("parts", [4, 9, 40])
def test_many_tensors_are_read_in_one_body(parts, dtype):
    module = joined(parts, 16, 24, dtype)
    check(module, parts, 16, 24, dtype)
    assert selects(module) == parts - 1
    assert "inbounds" not in "".join(
        re.findall(r".*getelementptr i8, .*-\d+", module.get_source("raw"))
    )


@pytest.mark.parametrize(
    ("parts", "rows", "columns", "axis"),
    [
        (3, 16, 24, 0),  # few: a nest each, which LLVM unrolls
        (6, 4, 24, 2),  # the choice changes with the innermost loop
    ],
)
def test_other_joins_keep_their_branches(parts, rows, columns, axis):
    module = joined(parts, rows, columns, axis=axis)
    check(module, parts, rows, columns, axis=axis)
    assert selects(module) == 0


def test_short_loops_branch_first_to_as_many_tensors_as_they_have_vectors():
    module = joined(12, 2, 16)
    check(module, 12, 2, 16)
    assert selects(module) == 6  # of 3, 3, 3 and 3: nests of 6 are more than 4 vectors are worth


def test_places_that_differ_and_conditions_that_may_fail_keep_their_branches():
    a, b, c, d = (te.placeholder((8, 16, 16), name=n) for n in "abcd")
    t = te.placeholder((8,), "int32", name="t")
    for choice in (
        lambda k, i, j: (k < 4, a[k, i, j], b[k, j, i]),
        lambda k, i, j: (t[k] < 4, a[k, i, j], b[k, i, j]),
        lambda k, i, j: (k < 4, a[k, i, j], te.exp(b[k, i, j])),
    ):

        def element(k, i, j, choice=choice):
            rest = te.if_then_else(k < 6, c[k, i, j], d[k, i, j])
            first, one, other = choice(k, i, j)
            return te.if_then_else(first, te.if_then_else(k < 2, one, other), rest)

        y = te.compute((8, 16, 16), element, name="y")
        s = te.create_schedule(y.op)
        s[y].vectorize(s[y].split(y.op.axis[2], 8)[1])
        s[y].parallel(y.op.axis[0])
        assert selects(tvm.build(s, [a, b, c, d, t, y], target="llvm")) == 0


def test_what_is_no_choice_is_left_to_others():
    assert chosen_load(None, te.exp(te.const(1.0))) is None
