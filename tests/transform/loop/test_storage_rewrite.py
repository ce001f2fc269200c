"""Storage rewrite of random programs: NumPy's numbers, and no more memory than it takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.storage_rewrite import storage_rewrite

X = decl_buffer((40,), name="X")


def loop(extent, body):
    var = E.Var("i")
    return S.For(var, ops.const(0), ops.const(extent), S.ForKind.SERIAL, body(var))


def fill(buffer, value):
    size = int(buffer.shape[0])
    return loop(size, lambda i: S.BufferStore(buffer, value(i), (i,)))


def function(buffers, steps, out):
    body = S.seq(steps)
    for buffer in reversed(buffers):
        body = S.Allocate(buffer, body)
    handles = tuple(E.Var(b.name, "handle") for b in (X, out))
    return PrimFunc(handles, body, tuple(zip(handles, (X, out), strict=True)))


def allocated(func):
    return [n.buffer for n in walk(func.body) if isinstance(n, S.Allocate)]


def sizes(func):
    return sorted(int(b.shape[0]) for b in allocated(func))


# -- random programs -------------------------------------------------------------------------------

OPERATIONS = ("same", "reversed", "first", "join", "sum")


@st.composite
def programs(draw):
    """Return [(size, dtype, operation, sources)]: each reads tensors made before, or X."""
    count = draw(st.integers(1, 8))
    rows = []
    for n in range(count):
        sources = draw(st.lists(st.integers(max(-1, n - 4), n - 1), min_size=1, max_size=2))
        size = draw(st.sampled_from([5, 5, 5, 12, 40]))
        dtype = draw(st.sampled_from(["float32", "float32", "float32", "float64"]))
        rows.append((size, dtype, draw(st.sampled_from(OPERATIONS)), sources))
    return rows


def index(operation, i, size, wanted):
    """Return which element of a source of `size` the element `i` of `wanted` reads."""
    if operation == "reversed":
        return (wanted - 1 - i) % size
    return 0 if operation == "first" else i % size


def statement(target, operation, sources):
    size = int(target.shape[0])
    dtype = target.dtype

    def element(source, i):
        return ops.cast(source[index(operation, i, int(source.shape[0]), size)], dtype)

    if operation == "sum":
        k = E.Var("k")
        add = lambda i: S.BufferStore(  # noqa: E731
            target, target[i] + ops.cast(sources[0][k], dtype), (i,)
        )
        length = sources[0].shape[0]
        return loop(
            size,
            lambda i: S.seq(
                (
                    S.BufferStore(target, ops.const(0.0, dtype), (i,)),
                    S.For(k, ops.const(0), length, S.ForKind.SERIAL, add(i)),
                )
            ),
        )
    return fill(
        target,
        lambda i: sum((element(s, i) for s in sources[1:]), element(sources[0], i)) + 1,
    )


def expected(rows, x):
    arrays = []
    for size, dtype, operation, sources in rows:
        picked = [x if s < 0 else arrays[s] for s in sources]
        if operation == "sum":
            arrays.append(np.full(size, picked[0].sum(), dtype))
            continue
        at = [[index(operation, i, len(p), size) for i in range(size)] for p in picked]
        arrays.append((sum(p[a] for p, a in zip(picked, at, strict=True)) + 1).astype(dtype))
    return arrays


@settings(max_examples=120, deadline=None)
@given(programs())
def test_random_programs_keep_their_numbers(rows):
    buffers = [decl_buffer((r[0],), r[1], name=f"T{n}") for n, r in enumerate(rows)]
    out = decl_buffer((len(rows) + 40,), "float64", name="Out")
    steps = []
    for buffer, (_, _, operation, sources) in zip(buffers, rows, strict=True):
        steps.append(statement(buffer, operation, [X if s < 0 else buffers[s] for s in sources]))
    last = buffers[-1]
    steps.append(
        loop(rows[-1][0], lambda i: S.BufferStore(out, ops.cast(last[i], "float64"), (i,)))
    )
    func = storage_rewrite(verify(function(buffers, steps, out), "flat"))
    verify(func, "flat")
    x = np.random.default_rng(0).integers(-4, 5, 40).astype("float32")
    got = np.full(len(rows) + 40, -7.0)
    assert run(func, x, got) == 0
    np.testing.assert_array_equal(got[: rows[-1][0]], expected(rows, x)[-1])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=9))
def test_equal_buffers_take_as_many_slots_as_are_alive_at_once(spans):
    """Intervals taken in the order of their beginnings need no more colours than meet anywhere."""
    spans = [(min(s), max(s) + 1) for s in spans]
    buffers = [decl_buffer((16,), name=f"T{n}") for n in range(len(spans))]
    steps = []
    for now in range(10):
        born = [b for b, (first, _) in zip(buffers, spans, strict=True) if first == now]
        dying = [b for b, (_, last) in zip(buffers, spans, strict=True) if last == now]
        # All that lives is used in one statement, so that it is alive together there.
        uses = [S.BufferStore(b, ops.const(1.0, "float32"), (ops.const(0),)) for b in born]
        uses += [S.BufferStore(X, b[3], (ops.const(0),)) for b in dying]
        if uses:
            steps.append(loop(2, lambda i, uses=uses: S.seq(uses)))
    func = storage_rewrite(function(buffers, steps, decl_buffer((1,), name="Out")))
    meeting = [sum(first <= t <= last for first, last in spans) for t in range(10)]
    assert len(allocated(func)) == max(meeting)


# -- which slot ------------------------------------------------------------------------------------


def after(early, late):
    """Buffers of `early` sizes that live together and die, then those of `late` that do."""
    first = [decl_buffer((n,), name=f"E{n}") for n in early]
    then = [decl_buffer((n,), name=f"L{n}") for n in late]
    out = decl_buffer((1,), name="Out")
    steps = []
    for group in (first, then):
        steps += [fill(b, lambda i: X[0]) for b in group]
        total = sum((b[0] for b in group[1:]), group[0][0])
        steps.append(S.BufferStore(out, total, (ops.const(0),)))
    return storage_rewrite(function([*first, *then], steps, out))


@pytest.mark.parametrize(
    ("late", "memory"),
    [
        ((20,), [8, 32, 100]),  # into 32, the nearest that holds it
        ((200,), [8, 32, 200]),  # none does: the largest grows least
        ((32, 100), [8, 32, 100]),
        ((100, 32), [8, 32, 100]),
        ((8, 32, 100), [8, 32, 100]),
        ((33, 32), [8, 32, 100]),
        ((9, 33), [8, 32, 100]),
        ((8, 8, 8, 8), [8, 8, 32, 100]),
        ((60, 70), [8, 70, 100]),
    ],
)
def test_a_buffer_takes_the_slot_that_wastes_least(late, memory):
    assert sizes(after((100, 32, 8), late)) == memory


def test_a_slot_that_has_grown_counts_with_its_new_size():
    """70 and 90 take slots of 70 and 50; then 75 fits into that of 90, and 70 need not grow."""
    out = decl_buffer((1,), name="Out")
    groups, steps = [], []
    for sizes_then in ((50, 70), (70, 90), (75, 1)):
        group = [decl_buffer((n,), name=f"T{len(groups)}") for n in sizes_then]
        groups.append(group)
        steps += [fill(b, lambda i: X[0]) for b in group]
        steps.append(S.BufferStore(out, group[0][0] + group[1][0], (ops.const(0),)))
    func = storage_rewrite(function([b for g in groups for b in g], steps, out))
    assert sizes(func) == [70, 90]


def test_other_element_types_have_slots_of_their_own():
    a, b = decl_buffer((8,), name="A"), decl_buffer((8,), "int32", name="B")
    out = decl_buffer((1,), name="Out")
    steps = [
        fill(a, lambda i: X[i]), S.BufferStore(out, a[7], (ops.const(0),)),
        fill(b, lambda i: i), S.BufferStore(out, ops.cast(b[7], "float32"), (ops.const(0),)),
    ]  # fmt: skip
    assert [x.dtype for x in allocated(storage_rewrite(function([a, b], steps, out)))] == [
        "float32", "int32"
    ]  # fmt: skip


def apart(*buffers, annotations=()):
    """One after the other is filled and read, so that two of one kind would share."""
    out = decl_buffer((1,), name="Out")
    body = []
    for b in buffers:
        at = tuple(ops.const(0) for _ in b.shape)
        body += [S.BufferStore(b, X[0], at), S.BufferStore(out, E.BufferLoad(b, at), at[:1])]
    stmt = S.seq(body)
    for b in reversed(buffers):
        stmt = S.Allocate(b, stmt, annotations)
    handles = tuple(E.Var(b.name, "handle") for b in (X, out))
    return storage_rewrite(PrimFunc(handles, stmt, tuple(zip(handles, (X, out), strict=True))))


def test_only_buffers_of_one_known_dimension_take_part():
    n = E.SizeVar("n")
    plain = lambda name: decl_buffer((8,), name=name)  # noqa: E731
    assert len(allocated(apart(plain("A"), plain("B")))) == 1
    assert len(allocated(apart(plain("A"), decl_buffer((n,), name="B")))) == 2
    assert len(allocated(apart(decl_buffer((n,), name="A"), decl_buffer((n,), name="B")))) == 2
    matrices = [decl_buffer((2, 4), name=name) for name in "AB"]
    assert len(allocated(apart(*matrices))) == 2
    noted = apart(plain("A"), plain("B"), annotations=(("double_buffer", True),))
    assert len(allocated(noted)) == 2


def test_pointers_follow_their_buffer():
    """A call that is handed the memory itself gets that of the slot."""
    a, b, c = (decl_buffer((8,), name=name) for name in "ABC")
    out = decl_buffer((1,), name="Out")
    use = lambda buffer: S.Evaluate(  # noqa: E731
        E.Call("int32", "call_extern", (E.StringImm("use"), buffer.data))
    )
    steps = [use(a), use(b), use(c)]
    func = storage_rewrite(function([a, b, c], steps, out))
    (slot,) = allocated(func)
    pointers = [n for n in walk(func.body) if isinstance(n, E.Var) and n.dtype == "handle"]
    assert {id(p) for p in pointers} == {id(slot.data)}


def test_buffers_that_share_are_views_of_the_slot():
    a, b = decl_buffer((8,), name="A"), decl_buffer((20,), name="B")
    func = apart(a, b)
    (slot,) = allocated(func)
    assert int(slot.shape[0]) == 20
    uses = [n for n in walk(func.body) if isinstance(n, (S.BufferStore, E.BufferLoad))]
    inside = list({id(n.buffer): n.buffer for n in uses if n.buffer.name in "AB"}.values())
    assert sorted(u.name for u in inside) == ["A", "B"]  # one view, in all statements that use it
    assert {id(u.data) for u in inside} == {id(slot.data)}
    assert a not in inside  # the buffer that grew stands nowhere with its old size
    assert {int(u.shape[0]) for u in inside if u.name == "B"} == {20}


def test_a_lone_buffer_and_one_that_shares_with_nobody_stay_as_they_are():
    a, b = decl_buffer((8,), name="A"), decl_buffer((8,), name="B")
    out = decl_buffer((1,), name="Out")
    body = [fill(a, lambda i: X[i]), fill(b, lambda i: X[i]),
            S.BufferStore(out, a[0] + b[0], (ops.const(0),))]  # fmt: skip
    func = function([a, b], body, out)
    assert storage_rewrite(func).body is func.body
    alone = function([a], body[:1], out)
    assert storage_rewrite(alone).body is alone.body


def test_inner_levels_are_rewritten_too():
    """Two temporaries of a loop body, inside of two of the function that share as well."""
    p, q, a, b = (decl_buffer((8,), name=name) for name in "PQAB")
    out = decl_buffer((4,), name="Out")
    i = E.Var("i")
    inner = S.seq(
        [fill(a, lambda j: p[7 - j]), S.BufferStore(out, a[i], (i,)),
         fill(b, lambda j: X[j]), S.BufferStore(out, out[i] + b[i], (i,))]
    )  # fmt: skip
    each = S.For(i, ops.const(0), ops.const(4), S.ForKind.SERIAL,
                 S.Allocate(a, S.Allocate(b, inner)))  # fmt: skip
    steps = [fill(p, lambda j: X[j]), each, fill(q, lambda j: X[j]),
             S.BufferStore(out, out[0] + q[1], (ops.const(0),))]  # fmt: skip
    func = verify(storage_rewrite(function([p, q], steps, out)), "flat")
    assert len(allocated(func)) == 2
    x, got = np.arange(40, dtype="float32"), np.zeros(4, "float32")
    assert run(func, x, got) == 0
    np.testing.assert_array_equal(got, [7 + 0 + 1, 6 + 1, 5 + 2, 4 + 3])
