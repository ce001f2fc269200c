"""What tests of scripts use, under classic names."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module(
        {
            "slipway.testing.compare": "assert_allclose assert_prim_expr_equal",
            "slipway.testing.marks": (
                "device_enabled enabled_targets exclude_targets fixture known_failing_targets main "
                "parameter parameters parametrize_targets requires_arm_dot requires_cuda "
                "requires_gpu requires_hexagon requires_llvm requires_metal requires_micro "
                "requires_opencl requires_package requires_rocm requires_rpc requires_vulkan "
                "requires_x86 skip_if_32bit uses_gpu"
            ),
            "slipway.testing.processes": "identity_after install_request_hook terminate_self",
        }
    ),
    "utils": "slipway.testing.utils",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
