"""``relay.quantize``; see `slipway.compiler.quantize`."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.compiler.quantize.api": "prerequisite_optimize quantize",
        "slipway.compiler.quantize.config": "QConfig current_qconfig qconfig",
    }
)
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
