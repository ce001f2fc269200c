"""Regions that bound inference finds for stages computed outside their consumers' loops."""

import numpy as np

from slipway import te
from slipway.ir.interpret import run


def test_root_stage_under_an_attached_consumer_covers_all_its_reads():
    a = te.placeholder((20,), name="A")
    padded = te.compute((22,), lambda i: te.if_then_else(te.all(i >= 1, i < 21), a[i - 1], 0.0))
    k = te.reduce_axis((0, 3), "k")
    blur = te.compute((20,), lambda i: te.sum(padded[i + k], axis=k), name="blur")
    out = te.compute((20,), lambda i: te.max(blur[i], te.const(1.0, "float32")), name="out")
    s = te.create_schedule(out.op)
    outer, _ = s[out].split(out.op.axis[0], factor=5)
    s[blur].compute_at(s[out], outer)
    func = te.lower(s, [a, out])

    x = np.random.default_rng(0).random(20).astype("float32")
    got = np.zeros(20, "float32")
    assert run(func, x, got) == 0
    want = np.maximum(np.convolve(x, np.ones(3, "float32"), "same"), 1)
    np.testing.assert_allclose(got, want, rtol=1e-5)
