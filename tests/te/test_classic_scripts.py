"""What scripts of classic TVM write that is no misuse."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te


def test_an_inlined_stage_may_stand_among_the_arguments():
    """Its array is the caller's, and stays as it was."""
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((5,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    assert str(tvm.lower(s, [A, B, C], simple_mode=True)).count("for ") == 1
    f = tvm.build(s, [A, B, C])
    a, b, c = (tvm.nd.array(np.full(5, v, "float32")) for v in (3, 7, 0))
    f(a, b, c)
    assert b.numpy().tolist() == [7] * 5
    assert c.numpy().tolist() == [8] * 5


def test_a_float_without_fraction_is_an_extent():
    n, bn = 64, 16
    A = te.placeholder((n, n / 2), name="A")
    k = te.reduce_axis((0, n / 2), "k")
    B = te.compute((n / bn, bn), lambda i, j: te.sum(A[i * bn + j, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[1], factor=bn / 4)
    assert [int(e) for e in B.shape] == [4, 16]
    f = tvm.build(s, [A, B])
    a = np.random.default_rng(0).integers(-9, 9, (64, 32)).astype("float32")
    b = tvm.nd.empty((4, 16))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.numpy(), a.sum(1).reshape(4, 16), rtol=1e-5)
    with pytest.raises(ValueError, match="a shape holds integers"):
        te.placeholder((2.5,))
