"""Tensor intrinsics called in te.compute: the numbers, schedules around them, what is refused."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentTypeError, ArgumentValueError


def loops(extents, value):
    """Statements that run `value` for every index."""
    ib = tvm.tir.ir_builder.create()

    def nest(done):
        if len(done) == len(extents):
            ib.emit(value(*done))
            return
        with ib.for_range(0, extents[len(done)], f"t{len(done)}") as i:
            nest([*done, i])

    nest([])
    return ib.get()


def scaled_sum(n, dtype="float32"):
    """An intrinsic of a + 2 b, which marks its work by adding 100."""
    a, b = (te.placeholder((n,), dtype, name=x) for x in "ab")
    c = te.compute((n,), lambda i: a[i] + b[i] * 2.0, name="c")
    return te.decl_tensor_intrin(
        c.op,
        lambda ins, outs: loops(
            [n], lambda i: outs[0].vstore(i, ins[0].vload(i) + ins[1].vload(i) * 2.0 + 100.0)
        ),
        name="scaled_sum",
    )


def tiles(m, n, depth):
    """An intrinsic that multiplies an m x depth matrix by the transposed n x depth one."""
    a, b = te.placeholder((m, depth), name="a"), te.placeholder((n, depth), name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")

    def function(ins, outs):
        (x, y), (z,) = ins, outs

        def more(i, j, k):
            return z.vstore([i, j], z.vload([i, j]) + x.vload([i, k]) * y.vload([j, k]))

        reset = loops([m, n], lambda i, j: z.vstore([i, j], 0.0))
        return (
            tvm.tir.stmt_seq(reset, loops([m, n, depth], more)),
            reset,
            loops([m, n, depth], more),
        )

    return te.decl_tensor_intrin(c.op, function, name="tiles")


def run(s, args, *arrays):
    out = tvm.nd.array(np.full([int(d) for d in args[-1].shape], np.nan, args[-1].dtype))
    tvm.build(s, args)(*map(tvm.nd.array, arrays), out)
    return out.numpy()


def given(*shape):
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype("float32")


@pytest.mark.parametrize("plan", ["none", "split", "cached", "inside"])
def test_rows_of_an_intrinsic(plan):
    a, b = te.placeholder((3, 6, 8), name="A"), te.placeholder((6, 16), name="B")
    add = scaled_sum(8)
    c = te.compute((3, 6, 8), lambda i, j: add(a[i, j, 0:8], b[5 - j, 4:12]), name="C")
    assert [axis.var.name for axis in c.op.axis] == ["i", "j", "i"]
    args, wanted = [a, b, c], None
    if plan == "inside":
        args = [a, b, te.compute(c.shape, lambda i, j, k: -c[i, j, k], name="D")]
    s = te.create_schedule(args[-1].op)
    if plan == "split":
        outer, inner = s[c].split(c.op.axis[1], 4)
        s[c].reorder(inner, c.op.axis[0])
        s[c].parallel(outer)
    elif plan == "cached":
        s.cache_write(c, "local")
    elif plan == "inside":
        s[c].compute_at(s[args[-1]], args[-1].op.axis[0])
    x, y = given(3, 6, 8), given(6, 16)
    wanted = x + 2 * y[::-1, 4:12] + 100
    np.testing.assert_array_equal(run(s, args, x, y), -wanted if plan == "inside" else wanted)


@pytest.mark.parametrize("split", [False, True])
def test_an_intrinsic_reduced_over_more(split):
    a, b = te.placeholder((3, 4, 2, 5), name="A"), te.placeholder((2, 4, 3, 5), name="B")
    product, k = tiles(2, 3, 5), te.reduce_axis((0, 4), "k")
    c = te.compute(
        (3, 2, 2, 3),
        lambda i, j: product(a[i, k, 0:2, 0:5], b[j, k], reduce_axis=k),
        name="C",
    )
    s = te.create_schedule(c.op)
    assert [axis.var.name for axis in c.op.reduce_axis] == ["k", "k"]
    if split:
        outer, inner = s[c].split(c.op.reduce_axis[0], 2)
        s[c].reorder(outer, c.op.axis[0], c.op.axis[1], inner)
    x, y = given(3, 4, 2, 5), given(2, 4, 3, 5)
    np.testing.assert_array_equal(run(s, [a, b, c], x, y), np.einsum("ikmd,jknd->ijmn", x, y))
    loops_of = str(tvm.lower(te.create_schedule(c.op), [a, b, c], simple_mode=True))
    assert loops_of.index("for k") > loops_of.index("for j")


def test_what_an_intrinsic_cannot_take():
    add, a = scaled_sum(8), te.placeholder((4, 16), name="A")
    k = te.reduce_axis((0, 4), "k")
    for make, kind, cause in (
        (lambda: te.compute((4, 4), lambda i: add(a[i, 0:8], a[i, 0:8])), ArgumentValueError,
         r"'scaled_sum' computes \[8\], and the innermost dimensions are \[4\]"),
        (lambda: te.compute((4, 8), lambda i: add(a[i, 0:8], a[i, 0:7])), ArgumentValueError,
         r"reads 8 elements of 'b' in a dimension of A\[i, 0:7\]"),
        (lambda: te.compute((4, 8), lambda i: add(a[i, 0:16:2], a[i, 0:8])), ArgumentValueError,
         "reads 8 elements of 'a'"),
        (lambda: te.compute((4, 8), lambda i: add(a[i, 0:8])), ArgumentValueError,
         "reads 2 tensors, got 1"),
        (lambda: te.compute((4, 8), lambda i: add(a[0:4, i], a[i, 0:8])), ArgumentValueError,
         r"reads 1 innermost dimensions of float32 as 'a', got A\[0:4, i\]"),
        (lambda: te.compute((4, 8), lambda i: add(a[k, 0:8], a[i, 0:8], reduce_axis=k)),
         ArgumentValueError, "reduces nothing, so that it cannot be reduced over k"),
        (lambda: te.compute((4, 8), lambda i: add(a[i, 0:8], i)), ArgumentTypeError,
         r"takes regions of tensors, such as A\[i, 0:16\], not i"),
        (lambda: te.compute((4, 8), lambda i: add(a[i], a[i], reduce_axis=i)), ArgumentTypeError,
         r"reduce_axis is made by te\.reduce_axis"),
        (lambda: te.compute((4, 8), lambda i: a[i, 0] * 2.0), ArgumentValueError,
         "takes 1 indices, but the shape has 2 dimensions"),
        (lambda: te.compute((4, 8), lambda i: i.missing), ArgumentValueError,
         "takes 1 indices, but the shape has 2 dimensions"),
        (lambda: te.compute((4,), lambda i: a[i, 0:8] + 1.0), ArgumentTypeError,
         "a region of tensor 'A' is no element"),
    ):  # fmt: skip
        with pytest.raises(kind, match=cause):
            make()
