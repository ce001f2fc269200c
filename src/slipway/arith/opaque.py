"""Expressions that arithmetic does not look into: their variables, their bounds, which are equal.

A load, a cast, a choice, a quotient by what is no number: each is one atom (`Analyzer.opaque`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.arith.linear import INDEX_TYPES, INF, Atom, Bound, Linear
from slipway.ir import expr as E
from slipway.ir.visit import children

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer
    from slipway.ir.node import Node


def variables_in(an: Analyzer, expr: Node, own: Atom) -> frozenset[Atom]:
    """Return the atoms of the variables that an expression reads.

    With an element of a tensor inside, its `own` atom is one: what that holds is not known yet.
    """
    variables: set[Atom] = set()
    seen: set[int] = set()  # parts that are shared are walked once
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, E.ProducerLoad):
            variables.add(own)
        if isinstance(node, E.Var):
            if node.dtype in INDEX_TYPES:
                variables.update(*(a.variables for a in an.linear(node).terms))
            else:
                variables.add(an.var_atom(node))
        else:
            stack += [child for child in children(node) if isinstance(child, E.PrimExpr)]
    return frozenset(variables)


def identity_of(an: Analyzer, expr: Node) -> Any:
    """Return a key that is equal for equal expressions of simple shape."""
    if isinstance(expr, E.Call):
        return ("call", expr.op, tuple(identity_of(an, a) for a in expr.args))
    if isinstance(expr, E.BufferLoad):
        return ("load", id(expr.buffer), tuple(identity_of(an, i) for i in expr.indices), expr)
    if isinstance(expr, E.Cast):
        return ("cast", expr.dtype, identity_of(an, expr.value))
    if isinstance(expr, E.PrimExpr) and expr.dtype in INDEX_TYPES:
        found = an.known(expr)
        if found is not None:
            return found.key
        if isinstance(expr, (E.IntImm, E.Var, E.Add, E.Sub, E.Mul)):
            return an.linear(expr).key
        if isinstance(expr, E.BinaryOp):
            return (type(expr), an.linear(expr.a).key, an.linear(expr.b).key)
    return expr


def bounds_of(an: Analyzer, expr: Node) -> tuple[Bound, Bound]:
    """Return constant inclusive bounds of an expression."""
    if isinstance(expr, E.Cast):
        source = expr.value.dtype
        if source in INDEX_TYPES:
            return an.linear(expr.value).bounds()
        if dtypes.is_integral(source) or dtypes.is_bool(source):
            low, high = dtypes.int_range(source)
            return (low, high) if dtypes.bits_of(source) < 32 else (-INF, INF)
    if isinstance(expr, E.Select):
        first = an.linear(expr.true_value).bounds()
        second = an.linear(expr.false_value).bounds()
        return min(first[0], second[0]), max(first[1], second[1])
    if isinstance(expr, E.Call):
        if expr.op == "if_then_else":
            first = an.linear(expr.args[1]).bounds()
            second = an.linear(expr.args[2]).bounds()
            return min(first[0], second[0]), max(first[1], second[1])
        if expr.op == "bitwise_and" and isinstance(expr.args[1], E.IntImm):
            mask = expr.args[1].value
            if mask >= 0:
                return 0, mask
    if isinstance(expr, (E.FloorDiv, E.FloorMod)) and an.linear(expr.b).low > 0:
        divisor = an.linear(expr.b)
        if isinstance(expr, E.FloorMod):
            return 0, divisor.high - 1
        return _by_proof(an, an.linear(expr.a), divisor)
    if isinstance(expr, E.Mod) and isinstance(expr.b, E.IntImm):
        size = abs(expr.b.value) - 1
        return -size, size
    return -INF, INF


def _by_proof(an: Analyzer, value: Linear, divisor: Linear) -> tuple[Bound, Bound]:
    """Return the bounds of ``value // divisor``, the upper one the least that is proved.

    Of what is below 2 * n, by n, it is 1 though the ends of both ranges tell less.
    """
    low, high = _quotients(value.bounds(), *divisor.bounds())
    if divisor.is_const or abs(high) == INF:
        return low, high
    return low, _upper_end(an, value, divisor, int(high))


def _upper_end(an: Analyzer, value: Linear, divisor: Linear, most: int) -> int:
    """Return the least upper bound of a quotient up to `most` that is proved."""
    (atom, factor), *others = value.terms.items() or [(None, 0)]
    if atom is not None and atom.kind == "min" and factor == 1 and not others:
        parts = [p.shifted(value.const) for p in (atom.arg, atom.other) if p is not None]
        return min(_upper_end(an, part, divisor, most) for part in parts)
    value, low = _times_most(an, value, divisor), min(0, most)
    while low < most:
        middle = (low + most) // 2
        above = an.recombine(value.minus(divisor.scaled(middle + 1)))
        if an.decide(E.LT, above):
            most = middle
        else:
            low = middle + 1
    return most


def _times_most(an: Analyzer, value: Linear, divisor: Linear) -> Linear:
    """Return what `value` is at most: products with the divisor have their other factor's end."""
    if len(divisor.terms) != 1 or divisor.const or list(divisor.terms.values()) != [1]:
        return value
    ((by, _),) = divisor.terms.items()
    for atom, factor in list(value.terms.items()):
        if atom.kind != "product" or by not in atom.factors or factor < 0:
            continue
        rest = list(atom.factors)
        rest.remove(by)
        if len(rest) == 1 and rest[0].high < INF:
            product = Linear({atom: factor}, 0, value.dtype)
            value = value.minus(product).plus(divisor, factor * int(rest[0].high))
    return an.recombine(value)


def _quotients(ends: tuple[Bound, Bound], low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Return the bounds of floored quotients of what lies between `ends` by `low` to `high` > 0."""
    found = [end if abs(end) == INF else end // d for end in ends for d in (low, high)]
    return min(found), max(found)
