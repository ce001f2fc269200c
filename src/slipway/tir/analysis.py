"""``tir.analysis``: questions about functions of loops; see `slipway.transform.loop.analysis`."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.transform.loop.analysis": (
            "calculate_allocated_bytes calculate_constant_bytes calculate_workspace_bytes "
            "estimate_tir_flops expr_deep_equal find_anchor_block undefined_vars verify_gpu_code "
            "verify_memory verify_ssa verify_well_formed"
        ),
    }
)
__getattr__, __dir__ = offer(__name__, _HOMES)
