"""Options of passes, under their classic name; see `slipway.passes.context`."""

from slipway.passes.context import PassContext

__all__ = ["PassContext"]
