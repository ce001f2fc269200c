"""How far an output may reach into an input, against the definition, step by step.

With end(t) the end of what step t writes and low(t) the lowest byte that it reads, the lead is the
largest end(t) - low(u) over all t and u > t; u = t counts as well where a step may write before it
has read.  Here Python runs through all pairs of steps.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.compiler.aot import overlap
from slipway.compiler.aot.overlap import overlaps_of
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run

BYTES = {"int8": 1, "int16": 2, "float32": 4, "float64": 8}


def function(body, *buffers):
    handles = tuple(E.Var(b.name, "handle") for b in buffers)
    return PrimFunc(handles, body, tuple(zip(handles, buffers, strict=True)))


def loops(variables, extents, body, firsts=None):
    for n in reversed(range(len(extents))):
        first = firsts[n] if firsts else 0
        body = S.For(variables[n], ops.const(first), ops.const(extents[n]), S.ForKind.SERIAL, body)
    return body


def minimum_lead(steps, reads_first):
    """Return the lead of [(lowest byte read, end of the bytes written)], step by step."""
    pairs = [
        end - low
        for t, (_, end) in enumerate(steps)
        for u, (low, _) in enumerate(steps)
        if u > t or (u == t and not reads_first)
    ]
    return max([0, *pairs])


def expected(lead, output):
    return [(0, 0, lead)] if lead < output.size_bytes() else []


def found(func, operands=(0,)):
    return [(o.operand, o.output, o.lead_bytes) for o in overlaps_of(func, operands)]


@st.composite
def cases(draw):
    extents = draw(st.tuples(*[st.integers(1, 4)] * 2))
    taps = draw(st.integers(1, 3))
    factors = draw(st.tuples(st.integers(-3, 4), st.integers(-2, 3), st.integers(-2, 2)))
    shift = draw(st.integers(-3, 8))
    types = draw(st.tuples(st.sampled_from(sorted(BYTES)), st.sampled_from(sorted(BYTES))))
    firsts = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    return extents, taps, factors, shift, types, firsts


class Case:
    """Out[(i, j)] from In[a * i + b * j + c * k + shift], where that is 0 or more."""

    def __init__(self, extents, taps, factors, shift, types, firsts):
        self.extents, self.taps, self.factors, self.shift = extents, taps, factors, shift
        self.firsts = firsts
        self.x, self.out = decl_buffer((64,), types[0], "X"), decl_buffer((16,), types[1], "Out")
        self.in_bytes, self.out_bytes = (BYTES[t] for t in types)
        self.i, self.j, self.k = (E.Var(name) for name in "ijk")

    def read(self, i, j, k=0):
        a, b, c = self.factors
        return i * a + j * b + k * c + self.shift

    def write(self, i, j):
        return (i - self.firsts[0]) * self.extents[1] + j - self.firsts[1]

    def value(self, k=0):
        at = ops.as_expr(self.read(self.i, self.j, k))
        zero = ops.const(0, self.x.dtype)
        picked = E.Call(self.x.dtype, "if_then_else", (at >= 0, self.x[at], zero))
        return ops.cast(picked, self.out.dtype)

    def store(self, value):
        return S.BufferStore(self.out, value, (self.write(self.i, self.j),))

    def points(self):
        spans = zip(self.firsts, self.extents, strict=True)
        return list(itertools.product(*(range(f, f + e) for f, e in spans)))

    def low(self, i, j, taps=1):
        return min(max(0, self.read(i, j, k)) for k in range(taps)) * self.in_bytes

    def end(self, i, j):
        return (self.write(i, j) + 1) * self.out_bytes

    def whole(self, body):
        nest = loops((self.i, self.j), self.extents, body, self.firsts)
        return function(nest, self.x, self.out)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_store_of_what_it_reads(case):
    case = Case(*case)
    func = case.whole(case.store(case.value()))
    steps = [(case.low(*p), case.end(*p)) for p in case.points()]
    assert found(func) == expected(minimum_lead(steps, reads_first=True), case.out)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_sum_over_a_window(case):
    """The sum begins with zero, so that each element is written before the window is read."""
    case = Case(*case)
    total = case.out[case.write(case.i, case.j)] + case.value(case.k)
    add = loops((case.k,), (case.taps,), case.store(total))
    func = case.whole(S.seq([case.store(ops.const(0, case.out.dtype)), add]))
    steps = [(case.low(*p, case.taps), case.end(*p)) for p in case.points()]
    lead = minimum_lead(steps, reads_first=False)
    assert found(func) == expected(lead, case.out)


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_a_row_that_is_read_whole_before_it_is_written(case, read_after):
    """With `read_after` the row is written first and read then: those of one row count too."""
    case = Case(*case)
    row = decl_buffer((8,), case.out.dtype, "Row")
    keep = S.BufferStore(row, case.value(), (case.j,))
    second = E.Var("j2")
    wide = S.For(second, ops.const(case.firsts[1]), ops.const(case.extents[1]), S.ForKind.SERIAL,
                 S.BufferStore(case.out, row[second], (case.write(case.i, second),)))  # fmt: skip
    first = loops((case.j,), case.extents[1:], keep, case.firsts[1:])
    body = S.seq([wide, first] if read_after else [first, wide])
    nest = loops((case.i,), case.extents[:1], body, case.firsts[:1])
    func = function(S.Allocate(row, nest), case.x, case.out)
    rows = {}
    for i, j in case.points():
        low, end = rows.get(i, (1 << 30, 0))
        rows[i] = min(low, case.low(i, j)), max(end, case.end(i, j))
    assert found(func) == expected(minimum_lead(list(rows.values()), not read_after), case.out)


@pytest.mark.parametrize("lead_less", [0, 1])
def test_the_lead_is_what_the_bytes_need(lead_less):
    """Run inside one array: right at the lead, wrong a byte below."""
    case = Case((3, 4), 2, (4, 1, 3), 0, ("int8", "int8"), (0, 0))
    total = case.out[case.write(case.i, case.j)] + case.value(case.k)
    add = loops((case.k,), (2,), case.store(total))
    func = case.whole(S.seq([case.store(ops.const(0, "int8")), add]))
    ((_, _, lead),) = found(func)
    x = np.arange(1, 65, dtype="int8")
    apart = np.zeros(16, "int8")
    run(func, x, apart)
    arena = np.zeros(128, "int8")
    at = lead - lead_less
    arena[at : at + 64] = x
    run(func, arena[at : at + 64], arena[:16])
    assert (arena[:12] == apart[:12]).all() == (lead_less == 0)


# -- vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("types", [("int8", "int8"), ("float32", "int8"), ("int8", "float32")])
@pytest.mark.parametrize("index_of", [lambda i, n: i * n, lambda i, n: i * n + 3])
def test_vectors(step, lanes, types, index_of):
    """Lanes run one after the other: its bytes count, unless it reads its own place."""
    x, out = decl_buffer((64,), types[0], "X"), decl_buffer((16,), types[1], "Out")
    i = E.Var("i")

    def ramp(base):
        first = base + (lanes - 1 if step < 0 else 0)
        return E.Ramp(ops.as_expr(first), ops.const(step), lanes)

    count = 16 // lanes
    load = E.BufferLoad(x, (ramp(index_of(i, lanes)),))
    wide = types[1] + f"x{lanes}"
    value = load if types[0] == types[1] else E.Cast(wide, load)
    body = S.BufferStore(out, value, (ramp(i * lanes),))
    own = types[0] == types[1] and index_of(1, lanes) == lanes
    steps = [
        (index_of(n, lanes) * BYTES[types[0]], (n + 1) * lanes * BYTES[types[1]])
        for n in range(count)
    ]
    lead = minimum_lead(steps, reads_first=own)
    assert found(function(loops((i,), (count,), body), x, out)) == expected(lead, out)


def test_one_element_in_all_lanes():
    x, out = decl_buffer((64,), "int8", "X"), decl_buffer((16,), "int8", "Out")
    i = E.Var("i")
    load = E.BufferLoad(x, (E.Broadcast(i + 2, 4),))
    body = S.BufferStore(out, load, (E.Ramp(i * 4, ops.const(1), 4),))
    steps = [(n + 2, n * 4 + 4) for n in range(4)]
    assert found(function(loops((i,), (4,), body), x, out)) == expected(
        minimum_lead(steps, reads_first=False), out
    )
    other = E.BufferLoad(x, (E.Ramp(i * 4, ops.const(1), 4),))
    both = S.BufferStore(out, load + other, (E.Ramp(i * 4, ops.const(1), 4),))
    steps = [(min(n + 2, n * 4), n * 4 + 4) for n in range(4)]
    assert found(function(loops((i,), (4,), both), x, out)) == expected(
        minimum_lead(steps, reads_first=False), out
    )


# -- what the indices may be made of, and what stands around ---------------------------------------

I8 = {name: decl_buffer((32,), "int8", name) for name in ("X", "Y", "Out", "Out2")}


def copy(index, around=lambda store: store, extent=8):
    """X[index(i)] + X[index(i) + 1] into Out[i]."""
    i = E.Var("i")
    at = ops.as_expr(index(i))
    store = S.BufferStore(I8["Out"], I8["X"][at + 1] + I8["X"][at], (i,))
    return function(loops((i,), (extent,), around(store)), I8["X"], I8["Out"])


@pytest.mark.parametrize(
    "index",
    [
        lambda i: i // 2,
        lambda i: i % 3,
        lambda i: 9 - i,
        lambda i: i * i,
        lambda i: (ops.minimum if isinstance(i, E.PrimExpr) else min)(i, 5),
        lambda i: (ops.maximum if isinstance(i, E.PrimExpr) else max)(i - 4, 2),
        lambda i: 5,
        lambda i: E.Cast("int64", i) + 3 if isinstance(i, E.PrimExpr) else i + 3,
    ],
)
def test_arithmetic_of_loop_variables(index):
    lead = minimum_lead([(index(i), i + 1) for i in range(8)], reads_first=True)
    assert found(copy(index)) == [(0, 0, lead)]


@pytest.mark.parametrize(
    "around",
    [
        lambda store: S.AttrStmt("pragma", None, ops.const(1), store),
        lambda store: S.Allocate(decl_buffer((4,), name="T"), store),
        lambda store: S.LetStmt(E.Var("v"), ops.const(1), store),
        lambda store: S.IfThenElse(E.Var("c", "bool"), store, None),
        lambda store: S.IfThenElse(E.Var("c", "bool"), S.NOP, store),
    ],
)
def test_what_stands_around_a_store(around):
    assert found(copy(lambda i: i + 2, around)) == found(copy(lambda i: i + 2)) == [(0, 0, 0)]
    assert found(copy(lambda i: i // 2, around)) == [(0, 0, 4)]


def test_both_cases_of_a_condition_count():
    i = E.Var("i")
    adjacent = S.BufferStore(I8["Out"], I8["X"][i + 1], (i,))
    far = S.BufferStore(I8["Out"], ops.const(0, "int8"), (i + 6,))
    for cases_of in ((adjacent, far), (far, adjacent)):
        body = S.IfThenElse(E.Var("c", "bool"), *cases_of)
        func = function(loops((i,), (8,), body), I8["X"], I8["Out"])
        ((_, _, lead),) = found(func)
        # Every step may have written 7 further: 14 bytes at the end of the last, which reads 8.
        assert lead >= minimum_lead([(n + 1, n + 7) for n in range(8)], reads_first=True)


def test_what_cannot_be_followed_allows_nothing():
    i, n = E.Var("i"), E.SizeVar("n")
    table = decl_buffer((8,), "int32", "Table")
    assert found(copy(lambda i: table[i])) == []
    assert found(copy(lambda i: i + n)) == []
    store = S.BufferStore(I8["Out"], I8["X"][i], (i,))
    for first, extent in ((ops.const(0), n), (n, ops.const(8))):
        body = S.For(i, first, extent, S.ForKind.SERIAL, store)
        assert found(function(body, I8["X"], I8["Out"])) == []
    two = E.Ramp(i, ops.const(1), 2) + E.Broadcast(i, 2)
    vector = S.BufferStore(I8["Out"], E.BufferLoad(I8["X"], (two,)), (E.Ramp(i, ops.const(1), 2),))
    assert found(function(loops((i,), (4,), vector), I8["X"], I8["Out"])) == []
    vector = S.BufferStore(
        I8["Out"], E.BufferLoad(I8["X"], (E.Broadcast(i, 2) + E.Ramp(i, ops.const(1), 2),)),
        (E.Ramp(i, ops.const(1), 2),)
    )  # fmt: skip
    assert found(function(loops((i,), (4,), vector), I8["X"], I8["Out"])) == []
    assert found(copy(lambda i: i, extent=0)) == []
    assert found(function(S.NOP, I8["X"], I8["Out"])) == []


def test_vectors_of_equal_lanes_are_followed():
    i = E.Var("i")
    same = E.Broadcast(i, 2) + E.Broadcast(ops.const(1), 2)
    body = S.BufferStore(
        I8["Out"], E.BufferLoad(I8["X"], (same,)), (E.Ramp(i * 2, ops.const(1), 2),)
    )
    steps = [(n + 1, n * 2 + 2) for n in range(4)]
    lead = minimum_lead(steps, reads_first=False)
    assert found(function(loops((i,), (4,), body), I8["X"], I8["Out"])) == [(0, 0, lead)]


def test_long_nests_are_not_followed(monkeypatch):
    monkeypatch.setattr(overlap, "MOST_STEPS", 8)
    assert found(copy(lambda i: i, extent=8)) == [(0, 0, 0)]
    assert found(copy(lambda i: i, extent=9)) == []


def test_an_input_that_two_nests_read_allows_nothing():
    i, j = E.Var("i"), E.Var("j")
    first = loops((i,), (8,), S.BufferStore(I8["Out"], I8["X"][i], (i,)))
    second = loops((j,), (8,), S.BufferStore(I8["Out"], I8["X"][j] + I8["Out"][j], (j,)))
    assert found(function(S.seq([first, second]), I8["X"], I8["Out"])) == []


def test_each_output_and_operand_is_judged():
    """Out from X at the place, Out2 from Y two behind; only what is asked for is answered."""
    i, j = E.Var("i"), E.Var("j")
    first = loops((i,), (8,), S.BufferStore(I8["Out"], I8["X"][i], (i,)))
    second = loops((j,), (8,), S.BufferStore(I8["Out2"], I8["Y"][j // 2], (j,)))
    func = function(S.seq([first, second]), I8["X"], I8["Y"], I8["Out"], I8["Out2"])
    # Out is complete before Y is read, so that it may lie below it only as a whole; X is read
    # before Out2 begins.
    assert found(func, (0, 1)) == [(0, 0, 0), (1, 0, 8), (0, 1, 0), (1, 1, 4)]
    assert found(func, (1,)) == [(1, 0, 8), (1, 1, 4)]
    assert found(func, (1, 2, 3)) == [(1, 0, 8), (1, 1, 4)]
    assert [o.exact for o in overlaps_of(func, (0,))] == [False, False]


def test_an_output_is_not_its_own_operand():
    i = E.Var("i")
    add = S.BufferStore(I8["Out"], I8["X"][i] + I8["Out"][i], (i,))
    func = function(loops((i,), (8,), add), I8["X"], I8["Out"])
    assert found(func, (0, 1)) == [(0, 0, 0)]


def test_one_write_ahead_of_the_reads_is_enough_to_count_both():
    """Out[2 * i] is written before X[i] is read in the same step, Out[2 * i + 1] after it."""
    i, j = E.Var("i"), E.Var("j")
    kept = decl_buffer((1,), "int8", "Kept")
    row = S.For(j, ops.const(0), ops.const(1), S.ForKind.SERIAL,
                S.BufferStore(kept, I8["X"][i + j], (j,)))  # fmt: skip
    early = S.BufferStore(I8["Out"], ops.const(0, "int8"), (i * 2,))
    late = S.BufferStore(I8["Out"], kept[0], (i * 2 + 1,))
    for extent in (3, 8):
        for steps in ([early, row, late], [row, early, late]):
            func = function(loops((i,), (extent,), S.seq(steps)), I8["X"], I8["Out"])
            lead = minimum_lead([(n, 2 * n + 2) for n in range(extent)], steps[0] is row)
            assert found(func) == [(0, 0, lead)]


def test_parameters_that_are_no_tensors_allow_nothing():
    i = E.Var("i")
    body = loops((i,), (8,), S.BufferStore(I8["Out"], I8["X"][i], (i,)))
    func = function(body, I8["X"], I8["Out"])
    size = E.Var("n")
    assert overlaps_of(PrimFunc((*func.params, size), body, func.buffer_map), (0,)) == []
