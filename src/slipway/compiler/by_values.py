"""Models whose shapes follow from values of their inputs, compiled for the sizes that they meet.

``relay.reshape(x, shape)`` of an input `shape`, ``relay.argwhere``: a library has fixed shapes, or
shapes that follow from shapes.  So a model is run in stages.  What the sizes are computed from is
run first, by the NumPy references where that is little work, else compiled, with the tensors that
the remainder of the model needs of it.  The remainder is compiled for these sizes, and kept: the
next inputs of the same sizes run it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from slipway.relay.expr import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import get
from slipway.relay.ops.dyn import definition_of
from slipway.relay.types import TensorType, TupleType, flatten
from slipway.relay.visit import children, post_order
from slipway.transform.graph.dynamic_to_static import dynamic_calls, dynamic_to_static, replaced

Run = Callable[[Sequence[Any]], Any]  # of arrays, in the order of a function's parameters
MAX_SIZES = 16  # compiled libraries that a stage keeps
LITTLE_WORK = 1 << 22  # operations and elements of what NumPy computes of sizes


def can_be_staged(function: Function) -> bool:
    """Return whether each operator of run-time sizes is computed once, outside of branches."""
    outer = [e for e in post_order(function, into_functions=False)]
    if any(isinstance(e, If | Let) for e in outer):
        return False
    return len([e for e in outer if definition_of(e) is not None]) == len(dynamic_calls(function))


class Stages:
    """A function with operators of run-time sizes; `compiled` makes what runs one without."""

    def __init__(self, function: Function, compiled: Callable[[Function], Run]) -> None:
        self._function, self._compiled = dynamic_to_static(function), compiled
        self._known: dict[Hashable, Run] = {}
        self._run = self._first()

    def __call__(self, values: Sequence[Any]) -> Any:
        """Run over arrays, one for each parameter; the result is as `compiled`'s."""
        return self._run(values)

    def _first(self) -> Run:
        calls = dynamic_calls(self._function)
        if not calls:
            return self._compiled(self._function)
        waiting = _waiting(self._function)
        sizes = {
            id(size): size
            for call in calls
            for size in definition_of(call).sizes_of(call).values()  # type: ignore[union-attr]
            if id(size) not in waiting and not isinstance(size, Constant)
        }
        wanted = list(sizes.values())
        if all(map(_is_little_work, wanted)):
            return self._with_sizes(wanted)
        return self._cut(waiting, wanted)

    def _with_sizes(self, wanted: Sequence[Expr]) -> Run:
        """Return what computes the sizes and runs the function compiled for them."""
        function = self._function
        ahead = Function(function.params, Tuple(tuple(wanted)))

        def run(values: Sequence[Any]) -> Any:
            found = interpret(ahead, *values)
            key = tuple((np.shape(v), np.asarray(v).tobytes()) for v in found)

            def static() -> Function:
                constants = (Constant(np.asarray(v)) for v in found)
                return replaced(function, dict(zip(map(id, wanted), constants, strict=True)))

            return self._kept(key, static)(values)

        return run

    def _kept(self, key: Hashable, function: Callable[[], Function]) -> Run:
        if key not in self._known:
            if len(self._known) >= MAX_SIZES:
                self._known.pop(next(iter(self._known)))
            self._known[key] = Stages(function(), self._compiled)
        return self._known[key]

    def _cut(self, waiting: set[int], wanted: Sequence[Expr]) -> Run:
        """Return what runs all that waits for no size, and then the remainder."""
        function = self._function
        outputs = {id(e): e for e in wanted if not isinstance(e, Var)}
        for expr in post_order(function.body, into_functions=False):
            if id(expr) in waiting:
                inner = [c for c in children(expr) if id(c) not in waiting]
                for leaf in _leaves(inner):
                    outputs[id(leaf)] = leaf
        fields = list(outputs.values())
        types = [f.checked_type for f in fields]
        ahead = self._compiled(Function(function.params, Tuple(tuple(fields))))
        news = [_variable(i, t) for i, t in enumerate(types)]
        table = {id(f): v for f, (v, _) in zip(fields, news, strict=True)}
        body = replaced(function, table).body
        fresh = [p for _, parts in news for p in parts]
        used = {id(e) for e in post_order(body)}
        kept = [i for i, p in enumerate(function.params) if id(p) in used]
        params = tuple(function.params[i] for i in kept) + tuple(fresh)
        later = Stages(Function(params, body), self._compiled)

        def run(values: Sequence[Any]) -> Any:
            made = [leaf for value in ahead(values) for leaf in _flat(value)]
            return later([*(values[i] for i in kept), *made])

        return run


def _flat(value: Any) -> list[Any]:
    return (
        [leaf for v in value for leaf in _flat(v)] if isinstance(value, list | tuple) else [value]
    )


def _variable(number: int, type_: Any) -> tuple[Expr, list[Var]]:
    """Return what stands for a value of the stage before, and its variables."""
    if not isinstance(type_, TupleType):
        made = Var(f"stage_{number}", type_)
        return made, [made]
    parts = [Var(f"stage_{number}_{i}", t) for i, t in enumerate(type_.fields)]
    return Tuple(tuple(parts)), parts


def _leaves(exprs: Sequence[Expr]) -> list[Expr]:
    """Return what has to be computed of these, tuples by their fields."""
    found: list[Expr] = []
    for expr in exprs:
        if isinstance(expr, Tuple):
            found += _leaves(expr.fields)
        elif isinstance(expr, Call | TupleGetItem):
            found.append(expr)
    return found


def _waiting(function: Function) -> set[int]:
    """Return the ids of the expressions that need a result of an operator of run-time sizes."""
    found: set[int] = set()
    for expr in post_order(function.body, into_functions=False):
        if definition_of(expr) is not None or any(id(c) in found for c in children(expr)):
            found.add(id(expr))
    return found


def _is_little_work(size: Expr) -> bool:
    work = 0.0
    for expr in post_order(size):
        if isinstance(expr, Function | Let | If):
            return False
        if isinstance(expr, Call):
            if not isinstance(expr.op, Op):
                return False
            types = [a.checked_type for a in expr.args]
            work += get(expr.op.name).count_flops(expr.attrs, types, expr.checked_type)
            work += sum(t.size for t in flatten(expr.checked_type) if isinstance(t, TensorType))
    return work <= LITTLE_WORK
