"""PlainLayouts: a convolution over blocked channels is one over plain ones, between transforms.

    nn.conv2d(%x, %w, data_layout="NCHW16c", kernel_layout="OIHW16i16o")
        ->  %y = nn.conv2d(layout_transform(%x, NCHW16c, NCHW), layout_transform(%w, ..., OIHW))
            layout_transform(%y, NCHW, NCHW16c)

Each backend chooses the blocks that suit its own vectors; those of a model are another machine's.
"""

from __future__ import annotations

from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function
from slipway.relay.layout import has_blocks
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.visit import rewrite

CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def plain_layouts(function: Function) -> Function:
    """Return `function` with the channels of its nn.conv* operators in order."""
    return rewrite(function, _plain)  # type: ignore[no-any-return]


def _plain(expr: Expr) -> Expr | None:
    if not any(is_call_of(expr, name) for name in CONVS):
        return None
    call: Any = expr
    attrs = call.attrs
    out_layout = attrs.out_layout or attrs.data_layout
    if not any(map(has_blocks, (attrs.data_layout, attrs.kernel_layout, out_layout))):
        return None
    spatial = SPATIAL[len(attrs.strides)]
    data, kernel = "NC" + spatial, "OI" + spatial
    transform: Any = op_registry.make("layout_transform")
    args = (
        transform(call.args[0], attrs.data_layout, data),
        transform(call.args[1], attrs.kernel_layout, kernel),
    )
    attrs = attrs.replace(data_layout=data, kernel_layout=kernel, out_layout="")
    return transform(  # type: ignore[no-any-return]
        Call(call.op, args, attrs, call.span), data, out_layout
    )
