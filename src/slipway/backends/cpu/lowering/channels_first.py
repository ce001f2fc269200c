"""Convolutions of floats over channels that lie last, computed over channels that lie first.

    nn.conv2d(%x, constant, data_layout="NHWC", kernel_layout="HWIO")
        ->  layout_transform(nn.conv2d(layout_transform(%x, NHWC, NCHW), constant), NCHW, NHWC)

The strategies of float convolutions begin with channels first, from which the layout pass makes
blocks of channels.  What lies between two convolutions is computed in their layout, so that copies
are left at the ends of a chain alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import dtypes
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.transform.graph.convert_layout import change_layouts
from slipway.transform.graph.fold_constant import fold_constant

LAYOUTS = {"NWC": ("NCW", "OIW"), "NHWC": ("NCHW", "OIHW"), "NDHWC": ("NCDHW", "OIDHW")}
CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def channels_first(function: Function) -> Function:
    """Return a typed `function` whose float convolutions with constant weights are so."""
    changed = change_layouts(function, _first)
    return changed if changed is function else fold_constant(changed)


def _first(call: Call, operands: Sequence[Expr]) -> Expr | None:
    if not is_call_of(call, *CONVOLUTIONS) or not isinstance(call.args[1], Constant):
        return None
    attrs: Any = call.attrs
    layouts = LAYOUTS.get(attrs.data_layout)
    if layouts is None or not dtypes.is_float(call.args[0].tensor_type.dtype):
        return None
    changed = attrs.replace(data_layout=layouts[0], kernel_layout=layouts[1], out_layout="")
    return Call(call.op, tuple(operands), changed, call.span)
