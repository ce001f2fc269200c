"""split_products: float32 products as sums of products of bfloat16 parts (`nn.float_parts`).

    nn.dense(%x, %w)  ->  nn.dense(nn.float_parts(%x, [0, 0, 1]), nn.float_parts(%w, [0, 1, 0]),
                                   out_dtype=float32)

Of three products (x0 w0 + x0 w1 + x1 w0) each factor counts with 16 bits; of six, which add x1 w1,
x0 w2 and x2 w0, with all 24.  They are one product with a longer sum: the parts follow one another
along the axis that is summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.nn.float_parts import WHOLE
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.visit import rewrite

# By the number of products: which parts of data and weight meet, the smallest products first.
PARTS = {
    3: ((1, 0, 0), (0, 1, 0)),
    6: ((2, 0, 1, 1, 0, 0), (0, 2, 1, 0, 1, 0)),
}
_CONVS = {f"nn.conv{n}d": "NC" + letters for n, letters in SPATIAL.items()}
_MATRICES = ("nn.matmul", "nn.batch_matmul")


def split_products(
    function: Function, products: int, pays: Callable[[Call], bool] = lambda call: True
) -> Function:
    """Return typed `function` with `products` of bfloat16, 3 or 6, for each of float32.

    Those calls for which `pays` is false stay as they are.
    """
    parts = PARTS[products]
    return rewrite(function, lambda expr: _split(expr, parts, pays))  # type: ignore[no-any-return]


def _split(
    expr: Any, parts: tuple[tuple[int, ...], tuple[int, ...]], pays: Callable[[Call], bool]
) -> Expr | None:
    if not is_call_of(expr, "nn.dense", *_MATRICES, *_CONVS):
        return None
    axes = _axes(expr)
    types = {a.tensor_type.dtype for a in expr.args[:2]}
    if axes is None or types != {WHOLE} or not pays(expr):
        return None
    make: Any = op_registry.make("nn.float_parts")
    operands = [make(a, p, x) for a, p, x in zip(expr.args, parts, axes, strict=False)]
    return Call(expr.op, tuple(operands), expr.attrs.replace(out_dtype=WHOLE), expr.span)


def _axes(call: Call) -> tuple[int, int] | None:
    """Return the axes of data and weight that the product sums over; None: it stays."""
    attrs: Any = call.attrs
    if dtypes.canonical(attrs.out_dtype or WHOLE) != WHOLE:
        return None
    if is_call_of(call, "nn.dense"):
        return -1, -1
    if is_call_of(call, *_MATRICES):
        return (-2 if attrs.transpose_a else -1), (-1 if attrs.transpose_b else -2)
    plain = _CONVS[call.op.name]
    if attrs.groups != 1 or (attrs.data_layout, attrs.kernel_layout) != (plain, "OI" + plain[2:]):
        return None
    return 1, 1
