"""topi.nn.pool_grad against sums over windows in NumPy."""

import numpy as np
import pytest
from tests.topi.checks import check

from slipway import te, topi
from slipway.errors import InvalidShapeError
from slipway.topi.testing import pool_grad_nchw

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("kind", "size", "kernel", "stride", "padding", "ceil", "counted"),
    [
        ("avg", (9, 8), (3, 2), (2, 1), (1, 0, 1, 1), False, True),
        ("avg", (9, 8), (3, 3), (2, 3), (1, 1, 1, 1), True, False),
        ("max", (9, 8), (3, 3), (2, 2), (1, 1, 0, 0), False, True),
        ("max", (8, 7), (2, 3), (3, 1), (0, 1, 1, 0), True, True),
        ("max", (6, 6), (2, 2), (2, 2), (0, 0, 0, 0), False, True),
    ],
)
def test_gradients(kind, size, kernel, stride, padding, ceil, counted, target):
    x = RNG.integers(-4, 4, (1, 2, *size)).astype("float32")  # with equal elements in a window
    pooled = topi.nn.pool(te.placeholder(x.shape), kernel, stride, padding, kind, ceil)
    g = RNG.standard_normal([int(d) for d in pooled.shape]).astype("float32")
    wanted = pool_grad_nchw(x, g, kernel, stride, padding, kind, ceil, counted)
    options = (kernel, stride, padding, kind, ceil)
    check(lambda a, b: topi.nn.pool_grad(a, b, *options, "NCHW", counted), lambda *_: wanted, g, x,
          target=target)  # fmt: skip


def test_channels_last():
    x, g = (RNG.standard_normal(s).astype("float32") for s in ((1, 6, 6, 3), (1, 3, 3, 3)))
    for kind in ("max", "avg"):
        moved = [v.transpose(0, 3, 1, 2) for v in (x, g)]
        wanted = pool_grad_nchw(*moved, (2, 2), (2, 2), (0, 0, 0, 0), kind, False)
        check(lambda a, b, kind=kind: topi.nn.pool_grad(a, b, 2, 2, 0, kind, layout="NHWC"),
              lambda *_, wanted=wanted: wanted.transpose(0, 2, 3, 1), g, x)  # fmt: skip


@pytest.mark.parametrize(
    ("grads", "data", "kind", "layout", "cause"),
    [
        ((1, 2, 3, 4), (1, 2, 6, 6), "max", "NCHW", "the pool of"),
        ((1, 2, 3, 3), (1, 2, 6, 6), "sum", "NCHW", "'max' or 'avg'"),
        ((1, 2, 3), (1, 2, 6, 6), "max", "NCHW", "layout 'NCHW'"),
        ((1, 2, 3, 3), (1, 2, 6, 6), "max", "NCAB", "layout 'NCAB'"),
    ],
)
def test_what_has_no_gradient(grads, data, kind, layout, cause):
    g, x = te.placeholder(grads, name="g"), te.placeholder(data, name="x")
    with pytest.raises(InvalidShapeError, match=cause):
        topi.nn.pool_grad(g, x, 2, 2, 0, kind, layout=layout)
