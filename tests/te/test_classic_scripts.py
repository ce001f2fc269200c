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


def test_computes_in_a_scope_have_its_tag():
    A = te.placeholder((4,), name="A")

    @te.tag_scope("mine")
    def double(x):
        return te.compute(x.shape, lambda i: x[i] * 2.0)

    with te.tag_scope("scope"):
        first = te.compute((4,), lambda i: A[i] + 1.0)
        own = te.compute((4,), lambda i: A[i] + 1.0, tag="own")
    assert [t.op.tag for t in (first, own, double(A))] == ["scope", "own", "mine"]
    assert te.compute((4,), lambda i: A[i]).op.tag == ""
    with pytest.raises(tvm.TVMError, match="one tag"), te.tag_scope("a"), te.tag_scope("b"):
        pass


def test_the_builder_takes_places_behind_the_first_element():
    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 24) as i:
            b[23 - i] = a[i] * 2.0
        return ib.get()

    A = te.placeholder((2, 3, 4), name="A")
    B = te.extern((6, 4), [A], body, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B])
    a, b = np.arange(24, dtype="float32"), tvm.nd.empty((6, 4))
    f(tvm.nd.array(a.reshape(2, 3, 4)), b)
    np.testing.assert_array_equal(b.numpy().reshape(-1), a[::-1] * 2)


def test_options_of_the_oldest_scripts():
    seen = []

    def look(stmt):
        seen.append(type(stmt).__name__)
        return stmt

    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0)
    with tvm.build_config(add_lower_pass=[(1, look)], offset_factor=1, auto_unroll_max_step=8):
        assert "for " not in str(tvm.lower(te.create_schedule(B.op), [A, B]))
    assert seen == ["For"]
    with pytest.raises(tvm.TVMError, match="no option 'unrol'"):
        tvm.build_config(unrol=1)
    assert tvm.make.For(te.var("i"), 0, 8, tvm.stmt.For.Vectorized, 0, tvm.tir.NOP).extent == 8
