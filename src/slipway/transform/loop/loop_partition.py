"""Loop partition: take boundary checks out of the hot loops.

before::

    for io in range(13):
        for ii in range(8):
            if likely(io * 8 + ii < 100): B[io * 8 + ii] = A[io * 8 + ii]

after::

    for io in range(13):
        if likely(io * 8 + 7 < 100):
            for ii in range(8): B[io * 8 + ii] = A[io * 8 + ii]
        else:
            for ii in range(8):
                if likely(io * 8 + ii < 100): B[io * 8 + ii] = A[io * 8 + ii]

A check is made once, in the outermost loop that it depends on, for all steps of the loops inside.
Where most of that loop's body has nothing to do with it, a loop inside makes the check, or the
unrolled loops of a tile that ask: the body is not there twice for its last steps.  Where a loop
has its body twice anyway, those ask with it, and unrolled loops with the pragma "loop_in_tail"
stay loops in the second one.
The loop itself is not cut, so a parallel loop stays one; only checks marked `likely` are moved,
those that splits made.  With {"tir.LoopPartition": {"partition_const_loop": True}} the conditions
of if_then_else (padding) are moved as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of
from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import PrimExpr
from slipway.ir.function import PrimFunc
from slipway.ir.visit import children, map_children, substitute, walk
from slipway.transform.context import PassContext

if TYPE_CHECKING:
    from slipway.ir.node import Node


Ranges = dict[Atom, Interval]
Checks = dict[int, tuple[PrimExpr, PrimExpr]]  # conditions by identity, and what all steps ask for
IN_TAIL = "pragma_loop_in_tail"
HALF_TAIL = "pragma_half_in_tail"
_COMPARISONS = (E.LT, E.LE, E.GT, E.GE)


def loop_partition(func: PrimFunc) -> PrimFunc:
    """Return `func` with boundary checks moved to the outermost loops they depend on."""
    options = PassContext.current().option("tir.LoopPartition") or {}
    padding = bool(options.get("partition_const_loop", False))
    if not any(isinstance(n, E.Call) and n.op == "likely" for n in walk(func.body)) and not padding:
        return func
    body = _Partition(padding).visit(_one_range_each(func.body, {}))
    return func.replace(body=body)  # type: ignore[no-any-return]


def _one_range_each(node: Any, seen: dict[E.Var, tuple[int | None, ...]]) -> Any:
    """Return a statement in which no variable has loops of different ranges.

    The pieces of a loop that was cut have the variable of that loop; what holds in one piece need
    not hold in the others.
    """
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.For):
        ends = ops.as_int(node.min), ops.as_int(node.extent)
        if None in ends or seen.setdefault(node.loop_var, ends) != ends:
            var = E.Var(node.loop_var.name, node.loop_var.dtype)
            body = substitute(node.body, {node.loop_var: var})
            node = node.replace(loop_var=var, body=body)
    return map_children(node, lambda child: _one_range_each(child, seen))


def partitioned(an: Analyzer, loop: S.For) -> S.For:
    """Return a loop whose steps ask once whether all conditions of their inner loops hold."""
    return _Partition(True, an).checked_once(loop)


_SERIAL, _UNROLLED = (S.ForKind.SERIAL, S.ForKind.PARALLEL), S.ForKind.UNROLLED


class _Partition:
    def __init__(self, padding: bool, an: Analyzer | None = None) -> None:
        self.padding = padding
        self.an = an or Analyzer()
        self.left: set[int] = set()  # conditions that unrolled loops are to ask for themselves

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For):
            self._bind(node)
            if node.kind in _SERIAL:
                return self.loop(node)
            if self.left:
                return self._tile(node)
        return map_children(node, self.visit)

    def _bind(self, node: S.For) -> None:
        if node.loop_var.dtype in ("int32", "int64"):
            self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))

    def loop(self, node: S.For) -> S.Stmt:
        whole = self._half_outside(node)
        made = self._asking(node)
        if whole is None:
            return made
        assert isinstance(made, S.For)
        short = _with_half(node.body)
        return made.replace(body=S.IfThenElse(whole, made.body, short))  # type: ignore[no-any-return]

    def _half_outside(self, node: S.For) -> PrimExpr | None:
        """Return whether the second half of a tile in a loop has a step that is inside.

        None where the loop has no tile that is marked for it.
        """
        marked = [s for s in S.statements(node.body) if _is_loop(s) and _is_halved(s)]
        own = self.an.linear(node.loop_var)
        inside = _names(self.an, node.body) if marked else set()
        for loop in marked:
            first = Linear({}, _half(loop), loop.loop_var.dtype)
            inner = {atom: (first, first) for atom in self.an.linear(loop.loop_var).terms}
            for condition in conditions_of(loop, values=False):
                found = self._for_all(condition, own, inner, inside)
                if found is not None:
                    return E.Call("bool", "likely", (found,))
        return None

    def _asking(self, node: S.For) -> S.Stmt:
        checked = node if self._leaves_checks(node) else self.checked_once(node)
        if checked is node:
            return map_children(node, self.visit)  # type: ignore[no-any-return]
        choice = checked.body
        assert isinstance(choice, S.IfThenElse)
        return checked.replace(body=choice.replace(then_case=self.visit(choice.then_case)))  # type: ignore[no-any-return]

    def checked_once(self, node: S.For) -> S.For:
        """Return the loop with one body for steps in which all conditions hold, one for others."""
        checks = self._checks(node)
        if not checks:
            return node
        inside = self._checks_in(node.body, None, loops_inside(self.an, node.body))
        checks |= {key: check for key, check in inside.items() if key in self.left}
        return node.replace(body=_in_both_ways(node.body, checks))  # type: ignore[no-any-return]

    def _checks(self, node: S.For) -> Checks:
        """Return the conditions inside a loop that it can ask for once in a step."""
        inner = loops_inside(self.an, node.body)
        return self._checks_in(node.body, self.an.linear(node.loop_var), inner)

    def _checks_in(self, body: S.Stmt, own: Linear | None, inner: Ranges) -> Checks:
        inside = _names(self.an, body)
        checks: Checks = {}
        for condition in conditions_of(body, self.padding):
            everywhere = self._for_all(condition, own, inner, inside)
            if everywhere is not None:
                checks[id(condition)] = (condition, everywhere)
        return checks

    def _leaves_checks(self, node: S.For) -> bool:
        """Return whether what a loop can ask for is left to one inside, which is less code."""
        checks = self._checks(node)
        if not checks:
            return False
        most = _length(node.body) // 2
        for loop in _around(node.body, set(checks)):
            if loop.kind not in _SERIAL:
                # Values in registers are computed where they are stored, sums in loops before.
                apart = any(s.kind in _SERIAL for s in S.statements(node.body) if _is_loop(s))
                if _length(loop) > most or not apart:
                    return False
                self.left |= set(checks)
                return True
            if _length(loop.body) <= most and set(checks) <= set(self._checks(loop)):
                return True
        return False

    def _tile(self, node: S.For) -> S.Stmt:
        """Return unrolled loops in both ways, where they have conditions that were left to them."""
        own = [c for c in conditions_of(node, self.padding) if id(c) in self.left]
        if not own:
            return map_children(node, self.visit)  # type: ignore[no-any-return]
        checks = self._checks_in(node, None, loops_inside(self.an, node))
        return _in_both_ways(node, {k: v for k, v in checks.items() if k in self.left})

    def _for_all(
        self, condition: E.PrimExpr, own: Linear | None, inner: Ranges, names: set[Atom]
    ) -> PrimExpr | None:
        """Return a condition on the outer loops under which `condition` holds for all inner ones.

        None when it does not depend on this loop and a loop inside, depends on one of `names`,
        which mean something inside only, or cannot be decided so.
        """
        if not isinstance(condition, _COMPARISONS) or condition.a.dtype not in ("int32", "int64"):
            return None
        an = self.an
        difference = an.recombine(an.linear(condition.a).minus(an.linear(condition.b)))
        variables: set[Atom] = set()
        for atom in difference.terms:
            if not atom.pure:
                return None
            variables |= atom.variables
        if variables.isdisjoint(inner) or (own is not None and variables.isdisjoint(own.terms)):
            return None
        if not variables.isdisjoint(names):
            return None
        ends = interval_of(an, difference, inner)
        if ends is None:
            return None
        worst = ends[1] if isinstance(condition, (E.LT, E.LE)) else ends[0]
        if any(not a.variables.isdisjoint(inner) for a in worst.terms):
            return None
        if an.decide(type(condition), worst) is not None:
            return None
        zero = ops.const(0, worst.dtype)
        return type(condition)(an.to_expr(worst), zero)


def _in_both_ways(body: S.Stmt, checks: Checks) -> S.IfThenElse:
    """Return a statement without its `checks` where all of them hold, else as it is."""
    conditions: dict[str, PrimExpr] = {str(c): c for _, c in checks.values()}
    together = ops.all_of([E.Call("bool", "likely", (c,)) for c in conditions.values()])
    true = {key: (condition, True) for key, (condition, _) in checks.items()}
    return S.IfThenElse(together, decided(body, true), _in_loops(body))


def _is_halved(loop: S.For) -> bool:
    steps = ops.as_int(loop.extent)
    marked = any(key == HALF_TAIL for key, _ in loop.annotations)
    return marked and steps is not None and steps > 1


def _half(loop: S.For) -> int:
    steps = ops.as_int(loop.extent)
    assert steps is not None
    return -(-steps // 2)


def _with_half(node: Any) -> Any:
    """Return the body of a tile with half the steps in those of its loops that are marked so."""
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.For) and _is_halved(node):
        node = node.replace(extent=ops.const(_half(node), node.extent.dtype))
    return map_children(node, _with_half)


def _in_loops(node: Any) -> Any:
    """Return the body of a tail with those of its unrolled loops as loops that are marked so."""
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.For) and any(key == IN_TAIL for key, _ in node.annotations):
        node = node.replace(kind=S.ForKind.SERIAL, annotations=(*node.annotations, S.KEEP_LOOP))
    return map_children(node, _in_loops)


def _around(body: S.Stmt, checks: set[int]) -> Iterator[S.For]:
    """Yield the loops that have all `checks` in them, from outside in."""
    node: Any = body
    while True:
        if isinstance(node, S.For):
            yield node
        holding = [
            child
            for child in children(node)
            if isinstance(child, S.Stmt)
            and any(id(c) in checks for c in conditions_of(child, True))
        ]
        if len(holding) != 1:
            return
        node = holding[0]


def _is_loop(node: S.Stmt) -> TypeGuard[S.For]:
    return isinstance(node, S.For)


def _length(node: S.Stmt) -> int:
    """Return the nodes of a statement whose unrolled loops are expanded."""
    inner = sum(_length(child) for child in children(node) if isinstance(child, S.Stmt))
    own = sum(1 for e in children(node) if isinstance(e, PrimExpr) for _ in walk(e))
    times = ops.as_int(node.extent) if isinstance(node, S.For) and node.kind is _UNROLLED else None
    return 1 + own + (times or 1) * inner


def loops_inside(an: Analyzer, body: S.Stmt) -> Ranges:
    """Return the interval of each loop variable in `body`, and make its range known to `an`."""
    found: Ranges = {}
    for stmt in S.statements(body):
        if isinstance(stmt, S.For) and stmt.loop_var.dtype in ("int32", "int64"):
            an.bind_range(stmt.loop_var, E.Range(stmt.min, stmt.extent))
            first, extent = an.linear(stmt.min), an.linear(stmt.extent)
            last = first.plus(extent).shifted(-1)
            for atom in an.linear(stmt.loop_var).terms:
                found[atom] = (first, last)
    return found


def _names(an: Analyzer, body: S.Stmt) -> set[Atom]:
    """Return the variables that name values in `body`."""
    lets = [n.var for n in walk(body) if isinstance(n, (S.LetStmt, E.Let))]
    return {an.var_atom(var) for var in lets if var.dtype in ("int32", "int64")}


def conditions_of(body: S.Stmt, values: bool) -> list[PrimExpr]:
    """Return the checks in `body` that are marked `likely`; with `values`, all conditions.

    Those are the ones of if_then_else and of statements.
    """
    found: list[PrimExpr] = []
    for node in walk(body):
        if isinstance(node, E.Call) and node.op in ("likely", "if_then_else"):
            if values or node.op == "likely":
                found += conjuncts(node.args[0])
        elif values and isinstance(node, S.IfThenElse):
            found += conjuncts(node.condition)
    return found


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """Return the conditions that `condition` asks for together."""
    if isinstance(condition, E.And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    if isinstance(condition, E.Call) and condition.op == "likely":
        return conjuncts(condition.args[0])
    return [condition]


def decided(node: Node, known: Mapping[int, tuple[Any, bool]]) -> Any:
    """Return `node` with what is known of conditions, {id: (condition, it holds)}, put in."""
    if id(node) in known:
        return ops.TRUE if known[id(node)][1] else ops.FALSE
    if not isinstance(node, (S.Stmt, PrimExpr)):
        return node
    result = map_children(node, lambda child: decided(child, known))
    if result is node:
        return node
    if isinstance(result, E.And):
        return ops.logical_and(result.a, result.b)
    if isinstance(result, E.Call) and result.op in ("likely", "if_then_else"):
        first = result.args[0]
        if isinstance(first, E.IntImm):
            return first if result.op == "likely" else result.args[1 if first.value else 2]
    if isinstance(result, S.IfThenElse):
        condition = result.condition
        if isinstance(condition, E.IntImm):
            chosen = result.then_case if condition.value else result.else_case
            return S.NOP if chosen is None else chosen
    return result
