"""Visiting and rewriting statements with functions."""

import pytest

import slipway as tvm
from slipway import te
from slipway.errors import LoweringError
from slipway.tir import stmt_functor


def nest():
    a = te.placeholder((8, 16), name="a")
    b = te.compute((8, 16), lambda i, j: a[i, j] + 1.0, name="b")
    return tvm.lower(te.create_schedule(b.op), [a, b], simple_mode=True)["main"].body


def test_children_come_before_parents_or_behind_them():
    after, before = [], []
    stmt_functor.post_order_visit(nest(), lambda n: after.append(type(n).__name__))
    stmt_functor.pre_order_visit(nest(), lambda n: before.append(type(n).__name__))
    assert after[-1] == before[0] == "For"
    assert after.index("Add") < after.index("BufferStore")
    assert before.index("BufferStore") < before.index("Add")
    short = []
    stmt_functor.pre_order_visit(
        nest(), lambda n: short.append(n) or not isinstance(n, tvm.tir.For)
    )
    assert len(short) == 1


def test_loops_are_replaced_inside_out_or_from_outside():
    def halve(loop):
        outer, inner = te.var("o"), te.var("n")
        body = stmt_functor.substitute(loop.body, {loop.loop_var: outer * 2 + inner})
        body = tvm.tir.For(inner, 0, 2, tvm.tir.ForKind.VECTORIZED, body)
        return tvm.tir.For(outer, 0, loop.extent // 2, tvm.tir.ForKind.SERIAL, body)

    both = stmt_functor.ir_transform(nest(), None, halve, ["tir.For"])
    assert str(both).count("vectorized for") == 2
    outside = stmt_functor.ir_transform(nest(), halve, None, ["tir.For"])
    assert str(outside).count("vectorized for") == 1
    assert stmt_functor.ir_transform(nest(), None, lambda n: None) is not None


def test_a_node_that_is_none_is_named():
    with pytest.raises(LoweringError, match=r"'tir\.Four' is no kind of node"):
        stmt_functor.ir_transform(nest(), None, None, ["tir.Four"])
