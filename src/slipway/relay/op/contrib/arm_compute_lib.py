"""``relay.op.contrib.arm_compute_lib``: models stay whole, in place of parts for that library."""

from slipway.lazy import by_module, offer

_HOMES = {
    "is_arm_compute_runtime_enabled": "slipway.compiler.accelerators.libraries:enabled",
    **by_module({"slipway.compiler.accelerators.libraries": "partition_for_arm_compute_lib"}),
}
__getattr__, __dir__ = offer(__name__, _HOMES)
