"""Random nests with conditions: after each pass that moves, cuts or widens loops, the same numbers.

The reference is Python: it walks through the iterations and asks the conditions one by one.
"""

import itertools
import operator

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
from slipway.transform.context import PassContext
from slipway.transform.loop.cut_loops import HINT, cut_loops
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.vectorize_loop import vectorize_loop

OFFSET, SIZE, PLACES = 60, 160, 512
KINDS = {E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge}
A, B = decl_buffer((SIZE,), name="A"), decl_buffer((SIZE,), name="B")
OUT = decl_buffer((PLACES,), name="Out")

factors = st.tuples(*[st.sampled_from([0, 0, 1, 1, 2, -1, 3])] * 3, st.integers(-6, 6))
condition = st.tuples(st.sampled_from(list(KINDS)), factors, st.booleans())
conditions = st.lists(condition, min_size=0, max_size=2)
spans = st.tuples(st.integers(0, 2), st.integers(1, 5))


def affine(row, point):
    return sum(f * v for f, v in zip(row, (*point, 1), strict=True) if f) + 0


class Nest:
    """``for i, j, k: if guards: Out[...] += choice(A[...], B[...])`` and its numbers."""

    def __init__(self, loops, guards, choices, index, else_loads):
        self.loops, self.guards, self.choices, self.else_loads = loops, guards, choices, else_loads
        self.index, self.variables = index, [E.Var(n) for n in "ijk"]

    def element(self, point):
        """The index of the sources, and that of the result, which is in another place each time."""
        source = affine(self.index, point) + OFFSET
        spot = (point[0] * 8 + point[1]) * 8 + point[2]
        return source, spot if isinstance(spot, int) else ops.as_expr(spot)

    def together(self, rows):
        made = []
        for kind, row, likely in rows:
            condition = kind(ops.as_expr(affine(row, self.variables)), ops.const(0))
            made.append(E.Call("bool", "likely", (condition,)) if likely else condition)
        return ops.all_of(made) if made else ops.TRUE

    def function(self, kinds, hints):
        source, spot = self.element(self.variables)
        value = A[source]
        if self.choices:
            other = B[source] if self.else_loads else ops.const(5.0, "float32")
            value = E.Call("float32", "if_then_else", (self.together(self.choices), value, other))
        body = S.BufferStore(OUT, value + 1.0, (spot,))
        if self.guards:
            body = S.IfThenElse(self.together(self.guards), body, None)
        for n in (2, 1, 0):
            first, extent = self.loops[n]
            notes = ((HINT, True),) if hints[n] else ()
            body = S.For(self.variables[n], ops.const(first), ops.const(extent), kinds[n], body,
                         None, notes)  # fmt: skip
        handles = tuple(E.Var(b.name, "handle") for b in (A, B, OUT))
        return PrimFunc(handles, body, tuple(zip(handles, (A, B, OUT), strict=True)))

    def expected(self, a, b):
        out = np.full(PLACES, -7, "float32")
        for point in itertools.product(*(range(f, f + n) for f, n in self.loops)):

            def holds(rows, point=point):
                return all(KINDS[kind](affine(row, point), 0) for kind, row, _ in rows)

            if not holds(self.guards):
                continue
            source, spot = self.element(point)
            taken = a[source] if holds(self.choices) else b[source] if self.else_loads else 5
            out[spot] = taken + 1
        return out


nests = st.builds(
    Nest, st.tuples(spans, spans, spans), conditions, conditions, factors, st.booleans()
)


def check(func, nest, stage="flat"):
    verify(func, stage)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, SIZE).astype("float32") for _ in range(2))
    out = np.full(PLACES, -7, "float32")
    assert run(func, a, b, out) == 0
    np.testing.assert_array_equal(out, nest.expected(a, b))


SERIAL = (S.ForKind.SERIAL,) * 3


@settings(max_examples=80, deadline=None)
@given(nests, st.tuples(*[st.booleans()] * 3), st.tuples(*[st.booleans()] * 3))
def test_cut_loops(nest, hints, unrolled):
    kinds = tuple(S.ForKind.UNROLLED if u else S.ForKind.SERIAL for u in unrolled)
    made = cut_loops(nest.function(kinds, hints))
    check(made, nest)
    assert not any(isinstance(n, S.For) and n.annotations for n in walk(made.body))


@settings(max_examples=80, deadline=None)
@given(nests, st.booleans())
def test_loop_partition(nest, padding):
    func = nest.function(SERIAL, (False,) * 3)
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": padding}}):
        check(loop_partition(func), nest)


@settings(max_examples=80, deadline=None)
@given(nests, st.integers(0, 2), st.booleans())
def test_vectorize_loop(nest, which, cut):
    kinds = tuple(S.ForKind.VECTORIZED if n == which else S.ForKind.SERIAL for n in range(3))
    func = nest.function(kinds, (cut, False, False) if which else (False,) * 3)
    made = vectorize_loop(cut_loops(func))
    check(made, nest)
    assert not any(isinstance(n, S.For) and n.kind == S.ForKind.VECTORIZED for n in walk(made.body))


@settings(max_examples=80, deadline=None)
@given(nests)
def test_hoist_choice(nest):
    kinds = (S.ForKind.SERIAL, S.ForKind.SERIAL, S.ForKind.VECTORIZED)
    func = nest.function(kinds, (False,) * 3)
    made = hoist_choice(func)
    check(made, nest)
    check(vectorize_loop(made), nest)


# -- what the passes are for: which conditions are gone --------------------------------------------


def conditions_left(stmt):
    return [n for n in walk(stmt) if isinstance(n, (E.LT, E.LE, E.GT, E.GE))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1, -1])
@pytest.mark.parametrize("end", [-3, 0, 1, 4, 7, 8, 20])
def test_a_guard_of_the_hinted_loop_alone_is_decided_everywhere(kind, factor, end):
    nest = Nest(
        ((0, 1), (0, 1), (0, 8)), [(kind, (0, 0, factor, -end), False)], [], (0, 0, 1, 0), 0
    )
    made = cut_loops(nest.function(SERIAL, (False, False, True)))
    assert not conditions_left(made.body)
    check(made, nest)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors_of", [(0, 1, 1), (0, 1, -1), (0, -2, 1), (0, 1, 2), (0, 1, -3)])
@pytest.mark.parametrize("likely", [False, True])
def test_a_guard_with_an_outer_loop_becomes_the_ends(kind, factors_of, likely):
    rows = [(kind, (*factors_of, -2), likely), (E.LT, (0, 1, 1, -9), False)]
    nest = Nest(((0, 1), (0, 5), (1, 5)), rows, [], (0, 1, 1, 0), 0)
    made = cut_loops(nest.function(SERIAL, (False, False, True)))
    assert not conditions_left(made.body)
    check(made, nest)


@pytest.mark.parametrize("kind", KINDS)
def test_a_guard_on_two_loops_is_asked_once_for_the_inner_one(kind):
    nest = Nest(((0, 1), (0, 5), (0, 5)), [(kind, (0, 5, 1, -12), True)], [], (0, 5, 1, 0), 0)
    made = loop_partition(nest.function(SERIAL, (False,) * 3))
    outer = made.body.body
    assert isinstance(outer.body, S.IfThenElse)
    (condition,) = conditions_left(outer.body.condition)
    assert not conditions_left(outer.body.then_case)
    # Where all steps of the inner loop hold it is asked no more, and only there.
    for j in range(5):
        all_hold = all(KINDS[kind](5 * j + k - 12, 0) for k in range(5))
        text = str(condition).replace("j", str(j))
        assert eval(text) == all_hold
    check(made, nest)


def test_what_is_not_asked_to_move_stays():
    """Without `likely` and without the option, conditions of values stay where they are."""
    choice = [(E.LT, (0, 5, 1, -12), False)]
    nest = Nest(((0, 1), (0, 5), (0, 5)), [], choice, (0, 5, 1, 0), 0)
    func = nest.function(SERIAL, (False,) * 3)
    assert loop_partition(func) is func
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        made = loop_partition(func)
    assert made is not func
    check(made, nest)
    guard = Nest(nest.loops, [(E.LT, (0, 5, 1, -14), True)], choice, nest.index, 0)
    made = loop_partition(guard.function(SERIAL, (False,) * 3))
    inside = [n for n in walk(made.body) if isinstance(n, E.Call) and n.op == "if_then_else"]
    assert len(inside) == 1  # in both copies of the loop the same one
    check(made, guard)


@pytest.mark.parametrize("extent", [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 40])
@pytest.mark.parametrize("factor", [1, -1, 2, 0])
def test_vectors_ask_for_the_worst_lane(extent, factor):
    """A guarded store runs in vectors exactly where all lanes are inside."""
    kinds = (S.ForKind.SERIAL, S.ForKind.SERIAL, S.ForKind.VECTORIZED)
    for kind, end in itertools.product(KINDS, (-1, 0, 3, extent - 1, extent)):
        guard = (kind, (0, 0, factor, -end), False)
        nest = Nest(((0, 1), (0, 1), (0, extent)), [guard], [], (0, 0, 1, 0), 0)
        check(vectorize_loop(nest.function(kinds, (False,) * 3)), nest)
