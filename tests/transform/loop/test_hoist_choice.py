"""Conditions that a loop of vectors cannot change are asked before it, and no number changes."""

import numpy as np
import pytest

import slipway
from slipway import te
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import map_children, walk
from slipway.transform.loop.decide import comparable
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.pipeline import run_pipeline

SOURCE, OUT = decl_buffer((64,), name="A"), decl_buffer((64,), name="Out")


def joined(vectors=True):
    a, b = te.placeholder((2, 32), name="A"), te.placeholder((3, 32), name="B")
    c = te.compute((5, 32), lambda i, j: te.if_then_else(i < 2, a[i, j], b[i - 2, j]), name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], 4)
    if vectors:
        s[c].vectorize(inner)
    return te.lower(s, [a, b, c])


def padded():
    a = te.placeholder((3, 3, 4), name="A")

    def element(y, x, c):
        inside = te.all(y >= 1, y < 4, x >= 1, x < 4)
        return te.if_then_else(inside, a[y - 1, x - 1, c], te.const(0.0, "float32"))

    p = te.compute((5, 5, 4), element, name="P")
    s = te.create_schedule(p.op)
    s[p].vectorize(p.op.axis[2])
    return te.lower(s, [a, p])


def test_joined_rows_are_copied_without_asking():
    func = hoist_choice(flatten_storage(joined()))
    assert str(func) == (
        "def main(A: float32[2, 32], B: float32[3, 32], C: float32[5, 32]):\n"
        "    for i in range(5):\n"
        "        if i < 2:\n"
        "            for j.outer in range(8):\n"
        "                vectorized for j.inner in range(4):\n"
        "                    C_1[i * 32 + j.outer * 4 + j.inner] = "
        "A_1[i * 32 + j.outer * 4 + j.inner]\n"
        "        else:\n"
        "            for j.outer in range(8):\n"
        "                vectorized for j.inner in range(4):\n"
        "                    C_1[i * 32 + j.outer * 4 + j.inner] = "
        "B_1[i * 32 + j.outer * 4 + j.inner - 64]"
    )


def test_conditions_joined_by_and_are_moved_one_by_one():
    func = hoist_choice(flatten_storage(padded()))
    assert str(func).count("if y") == 2
    assert str(func).count("if_then_else(x >= 1 and x < 4, ") == 1
    assert str(func).count("for x") == 3  # two of them only zeros


def test_loops_without_vectors_stay_as_they_are():
    func = flatten_storage(joined(vectors=False))
    assert hoist_choice(func) is func


def test_the_numbers_stay_the_same():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 32), "float32"), rng.standard_normal((3, 32), "float32")
    got = np.zeros((5, 32), "float32")
    run(verify(run_pipeline(joined()), "ready"), a, b, got)
    np.testing.assert_array_equal(got, np.concatenate([a, b]))
    image, framed = rng.standard_normal((3, 3, 4), "float32"), np.ones((5, 5, 4), "float32")
    run(verify(run_pipeline(padded()), "ready"), image, framed)
    np.testing.assert_array_equal(framed, np.pad(image, ((1, 1), (1, 1), (0, 0))))


def chain_of_joined(parts, steps):
    """`steps` times y * exp(y) of `parts` joined tensors, all in one expression."""
    inputs = [te.placeholder((2 + n, 32), name=f"A{n}") for n in range(parts)]
    ends = np.cumsum([t.shape[0].value for t in inputs]).tolist()

    def element(i, j):
        value = inputs[-1][i - ends[-2], j]
        for n in reversed(range(parts - 1)):
            first = ends[n - 1] if n else 0
            value = te.if_then_else(i < ends[n], inputs[n][i - first, j], value)
        return value

    y = te.compute((ends[-1], 32), element, name="joined")
    between = []
    for n in range(steps):
        between.append(y)
        y = te.compute(y.shape, lambda i, j, y=y: y[i, j] * te.exp(y[i, j]), name=f"y{n}")
    s = te.create_schedule(y.op)
    for tensor in between:
        s[tensor].compute_inline()
    _, inner = s[y].split(y.op.axis[1], 4)
    s[y].vectorize(inner)
    return te.lower(s, [*inputs, y])


def test_each_part_is_one_nest_however_often_it_is_read():
    """Two readers of two readers: the choice stands 64 times in the expression as it is written."""
    for parts, steps in ((2, 1), (4, 3), (9, 6)):
        func = hoist_choice(flatten_storage(chain_of_joined(parts, steps)))
        loops = [n for n in walk(func.body) if isinstance(n, S.For)]
        assert len(loops) == 1 + 2 * parts


def test_shared_values_stay_shared():
    """Six steps more are six steps' nodes more, in every pass of the pipeline."""
    counts = []
    for steps in (2, 8, 14):
        func = run_pipeline(chain_of_joined(3, steps))
        counts.append(sum(1 for _ in walk(func.body)))
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_nests_are_limited():
    """Conditions on sums that do not decide each other: seven would be 128 nests."""
    a = te.placeholder((64, 32), name="A")

    def element(i, j):
        value = a[i, j]
        for n in range(7):
            value = te.if_then_else(te.indexmod(i, n + 2) < 1, value + n, value * 2)
        return value

    b = te.compute((64, 32), element, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
    func = hoist_choice(flatten_storage(te.lower(s, [a, b])))
    assert sum(isinstance(n, S.BufferStore) for n in walk(func.body)) == 64


@pytest.mark.parametrize("parts", [16, 30])
def test_the_parts_are_told_apart_by_the_middle_one(parts):
    """n parts, log n questions: one after the other, the passes' work would grow with n * n."""

    def depth(stmt):
        if isinstance(stmt, S.IfThenElse):
            return 1 + max(depth(stmt.then_case), depth(stmt.else_case))
        return depth(stmt.body) if isinstance(stmt, S.For) else 0

    func = hoist_choice(flatten_storage(chain_of_joined(parts, 0)))
    assert depth(func.body) == int(np.ceil(np.log2(parts)))
    values = [np.full((2 + n, 32), n + 0.5, "float32") for n in range(parts)]
    got = np.zeros((sum(len(v) for v in values), 32), "float32")
    run(verify(run_pipeline(chain_of_joined(parts, 0)), "ready"), *values, got)
    np.testing.assert_array_equal(got, np.concatenate(values))


def test_conditions_of_both_directions_are_ordered_by_where_they_divide():
    i = te.var("i")
    down, up = [i < n for n in (3, 20, 7)], [i >= n for n in (5, 12)]
    found = comparable([*down, *up, te.var("j") < 1])
    assert [str(c) for c in found] == ["i < 3", "i >= 5", "i < 7", "i >= 12", "i < 20"]


@pytest.mark.parametrize("parts", [3, 12])
def test_llvm_unrolls_few_nests_and_leaves_many_as_they_stand(parts):
    func = hoist_choice(flatten_storage(chain_of_joined(parts, 0)))  # no target chooses addresses
    text = slipway.build(func, target="llvm").get_source("raw")
    assert text.count(", !llvm.loop !") == (0 if parts == 3 else parts + 1)
    assert text.count('= !{!"llvm.loop.unroll.disable"}') == (parts > 3)


def chosen_by(condition, more=0.0):
    """Return ``B[i, j] = if_then_else(condition(i, j), A[i, j], 0) + more`` in vectors of 4."""
    a, t = te.placeholder((8, 32), name="A"), te.placeholder((8,), "int32", name="T")
    b = te.compute(
        (8, 32), lambda i, j: te.if_then_else(condition(t, i, j), a[i, j], 0.0) + more, name="B"
    )
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
    return flatten_storage(te.lower(s, [a, t, b]))


def test_conditions_that_read_memory_or_change_with_a_loop_stay():
    """What a load gives may change while the loop runs; a loop of vectors inside changes others."""
    for condition in (
        lambda t, i, j: t[i] < 3,
        lambda t, i, j: te.indexmod(j, 2) < 1,
        lambda t, i, j: j < 7,
        lambda t, i, j: te.popcount(i) < 2 if hasattr(te, "popcount") else t[i] < 3,
    ):
        func = chosen_by(condition)
        made = hoist_choice(func)
        assert sum(isinstance(n, S.BufferStore) for n in walk(made.body)) == 1
    made = hoist_choice(chosen_by(lambda t, i, j: te.all(t[i] < 3, i < 4)))
    assert sum(isinstance(n, S.BufferStore) for n in walk(made.body)) == 2


def test_functions_without_choices_stay_the_same_object():
    a = te.placeholder((8, 32), name="A")
    b = te.compute((8, 32), lambda i, j: a[i, j] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
    func = flatten_storage(te.lower(s, [a, b]))
    assert hoist_choice(func) is func


def test_constant_conditions_are_no_reason_to_write_a_nest_twice():
    a = te.placeholder((8, 32), name="A")

    def element(i, j):
        known = E.Call("float32", "if_then_else", (ops.TRUE, a[i, j], a[i, j] * 2.0))
        return te.if_then_else(i < 4, known, 0.0)

    b = te.compute((8, 32), element, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
    made = hoist_choice(flatten_storage(te.lower(s, [a, b])))
    assert sum(isinstance(n, S.BufferStore) for n in walk(made.body)) == 2


def test_very_large_statements_are_not_written_twice():
    def many(count):
        a = te.placeholder((8, 32), name="A")

        def element(i, j):
            value = te.if_then_else(i < 4, a[i, j], 0.0)
            for n in range(count):
                value = value + a[i, j] * float(n + 1)
            return value

        b = te.compute((8, 32), element, name="B")
        s = te.create_schedule(b.op)
        s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
        made = hoist_choice(flatten_storage(te.lower(s, [a, b])))
        return sum(isinstance(n, S.BufferStore) for n in walk(made.body))

    assert (many(15), many(110)) == (2, 1)


def nest_of_parts(parts, between, first=0):
    """``for i, m, v: Out[first + ...] = A[...]`` of as many joined parts, `between` steps of m."""
    i, m, v = (E.Var(name) for name in "imv")
    spot = (i * between + m) * 4 + v + first
    value = ops.const(0.0, "float32")
    for n in reversed(range(parts - 1)):
        value = E.Call("float32", "if_then_else", (i < n + 1, SOURCE[spot] * float(n + 1), value))
    body = S.BufferStore(OUT, value, (spot,))
    kinds = (S.ForKind.VECTORIZED, S.ForKind.SERIAL, S.ForKind.SERIAL)
    for var, extent, kind in zip((v, m, i), (4, between, parts), kinds, strict=True):
        body = S.For(var, ops.const(0), ops.const(extent), kind, body)
    return body


def hoisted(body):
    """What hoist_choice makes of a function of SOURCE and OUT; the numbers have stayed the same."""
    handles = tuple(E.Var(b.name, "handle") for b in (SOURCE, OUT))
    func = PrimFunc(handles, body, tuple(zip(handles, (SOURCE, OUT), strict=True)))
    made = hoist_choice(func)
    data = np.arange(1, 65, dtype="float32")
    outs = [np.zeros(64, "float32") for _ in range(2)]
    for each, out in zip((func, made), outs, strict=True):
        run(each, data, out)
    np.testing.assert_array_equal(*outs)
    assert outs[0].any()
    return made.body


def loops_kept(stmt):
    """{steps of a loop: is it told to stay a loop}, of all loops but those of vectors."""
    loops = [n for n in walk(stmt) if isinstance(n, S.For) and n.kind != S.ForKind.VECTORIZED]
    return {(n.extent.value, S.KEEP_LOOP in n.annotations) for n in loops}


def test_of_many_nests_all_loops_stay_but_those_of_one_step():
    """Those are no loops: what is inside of them stands alone."""
    for between in (1, 2, 3):
        made = hoisted(nest_of_parts(5, between))
        assert loops_kept(made) == {(5, True), (between, between > 1)}
        assert loops_kept(hoisted(nest_of_parts(3, between))) == {(3, False), (between, False)}


def test_nests_beside_each_other_are_counted_by_themselves():
    """Three nests and three nests, in a loop of tasks: few each."""
    both = S.SeqStmt((nest_of_parts(3, 2), nest_of_parts(3, 2, first=24)))
    tasks = S.For(E.Var("t"), ops.const(0), ops.const(2), S.ForKind.PARALLEL, both)
    made = hoisted(tasks)
    assert made.kind == S.ForKind.PARALLEL
    assert sum(isinstance(n, S.IfThenElse) for n in walk(made)) == 4
    assert loops_kept(made) == {(2, False), (3, False)}


def chosen(parts=5, steps=5, element=None, target="llvm -mcpu=x86-64-v3", flat=True):
    """A join of `parts` rows each, read by a nest of `steps` vectors in each row."""
    tensors = [te.placeholder((2, 4 * steps), name=f"P{n}") for n in range(parts)]
    element = element or (lambda tensor, number, i, j: tensor[i - 2 * number, j])

    def one(i, j):
        made = element(tensors[-1], parts - 1, i, j)
        for number in reversed(range(parts - 1)):
            own = element(tensors[number], number, i, j)
            made = te.if_then_else(i < 2 * number + 2, own, made)
        return made

    c = te.compute((2 * parts, 4 * steps), one, name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(s[c].split(c.op.axis[1], 4)[1])
    func = te.lower(s, [*tensors, c])
    func = flatten_storage(func) if flat else func
    return func.with_attr("target", slipway.target.Target(target)) if target else func


def asks(func):
    return sum(isinstance(node, S.IfThenElse) for node in walk(hoist_choice(func).body))


@pytest.mark.parametrize(("parts", "steps"), [(5, 5), (4, 4), (4, 7), (6, 8)])
def test_many_parts_at_one_place_are_chosen_by_address(parts, steps):
    func = chosen(parts, steps)
    assert asks(func) == 0
    assert hoist_choice(func).body is func.body


@pytest.mark.parametrize(
    ("parts", "steps", "conditions"), [(3, 8, 2), (2, 2, 1), (5, 4, 1), (8, 7, 1)]
)
def test_few_parts_or_fewer_steps_than_parts_become_nests(parts, steps, conditions):
    """One part more than there are steps: the others are chosen by address behind one question."""
    assert asks(chosen(parts, steps)) == conditions


def test_without_a_choice_of_addresses_every_part_is_a_nest():
    assert asks(chosen(target=None)) == 4
    assert asks(chosen(target="c")) == 4


def test_steps_are_counted_over_all_loops_of_the_nest_but_its_vectors():
    """Two loops of three steps around vectors are nine; the lanes of a vector are none."""

    def nest(parts):
        tensors = [te.placeholder((2, 3, 3, 4), name=f"P{n}") for n in range(parts)]

        def one(i, y, x, c):
            made = tensors[-1][i - 2 * parts + 2, y, x, c]
            for number in reversed(range(parts - 1)):
                part = tensors[number][i - 2 * number, y, x, c]
                made = te.if_then_else(i < 2 * number + 2, part, made)
            return made

        c = te.compute((2 * parts, 3, 3, 4), one, name="C")
        s = te.create_schedule(c.op)
        s[c].vectorize(c.op.axis[3])
        func = flatten_storage(te.lower(s, [*tensors, c]))
        return func.with_attr("target", slipway.target.Target("llvm -mcpu=x86-64-v3"))

    assert asks(nest(9)) == 0
    assert asks(nest(10)) == 1


def test_places_that_move_apart_are_no_choice_of_addresses():
    """One part is read backwards: its place is no fixed distance from the others'."""

    def backwards(tensor, number, i, j):
        return tensor[i - 2 * number, 19 - j if number == 2 else j]

    assert asks(chosen(element=backwards)) == 4
    rows = chosen(element=lambda tensor, number, i, j: tensor[(i + number) % 2, j])
    assert asks(rows) == 4


def test_a_condition_that_changes_keeps_its_choice_from_the_addresses():
    func = chosen(element=lambda t, n, i, j: te.if_then_else(j < 7, t[i - 2 * n, j], t[0, j]))
    assert asks(func) == 4


def test_tensors_that_are_not_flat_are_not_chosen_by_address():
    assert asks(chosen(flat=False)) == 4


def by_row(tensors, rows, shape, read):
    """Row i of the result is tensor i, the last one from there on."""

    def one(i, *rest):
        made = read(tensors[-1], *rest)
        for number in reversed(range(len(tensors) - 1)):
            made = te.if_then_else(i <= number, read(tensors[number], *rest), made)
        return made

    c = te.compute((rows, *shape), one, name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[-1])
    func = te.lower(s, [*dict.fromkeys(tensors), c])
    return func.with_attr("target", slipway.target.Target("llvm -mcpu=x86-64-v3"))


@pytest.mark.parametrize(("parts", "conditions"), [(5, 0), (6, 1), (10, 5)])
def test_a_loop_of_any_number_of_steps_may_have_one(parts, conditions):
    n = te.var("n")
    tensors = [te.placeholder((n, 5, 4), name=f"P{number}") for number in range(parts)]
    func = by_row(tensors, 12, (n, 5, 4), lambda tensor, y, x, c: tensor[y, x, c])

    def without_bounds(node):
        node = node.then_case if isinstance(node, S.IfThenElse) else node
        return map_children(node, without_bounds) if isinstance(node, S.Stmt) else node

    func = flatten_storage(func)
    assert asks(func.replace(body=without_bounds(func.body))) == conditions


def test_all_loads_of_a_choice_of_addresses_are_flat():
    """The first index of a tensor that is not flat says nothing of its place."""
    tensors = [te.placeholder((24,), name=f"P{number}") for number in range(4)]
    wide = te.placeholder((24, 3), name="Wide")

    def read(tensor, x, c):
        return tensor[x + c, 0] if tensor is wide else tensor[x + c]

    assert asks(by_row([*tensors, wide], 6, (9, 4), read)) == 4
    assert asks(by_row([wide, *tensors], 6, (9, 4), read)) == 1
    assert asks(by_row([*tensors, tensors[0]], 6, (9, 4), read)) == 0
