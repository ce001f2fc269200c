"""``relay.op.contrib.bnns``: models stay whole, in place of parts for that library."""

from slipway.lazy import offer

_HOMES = {
    "partition_for_bnns": "slipway.compiler.accelerators.libraries:partition_for_bnns",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
