"""Inlining: equal elements share a formula, and the work grows with the chain, not its square."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import visit
from slipway.ir.expr import Call
from slipway.ir.interpreter.interpret import run
from slipway.te import inline
from slipway.te.inline import inline_bodies
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
