"""Functions of operators as users call them; see `slipway.arguments.explained`."""

from __future__ import annotations

from typing import Any

from slipway import arguments
from slipway.errors import SlipwayError
from slipway.relay.dims import is_open
from slipway.relay.expr import Expr
from slipway.relay.op_registry import as_expr


def explained(function: Any) -> Any:
    """Return `function` with arguments of a wrong kind as errors that name them."""
    return arguments.explained(function, KINDS)


def _is_tensor(value: object) -> bool:
    if isinstance(value, Expr):
        return True
    try:
        as_expr(value)
    except SlipwayError:
        return False
    return True


KINDS = {
    **arguments.kinds_of(lambda value: arguments.is_whole(value) or is_open(value)),
    "ExprLike": (_is_tensor, "a tensor: an expression, an array or a number"),
}
