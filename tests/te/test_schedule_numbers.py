"""Schedules of small programs, run in the interpreter after every pass, against NumPy."""

import numpy as np
import pytest

from slipway import te
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.ir.structural import structural_equal
from slipway.te.steps import apply_steps, schedule_to_json, steps_from_json
from slipway.transform.loop.pipeline import PIPELINE


def check(s, args, reference, rtol=1e-5):
    """Lower, and compare with `reference` before and after every pass."""
    func = te.lower(s, args)
    rng = np.random.default_rng(0)
    *inputs, output = args
    arrays = [rng.random([int(x) for x in t.shape]).astype(t.dtype) for t in inputs]
    want = reference(*arrays)
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        got = np.full([int(x) for x in output.shape], -7, output.dtype)
        assert run(func, *arrays, got) == 0
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=getattr(step, "__name__", ""))
    return func


def elementwise(n=130):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    return a, b, c, te.create_schedule(c.op)


@pytest.mark.parametrize("factor", [1, 7, 16, 50, 130, 200])
def test_compute_at_split_and_vectorize(factor):
    a, b, c, s = elementwise()
    outer, inner = s[c].split(c.op.axis[0], factor=factor)
    s[b].compute_at(s[c], outer)
    s[c].vectorize(inner)
    check(s, [a, c], lambda x: (x + 1) * 2)


@pytest.mark.parametrize("factor", [7, 16, 50, 130, 200])
def test_a_shifted_last_step_needs_no_guard(factor):
    a, b, c, s = elementwise()
    outer, inner = s[c].split(c.op.axis[0], factor=factor, tail="shift")
    s[b].compute_at(s[c], outer)
    s[c].vectorize(inner)
    func = check(s, [a, c], lambda x: (x + 1) * 2)
    assert "if" not in str(func)


@pytest.mark.parametrize("factor", [7, 16, 50, 130, 200])
@pytest.mark.parametrize(("combine", "wanted"), [(te.sum, np.sum), (te.max, np.max)])
@pytest.mark.parametrize("factored", [False, True])
def test_a_shifted_last_step_of_a_reduction_counts_nothing_twice(factor, combine, wanted, factored):
    a = te.placeholder((3, 130), name="A")
    k = te.reduce_axis((0, 130), name="k")
    b = te.compute((3,), lambda i: combine(a[i, k], axis=[k]), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=factor, tail="shift")
    if factored:
        partial = s.rfactor(b, inner)
        s[partial].reorder(partial.op.axis[1], *partial.op.reduce_axis, partial.op.axis[0])
        s[partial].vectorize(partial.op.axis[0])
    check(s, [a, b], lambda x: wanted(x, axis=1))


def test_positions_of_an_image_as_one_axis_in_shifted_tiles():
    """What a tile of a fused axis reads is as long as the tile, though it crosses rows."""
    data = te.placeholder((4, 9, 9), name="A")
    c, y, x = (te.reduce_axis((0, n), m) for n, m in ((4, "c"), (3, "y"), (3, "x")))
    sums = te.compute(
        (49,),
        lambda p: te.sum(data[c, te.floordiv(p, 7) + y, te.floormod(p, 7) + x], axis=[c, y, x]),
        name="sums",
    )
    out = te.compute((7, 7), lambda i, j: sums[i * 7 + j] + 1.0, name="out")
    s = te.create_schedule(out.op)
    _, tiles = s[out].split(s[out].fuse(*out.op.axis), factor=30, tail="shift")
    outer, _ = s[out].split(tiles, factor=4, tail="shift")
    s[sums].compute_at(s[out], outer)
    lowered = te.lower(s, [data, out])
    assert "sums: float32[4]" in str(lowered)
    check(
        s, [data, out],
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (4, 3, 3))[0].sum((2, 3, 4)) + 1,
    )  # fmt: skip


def test_vectorize_an_extent_of_1024():
    a, b, c, s = elementwise(1024)
    s[b].compute_inline()
    s[c].vectorize(c.op.axis[0])
    check(s, [a, c], lambda x: (x + 1) * 2)


@pytest.mark.parametrize("sizes", [(16, 16, 16), (5, 7, 9)])
def test_tiled_matmul(sizes):
    m, n, depth = sizes
    a, b = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    xo, yo, xi, yi = s[c].tile(c.op.axis[0], c.op.axis[1], 4, 8)
    ko, ki = s[c].split(k, factor=4)
    s[c].reorder(xo, yo, ko, ki, xi, yi)
    s[c].unroll(xi)
    s[c].vectorize(yi)
    s[c].parallel(xo)
    check(s, [a, b, c], lambda x, y: x @ y)


def test_fused_then_split_axes():
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] * 3.0 + i, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(s[b].fuse(*b.op.axis), nparts=7)
    s[b].parallel(outer)
    s[b].unroll(inner)
    check(s, [a, b], lambda x: x * 3 + np.arange(6)[:, None])


def test_stencil_computed_at_a_tile():
    a = te.placeholder((34,), name="A")
    b = te.compute((34,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((32,), lambda i: b[i] + b[i + 1] + b[i + 2], name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=5)
    s[b].compute_at(s[c], outer)
    check(s, [a, c], lambda x: 2 * (x[:-2] + x[1:-1] + x[2:]))


def test_padding_inlined_into_a_convolution():
    a = te.placeholder((3, 8, 8), name="A")
    w = te.placeholder((4, 3, 3, 3), name="W")
    pad = te.compute(
        (3, 10, 10),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y < 9, x >= 1, x < 9), a[c, y - 1, x - 1], 0.0
        ),
        name="pad",
    )
    c, dy, dx = (
        te.reduce_axis((0, 3), "c"),
        te.reduce_axis((0, 3), "dy"),
        te.reduce_axis((0, 3), "dx"),
    )
    conv = te.compute(
        (4, 8, 8),
        lambda o, y, x: te.sum(pad[c, y + dy, x + dx] * w[o, c, dy, dx], axis=[c, dy, dx]),
        name="conv",
    )

    def reference(x, weights):
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        out = np.zeros((4, 8, 8), "float32")
        for i in range(3):
            for j in range(3):
                out += np.einsum(
                    "chw,oc->ohw", padded[:, i : i + 8, j : j + 8], weights[:, :, i, j]
                )
        return out

    for where in ("root", "inline", "tile"):
        s = te.create_schedule(conv.op)
        o, y, x = conv.op.axis
        yo, yi = s[conv].split(y, factor=3)
        s[conv].reorder(o, yo, c, dy, dx, yi, x)
        s[conv].vectorize(x)
        if where == "inline":
            s[pad].compute_inline()
        elif where == "tile":
            s[pad].compute_at(s[conv], yo)
        check(s, [a, w, conv], reference)


def test_max_over_two_axes_with_a_condition():
    a = te.placeholder((6, 7), name="A")
    i, j = te.reduce_axis((0, 6), "i"), te.reduce_axis((0, 7), "j")
    b = te.compute((1,), lambda _: te.max(a[i, j], axis=[i, j], where=i + j < 5), name="B")
    s = te.create_schedule(b.op)
    s[b].split(s[b].fuse(i, j), factor=4)

    def reference(x):
        keep = np.add.outer(np.arange(6), np.arange(7)) < 5
        return np.array([x[keep].max()])

    check(s, [a, b], reference)


def test_argmax_is_a_tuple_reduction():
    n = 9
    value = te.placeholder((4, n), name="value")
    k = te.reduce_axis((0, n), "k")

    def combine(x, y):
        first = te.all(x[1] >= y[1])
        return te.select(first, x[0], y[0]), te.select(first, x[1], y[1])

    argmax = te.comm_reducer(
        combine, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax"
    )
    index, best = te.compute((4,), lambda i: argmax((k, value[i, k]), axis=k), name="T")
    s = te.create_schedule(index.op)
    func = te.lower(s, [value, index, best])
    data = np.random.default_rng(1).random((4, n)).astype("float32")
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        where, top = np.zeros(4, "int32"), np.zeros(4, "float32")
        run(func, data, where, top)
        np.testing.assert_array_equal(where, data.argmax(1))
        np.testing.assert_array_equal(top, data.max(1))


def test_symbolic_shape():
    n = te.size_var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].vectorize(inner)
    func = te.lower(s, [a, b])
    for step in PIPELINE:
        func = step(func)
    for size in (1, 8, 21):
        x = np.arange(size, dtype="float32")
        y = np.zeros_like(x)
        run(func, x, y)
        np.testing.assert_array_equal(y, x + 1)


def test_cache_write_to_a_register_tile():
    m = n = depth = 32
    a, b = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    cc = s.cache_write(c, "local")
    _, yo, xi, yi = s[c].tile(c.op.axis[0], c.op.axis[1], 4, 16)
    s[c].unroll(xi)
    s[c].vectorize(yi)
    s[cc].compute_at(s[c], yo)
    xc, yc = s[cc].op.axis
    s[cc].reorder(k, xc, yc)
    s[cc].unroll(xc)
    s[cc].vectorize(yc)
    func = check(s, [a, b, c], lambda x, y: x @ y)
    text = str(func)
    assert "allocate C.local: float32[64] @local" in text
    assert "C.local[ramp(48, 1, 16)]" in text


def test_cache_read_for_one_of_two_readers():
    a, b, c, s = elementwise()
    cache = s.cache_read(a, "local", [b])
    outer, _ = s[c].split(c.op.axis[0], 16)
    s[b].compute_at(s[c], outer)
    s[cache].compute_at(s[c], outer)
    check(s, [a, c], lambda x: (x + 1) * 2)


@pytest.mark.parametrize(("factor", "factor_axis"), [(4, 0), (5, 1), (16, -1)])
def test_rfactor(factor, factor_axis):
    a = te.placeholder((6, 32), name="A")
    k = te.reduce_axis((0, 32), "k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, ki = s[b].split(k, factor=factor)
    bf = s.rfactor(b, ki, factor_axis)
    s[bf].compute_at(s[b], s[b].op.axis[0])
    check(s, [a, b], lambda x: x.sum(1))


def test_scan_is_a_cumulative_sum():
    m, n = 6, 5
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    result = te.scan(init, update, state, inputs=[x])
    s = te.create_schedule(result.op)
    s[update].vectorize(update.op.axis[1])
    check(s, [x, result], lambda a: np.cumsum(a, axis=0))


def test_scan_with_a_stage_inside_its_body():
    m, n = 6, 5
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    double = te.compute((m, n), lambda t, i: state[t - 1, i] * 2.0, name="double")
    update = te.compute((m, n), lambda t, i: double[t, i] + x[t, i], name="update")
    result = te.scan(init, update, state, inputs=[x])
    s = te.create_schedule(result.op)
    _, inner = s[update].split(update.op.axis[1], 2)
    s[double].compute_at(s[update], inner)

    def reference(a):
        out = a.copy()
        for t in range(1, m):
            out[t] = out[t - 1] * 2 + a[t]
        return out

    check(s, [x, result], reference)


def test_scan_with_two_states():
    m, n = 5, 3
    x = te.placeholder((m, n), name="X")
    s1, s2 = te.placeholder((m, n)), te.placeholder((m, n))
    i1 = te.compute((1, n), lambda _, i: x[0, i])
    i2 = te.compute((1, n), lambda _, i: x[0, i] * 2.0)
    u1 = te.compute((m, n), lambda t, i: s1[t - 1, i] + x[t, i])
    u2 = te.compute((m, n), lambda t, i: s2[t - 1, i] + s1[t - 1, i])
    r1, r2 = te.scan([i1, i2], [u1, u2], [s1, s2])
    s = te.create_schedule(r1.op)
    func = te.lower(s, [x, r1, r2])
    data = np.arange(15, dtype="float32").reshape(m, n)
    a, b = np.zeros((m, n), "float32"), np.zeros((m, n), "float32")
    run(func, data, a, b)
    first, second = data.copy(), data * 2
    for t in range(1, m):
        first[t] = first[t - 1] + data[t]
        second[t] = second[t - 1] + first[t - 1]
    np.testing.assert_array_equal(a, first)
    np.testing.assert_array_equal(b, second)


def test_extern_calls_a_packed_function():
    from slipway.ir import ops

    a = te.placeholder((4, 5), name="A")
    b = te.compute((4, 5), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.extern(
        (4, 5),
        [b],
        lambda ins, outs: ops.call_intrin(
            "int32",
            "call_packed",
            "twice",
            ops.call_intrin("handle", "tensor_view", ins[0].data, 4, 5),
            ops.call_intrin("handle", "tensor_view", outs[0].data, 4, 5),
        ),
        name="C",
    )
    d = te.compute((4, 5), lambda i, j: c[i, j] * 3.0, name="D")
    s = te.create_schedule(d.op)
    x, y = np.ones((4, 5), "float32"), np.zeros((4, 5), "float32")

    def twice(source, target):
        target[:] = source * 2

    func = te.lower(s, [a, d])
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        run(func, x, y, packed={"twice": twice})
        np.testing.assert_array_equal(y, 12)


@pytest.mark.parametrize("scope", ["", "local", "shared", "global"])
def test_thread_loops_and_the_scopes_of_what_is_computed_inside(scope):
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((64,), lambda i: b[i] + b[63 - i], name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], 16)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], thread)
    s[b].set_scope(scope)
    text = str(check(s, [a, c], lambda x: 2 * (x + x[::-1])))
    assert "blockIdx.x for" in text
    assert "threadIdx.x for" in text


def test_bool_and_int4_values():
    a = te.placeholder((16,), "int4", name="A")
    b = te.compute((16,), lambda i: a[i] * te.const(3, "int4"), name="B")
    mask = te.compute((16,), lambda i: b[i] > te.const(0, "int4"), name="mask")
    c = te.compute((16,), lambda i: te.if_then_else(mask[i], i, -1), name="C")
    s = te.create_schedule(c.op)
    func = te.lower(s, [a, c])
    x = np.arange(-8, 8).astype("int8")
    want = np.where(((x * 3 + 8) % 16 - 8) > 0, np.arange(16), -1)
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        y = np.zeros(16, "int32")
        run(func, x, y)
        np.testing.assert_array_equal(y, want)


def test_several_outputs_one_computed_at_the_other():
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8, 8), lambda i, j: b[i, j] + 1.0, name="C")
    s = te.create_schedule([b.op, c.op])
    s[b].compute_at(s[c], c.op.axis[0])
    func = te.lower(s, [a, b, c])
    x = np.arange(64, dtype="float32").reshape(8, 8)
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        y, z = np.zeros((8, 8), "float32"), np.zeros((8, 8), "float32")
        run(func, x, y, z)
        np.testing.assert_array_equal(y, x * 2)
        np.testing.assert_array_equal(z, x * 2 + 1)


def test_a_scalar_argument_and_a_buffer_with_strides():
    from slipway.ir.buffer import decl_buffer

    scale = te.var("scale", "float32")
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] * scale, name="B")
    s = te.create_schedule(b.op)
    rows = te.var("rows")
    view = decl_buffer((4, 6), name="A", strides=(rows, 1))
    func = te.lower(s, [scale, a, b], binds={a: view})
    wide = np.arange(40, dtype="float32").reshape(4, 10)
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        y = np.zeros((4, 6), "float32")
        run(func, 2.5, wide[:, :6], y)
        np.testing.assert_array_equal(y, wide[:, :6] * 2.5)


def test_gather_with_a_loaded_index():
    table, index = te.placeholder((10, 4), name="T"), te.placeholder((6,), "int32", name="I")
    out = te.compute((6, 4), lambda i, j: table[index[i], j], name="out")
    double = te.compute((6, 4), lambda i, j: out[i, j] * 2.0, name="double")
    s = te.create_schedule(double.op)
    s[out].compute_at(s[double], double.op.axis[0])
    s[double].vectorize(double.op.axis[1])
    func = te.lower(s, [table, index, double])
    x = np.arange(40, dtype="float32").reshape(10, 4)
    which = np.array([3, 0, 9, 9, 1, 2], "int32")
    for step in (lambda f: f, *PIPELINE):
        func = step(func)
        y = np.zeros((6, 4), "float32")
        run(func, x, which, y)
        np.testing.assert_array_equal(y, x[which] * 2)


def test_a_scatter_through_an_intermediate_stage_read_at_a_loaded_index():
    source, index = te.placeholder((10,), name="S"), te.placeholder((6,), "int32", name="I")
    half = te.compute((10,), lambda i: source[i] * 0.5, name="half")
    out = te.compute((6,), lambda i: half[index[i]], name="out")
    s = te.create_schedule(out.op)
    func = te.lower(s, [source, index, out])
    x, which = np.arange(10, dtype="float32"), np.array([3, 0, 9, 9, 1, 2], "int32")
    y = np.zeros(6, "float32")
    run(func, x, which, y)
    np.testing.assert_array_equal(y, x[which] / 2)


def test_create_prim_func_takes_the_default_schedule():
    a, b, c, _ = elementwise(8)
    func = te.create_prim_func([a, b, c])
    x, y, z = np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    run(func, x, y, z)
    np.testing.assert_array_equal(z, (x + 1) * 2)
    np.testing.assert_array_equal(y, x + 1)


def test_a_symbolic_extent_that_is_at_most_one_is_no_loop():
    a = te.placeholder((5, 4), name="A")
    t0 = te.compute((5, 4), lambda i, j: a[i, j] + 1.0, name="T0")
    t1 = te.compute((5, 4), lambda i, j: t0[i, j] * 2.0, name="T1")
    t2 = te.compute((5, 4), lambda i, j: t1[i, j] - 3.0, name="T2")
    s = te.create_schedule(t2.op)
    outer, _ = s[t2].split(s[t2].fuse(*t2.op.axis), factor=3)
    s[t1].compute_at(s[t2], outer)
    s[t0].compute_at(s[t1], t1.op.axis[0])
    s[t0].split(s[t0].fuse(*t0.op.axis), factor=2)
    check(s, [a, t2], lambda x: (x + 1) * 2 - 3)


@pytest.mark.parametrize("how", ["tile", "reorder", "fuse", "nparts"])
def test_cache_write_behind_splits_takes_the_loops_as_layout(how):
    a, b = te.placeholder((8, 6), name="A"), te.placeholder((12, 6), name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8, 12), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    shape = (2, 3, 4, 4)
    if how == "tile":
        s[c].tile(i, j, 4, 4)
    elif how == "reorder":
        io, ii = s[c].split(i, 4)
        s[c].reorder(j, io, k, ii)
        shape = (12, 2, 4)
    elif how == "fuse":
        s[c].split(s[c].fuse(i, j), 16)
        shape = (6, 16)
    else:
        s[c].split(j, nparts=3)
        shape = (8, 3, 4)
    cache = s.cache_write(c, "local")
    assert tuple(int(n) for n in cache.shape) == shape
    s[cache].compute_at(s[c], s[c].op.axis[0])
    check(s, [a, b, c], lambda x, y: x @ y.T)
    again = te.create_schedule(c.op)
    apply_steps(again, steps_from_json(schedule_to_json(s)))
    assert structural_equal(
        te.lower(again, [a, b, c]).body, te.lower(s, [a, b, c]).body, map_free_vars=True
    )


def test_cache_write_behind_a_split_that_leaves_a_rest_is_an_error():
    a = te.placeholder((10,), name="A")
    c = te.compute((10,), lambda i: a[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 4)
    with pytest.raises(ScheduleError, match="the split of 'i' does not divide its 10 steps"):
        s.cache_write(c, "local")


def test_the_first_steps_of_a_scan_are_not_computed_inside_it():
    x, state = te.placeholder((4, 3), name="x"), te.placeholder((4, 3), name="state")
    first = te.compute((1, 3), lambda _, i: x[0, i], "first")
    update = te.compute((4, 3), lambda t, i: state[t - 1, i] + x[t, i], "update")
    result = te.scan(first, update, state, inputs=[x])
    schedule = te.create_schedule(result.op)
    schedule[first].compute_at(schedule[result], result.op.scan_axis)
    with pytest.raises(ScheduleError, match=r"'first' at axis .* reads it too, outside that loop"):
        te.lower(schedule, [x, result])


@pytest.mark.parametrize("rows", [7, 64, 129])
def test_partial_sums_of_a_stage_that_is_computed_at_another(rows):
    k = te.reduce_axis((0, rows), "k")
    x = te.placeholder((rows, 3), name="x")
    total = te.compute((3,), lambda j: te.sum(x[k, j], axis=k), name="total")
    schedule = te.create_schedule(total.op)
    _, inner = schedule[total].split(schedule[total].op.reduce_axis[0], factor=8)
    parts = schedule.rfactor(total, inner, 0)
    schedule[parts].compute_at(schedule[total], schedule[total].op.axis[0])
    _, pair = schedule[parts].split(schedule[parts].op.reduce_axis[0], factor=2)
    smaller = schedule.rfactor(parts, pair, 0)
    schedule[smaller].compute_at(schedule[parts], schedule[parts].op.axis[1])
    check(schedule, [x, total], lambda values: values.sum(0))
