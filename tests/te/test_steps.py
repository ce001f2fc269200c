"""A schedule survives JSON: the steps, replayed on the same graph, lower to the same loops."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from slipway import te
from slipway.errors import ScheduleError
from slipway.ir.structural import structural_equal
from slipway.te.steps import apply_steps, schedule_to_json, steps_from_json

sys.path.insert(0, str(Path(__file__).parent))
from program_strategy import programs


def graph():
    a, b = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), "k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((32, 32), lambda i, j: te.max(c[i, j], 0.0), name="D")
    return a, b, c, d, k


def replay(s, outputs):
    steps = steps_from_json(schedule_to_json(s))
    return apply_steps(te.create_schedule(outputs), steps)


def test_every_primitive_is_replayed():
    a, b, c, d, k = graph()
    s = te.create_schedule(d.op)
    shared = s.cache_read(a, "local", [c])
    tile = s.cache_write(c, "local")
    xo, yo, _, yi = s[d].tile(*d.op.axis, 4, 16)
    s[d].vectorize(yi)
    s[c].compute_inline()
    s[tile].compute_at(s[d], yo)
    ko, ki = s[tile].split(k, nparts=8)
    i, j = s[tile].op.axis
    s[tile].reorder(ko, ki, i, j)
    s[tile].unroll(i)
    s[tile].pragma(ko, "auto_unroll_max_step", 16)
    s[shared].compute_at(s[d], xo)
    s[shared].storage_align(s[shared].op.axis[0], 32, 4)
    s[tile].swizzle(4)
    s[d].parallel(xo)
    s[d].prefetch(b, yo, 1)
    x, y = s[d].op.axis
    s[d].prefetch_at(b, yo, (x + 1, te.floordiv(y, 2) * 2), level=2)
    again = replay(s, d.op)
    assert again.steps == s.steps
    assert structural_equal(te.lower(s, [a, b, d]), te.lower(again, [a, b, d]))


def test_rfactor_is_replayed():
    a = te.placeholder((4, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, ki = s[b].split(k, 16)
    bf = s.rfactor(b, ki, 1)
    s[bf].compute_at(s[b], s[b].op.axis[0])
    s[bf].vectorize(s[bf].op.axis[1])
    again = replay(s, b.op)
    assert structural_equal(te.lower(s, [a, b]), te.lower(again, [a, b]))


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_schedules_are_replayed(program):
    again = replay(program.schedule, program.args[-1].op)
    first = te.lower(program.schedule, program.args)
    assert structural_equal(first, te.lower(again, program.args))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([["splt", 0]], "unknown primitive 'splt'. Did you mean 'split'"),
        ([["split", 9, ["axis", 9, 0], 4, None, False]], "no stage number 9"),
        ([["split", 3, ["axis", 3, 7], 4, None, False]], "step 0 .* does not fit this graph"),
        ([["tensorize", 3, ["axis", 3, 0], "vnni"]], "pass the intrinsic 'vnni'"),
    ],
)
def test_steps_that_do_not_fit_are_errors(steps, words):
    d = graph()[3]
    with pytest.raises(ScheduleError, match=words):
        apply_steps(te.create_schedule(d.op), steps)


@pytest.mark.parametrize("text", ["", "[]", '{"slipway_schedule": 9, "steps": []}'])
def test_other_documents_are_errors(text):
    with pytest.raises(ScheduleError):
        steps_from_json(text)
