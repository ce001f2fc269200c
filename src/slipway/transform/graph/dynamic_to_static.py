"""Static operators for those whose sizes are known by now.

    dyn.reshape(x, concatenate((const [2], shape_of(y))))   ->   reshape(x, newshape=[2, 3])

A size is known where it follows from constants and from the shapes of tensors; where these are
formulas of named sizes (`relay.Dim`), so is it.  What follows from values of the inputs stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.errors import LoweringError
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.interpret import interpret
from slipway.relay.ops.dyn import definition_of
from slipway.relay.visit import free_vars, post_order, rebuild, rewrite

MOST_FOLDED = 1 << 20  # elements of constants that a size is computed from


def dynamic_calls(function: Expr) -> list[Call]:
    """Return the calls of operators whose sizes are tensors, in order of evaluation."""
    return [e for e in post_order(function) if definition_of(e) is not None]  # type: ignore[misc]


def dynamic_to_static(function: Function) -> Function:
    """Return `function` with static operators where sizes are known; the same one if none is.

    Raises TypeInferenceError for sizes that an operator cannot have.
    """
    if not dynamic_calls(function):
        return function
    values = SizeValues()

    def rule(expr: Any) -> Expr | None:
        definition = definition_of(expr)
        if definition is None or not definition.is_ready(expr):
            return None
        sizes = {n: _known(size, values) for n, size in definition.sizes_of(expr).items()}
        if any(value is None for value in sizes.values()):
            return None
        return definition.with_sizes(expr, sizes)

    made: Function = rewrite(function, rule, into_functions=True)
    return made


def _known(size: Expr, values: SizeValues) -> Any:
    """Return the value of an expression as an array; None where inputs decide it."""
    if isinstance(size, Constant):
        return size.array
    found = values.of(size)
    if found is not None:
        formulas = any(is_open(v) for v in found.flat)
        return found if formulas else found.astype(size.tensor_type.dtype)
    order = post_order(size)
    if free_vars(size) or any(
        isinstance(e, Constant) and e.array.size > MOST_FOLDED for e in order
    ):
        return None
    return np.asarray(interpret(size))


def replaced(function: Function, table: Mapping[int, Expr]) -> Function:
    """Return `function` with other expressions in its body for those whose ids are in `table`."""
    done: dict[int, Expr] = {}
    for expr in post_order(function.body):
        found = table.get(id(expr))
        done[id(expr)] = rebuild(expr, lambda e: done[id(e)]) if found is None else found
    return Function(function.params, done[id(function.body)], None, function.attrs)


def need_static(function: Function) -> None:
    """Raise LoweringError, with the ways out, where values of inputs decide a shape."""
    left = dynamic_calls(function)
    if not left:
        return
    call = left[0]
    definition = definition_of(call)
    assert definition is not None
    sizes = ", ".join(definition.sizes_of(call)) or "shapes of its arguments"
    where = f" (node {call.span!r})" if call.span else ""
    raise LoweringError(
        f"{call.op.name}{where}: a library has the shapes of its tensors before it runs, but the "
        f"{sizes} of this operator are computed from values of inputs. Bind these inputs "
        "(relay.build_module.bind_params_by_name), or run the module with "
        'relay.create_executor("vm"), which compiles it for the sizes that it meets.'
    )
