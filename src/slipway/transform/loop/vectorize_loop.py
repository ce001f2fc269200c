"""Vectorize loops: the steps of a loop become lanes.

before: ``vectorized for v in range(8): B[i * 8 + v] = A[i * 8 + v] + 1f``
after:  ``B[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)] + broadcast(1f, 8)``

A loop is cut into pieces of 64 bytes of its widest element type (16 float32 lanes) and a rest:
two pieces of 12 lanes would take more registers and instructions than 16 and 8.  So is a rest
that no register of the target holds, in powers of two: a sum of 14 lanes that passes from step to
step in two registers is 14 scalars to LLVM.  Up to 16 pieces are unrolled, more run in a serial
loop.  Where a boundary check differs between lanes, the vector form runs when the check holds in
all of them, and a serial loop otherwise; the same goes for a load that an if_then_else guards
(padding).  Where it chooses between loads (concatenation) there is a vector form for each, side by
side.  What cannot run in lanes (an extern call, a guarded gather) becomes a serial loop; so does
the tail of a loop of open extent.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF, Atom, Linear
from slipway.arith.slope import slope
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import PrimExpr, Var
from slipway.ir.function import PrimFunc
from slipway.ir.intrin import INTRINSICS, is_pure
from slipway.ir.visit import map_children, substitute, walk
from slipway.transform.context import PassContext
from slipway.transform.loop.decide import decides, given
from slipway.transform.loop.ends import INDEX_TYPES, ends_of, guards_of
from slipway.transform.loop.loop_partition import decided

VECTOR_BYTES = 64
MOST_UNROLLED = 16
MOST_FORMS = 256  # of stores whose lanes choose between loads; what has none runs lane by lane
LONG_SIDE = 8  # choices
_MOST_OF_A_TAIL = 60  # nodes of a body that is written for vectors of each length
_OPPOSITES: dict[type, Any] = {E.LT: E.GE, E.GE: E.LT, E.LE: E.GT, E.GT: E.LE}


def vectorize_loop(func: PrimFunc) -> PrimFunc:
    """Return `func` without vectorized loops."""
    off = bool(PassContext.current().option("tir.disable_vectorize"))
    bits = getattr(func.attr("target"), "vector_bits", 0)
    outer = _Outer(off, bits // 8 or VECTOR_BYTES)
    return func.replace(body=outer.visit(func.body))  # type: ignore[no-any-return]


class _Outer:
    """Finds vectorized loops, keeping the bounds of the loops around them."""

    def __init__(self, off: bool, register_bytes: int) -> None:
        self.off = off
        self.register_bytes = register_bytes
        self.an = Analyzer()

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For):
            if node.kind == S.ForKind.VECTORIZED:
                return self.vectorized(node)
            if node.loop_var.dtype in INDEX_TYPES:
                self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        return map_children(node, self.visit)

    def vectorized(self, node: S.For) -> S.Stmt:
        extent = ops.as_int(node.extent)
        if self.off or _holds_loop(node.body, S.ForKind.VECTORIZED):
            return self.serial(node)
        each = _widest_bytes(node.body)
        if extent is None:
            return self.open_pieces(node, VECTOR_BYTES // each)
        return self.pieces(node, extent, VECTOR_BYTES // each, self.register_bytes // each)

    def open_pieces(self, node: S.For, lanes: int) -> S.Stmt:
        """Cut a loop of open extent where its guards change, and what is between into vectors.

        A vector has `lanes`, or as many as the loop may have; the tail is a serial loop.
        """
        an = self.an
        extent = an.linear(node.extent)
        if extent.high < lanes:
            lanes = 1 << max(1, int(extent.high)).bit_length() - 1
        if extent.low < 0 or lanes < 2:
            return self.serial(node)
        zero = an.constant(0, extent.dtype)
        start = an.linear(node.min)
        end = start.plus(extent)
        an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        first, last, known = ends_of(
            an, an.var_atom(node.loop_var), (start, end), guards_of(node.body), ()
        )
        first = an.minimum(first, end)
        steps = an.maximum(an.recombine(last.minus(first)), zero)
        vectors = self.open_vectors(self.part(node, first, steps, decided(node.body, known)), lanes)
        if vectors is None:
            return self.serial(node)
        before = an.recombine(first.minus(start))
        after = first.plus(steps)
        sides = [
            self.serial(self.part(node, at, length, node.body))
            for at, length in ((start, before), (after, an.recombine(end.minus(after))))
            if length.high > 0
        ]
        return S.seq((vectors, *sides))

    def part(self, node: S.For, first: Linear, steps: Linear, body: S.Stmt) -> S.For:
        """Return a loop of `steps` from `first`, with a variable of its own."""
        an, var = self.an, Var(node.loop_var.name, node.loop_var.dtype)
        made = node.replace(min=an.to_expr(first), extent=an.to_expr(steps), loop_var=var)
        return made.replace(body=substitute(body, {node.loop_var: var}))  # type: ignore[no-any-return]

    def open_vectors(self, node: S.For, lanes: int) -> S.Stmt | None:
        """Return a loop of open extent as one of vectors and a tail; None where that cannot be."""
        an, dtype = self.an, node.loop_var.dtype
        extent = an.linear(node.extent)
        count = an.floordiv(extent, lanes)
        outer, inner = Var(node.loop_var.name + ".vec", dtype), Var(node.loop_var.name, dtype)
        an.bind(outer, 0, INF if extent.high == INF else max(0, int(extent.high) // lanes - 1))
        at = ops.add(ops.add(node.min, ops.mul(outer, lanes)), inner)
        zero = ops.const(0, dtype)
        made = self.lanes(inner, zero, lanes, substitute(node.body, {node.loop_var: at}))
        if isinstance(made, S.For) and made.kind == S.ForKind.SERIAL:
            return None
        whole = S.For(outer, zero, an.to_expr(count), S.ForKind.SERIAL, made)
        return S.seq((whole, *self.open_tail(node, extent, lanes)))

    def open_tail(self, node: S.For, extent: Linear, lanes: int) -> list[S.Stmt]:
        """Return what follows vectors of `lanes`: one of half as many if that fits, and so on."""
        an, dtype = self.an, node.loop_var.dtype
        done = an.floordiv(extent, lanes).scaled(lanes)
        if lanes == 2 or len(list(islice(walk(node.body), _MOST_OF_A_TAIL + 1))) > _MOST_OF_A_TAIL:
            first = an.linear(node.min).plus(done)
            tail = self.part(node, first, an.recombine(extent.minus(done)), node.body)
            return [self.serial(tail)]
        half = lanes // 2
        inner, zero = Var(node.loop_var.name, dtype), ops.const(0, dtype)
        start = ops.add(node.min, an.to_expr(done))
        body = substitute(node.body, {node.loop_var: ops.add(start, inner)})
        made = self.lanes(inner, zero, half, body)
        fits = E.EQ(ops.floormod(an.to_expr(an.floordiv(extent, half)), 2), ops.const(1, dtype))
        return [S.IfThenElse(fits, made), *self.open_tail(node, extent, half)]

    def pieces(self, node: S.For, extent: int, lanes: int, together: int) -> S.Stmt:
        """Cut a vectorized loop into vectors of at most `lanes`, its tail by halves.

        So many lanes as stay `together` are a vector whatever their number.
        """
        if extent < lanes and extent > together:
            lanes = 1 << (extent.bit_length() - 1)
        if extent <= min(lanes, together) or extent == lanes:
            return self.lanes(node.loop_var, node.min, extent, node.body)
        count, remainder = divmod(extent, lanes)
        name, kind = node.loop_var.name, node.loop_var.dtype
        outer, inner = Var(name + ".vec", kind), Var(name, kind)
        at = ops.add(ops.add(node.min, ops.mul(outer, lanes)), inner)
        zero = ops.const(0, kind)
        if count <= MOST_UNROLLED and self.is_uneven(node):
            whole = S.seq(self.piece(node, n * lanes, lanes) for n in range(count))
        else:
            self.an.bind(outer, 0, count - 1)
            body = self.lanes(inner, zero, lanes, substitute(node.body, {node.loop_var: at}))
            how = S.ForKind.UNROLLED if count <= MOST_UNROLLED else S.ForKind.SERIAL
            whole = S.For(outer, zero, ops.const(count, kind), how, body)
        if not remainder:
            return whole
        first = ops.add(node.min, count * lanes)
        tail = self.pieces(node.replace(min=first), remainder, lanes, together)
        return S.seq((whole, tail))

    def piece(self, node: S.For, first: int, lanes: int) -> S.Stmt:
        """Return `lanes` steps of a loop, from step `first`, at once."""
        step = Var(node.loop_var.name, node.loop_var.dtype)
        at = ops.add(ops.add(node.min, first), step)
        body = substitute(node.body, {node.loop_var: at})
        return self.lanes(step, ops.const(0, step.dtype), lanes, body)

    def is_uneven(self, node: S.For) -> bool:
        """Return whether what a step loads moves by no constant: at each place in its own way."""
        self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        atom = self.an.var_atom(node.loop_var)
        indices = [i for n in walk(node.body) if isinstance(n, E.BufferLoad) for i in n.indices]
        terms = [a for i in indices if i.dtype == "int32" for a in self.an.linear(i).terms]
        return any(a is not atom and a.pure and atom in a.variables for a in terms)

    def serial(self, node: S.For) -> S.Stmt:
        self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        return node.replace(kind=S.ForKind.SERIAL, body=self.visit(node.body))  # type: ignore[no-any-return]

    def lanes(self, var: Var, first: PrimExpr, lanes: int, body: S.Stmt) -> S.Stmt:
        """Return `body` for all steps of `var` at once, or as a serial loop if that cannot be."""
        if lanes == 1:
            return substitute(body, {var: first})  # type: ignore[no-any-return]
        start = self.an.linear(first)
        self.an.bind(var, start.low, start.high + lanes - 1)
        try:
            return _Lanes(self.an, var, start, lanes).stmt(body)
        except _CannotVectorizeError:
            step = Var(var.name, var.dtype)
            loop_body = substitute(body, {var: step})
            extent = ops.const(lanes, var.dtype)
            return S.For(step, first, extent, S.ForKind.SERIAL, loop_body)


class _CannotVectorizeError(Exception):
    """The loop has no vector form."""


class _Lanes:
    """Rewrites one loop body with `var` = first + (0, 1, ..., lanes - 1)."""

    def __init__(self, an: Analyzer, var: Var, first: Linear, lanes: int) -> None:
        self.an = an
        self.var = var
        self.first = first
        self.lanes = lanes
        self.atom: Atom = an.var_atom(var)
        self.lets: dict[int, Var] = {}  # names of values that differ between lanes
        self.named: set[Atom] = set()  # those of them that are indices
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.forms = 0  # made for lanes that choose alike

    # -- statements --------------------------------------------------------------------------------

    def stmt(self, node: S.Stmt) -> S.Stmt:
        match node:
            case S.BufferStore():
                return self.guarded_store(node)
            case S.SeqStmt():
                return S.seq(self.stmt(s) for s in node.stmts)
            case S.For():
                return self.loop(node)
            case S.IfThenElse():
                return self.branch(node)
            case S.LetStmt():
                value = self.expr(node.value)
                if value.dtype == node.var.dtype:
                    return S.LetStmt(node.var, value, self.stmt(node.body))
                return S.LetStmt(self.widened(node.var, value), value, self.stmt(node.body))
            case S.Evaluate() if S.is_nop(node):
                return node
            case S.AttrStmt():
                return S.AttrStmt(node.key, node.node, node.value, self.stmt(node.body))
            case _:
                raise _CannotVectorizeError

    def widened(self, var: Var, value: PrimExpr) -> Var:
        """Return the name in all lanes of what `var` names in one."""
        if id(var) in self.lets:  # it names another value than before, in what may be one body
            self.memo = {}
        wide = self.lets[id(var)] = Var(var.name, value.dtype)
        if var.dtype in INDEX_TYPES:
            self.named.add(self.an.var_atom(var))
        return wide

    def varies(self, atom: Atom) -> bool:
        """Return whether a term other than the loop's variable differs between lanes."""
        return atom is not self.atom and (
            self.atom in atom.variables or not atom.variables.isdisjoint(self.named)
        )

    def distance(self, linear: Linear) -> Linear | None:
        """Return what lies between neighbouring lanes of a sum; None where that varies."""
        if any(not a.variables.isdisjoint(self.named) for a in linear.terms):
            return None
        return slope(self.an, linear, self.atom)

    def guarded_store(self, node: S.BufferStore) -> S.Stmt:
        """A store whose value is chosen lane by lane: in vectors where all lanes choose alike."""
        if _chooses_by_name(node.value) or self.asks_too_early(node.value):
            raise _CannotVectorizeError
        between = self._choice_of_loads(node.value)
        if between is not None:
            return self.either(node, between)
        choices = self._lane_choices(node.value)
        if not choices:
            return self.store(node)
        everywhere = ops.all_of([self.in_all_lanes(c) for c in choices])
        if _never(everywhere):
            raise _CannotVectorizeError
        chosen = {c: ops.TRUE for c in choices}
        value = self.an.simplify(substitute(node.value, chosen))
        return S.IfThenElse(
            everywhere,
            self.store(S.BufferStore(node.buffer, value, node.indices)),
            self.steps(node),
        )

    def asks_too_early(self, value: PrimExpr) -> bool:
        """Return whether a choice of loads reads memory to choose, where another guards it.

        What lanes choose by is asked before the store; what guards this one would come after it.
        """
        choices = [n for n in walk(value) if isinstance(n, E.Call) and n.op == "if_then_else"]
        reading = {
            id(n): n.args[0]
            for n in choices
            if _reads_memory(n.args[0]) and any(map(_reads_memory, n.args[1:]))
        }
        inside = (id(part) for n in choices for side in n.args[1:] for part in walk(side))
        return bool(reading) and any(
            self.expr(reading[part]).lanes > 1 for part in inside if part in reading
        )

    def _choice_of_loads(self, value: PrimExpr) -> E.Call | None:
        """The first choice that differs between lanes, and loads where its condition fails."""
        for n in walk(value):
            if (
                isinstance(n, E.Call)
                and n.op == "if_then_else"
                and type(n.args[0]) in _OPPOSITES
                and _reads_memory(n.args[2])
                and self.expr(n.args[0]).lanes > 1
            ):
                return n
        return None

    def either(self, node: S.BufferStore, choice: E.Call) -> S.Stmt:
        """Return a form for each way in which all lanes choose alike, and one for mixed lanes.

        Forms follow each other under one another's conditions: nested, each would hold the
        loop over mixed lanes of what is left.  Only where both sides of a choice are long are they
        nested, so that the parts of a long join are found by halving.
        """
        result = self.steps(node)
        for condition, form in reversed(self._forms(node, choice)):
            result = S.IfThenElse(condition, form, result)
        return result

    def _forms(self, node: S.BufferStore, choice: E.Call) -> list[tuple[PrimExpr, S.Stmt]]:
        """Return the forms for lanes that choose alike, each with the condition it runs under."""
        halves = min(_choices(choice.args[1]), _choices(choice.args[2])) >= LONG_SIDE
        forms: list[tuple[PrimExpr, S.Stmt]] = []
        pending: list[tuple[S.BufferStore, E.Call | None, list[PrimExpr]]] = [(node, choice, [])]
        while pending and self.forms < MOST_FORMS:
            store, open_choice, known = pending.pop()
            if open_choice is None or (known and halves):
                condition = ops.all_of([self.in_all_lanes(c) for c in known])
                self.forms += open_choice is None
                forms.append((condition, self.guarded_store(store)))
                continue
            test: Any = open_choice.args[0]
            opposite = _OPPOSITES[type(test)](test.a, test.b)
            for met, holds in ((opposite, False), (test, True)):
                everywhere = self.in_all_lanes(met)
                if _never(everywhere) or any(
                    decides(everywhere, self.in_all_lanes(c)) is False for c in known
                ):
                    continue  # a part narrower than the lanes is never all of them
                under = [c for c in known if not decides(met, c)] + [met]
                # What holds decides the other choices on the same sum, whoever reads it: n parts
                # stay n forms, not n for each reader.
                side = given(store, test, holds)
                pending.append((side, self._choice_of_loads(side.value), under))
        return forms

    def _lane_choices(self, value: PrimExpr) -> list[PrimExpr]:
        """Conditions of if_then_else that differ between lanes and guard a load."""
        return [
            n.args[0]
            for n in walk(value)
            if isinstance(n, E.Call)
            and n.op == "if_then_else"
            and _reads_memory(n.args[1])
            and self.expr(n.args[0]).lanes > 1
        ]

    def steps(self, node: S.Stmt) -> S.Stmt:
        """Return `node` once per lane, in a serial loop."""
        inside = {n.var for n in walk(node) if isinstance(n, E.Let)}
        if any(isinstance(n, Var) and id(n) in self.lets and n not in inside for n in walk(node)):
            raise _CannotVectorizeError  # it is the name of a vector here
        step = Var(self.var.name, self.var.dtype)
        extent = ops.const(self.lanes, self.var.dtype)
        body = substitute(node, {self.var: step})
        return S.For(step, self.an.to_expr(self.first), extent, S.ForKind.SERIAL, body)

    def store(self, node: S.BufferStore) -> S.Stmt:
        (index,) = (self.expr(i) for i in node.indices)
        value = self.expr(node.value)
        if index.lanes == 1:
            raise _CannotVectorizeError  # every lane would store to one element
        return S.BufferStore(node.buffer, ops.broadcast_to(value, self.lanes), (index,))

    def loop(self, node: S.For) -> S.Stmt:
        if node.kind not in (S.ForKind.SERIAL, S.ForKind.UNROLLED):
            raise _CannotVectorizeError
        first, extent = self.expr(node.min), self.expr(node.extent)
        if first.lanes > 1 or extent.lanes > 1:
            raise _CannotVectorizeError
        self.an.bind_range(node.loop_var, E.Range(first, extent))
        self.memo = {}  # of this variable in other loops, which have other ranges
        body = self.stmt(node.body)
        return S.For(node.loop_var, first, extent, node.kind, body, None, node.annotations)

    def branch(self, node: S.IfThenElse) -> S.Stmt:
        condition = self.expr(node.condition)
        if condition.lanes == 1:
            otherwise = self.stmt(node.else_case) if node.else_case is not None else None
            return S.IfThenElse(condition, self.stmt(node.then_case), otherwise)
        if node.else_case is not None:
            raise _CannotVectorizeError
        everywhere = self.in_all_lanes(node.condition)
        return S.IfThenElse(everywhere, self.stmt(node.then_case), self.steps(node))

    def in_all_lanes(self, condition: PrimExpr) -> PrimExpr:
        """Return a scalar condition under which `condition` holds in every lane."""
        if isinstance(condition, E.And):
            return ops.logical_and(self.in_all_lanes(condition.a), self.in_all_lanes(condition.b))
        if isinstance(condition, E.Call) and condition.op == "likely":
            return E.Call("bool", "likely", (self.in_all_lanes(condition.args[0]),))
        if not isinstance(condition, (E.LT, E.LE, E.GT, E.GE)) or condition.a.dtype != "int32":
            vector: PrimExpr = self.expr(condition)
            if vector.lanes == 1:
                return vector
            raise _CannotVectorizeError
        an = self.an
        difference = an.linear(condition.a).minus(an.linear(condition.b))
        step = difference.terms.get(self.atom, 0)
        if any(map(self.varies, difference.terms)):
            raise _CannotVectorizeError
        less = isinstance(condition, (E.LT, E.LE))
        worst = self.first.shifted(self.lanes - 1) if (step > 0) == less else self.first
        at = an.substitute(difference, {self.atom: worst})
        zero = ops.const(0, difference.dtype)
        return an.simplify(type(condition)(an.to_expr(at), zero))  # type: ignore[no-any-return]

    # -- expressions -------------------------------------------------------------------------------

    def expr(self, node: Any) -> Any:
        known = self.memo.get(id(node))
        if known is not None:
            return known[1]
        result = self._expr(node)
        self.memo[id(node)] = (node, result)
        return result

    def _expr(self, node: Any) -> Any:
        if isinstance(node, Var):
            if node is self.var:
                one = ops.const(1, node.dtype)
                return E.Ramp(self.an.to_expr(self.first), one, self.lanes)
            return self.lets.get(id(node), node)
        if isinstance(node, (E.IntImm, E.FloatImm, E.StringImm)):
            return node
        if node.lanes > 1:
            raise _CannotVectorizeError
        if node.dtype in INDEX_TYPES:
            linear = self.an.linear(node)
            if all(a.pure for a in linear.terms):
                step = self.distance(linear)
                if step is not None:
                    if not step.terms and not step.const:
                        return self.an.to_expr(linear)
                    base = self.an.substitute(linear, {self.atom: self.first})
                    return E.Ramp(self.an.to_expr(base), self.an.to_expr(step), self.lanes)
        if isinstance(node, E.BufferLoad):
            picked = self.picked_load(node)
            if picked is not None:
                return picked
            return E.BufferLoad(node.buffer, tuple(self.expr(i) for i in node.indices))
        if isinstance(node, E.Call):
            return self.call(node)
        if isinstance(node, E.Select):
            return self.select(node)
        if isinstance(node, E.Let):
            value = self.expr(node.value)
            return E.Let(self.widened(node.var, value), value, self.expr(node.body))
        if isinstance(node, E.Cast):
            value = self.expr(node.value)
            return E.Cast(dtypes.with_lanes(node.dtype, value.lanes), value)
        if isinstance(node, E.Not):
            return E.Not(self.expr(node.a))
        if isinstance(node, (E.BinaryOp, E.CmpOp)):
            a, b = self.expr(node.a), self.expr(node.b)
            if a.lanes != b.lanes:
                a, b = ops.broadcast_to(a, self.lanes), ops.broadcast_to(b, self.lanes)
            remake: Any = type(node)
            return node if a is node.a and b is node.b else remake(a, b)
        raise _CannotVectorizeError

    def picked_load(self, node: E.BufferLoad) -> Any | None:
        """A load whose lanes lie close together, in any order: all of them, then a shuffle.

        x[(8 * i + v) // 2] reads half as many elements as there are lanes, each of them twice.
        """
        (index,) = node.indices
        if index.dtype not in INDEX_TYPES:
            return None
        linear = self.an.linear(index)
        inside = [a for a in linear.terms if self.varies(a)]
        if not inside or not all(
            a.pure and a.variables.isdisjoint(self.named) for a in linear.terms
        ):
            return None
        positions = [
            self.an.substitute(linear, {self.atom: self.first.shifted(lane)})
            for lane in range(self.lanes)
        ]
        apart = [position.minus(positions[0]) for position in positions]
        if any(a.terms for a in apart):
            return None
        minimum = min(a.const for a in apart)
        span = max(a.const for a in apart) - minimum + 1
        if span > 2 * self.lanes:
            return None
        start = self.an.to_expr(positions[0].shifted(minimum))
        picks = tuple(a.const - minimum for a in apart)
        if span == 1:
            return E.BufferLoad(node.buffer, (start,))
        run = E.Ramp(start, ops.const(1, start.dtype), span)
        load = E.BufferLoad(node.buffer, (run,))
        return load if picks == tuple(range(span)) else E.Shuffle((load,), picks)

    def select(self, node: E.Select) -> Any:
        condition = self.expr(node.condition)
        yes, no = self.expr(node.true_value), self.expr(node.false_value)
        lanes = max(condition.lanes, yes.lanes, no.lanes)
        return E.Select(condition, ops.broadcast_to(yes, lanes), ops.broadcast_to(no, lanes))

    def call(self, node: E.Call) -> Any:
        if node.op == "if_then_else":
            condition, yes, no = (self.expr(a) for a in node.args)
            lanes = max(condition.lanes, yes.lanes, no.lanes)
            yes, no = ops.broadcast_to(yes, lanes), ops.broadcast_to(no, lanes)
            if condition.lanes == 1:
                return E.Call(yes.dtype, node.op, (condition, yes, no))
            if _reads_memory(node.args[1]) or _reads_memory(node.args[2]):
                raise _CannotVectorizeError  # a lane must not touch what its guard forbids
            return E.Select(condition, yes, no)
        args = tuple(self.expr(a) for a in node.args)
        lanes = max((a.lanes for a in args if isinstance(a, PrimExpr)), default=1)
        if lanes == 1:
            return (
                node
                if all(a is b for a, b in zip(args, node.args, strict=True))
                else E.Call(node.dtype, node.op, args)
            )
        known = INTRINSICS.get(node.op)
        if known is None or not is_pure(node.op) or known.arity < 1 or node.op == "address_of":
            raise _CannotVectorizeError
        wide = tuple(ops.broadcast_to(a, lanes) for a in args)
        return E.Call(dtypes.with_lanes(node.dtype, lanes), node.op, wide)


def _chooses_by_name(value: PrimExpr) -> bool:
    """Return whether a choice of loads depends on a name that means something inside only."""
    names = {n.var for n in walk(value) if isinstance(n, E.Let)}
    return any(
        isinstance(n, E.Call)
        and n.op == "if_then_else"
        and _reads_memory(n)
        and any(part in names for part in walk(n.args[0]) if isinstance(part, Var))
        for n in (walk(value) if names else ())
    )


def _never(condition: PrimExpr) -> bool:
    return isinstance(condition, E.IntImm) and not condition.value


def _choices(expr: PrimExpr) -> int:
    return sum(isinstance(n, E.Call) and n.op == "if_then_else" for n in walk(expr))


def _reads_memory(expr: PrimExpr) -> bool:
    return any(isinstance(n, E.BufferLoad) for n in walk(expr))


def _holds_loop(stmt: S.Stmt, kind: str) -> bool:
    return any(isinstance(n, S.For) and n.kind == kind for n in S.statements(stmt))


def _widest_bytes(stmt: S.Stmt) -> int:
    """The bytes of the widest element type that the body loads or stores."""
    widest = 1
    for n in walk(stmt):
        if isinstance(n, S.BufferStore):
            widest = max(widest, dtypes.bytes_of(n.value.dtype))
        elif isinstance(n, E.BufferLoad) or (isinstance(n, E.Cast) and n.dtype not in ("int64",)):
            widest = max(widest, dtypes.bytes_of(n.dtype))
    return widest
