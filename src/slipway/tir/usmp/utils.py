"""``tir.usmp.utils``: the objects that planners of one's own take and return."""

from slipway.lazy import offer

_HOMES = {
    "BufferInfo": "slipway.compiler.memory_plan.buffer_algorithms:BufferInfo",
    "CANDIDATE_MEMORY_POOL_ATTR": "slipway.compiler.memory_plan.buffer_algorithms:CANDIDATES",
    "PoolAllocation": "slipway.compiler.memory_plan.buffer_algorithms:PoolAllocation",
    "use_workspace_io_is_enabled": "slipway.compiler.memory_plan.buffer_algorithms:workspace_io",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
