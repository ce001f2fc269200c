"""Inlining: equal elements share a formula, and the work grows with the chain, not its square."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.ir import visit
from slipway.ir.expr import Call
from slipway.ir.interpreter.interpret import run
from slipway.te import inline
from slipway.te.inline import inline_bodies
from slipway.te.primitives.state import INLINE
from slipway.te.rewrite import inside


def chain(stages, formula):
    """Return the schedule of stages that are all inlined into the last one, and the last."""
    x = te.placeholder((8,), name="A")
    made = []
    for number in range(stages):
        x = te.compute((8,), lambda i, read=x: formula(read, i), name=f"s{number}")
        made.append(x)
    schedule = te.create_schedule(x.op)
    for stage in made[:-1]:
        schedule[stage].compute_inline()
    return schedule, x


@pytest.mark.parametrize(
    "formula",
    [lambda x, i: x[i] + 1.0, lambda x, i: x[i] * te.sigmoid(x[i]), lambda x, i: x[7 - i]],
    ids=["one reader", "two readers", "reversed"],
)
def test_four_times_the_stages_are_four_times_the_work(formula, monkeypatch):
    visited = []

    def counted(node, change):
        visited[-1] += 1
        return visit.map_children(node, change)

    monkeypatch.setattr(inline, "map_children", counted)
    for stages in (100, 400):
        visited.append(0)
        inline_bodies(chain(stages, formula)[0])
    assert visited[0] >= 200  # at least a load and what is done with it
    assert visited[1] <= 4.1 * visited[0]


def test_an_element_read_by_several_inlined_stages_has_one_formula():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.exp(a[i]), name="B")
    c = te.compute((8,), lambda i: b[i] + 1.0, name="C")
    d = te.compute((8,), lambda i: b[i] * c[i] + b[7 - i], name="D")
    schedule = te.create_schedule(d.op)
    schedule[b].compute_inline()
    schedule[c].compute_inline()
    (body,) = inline_bodies(schedule)[d.op]
    calls = [n for n in visit.post_order_by([body], inside) if isinstance(n, Call)]
    assert len(calls) == 2  # of elements i, twice, and 7 - i
    x, got = np.linspace(-1, 1, 8, dtype="float32"), np.zeros(8, "float32")
    run(te.lower(schedule, [a, d]), x, got)
    np.testing.assert_allclose(got, np.exp(x) * (np.exp(x) + 1) + np.exp(x[::-1]), rtol=1e-6)


def test_what_is_inlined_of_itself():
    a, v = te.placeholder((6, 4), name="a"), te.placeholder((4,), name="v")
    own = te.compute((6, 4), lambda i, j: a[i, j] + 1, name="own")
    rows = te.compute((6, 4), lambda i, j: own[i, j] * v[j], name="rows")
    transposed = te.compute((4, 6), lambda i, j: rows[j, i] * 2, name="transposed")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((4,), lambda i: te.sum(transposed[i, k], axis=k), name="total")
    out = te.compute((4,), lambda i: total[i] + 1, name="out")
    wanted = {
        "AutoInlineElemWise": [own], "AutoInlineBroadcast": [own, rows],
        "AutoInlineInjective": [own, rows, transposed],
    }  # fmt: skip
    data, scale = np.arange(24, dtype="float32").reshape(6, 4), np.arange(4, dtype="float32")
    for name, inlined in wanted.items():
        s = te.create_schedule(out.op)
        getattr(te.schedule, name)(s)
        assert [x.op for x in s.stages if x.attach_type == INLINE] == [t.op for t in inlined]
        made = tvm.nd.empty((4,))
        tvm.build(s, [a, v, out], "llvm")(tvm.nd.array(data), tvm.nd.array(scale), made)
        np.testing.assert_allclose(made.numpy(), ((data + 1) * scale * 2).sum(0) + 1, rtol=1e-6)
    s = te.create_schedule(out.op)
    s[transposed].split(transposed.op.axis[0], 2)  # has been scheduled, and stays
    tvm.schedule.AutoInlineInjective(s)
    assert s[transposed].attach_type != INLINE
