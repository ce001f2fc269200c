"""Options of passes, under their classic name; see `slipway.transform.context`."""

from slipway.transform.context import PassContext

__all__ = ["PassContext"]
