"""The exponentials of a softmax: precise where they are normal numbers, 0 below, NaN for NaN."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.backends.cpu.schedules.norm.exponential import exponential


@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3", "c"])
def test_exponentials(target):
    x = np.linspace(-87, 0, 400_000).astype("float32")
    x = np.concatenate([x, -np.logspace(-40, 1, 1000).astype("float32")])
    special = np.array([0, -0.0, -87.1, -1e4, -3.4e38, -np.inf, np.nan, -1e-45], "float32")
    x = np.concatenate([special, x, np.zeros(-(len(x) + len(special)) % 16, "float32")])
    a = te.placeholder((len(x),), name="a")
    b = te.compute((len(x),), lambda i: exponential(a[i]), name="b")
    schedule = te.create_schedule(b.op)
    _, lane = schedule[b].split(b.op.axis[0], factor=16)
    schedule[b].vectorize(lane)
    out = tvm.nd.empty((len(x),), "float32")
    tvm.build(schedule, [a, b], target=target)(tvm.nd.array(x), out)
    found = out.numpy()
    np.testing.assert_array_equal(found[:8], [1, 1, 0, 0, 0, 0, np.nan, 1])
    wanted = np.exp(x[8:].astype("float64"))
    ulp = np.spacing(wanted.astype("float32")).astype("float64")
    assert (np.abs(found[8:] - wanted) / ulp).max() <= 1.5
