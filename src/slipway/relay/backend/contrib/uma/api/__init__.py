"""``relay.backend.contrib.uma.api``: the parts of a `UMABackend`."""

from slipway.lazy import by_module, offer, paths

_HOMES = by_module({"slipway.compiler.accelerators.uma": "UMACodegen UMALower UMAPartitioner"})
__getattr__, __dir__ = offer(__name__, _HOMES)
paths(
    __name__,
    dict.fromkeys(
        ("codegen", "lower", "partitioner", "utils"), "slipway.compiler.accelerators.uma"
    ),
)
