"""Fusing loops that are given inner first, and loops that are not next to each other."""

import itertools

import numpy as np
import pytest

import slipway as tvm
from slipway import te


def program(shape=(3, 4, 5)):
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *i: a(*i) * 2.0, name="B")
    return a, b, te.create_schedule(b.op)


@pytest.mark.parametrize("order", [(1, 0), (2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_neighbours_are_fused_in_their_own_order(order):
    a, b, s = program()
    axes = [b.op.axis[i] for i in order]
    fused = s[b].fuse(*axes)
    wanted = [axis for axis in b.op.axis if axis in axes]
    names = fused.name.replace(".fused", "").split(".")
    assert names == [axis.name for axis in wanted]
    x, y = np.random.rand(3, 4, 5).astype("float32"), np.zeros((3, 4, 5), "float32")
    given, result = tvm.nd.array(x), tvm.nd.array(y)
    tvm.build(s, [a, b], "llvm")(given, result)
    np.testing.assert_array_equal(result.numpy(), x * 2)


def test_loops_with_another_between_are_refused():
    for outer, inner in itertools.permutations((0, 2), 2):
        _, b, s = program()
        with pytest.raises(tvm.TVMError, match="only iterations that are consecutive are fused"):
            s[b].fuse(b.op.axis[outer], b.op.axis[inner])
    _, b, s = program()
    outer, _ = s[b].split(b.op.axis[0], factor=2)
    with pytest.raises(tvm.TVMError, match="consecutive"):
        s[b].fuse(outer, b.op.axis[1])
    with pytest.raises(tvm.TVMError, match="consecutive"):
        s[b].fuse(b.op.axis[1], b.op.axis[1])
