"""Where a buffer may take the place of the one it is computed from."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.storage_rewrite import storage_rewrite

A = te.placeholder((6, 20), name="A")
B = te.compute((6, 20), lambda i, j: A[i, j] * 2.0, name="B")


def rewritten(value, change=lambda stage: None, shape=(6, 20)):
    """Return (buffers, function) of A -> B -> C = value -> D, with C's loops changed."""
    c = te.compute(shape, value, name="C")
    d = te.compute((20, 6), lambda i, j: c[j, i] + c[0, 0], name="D")
    schedule = te.create_schedule(d.op)
    change(schedule[c])
    func = verify(storage_rewrite(flatten_storage(te.lower(schedule, [A, d]))), "flat")
    return len([n for n in walk(func.body) if isinstance(n, S.Allocate)]), func


def split_exactly(stage):
    outer, inner = stage.split(stage.op.axis[1], factor=4)
    stage.reorder(outer, stage.op.axis[0], inner)
    stage.vectorize(inner)


def split_with_overlap(stage):
    stage.split(stage.op.axis[1], factor=8, tail="shift")


def split_with_guard(stage):
    stage.split(stage.op.axis[1], factor=8)


@pytest.mark.parametrize(
    ("value", "change", "buffers"),
    [
        (lambda i, j: B[i, j] + 1.0, lambda s: None, 1),
        (lambda i, j: B[i, j] * B[i, j] + A[j % 6, i], lambda s: None, 1),
        (lambda i, j: B[i, j] + 1.0, split_exactly, 1),
        (lambda i, j: B[i, j] + 1.0, lambda s: s.fuse(*s.op.axis), 1),
        # Steps that a guard leaves out are not seen.
        (lambda i, j: B[i, j] + 1.0, split_with_guard, 2),
        # Places that are written twice, or whose value comes from elsewhere too:
        (lambda i, j: B[i, j] + 1.0, split_with_overlap, 2),
        (lambda i, j: B[i, j] + B[0, j], lambda s: None, 2),
        (lambda i, j: B[i, 19 - j] + 1.0, lambda s: None, 2),
        (lambda i, j: B[5 - i, j] + 1.0, lambda s: None, 2),
    ],
)
def test_buffers_and_values(value, change, buffers):
    found, func = rewritten(value, change)
    assert found == buffers
    x = np.random.default_rng(0).random((6, 20)).astype("float32")
    got = np.zeros((20, 6), "float32")
    assert run(func, x, got) == 0

    b = {(i, j): np.float32(2) * x[i, j] for i in range(6) for j in range(20)}
    c = evaluate(value, b, x)
    np.testing.assert_allclose(got, c.T + c[0, 0], rtol=1e-6)


def evaluate(value, b, a):
    """Compute `value` in Python, with arrays in the place of the tensors."""
    table = {"A": a, "B": b}
    plain = type(value)(value.__code__, {**value.__globals__, **table})
    return np.array([[plain(i, j) for j in range(20)] for i in range(6)], "float32")


def test_a_buffer_that_lives_on_keeps_its_own():
    c = te.compute((6, 20), lambda i, j: B[i, j] + 1.0, name="C")
    d = te.compute((6, 20), lambda i, j: c[i, j] * B[i, j], name="D")
    func = storage_rewrite(flatten_storage(te.lower(te.create_schedule(d.op), [A, d])))
    assert len([n for n in walk(func.body) if isinstance(n, S.Allocate)]) == 2


def test_memory_in_other_scopes_does_not_hide_what_is_behind_it():
    k = te.reduce_axis((0, 20), "k")
    most = te.compute((6,), lambda i: te.max(B[i, k], axis=k), name="most")
    c = te.compute((6, 20), lambda i, j: B[i, j] - most[i], name="C")
    d = te.compute((20, 6), lambda i, j: c[j, i] * 2.0, name="D")
    schedule = te.create_schedule(d.op)
    schedule[most].set_scope("local")
    func = verify(storage_rewrite(flatten_storage(te.lower(schedule, [A, d]))), "flat")
    sizes = sorted(int(n.buffer.shape[0]) for n in walk(func.body) if isinstance(n, S.Allocate))
    assert sizes == [6, 120]
    x = np.random.default_rng(0).random((6, 20)).astype("float32")
    got = np.zeros((20, 6), "float32")
    assert run(func, x, got) == 0
    np.testing.assert_allclose(got, (2 * x - (2 * x).max(1, keepdims=True)).T * 2, rtol=1e-5)
