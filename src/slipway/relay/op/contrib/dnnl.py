"""``relay.op.contrib.dnnl``: models stay whole, in place of parts for that library."""

from slipway.lazy import offer

_HOMES = {
    "partition_for_dnnl": "slipway.compiler.accelerators.libraries:partition_for_dnnl",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
