"""Regions that bound inference finds for stages computed outside their consumers' loops."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.ir import builder
from slipway.ir import expr as E
from slipway.ir.interpreter.interpret import run
from slipway.ir.visit import walk
from slipway.transform.loop.pipeline import run_pipeline


def test_root_stage_under_an_attached_consumer_covers_all_its_reads():
    a = te.placeholder((20,), name="A")
    padded = te.compute((22,), lambda i: te.if_then_else(te.all(i >= 1, i < 21), a[i - 1], 0.0))
    k = te.reduce_axis((0, 3), "k")
    blur = te.compute((20,), lambda i: te.sum(padded[i + k], axis=k), name="blur")
    out = te.compute((20,), lambda i: te.max(blur[i], te.const(1.0, "float32")), name="out")
    s = te.create_schedule(out.op)
    outer, _ = s[out].split(out.op.axis[0], factor=5)
    s[blur].compute_at(s[out], outer)
    func = te.lower(s, [a, out])

    x = np.random.default_rng(0).random(20).astype("float32")
    got = np.zeros(20, "float32")
    assert run(func, x, got) == 0
    want = np.maximum(np.convolve(x, np.ones(3, "float32"), "same"), 1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_an_output_that_nobody_reads_is_computed_where_its_neighbours_are():
    a = te.placeholder((6, 40), name="A")
    k = te.reduce_axis((0, 40), "k")
    both = te.comm_reducer(
        lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]),
        lambda one, two: (te.min_value(one), te.const(0.0, two)),
        name="both",
    )
    _, total = te.compute((6,), lambda i: both((a[i, k], a[i, k]), axis=k), name="stats")
    out = te.compute((6,), lambda i: total[i] * te.const(2.0, "float32"), name="out")
    s = te.create_schedule(out.op)
    s[total].compute_at(s[out], out.op.axis[0])
    func = te.lower(s, [a, out])
    assert str(func).count("float32[1]") == 2, "the unread maximum took more than one element"

    x = np.random.default_rng(0).random((6, 40)).astype("float32")
    got = np.zeros(6, "float32")
    assert run(func, x, got) == 0
    np.testing.assert_allclose(got, 2 * x.sum(1), rtol=1e-5)


@pytest.mark.parametrize("which", [0, 1])
def test_an_extern_stage_inside_a_loop_has_room_for_all_it_writes(which):
    """Its body writes whole tensors wherever it stands: the consumer's element is not enough."""

    def both(ins, outs):
        ib = builder.create()
        x, first, second = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, 6, "i") as i:
            first[i] = x[i] + 1.0
            second[i] = first[i] * 2.0
        return ib.get()

    a = te.placeholder((6,), name="A")
    made = te.extern([(6,), (6,)], [a], both, dtype=["float32", "float32"], name="both")
    out = te.compute((6,), lambda i: made[which][i] - a[i], name="out")
    s = te.create_schedule(out.op)
    s[made[0]].compute_at(s[out], out.op.axis[0])
    x = np.arange(6, dtype="float32")
    got = np.zeros(6, "float32")
    assert run(te.lower(s, [a, out]), x, got) == 0
    np.testing.assert_array_equal(got, [x + 1, (x + 1) * 2][which] - x)


@pytest.mark.parametrize(("rows", "columns"), [((1, 9), (1, 40)), ((1, 3), (5, 200))])
def test_axes_fused_and_cut_are_guarded_once(rows, columns):
    """Below h * w, a position's row is below h: no second question for it, at any size."""
    h, w = (E.SizeVar(n, "int32", *ends) for n, ends in (("h", rows), ("w", columns)))
    a = te.placeholder((h, w), "float32", name="A")
    b = te.compute((h, w), lambda i, j: a[i, j] * 2.0 + i, name="B")
    s = te.create_schedule(b.op)
    s[b].split(s[b].fuse(*b.op.axis), factor=16)
    func = te.lower(s, [a, b])
    conditions = [n for n in walk(func.body) if isinstance(n, E.Call) and n.op == "likely"]
    assert len(conditions) == 1
    ready = run_pipeline(func)
    for size in ((rows[0], columns[0]), (rows[1], columns[1]), (2, 17), (3, 16)):
        x = np.random.default_rng(0).standard_normal(size).astype("float32")
        y = np.full(size, -1, "float32")
        run(ready, x, y)
        np.testing.assert_allclose(y, x * 2 + np.arange(size[0])[:, None], rtol=1e-6)


def test_fused_axes_of_a_stage_inside_another_keep_their_own_ends():
    """What is computed for one step of a consumer may reach over the end of the whole."""
    a = te.placeholder((7, 11), "float32", name="A")
    b = te.compute((7, 11), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((7, 11), lambda i, j: b[i, j] * 2.0, name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=3)
    s[b].compute_at(s[c], outer)
    s[b].split(s[b].fuse(*b.op.axis), factor=8)
    x, y = np.arange(77, dtype="float32").reshape(7, 11), np.zeros((7, 11), "float32")
    run(run_pipeline(te.lower(s, [a, c])), x, y)
    np.testing.assert_array_equal(y, (x + 1) * 2)


def test_what_lies_beyond_a_limit_is_not_computed():
    """Of 3 blocks of 4 rows, of which 10 are read, the last block is computed in part."""
    a = te.placeholder((12, 4), name="A")
    doubled = te.compute((12, 4), lambda i, j: a[i, j] * 2.0, name="doubled")
    out = te.compute((12, 4), lambda i, j: doubled[i, j] + 1.0, name="out")
    s = te.create_schedule(out.op)
    block, row = s[out].split(out.op.axis[0], factor=4)
    pair, _ = s[out].split(row, factor=2)
    s[doubled].compute_at(s[out], pair)
    s[out].compute_below(te.floordiv(out.op.axis[0], 2) * 2, 10)
    func = te.lower(s, [a, out])
    x, got = np.ones((12, 4), "float32"), np.zeros((12, 4), "float32")
    assert run(func, x, got) == 0
    assert (got[:10] == 3).all()
    assert (got[10:] == 0).all()
    # The condition stands around what is computed at the pairs too, and in no inner loop.
    (guard,) = (n for n in walk(func.body) if type(n).__name__ == "IfThenElse")
    assert any(type(n).__name__ == "Allocate" for n in walk(guard))
    assert block.var.name in str(guard.condition)


# Random indices of a computed tensor: of loops, lets and elements of other tensors, open sizes.
# The tensor is computed at the root, inside a loop of its reader, or in threads.
LEAVES = ("loop", "element", "first", "number")
NODES = (*LEAVES, "given", "add", "sub", "min", "max", "times", "div", "mod", "select", "let")


class Index:
    """A random expression of a loop `k`, and its value for numbers."""

    def __init__(self, rng, given, later):
        self.rng, self.given, self.later, self.lets = rng, given, later, []

    def make(self, k, depth=0):
        """Return the expression, and the function of (position, given, later) that it is."""
        kind = self.rng.choice(NODES if depth < 3 else LEAVES)
        if kind == "loop":
            return k, lambda at, g, s: at
        if kind == "element":
            return self.later[k], lambda at, g, s: s[at]
        if kind == "given":
            return self.given[k], lambda at, g, s: g[at]
        if kind == "first":
            return self.later[0], lambda at, g, s: s[0]
        number = self.rng.randint(1, 4)
        if kind == "number":
            return tvm.tir.const(number, "int32"), lambda at, g, s: number
        a, of_a = self.make(k, depth + 1)
        if kind == "times":
            return a * number, lambda *v: of_a(*v) * number
        if kind == "div":
            return tvm.tir.floordiv(a, number), lambda *v: of_a(*v) // number
        if kind == "mod":
            return tvm.tir.floormod(a, number + 1), lambda *v: of_a(*v) % (number + 1)
        if kind == "let":
            var = te.var(f"let{len(self.lets)}", "int32")
            self.lets.append((var, a))
            a = var
        b, of_b = self.make(k, depth + 1)
        if kind in ("add", "let"):
            return a + b, lambda *v: of_a(*v) + of_b(*v)
        if kind == "sub":
            return a - b, lambda *v: of_a(*v) - of_b(*v)
        if kind == "min":
            return te.min(a, b), lambda *v: min(of_a(*v), of_b(*v))
        if kind == "max":
            return te.max(a, b), lambda *v: max(of_a(*v), of_b(*v))
        return tvm.tir.Select(a < b, a, b + 1), lambda *v: min(of_a(*v), of_b(*v) + 1)


def check(seed, where, device=None):
    rng = random.Random(seed)
    n, m = te.var("n"), rng.choice([5, te.var("m")])
    a, given = te.placeholder((n,), name="a"), te.placeholder((m,), "int32", name="given")
    doubled = te.compute((n,), lambda q: a[q] * 2.0, "doubled")
    later = te.compute((m,), lambda q: given[q] * 2 + 1, "later")
    index, cut = Index(rng, given, later), rng.choice(["mod", "clip"])
    values = []

    def formula(k):
        e, value = index.make(k)
        values.append(value)
        inside = tvm.tir.floormod(e, n) if cut == "mod" else te.max(te.min(e, n - 1), 0)
        result = doubled[inside] + doubled[n - 1 - inside]
        for var, bound in reversed(index.lets):
            result = tvm.tir.Let(var, bound, result)
        return result

    made = te.compute((m,), formula, "made")
    plan = te.create_schedule(made.op)
    if where == "inside":
        plan[doubled].compute_at(plan[made], made.op.axis[0])
    elif where == "tiled":
        outer, _ = plan[made].split(made.op.axis[0], factor=rng.randint(1, 4))
        plan[doubled].compute_at(plan[made], outer)
    elif where == "threads":
        for stage in plan.stages:
            if not isinstance(stage.op, te.PlaceholderOp):
                block, thread = stage.split(stage.op.axis[0], factor=32)
                stage.bind(block, te.thread_axis("blockIdx.x"))
                stage.bind(thread, te.thread_axis("threadIdx.x"))
    build = tvm.build(plan, [a, given, made], "llvm" if device is None else "opencl")
    for size in (1, 3, 17):
        count = 5 if isinstance(m, int) else rng.choice([1, 4, 9])
        x = np.arange(1, size + 1, dtype="float32")
        g = np.array([rng.randint(0, 20) for _ in range(count)], "int32")
        at = np.array([values[0](k, g.astype(int), g.astype(int) * 2 + 1) for k in range(count)])
        at = at % size if cut == "mod" else np.clip(at, 0, size - 1)
        got = tvm.nd.array(np.zeros(count, "float32"), device)
        build(tvm.nd.array(x, device), tvm.nd.array(g, device), got)
        np.testing.assert_array_equal(got.numpy(), 2 * x[at] + 2 * x[size - 1 - at], str(seed))


@pytest.mark.parametrize("where", ["root", "inside", "tiled"])
def test_random_indices(where):
    for seed in range(40):
        check(seed, where)


def test_random_indices_in_threads():
    device = tvm.opencl(0)
    if not device.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    for seed in range(40, 60):
        check(seed, "threads", device)


@pytest.mark.parametrize("how", ["plain", "split", "inside", "reordered", "other_axis"])
def test_sums_of_no_elements_are_set_to_zero(how):
    """Memory that held something before: no step of the sum runs, and its start counts."""
    data = te.placeholder((6, 0, 3), name="data")
    empty, three = te.reduce_axis((0, 0), "empty"), te.reduce_axis((0, 3), "three")
    axes = [empty, three] if how == "other_axis" else [empty]
    total = te.compute(
        (6,), lambda i: te.sum(data[i, empty, three if how == "other_axis" else 0], axis=axes)
    )
    result = te.compute((6,), lambda i: total[i] + 1.0)
    schedule = te.create_schedule(result.op)
    if how in ("split", "reordered"):
        outer, inner = schedule[total].split(empty, 4)
        (row,) = schedule[total].op.axis
        schedule[total].reorder(outer, row, inner) if how == "reordered" else None
    if how == "inside":
        schedule[total].compute_at(schedule[result], result.op.axis[0])
    arrays = [np.zeros((6, 0, 3), "float32"), np.full(6, 7, "float32"), np.full(6, 9, "float32")]
    wanted = [data, total, result] if how != "inside" else [data, result]
    given = [tvm.nd.array(a) for a in (arrays if how != "inside" else (arrays[0], arrays[2]))]
    tvm.build(schedule, wanted, "llvm")(*given)
    np.testing.assert_array_equal(given[-1].numpy(), np.ones(6))
