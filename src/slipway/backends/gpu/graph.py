"""The passes that make kernels of a model for a GPU: the plain ones, where matrix units take part.

Products of float16 and bfloat16 are summed in float32. Matrix units take their operands as they
are; elsewhere they are widened before.
"""

from __future__ import annotations

from typing import Any

from slipway.backends.gpu.schedules.matrix import OPERATORS, applies
from slipway.relay.expr import Call, Function
from slipway.target import Target
from slipway.transform.graph.pipeline import GENERAL, WIDEN_PRODUCTS, setting_pass
from slipway.transform.graph.precision.widen_products import WIDE, widen_products
from slipway.transform.manager import Pass, Setting


def _widen(function: Function, setting: Setting) -> Function:
    target = setting.target
    if target is None:
        return widen_products(function)
    return widen_products(function, lambda call: is_on_matrix_units(call, target))


def is_on_matrix_units(call: Call, target: Target) -> bool:
    """Return whether the target's matrix units add a product of narrow floats in float32."""
    attrs: Any = call.attrs
    if not hasattr(attrs, "out_dtype"):
        return False
    types = [argument.tensor_type for argument in call.args]
    return call.op.name in OPERATORS and applies(attrs.replace(out_dtype=WIDE), types, target)


_WIDEN = setting_pass(WIDEN_PRODUCTS.name, _widen)
PASSES: tuple[Pass, ...] = tuple(_WIDEN if found is WIDEN_PRODUCTS else found for found in GENERAL)
