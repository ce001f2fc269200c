"""Rules that a program registers for operators by name, as classic TVM's ``register_*`` do.

    @relay.op.register_alter_op_layout("nn.conv2d", level=101)
    def alter(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **dict(attrs, data_layout="NCHW16c"))

A rule gives the expression to compute in place of a call, or None.  Of several for one operator
that of the highest level counts.  ``relay.transform`` applies them: AlterOpLayout, ConvertLayout
and Legalize.

``relay.op.register_strategy`` is for how an operator is computed and scheduled, on every target::

    @relay.op.register_strategy("nn.conv1d", level=11)
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(wrap_compute_conv1d(conv), wrap_topi_schedule(schedule), "own")
        return made
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

from slipway import te
from slipway.errors import LoweringError
from slipway.ir.op_attrs import OWN, STRATEGY, op_attr, op_attrs, set_op_attr, strategy_of
from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.visit import rewrite

Rule = Callable[..., "Expr | None"]
R = TypeVar("R", bound=Rule)
DEFAULT_LEVEL = 10

KINDS = ("FTVMAlterOpLayout", "FTVMConvertOpLayout", "FTVMLegalize")


def register(kind: str, op_name: str, rule: R | None = None, level: int = DEFAULT_LEVEL) -> Any:
    """Enter a rule of a kind, as "FTVMLegalize", for an operator; a decorator without `rule`.

    Raises UnknownOperator for a name that no operator has, LoweringError for a level that is taken.
    """
    op_registry.get(op_name)
    return set_op_attr(op_name, kind, rule, level)


def has_rules(kind: str) -> bool:
    """Return whether any operator has a rule of a kind."""
    return any(key == kind and rule is not None for _, key, rule in op_attrs())


def register_alter_op_layout(
    op_name: str, alter_layout: Rule | None = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Register ``f(attrs, inputs, tinfos, out_type)``, which gives a call in another layout."""
    return register("FTVMAlterOpLayout", op_name, alter_layout, level)


def register_convert_op_layout(
    op_name: str, convert_layout: Rule | None = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Register ``f(attrs, inputs, tinfos, desired_layouts)`` for ConvertLayout."""
    return register("FTVMConvertOpLayout", op_name, convert_layout, level)


def register_legalize(
    op_name: str, legal_op: Rule | None = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Register ``f(attrs, inputs, types)``, which gives an expression of the same type."""
    return register("FTVMLegalize", op_name, legal_op, level)


def apply(kind: str, call: Call, inputs: Sequence[Expr], more: Sequence[Any]) -> Expr | None:
    """Return what the rule for a call gives, None where there is none.

    It gets the attributes, `inputs`, and of `more` as many as it takes.
    """
    rule = op_attr(call.op.name, kind)
    if rule is None:
        return None
    made = rule(call.attrs, list(inputs), *more[: _taken(rule) - 2])
    if made is not None and not isinstance(made, Expr):
        raise LoweringError(
            f"the rule for {call.op.name} gave a {type(made).__name__}: return an expression, or "
            "None to leave the call as it is"
        )
    return made


def _taken(rule: Rule) -> int:
    """Return how many arguments a rule takes by position."""
    try:
        given = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):  # of C
        return 100
    if any(p.kind is p.VAR_POSITIONAL for p in given):
        return 100
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given)


Compute = Callable[..., Sequence[te.Tensor]]


class OpImplementation:
    """One way: ``compute(attrs, inputs, out_type)``, ``schedule(attrs, outs, target)``."""

    def __init__(
        self, compute: Compute, schedule: Callable[..., te.Schedule], name: str, plevel: int
    ) -> None:
        self.compute, self.schedule = compute, schedule
        self.name, self.plevel = name, plevel

    def __repr__(self) -> str:
        return f"OpImplementation({self.name!r}, plevel={self.plevel})"


class OpStrategy:
    """The ways that a strategy offers; of these the one of the highest level is taken."""

    def __init__(self) -> None:
        self.implementations: list[OpImplementation] = []

    def add_implementation(
        self,
        compute: Compute,
        schedule: Callable[..., te.Schedule],
        name: str = "default",
        plevel: int = 10,
    ) -> None:
        """Offer a way."""
        self.implementations.append(OpImplementation(compute, schedule, name, plevel))

    def chosen(self, op_name: str) -> OpImplementation:
        """Return the way to take.  Raises LoweringError where there is none."""
        if not self.implementations:
            raise LoweringError(
                f"the strategy that is registered for {op_name.removesuffix(OWN)} offers no "
                "implementation: call add_implementation of the OpStrategy"
            )
        return max(self.implementations, key=lambda one: one.plevel)


def register_strategy(
    op_name: str, fstrategy: Callable[..., OpStrategy] | None = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Enter ``f(attrs, inputs, out_type, target)``, which returns an OpStrategy; a decorator too.

    Raises UnknownOperator for a name that no operator has, LoweringError for a level that is taken.
    """
    op_registry.get(op_name)
    return set_op_attr(op_name, STRATEGY, fstrategy, level)


def has_strategies() -> bool:
    """Return whether a program has registered a strategy."""
    return any(key == STRATEGY and value is not None for _, key, value in op_attrs())


def set_apart(function: Function) -> Function:
    """Return `function` with an operator of its own for each that has a registered strategy.

    Graph passes know operators by name: they would put another one in its place.
    """

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        if strategy_of(expr.op.name) is None or expr.op.name.endswith(OWN):
            return None
        return Call(_own(expr.op.name), expr.args, expr.attrs, expr.span)

    made: Function = rewrite(function, rule)
    return made


def _own(op_name: str) -> Op:
    name = op_name + OWN
    if name not in op_registry.OPS:
        definition = copy(op_registry.get(op_name))
        definition.name, definition.op = name, Op(name)
        op_registry.OPS[name] = definition
    return op_registry.OPS[name].op
