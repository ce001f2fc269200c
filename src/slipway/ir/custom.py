"""Intrinsics of the user's own, and how a kind of target computes them (classic names).

::

    register_op_attr("tir.mylog", "TCallEffectKind", CallEffectKind.Pure)
    register_intrin_lowering("tir.mylog", target="llvm", f=lambda call: te.log(call.args[0]))

A rule may also replace what an intrinsic of Slipway's does: it runs before code generation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir.expr import Broadcast, Call, PrimExpr, StringImm, plain_name
from slipway.ir.intrin import INTRINSICS, Intrinsic
from slipway.ir.op_attrs import set_op_attr
from slipway.target.datatype import MINIMA, MinimumValue

Rule = Callable[[Call], Any]
DEFAULT = "default"  # the kind that stands for all others

_DECLARED: set[str] = set()  # intrinsics that only users' code calls
_RULES: dict[tuple[str, str], tuple[int, Rule]] = {}  # (intrinsic, target kind) -> level, rule


class CallEffectKind:
    """What calling an intrinsic does besides giving its value."""

    Pure = "pure"
    ReadState = "read"
    UpdateState = "update"
    Opaque = "opaque"


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Declare an intrinsic, or say of a graph's operator what takes it; usable as a decorator.

    "TCallEffectKind" says whether calls of an intrinsic may be moved or dropped.  The attribute
    ``target.<compiler>`` of an operator is a function of a call: whether that code generator takes
    it (`AnnotateTarget` asks).  ``FTVMLegalize`` and others are rules (`relay.op_rules`).
    """
    if attr_key.startswith(("target.", "FTVM")):
        return set_op_attr(op_name, attr_key, value, level)
    if attr_key == "TCallEffectKind" and value is not None:
        name = plain_name(op_name)
        known = INTRINSICS.get(name)
        if known is None or known.reference is None:
            if known is None:
                _DECLARED.add(name)
            INTRINSICS[name] = Intrinsic(name, -1, pure=value == CallEffectKind.Pure)
        return value
    raise LoweringError(
        f"register_op_attr({op_name!r}, {attr_key!r}): only TCallEffectKind, with its value, "
        "is an attribute of intrinsics, and target.<compiler> and FTVM<kind of rule> of operators"
    )


def register_intrin_lowering(
    op_name: str, target: str = DEFAULT, *, f: Rule | None = None, level: int = 10,
    override: bool = False,
) -> Any:  # fmt: skip
    """Say what a call of intrinsic `op_name` becomes on targets of kind `target`.

    ``f(call)`` returns the expression to compute instead (or None to leave the call).  Of two
    rules the one with the higher `level` wins.  Without `f` a decorator is returned.  Raises
    LoweringError for a second rule of the same level, unless with `override`.
    """

    def register(rule: Rule) -> Rule:
        key = (plain_name(op_name), target)
        old = _RULES.get(key)
        if old is not None and old[0] == level and not override:
            raise LoweringError(
                f"a rule of level {level} for {op_name} on {target} is registered already: give "
                "a higher level, or override=True"
            )
        if old is None or old[0] <= level:
            _RULES[key] = (level, rule)
        return rule

    return register if f is None else register(f)


def has_rules() -> bool:
    """Return whether any rule is registered."""
    return bool(_RULES)


def changes_own_code(kind: str) -> bool:
    """Return whether targets of `kind` have a rule for an intrinsic that our own code calls."""
    return any(
        found in (kind, DEFAULT) and name in INTRINSICS and name not in _DECLARED
        for name, found in _RULES
    )


def lowered(call: Call, kind: str) -> PrimExpr | None:
    """Return what the rules make of a call on targets of `kind`; None where none applies."""
    name = plain_name(call.op)
    found = _RULES.get((name, kind)) or _RULES.get((name, DEFAULT))
    result = None if found is None else found[1](call)
    if result is None or result is call:
        return None
    if not isinstance(result, PrimExpr) or result.dtype != call.dtype:
        raise LoweringError(
            f"the rule for {call.op} on {kind} must return an expression of type {call.dtype}, "
            f"got {result!r}"
        )
    return result


def datatype_minimum(dtype: str) -> PrimExpr:
    """Return the least finite value of a datatype of the user's own."""
    parts = dtypes.parse(dtype)
    name, scalar = dtypes.custom_name(parts.code), dtypes.scalar_of(dtype)
    minimum = MINIMA.get(name)
    if minimum is None:
        raise LoweringError(
            f"nobody has said what the least value of {scalar} is: register a function of the "
            f"number of bits with tvm.target.datatype.register_min_func(function, {name!r})"
        )
    if isinstance(minimum, MinimumValue):
        function = minimum.functions.name_for(parts.bits, f"the least value of {name}")
        found = Call(scalar, "call_pure_extern", (StringImm(function),))
    else:
        found = minimum(parts.bits)
    if not isinstance(found, PrimExpr) or found.dtype != scalar:
        raise LoweringError(
            f"the function of register_min_func for {name!r} must return an expression of type "
            f"{scalar}, got {found!r}"
        )
    return found if parts.lanes == 1 else Broadcast(found, parts.lanes)
