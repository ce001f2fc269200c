"""`is_in_place` of single steps, against running their iterations one by one.

A step may be done in place if and only if no element is written twice and each is computed from the
element at the same place.  The law is decided by walking through all iterations.
"""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.transform.loop.in_place import is_in_place

OLD, NEW, OTHER = (decl_buffer((4096,), name=name) for name in ("Old", "New", "Other"))


def nest(extents, write, *reads, around=lambda store, loops: store):
    """Return loops around ``New[write] = Old[reads[0]] + ...``, indices made of their variables."""
    loops = [E.Var(f"i{n}") for n in range(len(extents))]
    value = ops.const(1.0, "float32")
    for read in reads:
        value = value + OLD[read(*loops)]
    body = around(S.BufferStore(NEW, value, (ops.as_expr(write(*loops)),)), loops)
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        body = S.For(loop, ops.const(0), ops.const(extent), S.ForKind.SERIAL, body)
    return body


def is_right(extents, write, *reads):
    """Walk through the iterations: is each place written once, from what lies there?"""
    points = list(itertools.product(*map(range, extents)))
    offsets = [write(*point) for point in points]
    once = len(set(offsets)) == len(offsets)
    return once and all(read(*p) == write(*p) for read in reads for p in points)


@pytest.mark.parametrize(
    ("extents", "write"),
    [
        ((8,), lambda i: i),
        ((8,), lambda i: 7 - i),
        ((8,), lambda i: i * 3 + 5),
        ((5, 4), lambda i, j: i * 4 + j),
        ((5, 4), lambda i, j: j * 5 + i),
        ((5, 4), lambda i, j: 19 - i * 4 - j),
        ((2, 3, 4), lambda i, j, k: j * 8 + k * 2 + i),
        ((3, 4), lambda i, j: i * 100 + j * 7),
        ((2, 2), lambda i, j: i * 2 + j),
        ((4, 1), lambda i, j: i),  # a loop of one step writes nothing twice
        ((1, 1), lambda i, j: 3),
        ((4, 1), lambda i, j: i + j),
        ((4, 8), lambda i, j: i * 8 + j + j // 8),  # the last is 0 within the loop
        ((4, 8), lambda i, j: i * 8 + j % 8),
    ],
)
def test_each_place_once_is_seen(extents, write):
    assert is_right(extents, write, write)
    assert is_in_place(nest(extents, write, write), OLD, NEW) is True


@pytest.mark.parametrize(
    ("extents", "write"),
    [
        ((2, 3), lambda i, j: i * 2 + j),  # 2 is (0, 2) and (1, 0): a stride equal to the reach
        ((3, 4), lambda i, j: i * 3 + j),
        ((3, 4), lambda i, j: i + j),
        ((2, 8), lambda i, j: j),  # all of it twice
        ((2,), lambda i: 3),
        ((8,), lambda i: i // 2),
        ((8,), lambda i: i % 4),
        ((4,), lambda i: i - i // 2),
        ((2, 2, 3), lambda i, j, k: i * 4 + j * 2 + k),
        ((3, 3), lambda i, j: i * 2 - j),
    ],
)
def test_places_written_twice_are_seen(extents, write):
    assert not is_right(extents, write, write)
    assert is_in_place(nest(extents, write, write), OLD, NEW) is False


@pytest.mark.parametrize(
    "reads",
    [
        (lambda i, j: i * 4 + j + 1,),
        (lambda i, j: i * 4 + j, lambda i, j: i * 4),
        (lambda i, j: i * 4, lambda i, j: i * 4 + j),
        (lambda i, j: i * 4 - j + 3,),
        (lambda i, j: j * 5 + i,),
    ],
)
def test_elements_of_other_places_are_seen(reads):
    write = lambda i, j: i * 4 + j  # noqa: E731
    assert not is_right((5, 4), write, *reads)
    assert is_in_place(nest((5, 4), write, *reads), OLD, NEW) is False


coefficients = st.integers(-5, 5)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=2),
    st.tuples(*[coefficients] * 5),
    st.integers(2, 4),
    st.integers(2, 4),
    st.sampled_from([None, (0, 1), (1, 0), (2, 1)]),
)
def test_what_is_called_in_place_is(extents, factors, c, d, moved):
    def write(i, j):
        a, b, e, f, g = factors
        return 200 + i * a + j * b + i // c * e + j % d * f + (i + j) // d * g

    def read(i, j):
        return write(i, j) + (i * moved[0] + j * moved[1] if moved else 0)

    if is_in_place(nest(extents, write, read), OLD, NEW):
        assert is_right(extents, write, read)


def test_a_loop_of_unknown_extent_is_not_judged():
    n = E.SizeVar("n")
    i = E.Var("i")
    store = S.BufferStore(NEW, OLD[i], (i,))
    assert is_in_place(S.For(i, ops.const(0), n, S.ForKind.SERIAL, store), OLD, NEW) is False


def test_a_loop_that_begins_elsewhere_and_a_constant_beside_the_index():
    i = E.Var("i")
    n = E.Var("n")
    loop = S.For(i, ops.const(3), ops.const(4), S.ForKind.SERIAL,
                 S.BufferStore(NEW, OLD[i + n * 8], (n * 8 + i,)))  # fmt: skip
    assert is_in_place(loop, OLD, NEW) is True


def guarded(with_else):
    def around(store, loops):
        other = S.BufferStore(NEW, ops.const(0.0, "float32"), (ops.const(7) - loops[0],))
        return S.IfThenElse(loops[0] < 4, store, other if with_else else None)

    return nest((8,), lambda i: i, lambda i: i, around=around)


def test_the_other_case_of_a_condition_may_write_elsewhere():
    assert is_in_place(guarded(with_else=False), OLD, NEW) is True
    assert is_in_place(guarded(with_else=True), OLD, NEW) is False


def test_attributes_are_looked_through():
    step = nest((8,), lambda i: i, lambda i: i)
    marked = S.AttrStmt("pragma", None, ops.const(1), step)
    assert is_in_place(marked, OLD, NEW) is True
    reversed_read = nest((8,), lambda i: i, lambda i: 7 - i)
    assert is_in_place(S.AttrStmt("pragma", None, ops.const(1), reversed_read), OLD, NEW) is False


@pytest.mark.parametrize("first", [True, False])
def test_two_stores_are_not_judged(first):
    """The second store reads what the first has overwritten."""
    i = E.Var("i")
    right = S.BufferStore(NEW, OLD[i], (i,))
    other = S.BufferStore(NEW, OLD[i] + 1.0, (ops.const(9) - i,))
    body = S.seq((right, other) if first else (other, right))
    loop = S.For(i, ops.const(0), ops.const(10), S.ForKind.SERIAL, body)
    assert is_in_place(loop, OLD, NEW) is False


def test_a_store_elsewhere_is_not_judged():
    i = E.Var("i")
    loop = S.For(
        i, ops.const(0), ops.const(8), S.ForKind.SERIAL, S.BufferStore(OTHER, OLD[i], (i,))
    )
    assert is_in_place(loop, OLD, NEW) is False


def test_what_does_not_read_the_old_buffer_is_not_in_its_place():
    i = E.Var("i")
    for value in (OTHER[i], ops.const(1.0, "float32")):
        loop = S.For(
            i, ops.const(0), ops.const(8), S.ForKind.SERIAL, S.BufferStore(NEW, value, (i,))
        )
        assert is_in_place(loop, OLD, NEW) is False


@pytest.mark.parametrize("also", [lambda i: OTHER[7 - i], lambda i: NEW[i], lambda i: NEW[7 - i]])
def test_a_step_that_reads_what_it_writes_is_not_in_place(also):
    """An accumulation adds to what stands in the new buffer; that of others does not matter."""
    i = E.Var("i")
    value = OLD[i] + also(i)
    loop = S.For(i, ops.const(0), ops.const(8), S.ForKind.SERIAL, S.BufferStore(NEW, value, (i,)))
    reads_new = any(n.buffer is NEW for n in (value.b,))
    assert is_in_place(loop, OLD, NEW) is not reads_new


def test_memory_whose_address_is_taken_is_not_judged():
    i = E.Var("i")
    for call in (
        E.Call("float32", "call_extern", (E.StringImm("f"), OLD.data, i)),
        E.Call("float32", "call_extern", (E.StringImm("f"), NEW.data, i)),
        E.Call(
            "float32", "call_extern",
            (E.StringImm("f"), E.Call("handle", "address_of", (OLD[i],))),
        ),
    ):  # fmt: skip
        store = S.BufferStore(NEW, OLD[i] + call, (i,))
        loop = S.For(i, ops.const(0), ops.const(8), S.ForKind.SERIAL, store)
        assert is_in_place(loop, OLD, NEW) is False
    pure = E.Call("float32", "exp", (OLD[i],))
    loop = S.For(i, ops.const(0), ops.const(8), S.ForKind.SERIAL, S.BufferStore(NEW, pure, (i,)))
    assert is_in_place(loop, OLD, NEW) is True
