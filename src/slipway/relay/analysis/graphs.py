"""``relay.analysis``: questions about graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from slipway.arguments import integer_of
from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, TupleType, flatten
from slipway.relay.visit import free_vars, post_order, use_counts

__all__ = [
    "LayerCounter", "all_dtypes", "all_vars", "bound_vars", "check_constant", "count_layers",
    "extract_intermdeiate_expr", "free_vars", "get_total_mac_number",
    "list_fake_quantized_op_freqs", "list_op_freqs", "post_order", "post_order_visit",
    "use_counts", "well_formed",
]  # fmt: skip

# Operators whose count of operations is twice their multiply-adds.
_PRODUCTS = ("nn.conv", "nn.dense", "nn.matmul", "nn.batch_matmul")


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], Any]) -> None:
    """Call `fvisit` on every expression under `expr` once, parts before the whole."""
    seen: set[str] = set()
    for found in post_order(expr):
        if isinstance(found, Call) and isinstance(found.op, Op) and found.op.name not in seen:
            seen.add(found.op.name)
            fvisit(found.op)
        fvisit(found)


def _root(given: Expr | IRModule) -> Expr:
    return given["main"] if isinstance(given, IRModule) else given  # type: ignore[return-value]


def all_vars(expr: Expr) -> list[Var]:
    """Return every variable under `expr`, in order of first use."""
    return [e for e in post_order(expr) if isinstance(e, Var)]


def bound_vars(expr: Expr) -> list[Var]:
    """Return the variables that functions and Lets under `expr` bind."""
    bound: dict[int, Var] = {}
    for found in post_order(expr):
        if isinstance(found, Function):
            bound.update((id(p), p) for p in found.params)
        elif isinstance(found, Let):
            bound[id(found.var)] = found.var
    return list(bound.values())


def well_formed(expr: Expr | IRModule) -> bool:
    """Return whether no variable is bound twice, and none of a function's is used outside of it."""
    roots = [f for _, f in expr.items()] if isinstance(expr, IRModule) else [expr]
    return all(_binds_once(root) for root in roots if isinstance(root, Expr))


def _binds_once(root: Expr) -> bool:
    bound: set[int] = set()
    for found in post_order(root):
        new = (
            [id(p) for p in found.params] if isinstance(found, Function)
            else [id(found.var)] if isinstance(found, Let) else []
        )  # fmt: skip
        if len(set(new)) != len(new) or bound.intersection(new):
            return False
        bound.update(new)
    return not (isinstance(root, Function) and free_vars(root))


def check_constant(expr: Expr) -> bool:
    """Return whether `expr` is a constant, or a tuple of them."""
    if isinstance(expr, Tuple):
        return all(check_constant(f) for f in expr.fields)
    return isinstance(expr, Constant)


def all_dtypes(expr: Expr) -> set[str]:
    """Return the dtypes of all tensors under `expr`."""
    found: set[str] = set()
    for part in post_order(expr):
        if isinstance(part.type, (TensorType, TupleType)):
            found.update(leaf.dtype for leaf in flatten(part.type))
    return found


def _calls(expr: Expr | IRModule) -> list[Call]:
    roots = [f for _, f in expr.items()] if isinstance(expr, IRModule) else [expr]
    return [
        e
        for root in roots
        if isinstance(root, Expr)
        for e in post_order(root)
        if isinstance(e, Call) and isinstance(e.op, Op)
    ]


def get_total_mac_number(expr: Expr | IRModule) -> int:
    """Return the multiply-adds of all convolutions and matrix products.

    Raises TypeInferenceError while types are not known: run InferType first.
    """
    total = 0.0
    for call in _calls(expr):
        if call.op.name.startswith(_PRODUCTS):
            types = [a.checked_type for a in call.args]
            total += op_registry.get(call.op.name).count_flops(
                call.attrs, types, call.checked_type
            )  # fmt: skip
    return int(total) // 2


def list_op_freqs(mod: Expr | IRModule) -> dict[str, int]:
    """Return how often each operator is called."""
    counts: dict[str, int] = {}
    for call in _calls(mod):
        counts[call.op.name] = counts.get(call.op.name, 0) + 1
    return counts


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """Return a module whose result is value `expr_id` of "main": calls, tuples and their fields.

    They are counted from 0 on in the order of computation.  The name has classic TVM's letters.
    """
    values = [e for e in post_order(_root(mod)) if isinstance(e, Call | Tuple | TupleGetItem)]
    number = integer_of(expr_id, "extract_intermdeiate_expr: expr_id", 0)
    if number >= len(values):
        raise ArgumentValueError(
            f"extract_intermdeiate_expr: expr_id is {number}, and the graph has {len(values)} "
            "values, counted from 0 on"
        )
    return IRModule.from_expr(values[number])


def list_fake_quantized_op_freqs(mod: Expr | IRModule) -> dict[str, int]:
    """Return how often each operator stands between qnn.dequantize and qnn.quantize.

    Such operators FakeQuantizationToInteger computes in integers, where it can.
    """
    counts: dict[str, int] = {}
    seen: set[int] = set()
    for end in _calls(mod):
        if end.op.name != "qnn.quantize":
            continue
        for call in _dequantized(end.args[0]):
            if id(call) not in seen:
                seen.add(id(call))
                counts[call.op.name] = counts.get(call.op.name, 0) + 1
    return counts


def _dequantized(root: Expr) -> list[Call]:
    """Return the calls from dequantised values to `root`; none, where one has another origin."""
    inside: list[Call] = []
    waiting, seen = [root], {id(root)}
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.op.name in ("qnn.dequantize", "qnn.quantize"):
                continue
            inside.append(expr)
        elif not isinstance(expr, Constant | Tuple | TupleGetItem):
            return []
        below = [child for child in _inputs(expr) if id(child) not in seen]
        seen.update(map(id, below))
        waiting += below
    return inside


def count_layers(expr: Expr | IRModule, valid_ops: Iterable[str]) -> int:
    """Return the largest number of calls of `valid_ops` on any way through the graph."""
    return LayerCounter(valid_ops).count(_root(expr))


class LayerCounter:
    """Counts calls of `valid_ops` along the deepest way."""

    def __init__(self, valid_ops: Iterable[str]) -> None:
        self.valid_ops = frozenset(valid_ops)
        self.depth = 0

    def count(self, expr: Expr | None = None) -> int:
        """Return the count under `expr`, or the last one without it."""
        if expr is None:
            return self.depth
        depth: dict[int, int] = {}
        for found in post_order(expr):
            own = isinstance(found, Call) and op_registry.is_call_of(found, *self.valid_ops)
            below = max((depth.get(id(c), 0) for c in _inputs(found)), default=0)
            depth[id(found)] = below + own
        self.depth = depth[id(expr)]
        return self.depth


def _inputs(expr: Any) -> list[Expr]:
    match expr:
        case Call():
            return [*expr.args, *([expr.op] if isinstance(expr.op, Function) else [])]
        case Tuple():
            return list(expr.fields)
        case Function():
            return [expr.body]
        case Let():
            return [expr.value, expr.body]
        case If():
            return [expr.cond, expr.true_branch, expr.false_branch]
        case _:
            return [v for v in (getattr(expr, "tuple_value", None),) if v is not None]
