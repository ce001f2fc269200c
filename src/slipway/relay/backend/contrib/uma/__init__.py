"""``relay.backend.contrib.uma``: accelerators by patterns, passes over loops, and C to call."""

from slipway.lazy import by_module, offer, paths

_HOMES = by_module({"slipway.compiler.accelerators.uma": "UMABackend uma_available"})
__getattr__, __dir__ = offer(__name__, _HOMES)
paths(__name__, {"backend": "slipway.compiler.accelerators.uma"})
