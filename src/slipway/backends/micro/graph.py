"""The graph passes of microcontrollers: no layouts, kernels that end where a layer's bytes are."""

from __future__ import annotations

from slipway.relay.expr import Expr
from slipway.relay.op_registry import is_call_of
from slipway.transform.graph.integers.narrow_sums import narrow_sums
from slipway.transform.graph.integers.repeat_casts import repeat_casts
from slipway.transform.graph.pipeline import (
    MIDDLE,
    OPENING,
    WIDEN_PRODUCTS,
    ending,
    graph_pass,
)
from slipway.transform.manager import Pass

_STORED = ("int8", "uint8", "int16")


def ends_quantized_layer(expr: Expr) -> bool:
    """Return whether `expr` gives a layer's stored result, or a value too long to compute twice.

    Kernels that end there keep tensors in memory at one or two bytes an element; what a wider
    kernel would hand on in int32 or int64 does not fit into a microcontroller.
    """
    if is_call_of(expr, "qnn.reciprocal"):
        return True
    if not is_call_of(expr, "cast") or expr.attrs.dtype not in _STORED:
        return False
    return is_call_of(expr.args[0], "clip")


PASSES: tuple[Pass, ...] = (
    *OPENING,
    WIDEN_PRODUCTS,
    *MIDDLE,
    graph_pass("NarrowSums", narrow_sums),
    graph_pass("RepeatCasts", repeat_casts),
    *ending(ends_quantized_layer),
)
