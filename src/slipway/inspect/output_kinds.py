"""What an output's numbers are, as far as its graph says: shares of classes, or something else.

A shape does not tell: the three largest values of a list, an embedding, what an autoencoder gives
back and the scores of three classes all are three numbers.  What computes them does, more often.
"""

from __future__ import annotations

from typing import Any

from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem
from slipway.relay.types import TensorType, TupleType, Type

SHARES = "shares"  # of a softmax: exactly one class is right
LOG_SHARES = "log shares"
CHANCES = "chances"  # of a sigmoid: any number of classes is right
SCORES = "scores"  # of a layer with weights: of classes, or of anything else
INDICES = "indices"  # of the largest, or smallest
CHOSEN = "chosen"  # some of a list's values, in an order of their own: no class belongs to an index
UNKNOWN = "unknown"

_KINDS = {
    "nn.softmax": SHARES,
    "qnn.normalize": SHARES,
    "nn.log_softmax": LOG_SHARES,
    "sigmoid": CHANCES,
    "argmax": INDICES,
    "argmin": INDICES,
    "gather": CHOSEN,
    "gather_nd": CHOSEN,
    "max": CHOSEN,
    "min": CHOSEN,
    "take": CHOSEN,
}
_LISTS = {"topk": (CHOSEN, INDICES)}  # of operators with several results, by position
# These leave every number at its position among the others: the first argument says what it is.
_SAME = {
    "annotation.stop_fusion", "cast", "copy", "device_copy", "expand_dims", "nn.batch_flatten",
    "nn.dropout", "qnn.dequantize", "qnn.quantize", "reshape", "squeeze", "transpose",
}  # fmt: skip
# These may follow a layer with weights, as its bias and its rescaling do.
_AFFINE = {"add", "clip", "multiply", "nn.bias_add", "qnn.rescale", "subtract"}
_WEIGHTED = {"nn.batch_matmul", "nn.dense", "nn.matmul", "qnn.dense_packed"}


def output_kinds(function: Function) -> list[tuple[str, list[Any]]]:
    """Return what each output of a model is, one of the names above, and its `extents_of`."""
    body: Any = function.body
    while isinstance(body, Let):
        body = body.body
    if isinstance(body, Tuple):
        return [(kind_of(field), extents_of(field.checked_type)) for field in body.fields]
    kind = body.checked_type
    if isinstance(kind, TupleType):
        return list(zip(_kinds_of_list(body), map(extents_of, kind.fields), strict=True))
    return [(kind_of(body), extents_of(kind))]


def kind_of(expr: Any) -> str:
    """Return what the numbers of an expression are."""
    extents = extents_of(expr.checked_type)
    while True:
        match expr:
            case If():
                kinds = {kind_of(branch) for branch in (expr.true_branch, expr.false_branch)}
                return kinds.pop() if len(kinds) == 1 else UNKNOWN
            case Let():
                expr = expr.body
            case Call(op=Function()):
                expr = expr.op.body
            case TupleGetItem(tuple_value=Tuple()):
                expr = expr.tuple_value.fields[expr.index]
            case TupleGetItem():
                return _kinds_of_list(expr.tuple_value)[expr.index]
            case Call() if _name_of(expr) in _SAME:
                expr = expr.args[0]
            case Call():
                return _kind_of_call(expr, extents)
            case _:
                return UNKNOWN


def _kind_of_call(call: Call, extents: list[Any]) -> str:
    """Return what an operator's result is, which becomes an output of these dimensions."""
    name = _name_of(call)
    if name in _KINDS:
        known = _KINDS[name]
        return known if known == INDICES or extents_of(call.checked_type) == extents else UNKNOWN
    if name == "divide" and _is_total_of(call.args[1], call.args[0]):
        return SHARES
    return SCORES if len(extents) == 1 and _is_weighted(call) else UNKNOWN


def _kinds_of_list(expr: Any) -> list[str]:
    """Return what the results of an expression with several are."""
    kind = expr.checked_type
    count = len(kind.fields) if isinstance(kind, TupleType) else 1
    known = _LISTS.get(_name_of(expr), ())
    return list(known) if len(known) == count else [UNKNOWN] * count


def extents_of(kind: Type) -> list[Any]:
    """Return the dimensions of a tensor but for ones, and for a batch that is open."""
    if not isinstance(kind, TensorType):
        return []
    is_batch = len(kind.shape) > 1 and is_open(kind.shape[0])
    return [extent for extent in kind.shape[is_batch:] if extent != 1]


def _name_of(expr: Any) -> str:
    return str(getattr(getattr(expr, "op", None), "name", ""))


def _is_total_of(expr: Any, parts: Expr) -> bool:
    """Whether that is the sum of what it divides, as in a softmax of single operators."""
    while _name_of(expr) in (*_SAME, "broadcast_to"):
        expr = expr.args[0]
    return _name_of(expr) == "sum" and expr.args[0] is parts


def _is_weighted(expr: Any) -> bool:
    """Whether that is a layer with weights, or a pooled one, perhaps with a bias or rescaled."""
    while isinstance(expr, Call):
        name = _name_of(expr)
        if name in _WEIGHTED or ".conv" in name or "_conv" in name:
            return True
        if "pool" in name or name == "mean":
            return len(extents_of(expr.args[0].checked_type)) > 1
        if name not in _SAME and name not in _AFFINE:
            return False
        is_first = len(expr.args) < 2 or not isinstance(expr.args[0], Constant)
        expr = expr.args[0 if is_first else 1]
    return False
