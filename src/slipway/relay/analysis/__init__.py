"""``relay.analysis``: questions about graphs."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.compiler.calibration_data": "get_calibration_data",
        "slipway.relay.analysis.graphs": (
            "LayerCounter all_dtypes all_vars bound_vars check_constant count_layers "
            "extract_fused_functions free_vars get_total_mac_number list_op_freqs post_order "
            "post_order_visit use_counts well_formed"
        ),
    }
)
_HOMES["sparse_dense"] = "slipway.relay.analysis.sparse_dense"
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
