"""branch and while_loop: control flow as operators over functions.

    branch(c, others)           ->  then_body(others) if c else else_body(others)
    while_loop(states, others)  ->  while condition(states, others): states = body(states, others)

`relay.If` becomes a branch before a model is compiled.  Only the branch that is taken is computed.
As with `scan`, the whole operator is one kernel (`backends/cpu/schedules/control.py`), whose inside
is the bodies' own kernels, so that every executor, exported library and device runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.interpret import interpret
from slipway.relay.narrowed import narrowed
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpPattern,
    as_expr,
    call_definition,
    register_op,
)
from slipway.relay.open_dims import usual_type
from slipway.relay.ops.recurrence import SCAN
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.ops.unrolled import evaluated
from slipway.relay.ops.while_statements import while_statements
from slipway.relay.types import FuncType, TensorType, TupleType, Type, flatten
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

CONDITION, COUNTER = TensorType((), "bool"), TensorType((), "int64")


@node
class BranchAttrs(Attrs):
    """Both branches: functions of the others, which return tuples of tensors of equal types."""

    then_body: Any
    else_body: Any


@node
class WhileAttrs(Attrs):
    """`condition` gives a bool, `body` a tuple of the new states; both of states and others.

    `iteration` is a dimension that types in the body speak of: there it is the first state, an
    int64 that counts the iterations.
    """

    condition: Any
    body: Any
    iteration: Any = None


BRANCH = register_op(
    "branch", "condition", "others...", attrs=BranchAttrs, pattern=OpPattern.OPAQUE,
    doc="One of two functions of the others, as a bool says; the other one is not computed.",
)  # fmt: skip
WHILE = register_op(
    "while_loop", "states...", "others...", attrs=WhileAttrs, pattern=OpPattern.OPAQUE,
    doc="A function of states and others, which gives the states anew while a condition holds.",
)  # fmt: skip


def _function(where: str, function: Any, given: Sequence[TensorType]) -> Type:
    """Return what a function gives.  Raises BadArgument where it does not take `given`."""
    if not isinstance(function, Function) or not isinstance(function.type, FuncType):
        raise BadArgument(where, "has no function with typed parameters")
    wanted = function.type.arg_types
    if tuple(wanted) != tuple(given):
        texts = (", ".join(map(str, types)) or "nothing" for types in (wanted, given))
        raise BadArgument(where, "does not fit: a function takes {} and is given {}".format(*texts))
    return function.type.ret_type


def _tensors(where: str, type_: Type) -> tuple[TensorType, ...]:
    fields = type_.fields if isinstance(type_, TupleType) else ()
    found = tuple(f for f in fields if isinstance(f, TensorType))
    if not found or len(found) != len(fields):
        raise BadArgument(where, f"must be a tuple of tensors, got {type_}")
    return found


@BRANCH.type_relation
def _branch_type(attrs: BranchAttrs, condition: Type, others: TupleType) -> Type:
    if condition != CONDITION:
        raise BadArgument("condition", f"must be a rank-0 bool, got {condition}")
    given = flatten(others)
    one = _function("others", attrs.then_body, given)
    other = _function("others", attrs.else_body, given)
    if _tensors("others", one) != _tensors("others", other):
        raise BadArgument("others", f"go into branches that differ: {one} and {other}")
    return one


@WHILE.type_relation
def _while_type(attrs: WhileAttrs, states: TupleType, others: TupleType) -> Type:
    kept = _tensors("states", states)
    given = [*kept, *flatten(others)]
    going = _function("states", attrs.condition, given)
    if going != CONDITION:
        raise BadArgument("states", f"have a condition that gives {going}, not a rank-0 bool")
    if attrs.iteration is not None and kept[0] != COUNTER:
        raise BadArgument("states", f"begin with the number of the iteration, {COUNTER}")
    made = _function("states", attrs.body, given)
    if _tensors("states", made) != kept:
        raise BadArgument("states", f"are {states}, and the body makes {made} of them")
    return states


BODIES = {SCAN: ("body",), BRANCH: ("then_body", "else_body"), WHILE: ("condition", "body")}


def bodies_of(expr: Expr) -> dict[str, Function]:
    """Return the functions inside a loop or branch by their attribute; empty for anything else."""
    if not isinstance(expr, Call):
        return {}
    names = BODIES.get(call_definition(expr), ())  # type: ignore[arg-type]
    return {name: getattr(expr.attrs, name) for name in names}


def is_branch(call: Call) -> bool:
    """Return whether a call is one of `branch`."""
    return call_definition(call) is BRANCH


def _run(function: Function, values: Sequence[Array]) -> Any:
    return interpret(function, *(np.asarray(v) for v in values))


@BRANCH.reference
def _branch(attrs: BranchAttrs, condition: Array, others: tuple[Array, ...]) -> Any:
    return _run(attrs.then_body if bool(condition) else attrs.else_body, others)


@WHILE.reference
def _while(attrs: WhileAttrs, states: tuple[Array, ...], others: tuple[Array, ...]) -> Any:
    current = tuple(np.asarray(state) for state in states)
    body = attrs.body
    while bool(_run(attrs.condition, (*current, *others))):
        if attrs.iteration is not None:
            body = narrowed(attrs.body, {attrs.iteration.formula: int(current[0])})
        current = tuple(_run(body, (*current, *others)))
    return current


@BRANCH.compute
def _compute_both(attrs: BranchAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Compute both and choose: the value, for a backend that has no strategy for branches."""
    condition, *others = inputs
    pairs = zip(evaluated(attrs.then_body, others), evaluated(attrs.else_body, others), strict=True)

    def chosen(one: Any, other: Any) -> Any:
        return te().compute(
            one.shape, lambda *i: te().Select(condition(), one(*i), other(*i)), name="chosen"
        )

    return [chosen(one, other) for one, other in pairs]


WHILE.compute(while_statements)


def _count(name: str, bodies: Callable[[Any], Sequence[Function]]) -> Callable[..., float]:
    """Return what counts the work of the dearest of some functions, once."""

    def count(attrs: Any, in_types: Sequence[Type], out_type: Type) -> float:
        return max(_work_of(body, name) for body in bodies(attrs))

    return count


def _work_of(body: Function, name: str) -> float:
    total = 0.0
    for expr in post_order(body):
        definition = call_definition(expr)
        if definition is not None and isinstance(expr, Call):
            types = [usual_type(a.checked_type) for a in expr.args]
            total += getattr(definition, name)(expr.attrs, types, usual_type(expr.checked_type))
    return total


def _branches(attrs: BranchAttrs) -> tuple[Function, Function]:
    return attrs.then_body, attrs.else_body


BRANCH.flops(_count("count_flops", _branches))
BRANCH.work(_count("count_work", _branches))
WHILE.flops(_count("count_flops", lambda attrs: (attrs.body,)))  # of one iteration
WHILE.work(_count("count_work", lambda attrs: (attrs.body,)))


def _tuple(values: Any) -> Tuple:
    if not isinstance(values, Tuple | tuple | list):
        raise BadArgument("others", f"is {values!r}; write a list of tensors")
    fields = values.fields if isinstance(values, Tuple) else values
    return Tuple(tuple(as_expr(v) for v in fields))


def _wrapped(call: Call) -> TupleWrapper:
    result = call.checked_type
    assert isinstance(result, TupleType)
    return TupleWrapper(call, len(result.fields))


@BRANCH.make
def branch(
    condition: ExprLike, then_body: Function, else_body: Function, others: ExprLike = ()
) -> TupleWrapper:
    """Compute one of two functions of `others`, which return tuples; see `BranchAttrs`."""
    attrs = BranchAttrs(then_body, else_body)
    return _wrapped(BRANCH(as_expr(condition), _tuple(others), attrs=attrs))


@WHILE.make
def while_loop(
    condition: Function, body: Function, states: ExprLike, others: ExprLike = (),
    iteration: Any = None,
) -> TupleWrapper:  # fmt: skip
    """Give `states` anew by `body` while `condition` holds; see `WhileAttrs`.  Returns the last."""
    attrs = WhileAttrs(condition, body, iteration)
    return _wrapped(WHILE(_tuple(states), _tuple(others), attrs=attrs))


def _variables(names: str, *types: TensorType) -> list[Var]:
    return [Var(name, type_) for name, type_ in zip(names, types, strict=True)]


def _sample_branch() -> BranchAttrs:
    """Two tensors as they are, or in the other order."""
    kinds = [TensorType((2, 3))] * 2
    (a, b), (x, y) = _variables("ab", *kinds), _variables("xy", *kinds)
    return BranchAttrs(Function((a, b), Tuple((a, b))), Function((x, y), Tuple((y, x))))


def _sample_loop() -> WhileAttrs:
    """Change places of two tensors while the first of two bools is true; the second follows it."""
    kinds = [CONDITION, CONDITION, TensorType((2, 3)), TensorType((2, 3)), CONDITION]
    going, then, a, b, off = _variables("gtabo", *kinds)
    others = _variables("gtabo", *kinds)
    condition = Function(tuple(others), others[0])
    return WhileAttrs(condition, Function((going, then, a, b, off), Tuple((then, off, b, a))))


def _flags(*values: bool) -> tuple[Array, ...]:
    return tuple(np.array(value) for value in values)


def _pair(rng: np.random.Generator) -> tuple[Array, ...]:
    return tuple(rng.uniform(-2, 2, (2, 3)).astype("float32") for _ in range(2))


for flag in (True, False):
    BRANCH.sample_case(
        (), [(2, 3), (2, 3)], attrs=_sample_branch(),
        make=lambda rng, flag=flag: [np.array(flag), _pair(rng)],
    )  # fmt: skip
for flags in ((False, True), (True, False), (True, True)):
    WHILE.sample_case(
        [(), (), (2, 3), (2, 3)], [()], attrs=_sample_loop(),
        make=lambda rng, flags=flags: [(*_flags(*flags), *_pair(rng)), _flags(False)],
    )  # fmt: skip
