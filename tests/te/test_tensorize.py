"""Tensorize: what is replaced is verified, and the buffers are bound to the right places."""

import numpy as np
import pytest

from slipway import te
from slipway.errors import ScheduleError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.transform.loop.pipeline import run_pipeline


def vector_add(n):
    """An intrinsic that adds n elements."""
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")

    def body(ins, outs):
        i = E.Var("i")
        store = S.BufferStore(outs[0], ins[0][i] + ins[1][i], (i,))
        return S.For(i, ops.const(0), ops.const(n), "serial", store)

    return te.decl_tensor_intrin(c.op, body, name=f"vadd{n}")


def gemv(m, depth, triple=True):
    """An intrinsic that multiplies an m x depth matrix by a vector, through an extern call."""
    a, b = te.placeholder((depth,), name="a"), te.placeholder((m, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")

    def function(ins, outs):
        aa, bb = ins
        cc = outs[0]

        def call(name):
            return ops.call_intrin(
                "int32", "call_extern", name, cc.access_ptr("w"), aa.access_ptr("r"),
                bb.access_ptr("r"), m, depth, bb.strides[0],
            )  # fmt: skip

        if not triple:
            return call("gemv_whole")
        reset = ops.call_intrin("int32", "call_extern", "gemv_reset", cc.access_ptr("w"), m)
        return call("gemv_whole"), S.Evaluate(reset), S.Evaluate(call("gemv_update"))

    return te.decl_tensor_intrin(c.op, function, name="gemv")


def gemv_update(c, a, b, m, depth, stride):
    for i in range(m):
        c[i] += (b[i * stride : i * stride + depth] * a[:depth]).sum()


def gemv_reset(c, m):
    c[:m] = 0


def gemv_whole(c, a, b, m, depth, stride):
    gemv_reset(c, m)
    gemv_update(c, a, b, m, depth, stride)


EXTERN = {"gemv_update": gemv_update, "gemv_reset": gemv_reset, "gemv_whole": gemv_whole}


def matrix_product(n, m, depth):
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    return a, b, c, k, te.create_schedule(c.op)


def check(func, shapes, reference):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, shape).astype("float32") for shape in shapes]
    for step in (lambda f: f, run_pipeline):
        func = verify(step(func))
        want = reference(*arrays)
        got = np.full(want.shape, -7, "float32")
        run(func, *arrays, got, packed=EXTERN)
        np.testing.assert_array_equal(got, want)


def test_elementwise_region_of_a_matrix():
    a, b = te.placeholder((6, 32), name="A"), te.placeholder((6, 32), name="B")
    c = te.compute((6, 32), lambda i, j: a[i, j] + b[i, j], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], 8)
    s[c].tensorize(inner, vector_add(8))
    check(te.lower(s, [a, b, c]), [(6, 32), (6, 32)], lambda x, y: x + y)


@pytest.mark.parametrize("split_reduction", [None, 4])
def test_gemv_inside_a_matrix_product(split_reduction):
    a, b, c, k, s = matrix_product(5, 12, 16)
    i, j = c.op.axis
    jo, ji = s[c].split(j, 6)
    if split_reduction is None:
        s[c].reorder(i, jo, ji, k)
        s[c].tensorize(ji, gemv(6, 16, triple=False))
    else:
        ko, ki = s[c].split(k, split_reduction)
        s[c].reorder(i, jo, ko, ji, ki)
        s[c].tensorize(ji, gemv(6, split_reduction))
    func = te.lower(s, [a, b, c])
    assert "gemv" in str(func)
    check(func, [(5, 16), (12, 16)], lambda x, y: x @ y.T)


def test_region_of_a_stage_computed_at_a_tile():
    a, b = te.placeholder((6, 32), name="A"), te.placeholder((6, 32), name="B")
    c = te.compute((6, 32), lambda i, j: a[i, j] + b[i, j], name="C")
    d = te.compute((6, 32), lambda i, j: c[i, j] * 2.0, name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[1], 16)
    s[c].compute_at(s[d], outer)
    _, inner = s[c].split(c.op.axis[1], 8)
    s[c].tensorize(inner, vector_add(8))
    check(te.lower(s, [a, b, d]), [(6, 32), (6, 32)], lambda x, y: (x + y) * 2)


def test_another_formula_is_an_error_that_shows_both():
    a, b = te.placeholder((6, 32), name="A"), te.placeholder((6, 32), name="B")
    c = te.compute((6, 32), lambda i, j: a[i, j] * b[i, j], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], 8)
    s[c].tensorize(inner, vector_add(8))
    with pytest.raises(ScheduleError, match=r"formulas differ.*\* .*intrinsic computes .*\+ "):
        te.lower(s, [a, b, c])


def test_another_extent_is_an_error_that_says_which_split():
    a, b = te.placeholder((6, 32), name="A"), te.placeholder((6, 32), name="B")
    c = te.compute((6, 32), lambda i, j: a[i, j] + b[i, j], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], 16)
    s[c].tensorize(inner, vector_add(8))
    with pytest.raises(ScheduleError, match=r"'j' runs 16 steps inside, the intrinsic takes 8"):
        te.lower(s, [a, b, c])


def test_a_missing_update_is_an_error():
    a, b, c, k, s = matrix_product(5, 12, 16)
    i, j = c.op.axis
    ko, ki = s[c].split(k, 4)
    s[c].reorder(i, ko, j, ki)
    s[c].tensorize(j, gemv(12, 4, triple=False))
    with pytest.raises(ScheduleError, match="declares no update"):
        te.lower(s, [a, b, c])


def test_a_stride_the_layout_does_not_have_is_an_error():
    a, b = te.placeholder((32, 6), name="A"), te.placeholder((32, 6), name="B")
    c = te.compute((6, 32), lambda i, j: a[j, i] + b[j, i], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], 8)
    s[c].tensorize(inner, vector_add(8))
    with pytest.raises(ScheduleError, match=r"leading dimension|stride"):
        te.lower(s, [a, b, c])
