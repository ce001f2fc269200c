"""What a sum takes outside of an image is asked before the loops that keep it; sums stay."""

import numpy as np
import pytest

from slipway import te
from slipway.backends.backend import backend_of
from slipway.ir import expr as E
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.hoist_padding import hoist_padding

TYPES = [("int32", "int16"), ("int64", "int16"), ("int32", "int8"), ("float32", "float32")]
MICRO = Target("c -keys=arm_cpu -mcpu=cortex-m4")


def windows(outside=0, dtype="int32", data="int16", channels=3, step=1):
    """Sums of 3 x 3 windows, with what lies `outside` of the data."""
    a = te.placeholder((5, 4, channels), data, name="A")
    w = te.placeholder((3, 3, channels), "int8", name="W")
    extents = {"ry": 3, "rx": 3, "rc": channels}
    ry, rx, rc = (te.reduce_axis((0, extent), name=name) for name, extent in extents.items())

    def element(y, x):
        row, column = y * step + ry - 1, x + rx - 1
        inside = te.all(row >= 0, row < 5, column >= 0, column < 4)
        value = te.if_then_else(inside, a[row, column, rc], te.const(outside, data))
        return te.sum(value.astype(dtype) * w[ry, rx, rc].astype(dtype), axis=[ry, rx, rc])

    c = te.compute(((5 + step - 1) // step, 4), element, name="C")
    s = te.create_schedule(c.op)
    return flatten_storage(te.lower(s, [a, w, c])), (a, w, c)


def values(shape, dtype, rng):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def choices(func):
    return [n for n in walk(func.body) if isinstance(n, E.Call) and n.op == "if_then_else"]


@pytest.mark.parametrize("outside", [0, 5, -7])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("dtype", "data"), TYPES)
def test_no_number_changes(outside, channels, step, dtype, data):
    func, tensors = windows(outside, dtype, data, channels, step)
    made = hoist_padding(func)
    verify(made)
    assert made is not func
    assert channels == 1 or not choices(made)  # without a loop of channels columns are asked there
    rng = np.random.default_rng(0)
    a, w, c = (values([int(d) for d in t.shape], t.dtype, rng) for t in tensors)
    got, want = np.zeros_like(c), np.zeros_like(c)
    run(func, a, w, want)
    run(made, a, w, got)
    np.testing.assert_array_equal(got, want)


def test_rows_and_columns_are_asked_once_each():
    text = str(hoist_padding(windows()[0]))
    assert text.count("if ") == 2  # nothing is added outside
    assert "else" not in text
    assert text.index("if ") < text.index("for rx") < text.rindex("if ") < text.index("for rc")


def test_outside_of_integers_that_are_not_0_is_a_loop_of_its_own():
    text = str(hoist_padding(windows(outside=5)[0]))
    assert text.count("else:") == 2
    assert text.count("for rc") == 3


def test_floats_outside_are_added():
    """0 times infinity is no number."""
    func, tensors = windows(0, "float32", "float32")
    made = hoist_padding(func)
    assert str(made).count("else:") == 2
    a, w, c = (np.ones([int(d) for d in t.shape], t.dtype) for t in tensors)
    got = np.zeros_like(c)
    run(made, a, w, got)
    assert got[0, 0] == 12


@pytest.mark.parametrize("kind", ["max", "plain", "changing"])
def test_other_loops_stay_as_they_are(kind):
    a = te.placeholder((8,), "int32", name="A")
    k = te.reduce_axis((0, 4), name="k")
    bodies = {
        "max": lambda i: te.max(te.if_then_else(i > 2, a[i], 0) * k, axis=k),
        "plain": lambda i: te.if_then_else(i > 2, a[i], 0),
        "changing": lambda i: te.sum(te.if_then_else(a[i] > 2, a[k], 0), axis=k),
    }
    c = te.compute((8,), bodies[kind], name="C")
    func = flatten_storage(te.lower(te.create_schedule(c.op), [a, c]))
    assert str(hoist_padding(func)) == str(func)


def test_what_is_added_and_not_multiplied_is_added_outside_too():
    a = te.placeholder((8,), "int32", name="A")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8,), lambda i: te.sum(te.if_then_else(i > 2, a[i], 0) + k, axis=k), name="C")
    func = flatten_storage(te.lower(te.create_schedule(c.op), [a, c]))
    made = hoist_padding(func)
    assert "else:" in str(made)
    given, got = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    run(made, given, got)
    np.testing.assert_array_equal(got, np.where(given > 2, given * 4, 0) + 6)


def test_cores_without_vectors_have_it():
    assert any(step.name == "hoist_padding" for step in backend_of(MICRO).loop_passes(MICRO))
    host = Target("llvm -mcpu=znver4")
    assert not any(step.name == "hoist_padding" for step in backend_of(host).loop_passes(host))
