"""The body of a loop for several of its steps at once, the lanes of vectors.

before: ``B[i * 8 + v] = A[i * 8 + v] + 1f``
after:  ``B[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)] + broadcast(1f, 8)``

Where a boundary check differs between lanes, the vector form runs when the check holds in all of
them, and a serial loop otherwise; the same goes for a load that an if_then_else guards (padding).
Where it chooses between loads (concatenation) there is a vector form for each, one after another.
An extern call and a guarded gather have none.
"""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import Atom, Linear
from slipway.arith.slope import slope
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import PrimExpr, Var
from slipway.ir.intrin import INTRINSICS, is_pure
from slipway.ir.visit import substitute, walk
from slipway.transform.loop.decide import decides, given
from slipway.transform.loop.ends import INDEX_TYPES

MOST_FORMS = 256  # of stores whose lanes choose between loads; without any, one lane at a time
LONG_SIDE = 8  # choices
_OPPOSITES: dict[type, Any] = {E.LT: E.GE, E.GE: E.LT, E.LE: E.GT, E.GT: E.LE}


def in_lanes(an: Analyzer, var: Var, first: Linear, lanes: int, body: S.Stmt) -> S.Stmt | None:
    """Return `body` for `var` = first + (0, 1, ..., lanes - 1); None where it has no such form."""
    try:
        return _Lanes(an, var, first, lanes).stmt(body)
    except _CannotVectorizeError:
        return None


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
        """A store whose value is chosen for each lane: in vectors where all lanes choose alike."""
        if not any(isinstance(n, E.Call) and n.op == "if_then_else" for n in walk(node.value)):
            return self.store(node)
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
