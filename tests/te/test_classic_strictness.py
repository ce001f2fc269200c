"""te as strict as classic TVM was: what scripts may write, and what is one error of ours."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir


def computed(s, args, *arrays):
    out = tvm.nd.array(np.zeros([int(d) for d in args[-1].shape], args[-1].dtype))
    tvm.build(s, args, "llvm")(*(tvm.nd.array(a) for a in arrays), out)
    return out.numpy()


@pytest.mark.parametrize("how", ["split", "fuse", "both"])
def test_a_stage_stays_where_its_axis_goes(how):
    """compute_at before split and fuse: the inner loop of a split, or what the axis is fused in."""
    a = te.placeholder((6, 10), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] * 2.0, name="c")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    s[b].compute_at(s[c], j)
    if how != "fuse":
        _, j = s[c].split(j, 4)
    if how != "split":
        s[c].fuse(i, j) if how == "fuse" else s[c].split(j, 2)
    x = np.random.default_rng(0).standard_normal((6, 10)).astype("float32")
    np.testing.assert_allclose(computed(s, [a, c], x), (x + 1) * 2, rtol=1e-6)
    loops = str(tvm.lower(s, [a, c], simple_mode=True)).count("for ")
    assert loops == {"split": 3, "fuse": 1, "both": 4}[how]


def test_groups_know_their_place():
    a = te.placeholder((4, 5), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] * 2.0, name="c")
    d = te.compute(a.shape, lambda i, j: c[i, j] - 3.0, name="d")
    s = te.create_schedule(d.op)
    inner = s.create_group(outputs=c, inputs=c, include_inputs=True)
    outer = s.create_group(outputs=c, inputs=b, include_inputs=True)
    assert set(s.groups) == {inner, outer}
    assert (s[c].group, s[b].group, inner.group) == (inner, outer, outer)
    assert (inner.num_child_stages, outer.num_child_stages) == (1, 2)
    outer.compute_at(s[d], s[d].op.axis[0])
    assert outer.attach_stage is s[d]
    x = np.ones((4, 5), "float32")
    np.testing.assert_array_equal(computed(s, [a, d], x), x)


def test_a_reducer_of_values():
    total = te.comm_reducer(lambda x, y: x + y, lambda t: tir.const(0, t))
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    tvm.testing.assert_prim_expr_equal(total(m, n), m + n)
    tvm.testing.assert_prim_expr_equal(total(m, n, k), m + n + k)


def test_pragmas_of_others_are_left_out_with_a_warning():
    a = te.placeholder((8,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    with pytest.warns(UserWarning, match="'tensor_core' .* means nothing here"):
        s[b].pragma(b.op.axis[0], "tensor_core")
    np.testing.assert_array_equal(computed(s, [a, b], np.zeros(8, "float32")), np.ones(8))
    with pytest.raises(tvm.TVMError, match="there is no pragma 'auto_unroll_max_stp'"):
        s[b].pragma(b.op.axis[0], "auto_unroll_max_stp", 4)


def test_every_error_is_a_runtime_error_as_tvms_were():
    a = te.placeholder((8, 4), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j], name="b")
    s = te.create_schedule(b.op)
    outer, _ = s[b].split(b.op.axis[0], 2)
    with pytest.raises(RuntimeError, match="consecutive"):
        s[b].fuse(outer, b.op.axis[1])
    assert issubclass(tvm.TVMError, RuntimeError)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: tir.const("x", "int32"), "a constant of int32 is a number, got 'x'"),
        (lambda: te.scan(1, 2, 3), "init, update and state are tensors, got 1"),
        (lambda: te.extern((1,), 2, lambda i, o: None), "the inputs are tensors, got 2"),
        (lambda: tvm.get_global_func(3), "the name of a function, got 3"),
    ],
)
def test_wrong_arguments_are_errors_of_ours(use, words):
    with pytest.raises(tvm.TVMError, match=words):
        use()


def test_nodes_take_numbers():
    b = tir.decl_buffer((4,), name="b")
    made = (tir.Ramp(0, 1, 4), tir.Broadcast(1, 4), tir.Not(True), tir.BufferLoad(b, [0]))
    assert [m.dtype for m in made] == ["int32x4", "int32x4", "bool", "float32"]
    assert tir.AssertStmt(tir.const(1, "bool"), "no", tir.Evaluate(0)).message.value == "no"
