"""``relay.op.contrib.cmsisnn``: models stay whole, in place of parts for that library."""

from slipway.lazy import offer

_HOMES = {
    "enabled": "slipway.compiler.accelerators.libraries:enabled",
    "partition_for_cmsisnn": "slipway.compiler.accelerators.libraries:partition_for_cmsisnn",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
