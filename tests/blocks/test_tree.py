"""Finding loops, blocks and buffers in a function."""

import pytest

from slipway import te, tir
from slipway.blocks import tree
from slipway.errors import ScheduleError
from slipway.ir import stmt as S


def function():
    a, b = te.placeholder((8, 16), name="a"), te.placeholder((16, 8), name="b")
    k = te.reduce_axis((0, 16), "k")
    product = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    twice = te.compute((8, 8), lambda i, j: product[i, j] * 2.0 + 1.0, name="twice")
    return te.create_prim_func([a, b, twice])


def test_statements_are_found_without_a_look_at_expressions(monkeypatch):
    """Most of a function is expressions, and a search looks blocks up thousands of times."""

    def walked(root):
        raise AssertionError("a walk over all expressions")

    monkeypatch.setattr(tree, "walk", walked)
    func = function()
    for root in (func, func.body):
        assert [block.name for block in tree.blocks_of(root)][-2:] == ["product", "twice"]
        assert [buffer.name for buffer in tree.written(root)] == ["product", "twice"]
        loop = next(n for n in S.statements(func.body) if isinstance(n, S.For))
        assert tree.find_loop(root, loop.loop_var) is loop
    assert tree.blocks_of(func.buffer_map[0][1]) == []
    with pytest.raises(ScheduleError, match="the loop 'gone' is gone"):
        tree.find_loop(func, te.var("gone"))


def test_a_buffer_outside_of_its_allocation_is_refused():
    func = function()
    tree.check_scopes(func)
    inner = next(n for n in S.statements(func.body) if isinstance(n, S.Allocate))
    with pytest.raises(ScheduleError, match="buffer 'product' would be used outside"):
        tree.check_scopes(func.replace(body=tree.without_allocation(func.body, inner.buffer)))
    schedule = tir.Schedule(func)
    assert tree.is_allocated(schedule.mod["main"].body, inner.buffer)
