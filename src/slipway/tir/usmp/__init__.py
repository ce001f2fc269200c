"""``tir.usmp``: buffers and the planners that place them, under their classic names."""

from slipway.lazy import offer

_HOMES = {
    "BufferInfo": "slipway.compiler.memory_plan.buffer_algorithms:BufferInfo",
    "PoolAllocation": "slipway.compiler.memory_plan.buffer_algorithms:PoolAllocation",
    "utils": "slipway.tir.usmp.utils",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
