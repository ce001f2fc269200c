"""What scripts of classic TVM write that is no misuse."""

import numpy as np

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
