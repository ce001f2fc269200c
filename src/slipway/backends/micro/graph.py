"""The graph passes of microcontrollers: no layouts, kernels that end where a layer's bytes are."""

from __future__ import annotations

from slipway.relay.expr import Expr
from slipway.relay.op_registry import is_call_of
from slipway.transform.graph.integers.narrow_sums import narrow_sums
from slipway.transform.graph.pipeline import (
    MIDDLE,
    OPENING,
    WIDEN_PRODUCTS,
    ending,
    graph_pass,
)
from slipway.transform.manager import Pass


def ends_quantized_layer(expr: Expr) -> bool:
    """Return whether `expr` gives a layer's int8 result, or a value too long to compute twice.

    Kernels that end there keep tensors in memory at one byte an element; what a wider kernel would
    hand on in int32 does not fit into a microcontroller.
    """
    return is_call_of(expr, "qnn.reciprocal") or (
        is_call_of(expr, "cast") and expr.attrs.dtype == "int8" and is_call_of(expr.args[0], "clip")
    )


PASSES: tuple[Pass, ...] = (
    *OPENING,
    WIDEN_PRODUCTS,
    *MIDDLE,
    graph_pass("NarrowSums", narrow_sums),
    *ending(ends_quantized_layer),
)
