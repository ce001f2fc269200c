"""``relay.analysis``: questions about graphs."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.compiler.calibration_data": "get_calibration_data",
        "slipway.transform.graph.classic_rewrites": "extract_fused_functions",
        "slipway.relay.analysis.graphs": (
            "LayerCounter all_dtypes all_vars bound_vars check_constant count_layers "
            "extract_intermdeiate_expr free_vars get_total_mac_number "
            "list_fake_quantized_op_freqs list_op_freqs post_order post_order_visit "
            "use_counts well_formed"
        ),
    }
)
_HOMES["sparse_dense"] = "slipway.relay.analysis.sparse_dense"
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
