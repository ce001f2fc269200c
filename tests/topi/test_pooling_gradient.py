"""topi.nn.pool_grad against sums over windows in NumPy."""

import numpy as np
import pytest
from tests.topi.checks import check

import slipway as tvm
from slipway import relay, te, topi
from slipway.errors import InvalidShapeError, TypeInferenceError
from slipway.topi.testing import pool_grad_nchw

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("kind", "size", "kernel", "stride", "padding", "ceil", "counted"),
    [
        ("avg", (9, 8), (3, 2), (2, 1), (1, 0, 1, 1), False, True),
        ("avg", (9, 8), (3, 3), (2, 3), (1, 1, 1, 1), True, False),
        ("avg", (8, 9), (3, 2), (3, 4), (0, 1, 1, 0), True, True),
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


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_means_are_differentiated_as_they_are_computed(ceil, counted):
    for kernel, stride, padding in (((3, 2), (3, 4), (0, 1, 1, 0)), ((4, 4), (3, 3), (1, 2, 0, 1))):
        x = te.placeholder((1, 1, 8, 9), "float64", "x")
        options = (stride, padding, "avg", ceil, "NCHW", counted)
        pooled = topi.nn.pool(x, kernel, *options)
        head = te.placeholder(pooled.shape, "float64", "head")
        (known,) = te.gradient(pooled, x, head)
        made = topi.nn.pool_grad(head, x, kernel, *options)
        plan = te.create_schedule([known.op, made.op])
        out = [tvm.nd.array(np.zeros((1, 1, 8, 9))) for _ in range(2)]
        values = [RNG.standard_normal([int(n) for n in t.shape]) for t in (x, head)]
        tvm.build(plan, [x, head, known, made])(*map(tvm.nd.array, values), *out)
        np.testing.assert_allclose(out[1].numpy(), out[0].numpy(), rtol=1e-14, atol=1e-14)


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
        ((1, 2, 3), (1, 2, 6, 6), "max", "NCHW", "the pool of"),
        ((1, 2, 3, 3), (1, 2, 6, 6), "max", "NCAB", "layout 'NCAB'"),
    ],
)
def test_what_has_no_gradient(grads, data, kind, layout, cause):
    g, x = te.placeholder(grads, name="g"), te.placeholder(data, name="x")
    with pytest.raises(InvalidShapeError, match=cause):
        topi.nn.pool_grad(g, x, 2, 2, 0, kind, layout=layout)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_in_graphs_follow_a_pool_that_drops_its_last_window(dtype):
    x = relay.var("x", shape=(1, 2, 4, 6), dtype=dtype)
    options = {"pool_size": (2, 3), "strides": (3, 4), "padding": (1, 0), "ceil_mode": True}
    data = RNG.integers(-4, 4, (1, 2, 4, 6)).astype(dtype)
    for pool, made in (
        (relay.nn.max_pool2d, relay.nn.max_pool2d_grad),
        (relay.nn.avg_pool2d, relay.nn.avg_pool2d_grad),
    ):
        shape = pool(x, **options).checked_type.shape
        assert shape == (1, 2, 2, 2)
        g = relay.var("g", shape=shape, dtype=dtype)
        grads = np.ones(shape, dtype)
        module = tvm.IRModule.from_expr(relay.Function([g, x], made(g, x, **options)))
        run = relay.create_executor("graph", module).evaluate()
        kind = "max" if "max" in pool.__name__ else "avg"
        wanted = pool_grad_nchw(data, grads, (2, 3), (3, 4), (1, 0, 1, 0), kind, True, False)
        np.testing.assert_allclose(run(grads, data).numpy(), wanted, rtol=1e-3)
    with pytest.raises(TypeInferenceError, match=r"out_grad.*must be .*like the pool of"):
        relay.transform.InferType()(
            tvm.IRModule.from_expr(relay.nn.max_pool2d_grad(x, x, **options))
        )
