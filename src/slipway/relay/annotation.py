"""``relay.annotation``: marks in graphs under their classic names."""

from slipway.relay.ops.annotation import (
    checkpoint,
    compiler_begin,
    compiler_end,
    on_device,
    stop_fusion,
)

__all__ = ["checkpoint", "compiler_begin", "compiler_end", "on_device", "stop_fusion"]
