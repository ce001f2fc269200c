"""Schedules written as functions of `te.hybrid`, and what such functions take."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ModelError


@te.hybrid.script
def scaled(x, factors):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i] * factors[0]
    return y


@te.hybrid.script
def mixed(x):
    twice = scaled(x, [2.0])
    a = output_tensor((10,), "float32")  # noqa: F821
    b = output_tensor((10,), "int32")  # noqa: F821
    for i in parallel(10):  # noqa: F821
        total = 0.0
        for j in unroll(3):  # noqa: F821
            total += twice[max(i - j, 0)]
        if x[i] > 0.5 and i % 2 == 0:
            a[i] = exp(total) / 9.0  # noqa: F821
        else:
            a[i] = -1.0 if i < 3 else total
        b[i] = int32(x[i] * 10.0) // 2  # noqa: F821
    return a, b


def reference(x):
    total = np.array([sum(2 * x[max(i - j, 0)] for j in range(3)) for i in range(10)])
    high = (x > 0.5) & (np.arange(10) % 2 == 0)
    low = np.where(np.arange(10) < 3, -1.0, total)
    return np.where(high, np.exp(total) / 9, low), (x * 10).astype("int32") // 2


def compiled(function, x):
    given = te.placeholder((10,), name="x")
    a, b = function(given)
    out = tvm.nd.empty((10,)), tvm.nd.empty((10,), "int32")
    tvm.build(te.create_schedule(a.op), [given, a, b])(tvm.nd.array(x), *out)
    return [o.numpy() for o in out]


def test_a_schedule_as_text_is_the_same_program(tmp_path):
    x = np.random.default_rng(0).random(10).astype("float32")
    given = te.placeholder((10,), name="x")
    a, b = mixed(given)
    module = te.hybrid.build(te.create_schedule(a.op), [given], [a, b], "named")
    assert module.name == "named"
    assert "in parallel(10)" in module.get_source()
    module.save(tmp_path / "text")
    again = te.hybrid.HybridModule()
    again.load(tmp_path / "text.py")
    for results in (compiled(mixed, x), module(x), compiled(again, x)):
        for got, want in zip(results, reference(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_lists_are_constants_or_tensors():
    table = [[1, 2, 3], [4, 5, 6]]

    @te.hybrid.script
    def total(tensors, numbers):
        out = output_tensor((3,), "float32")  # noqa: F821
        for i in const_range(3):  # noqa: F821
            out[i] = 0.0
            for j in const_range(len(tensors)):  # noqa: F821
                out[i] += tensors[j][i] * numbers[j, i]
        return out

    x, y = (te.placeholder((3,), name=n) for n in "xy")
    made = total([x, y], table)
    assert made.op.input_tensors == (x, y)
    out = tvm.nd.empty((3,))
    arrays = np.float32([1, 2, 3]), np.float32([10, 20, 30])
    tvm.build(te.create_schedule(made.op), [x, y, made])(*map(tvm.nd.array, arrays), out)
    np.testing.assert_allclose(out.numpy(), [41, 104, 189])


def test_what_has_no_text_says_so():
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1)
    s = te.create_schedule(y.op)
    s[y].bind(y.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ModelError, match="bind no threads"):
        te.hybrid.build(s, [x], [y])
    with pytest.raises(ModelError, match=r"load\(path\) first"):
        te.hybrid.HybridModule()(1)
    with pytest.raises(ModelError, match="made of one function, the text has 0"):
        te.hybrid.HybridModule("x = 1")
