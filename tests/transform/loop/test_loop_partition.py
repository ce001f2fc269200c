"""Loop partition moves boundary checks out, and changes no number."""

import numpy as np

from slipway import te
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.context import PassContext
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.pipeline import run_pipeline


def tiled(n=100, parallel=False):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 8)
    if parallel:
        s[b].parallel(outer)
    return te.lower(s, [a, b]), s, b, inner, a


def test_the_check_is_made_once_per_tile():
    func = loop_partition(flatten_storage(tiled()[0]))
    assert str(func) == (
        "def main(A: float32[100], B: float32[100]):\n"
        "    for i.outer in range(13):\n"
        "        if likely(i.outer * 8 - 93 < 0):\n"
        "            for i.inner in range(8):\n"
        "                B[i.outer * 8 + i.inner] = A[i.outer * 8 + i.inner] * 2f\n"
        "        else:\n"
        "            for i.inner in range(8):\n"
        "                if likely(i.outer * 8 + i.inner < 100):\n"
        "                    B[i.outer * 8 + i.inner] = A[i.outer * 8 + i.inner] * 2f"
    )


def test_parallel_loops_stay_one_and_numbers_stay_the_same():
    func = tiled(parallel=True)[0]
    ready = verify(run_pipeline(func), "ready")
    assert str(ready).count("parallel for") == 1
    x, y = np.arange(100, dtype="float32"), np.zeros(100, "float32")
    run(ready, x, y)
    np.testing.assert_array_equal(y, x * 2)


def test_a_vector_loop_keeps_one_check_and_one_scalar_tail():
    _, s, b, inner, a = tiled()
    s[b].vectorize(inner)
    text = str(run_pipeline(te.lower(s, [a, b])))
    assert text.count("ramp(i.outer * 8, 1, 8)") == 2  # one load, one store
    assert text.count("likely") == 2


def test_nothing_happens_where_nothing_is_guarded():
    a = te.placeholder((96,), name="A")
    b = te.compute((96,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 8)
    func = flatten_storage(te.lower(s, [a, b]))
    assert loop_partition(func) is func


def test_padding_is_partitioned_on_request():
    a = te.placeholder((64,), name="A")
    b = te.compute(
        (64,), lambda i: te.if_then_else(te.all(i >= 1, i < 63), a[i - 1] + a[i + 1], 0.0), name="B"
    )
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 16)
    func = te.lower(s, [a, b])
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        ready = run_pipeline(func)
    assert str(ready).count("if_then_else") == 1
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    run(ready, x, y)
    want = np.zeros(64, "float32")
    want[1:63] = x[:62] + x[2:]
    np.testing.assert_array_equal(y, want)


# -- nests by hand: which checks move, and how far -------------------------------------------------

OUT = decl_buffer((64,), "int32", name="Out")
T, J, K, N = (E.Var(name) for name in "tjkn")


def over(var, extent, body, first=0):
    return S.For(var, ops.const(first), ops.as_expr(extent), S.ForKind.SERIAL, body)


def checked(condition, spot, more=0):
    """``if likely(condition): Out[spot] = Out[spot] + 1 + more``"""
    store = S.BufferStore(OUT, E.BufferLoad(OUT, (spot,)) + (1 + more), (spot,))
    return S.IfThenElse(E.Call("bool", "likely", (condition,)), store, None)


def partitioned(body, n=3, **options):
    """What becomes of a function of Out and n; for several n the same numbers come out."""
    handle = E.Var("Out", "handle")
    func = PrimFunc((handle, N), body, ((handle, OUT),))
    with PassContext(config={"tir.LoopPartition": options}):
        made = verify(loop_partition(func), "flat")
    for value in (n, 0, 1, 4, 7):
        outs = [np.zeros(64, "int32") for _ in range(2)]
        for each, out in zip((func, made), outs, strict=True):
            assert run(each, out, value) == 0
        np.testing.assert_array_equal(*outs)
        assert outs[0].any() or value != n
    return made.body


def choices(stmt):
    """How many loops were written twice: with their checks, and without."""
    return sum(isinstance(n, S.IfThenElse) and n.else_case is not None for n in walk(stmt))


def test_a_check_that_always_holds_or_depends_on_one_loop_stays():
    """It is decided elsewhere, or there is no loop inside to move it out of."""
    for condition in (T * 5 + K < 25, T * 5 + K >= 0, T < N, K < N, T + N < 4, K + N < 4):
        body = over(T, 5, over(K, 5, checked(condition, T * 5 + K)))
        assert choices(partitioned(body)) == 0, condition
    assert choices(partitioned(over(T, 5, over(K, 5, checked(T * 5 + K < 24, T * 5 + K))))) == 1


def test_equality_is_no_check_of_a_border():
    for kind in (E.EQ, E.NE):
        body = over(T, 5, over(K, 5, checked(kind(T * 5 + K, ops.const(10)), T * 5 + K)))
        assert choices(partitioned(body)) == 0


def test_loops_of_one_variable_have_their_own_ranges():
    """The pieces of a cut loop: what holds for the steps of the one need not for those of another.

    The check in front asks for more than that behind, so that the ends of the last are not enough.
    """
    spot = T * 5 + K
    longer, shorter = over(K, 2, checked(spot < 23, spot), 3), over(K, 3, checked(spot < 23, spot))
    third = over(K, 1, checked(spot < 23, spot))
    for parts in ((longer, shorter), (shorter, longer), (third, longer, shorter)):
        assert choices(partitioned(over(T, 5, S.SeqStmt(parts)))) == 1
    symbolic, one = over(K, N, checked(spot < 23, spot)), over(K, N - 2, checked(spot < 23, spot))
    for parts in ((symbolic, one), (one, symbolic)):
        partitioned(over(T, 5, S.SeqStmt(parts)), n=4)
    # The same of the loop around: both pieces have a border of their own.
    for first, second in (((0, 3), (3, 2)), ((3, 2), (0, 3))):
        pieces = [
            over(T, extent, over(K, 5, checked(limit > T * 5 + K, T * 5 + K)), start)
            for (start, extent), limit in ((first, 13), (second, 23))
        ]
        partitioned(S.SeqStmt(tuple(pieces)))


def test_ends_that_depend_on_another_loop_inside_stay_inside():
    """k runs to j: what the check on t and k asks for is not known outside of the loop over j."""
    inner = over(K, J + 1, checked(T * 5 + K < 22, T * 5 + K))
    made = partitioned(over(T, 5, over(J, 5, inner)))
    assert isinstance(made.body, S.For)


def test_values_with_a_name_stay_inside():
    shift = E.Var("shift")
    for value in (E.BufferLoad(OUT, (K,)), K * 2, N + 1):
        inner = S.LetStmt(shift, value, checked(T * 5 + K + shift < 20, T * 5 + K))
        assert choices(partitioned(over(T, 5, over(K, 5, inner)))) == 0
    real = E.Var("r", "float32")
    inner = S.LetStmt(real, ops.const(1.0, "float32"), checked(T * 5 + K < 20, T * 5 + K))
    assert isinstance(partitioned(over(T, 5, over(K, 5, inner))).body, S.IfThenElse)


def test_products_of_loops_inside_have_constant_ends():
    spot = T * 10 + J * 3 + K
    body = over(T, 3, over(J, 3, over(K, 3, checked(T * 20 + J * K < 42, spot))))
    made = partitioned(body)
    assert isinstance(made.body, S.IfThenElse)
    assert choices(made) == 1


def test_what_has_nothing_to_do_with_a_check_is_there_once():
    """Sums of 104 rows, of which 100 are stored: the last tile stores fewer, and sums as many."""
    a = te.placeholder((104, 32), name="A")
    w = te.placeholder((32, 16), name="W")
    k = te.reduce_axis((0, 32), name="k")
    sums = te.compute((104, 16), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="sums")
    b = te.compute((100, 16), lambda i, j: sums[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 8)
    s[b].unroll(inner)
    s[sums].compute_at(s[b], outer)
    s[sums].set_scope("local")
    s[sums].reorder(s[sums].op.reduce_axis[0], *s[sums].op.axis)
    s[sums].unroll(s[sums].op.axis[0])
    func = te.lower(s, [a, w, b])
    once = str(loop_partition(flatten_storage(func)))
    assert once.count("for k in range(32)") == 1
    assert once.count("likely(i.outer * 8 - 93 < 0)") == 1  # around the stores
    ready = verify(run_pipeline(func), "ready")
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, t.shape).astype("float32") for t in (a, w))
    out = np.zeros((100, 16), "float32")
    run(ready, x, y, out)
    np.testing.assert_array_equal(out, (x @ y * 2)[:100])


def test_an_inner_loop_makes_a_check_that_little_of_the_outer_one_needs():
    """Rows of blocks: sums of a whole block come first, and a row is stored if it is there."""
    n = te.size_var("n")
    a = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, 64), name="k")
    m = te.compute((64, 64), lambda i, j: te.sum(te.exp(a[k] * i + j), axis=k), name="m")
    b = te.compute((n,), lambda i: m[te.floormod(i, 64), te.floormod(i, 64)], name="B")
    s = te.create_schedule(b.op)
    block, row = s[b].split(b.op.axis[0], 64)
    s[b].split(row, 4)
    s[m].compute_at(s[b], block)
    text = str(loop_partition(flatten_storage(te.lower(s, [a, b]))))
    assert text.count("for k in range(64)") == 1
    assert text.index("for i.inner.outer") < text.index("likely(i.outer * 64 + i.inner.outer * 4")


def test_a_tail_in_loops_asks_for_each_step():
    a = te.placeholder((10, 14), name="A")
    b = te.compute((10, 14), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    (i, ii), (j, jj) = (s[b].split(axis, 4) for axis in b.op.axis)
    s[b].reorder(i, j, ii, jj)
    for axis in (ii, jj):
        s[b].unroll(axis)
    unrolled = run_pipeline(te.lower(s, [a, b]))
    for axis in (ii, jj):
        s[b].pragma(axis, "loop_in_tail")
    ready = verify(run_pipeline(te.lower(s, [a, b])), "ready")
    stores = [
        sum(isinstance(n, S.BufferStore) for n in walk(func.body)) for func in (unrolled, ready)
    ]
    assert stores[1] <= 16 + 2 < stores[0]
    loops = [n for n in walk(ready.body) if isinstance(n, S.For) and n.loop_var.name == "j.inner"]
    assert all(n.kind is S.ForKind.SERIAL and S.KEEP_LOOP in n.annotations for n in loops)
    assert loops
    x, y = np.arange(140, dtype="float32").reshape(10, 14), np.zeros((10, 14), "float32")
    run(ready, x, y)
    np.testing.assert_array_equal(y, x * 2)


def test_a_tail_of_few_steps_computes_half_a_tile():
    n, rows, depth = E.SizeVar("n", "int32", 1, 40), 6, 5
    a = te.placeholder((n, depth), name="A")
    k = te.reduce_axis((0, depth), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    sums = s.cache_write(b, "local")
    outer, inner = s[b].split(b.op.axis[0], rows)
    s[sums].compute_at(s[b], outer)
    s[sums].reorder(k, sums.op.axis[0])
    for stage, axis in ((s[b], inner), (s[sums], sums.op.axis[0])):
        stage.unroll(axis)
        stage.pragma(axis, "half_in_tail")
    ready = verify(run_pipeline(te.lower(s, [a, b])), "ready")
    choices = [n for n in walk(ready.body) if isinstance(n, S.IfThenElse)]
    assert any("outer * 6 - n + 3 < 0" in str(choice.condition) for choice in choices)
    for count in range(1, 15):
        x, y = (
            np.arange(count * depth, dtype="float32").reshape(count, depth),
            np.zeros(count, "f4"),
        )
        run(ready, x, y)
        np.testing.assert_array_equal(y, x.sum(1))
