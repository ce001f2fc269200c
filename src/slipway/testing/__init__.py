"""What tests of scripts use, under classic names."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module(
        {
            "slipway.testing.compare": (
                "assert_allclose assert_prim_expr_equal check_numerical_grads"
            ),
            "slipway.testing.marks": (
                "device_enabled enabled_targets exclude_targets fixture known_failing_targets main "
                "parameter parameters parametrize_targets requires_arm_dot requires_cmsisnn "
                "requires_ethosu requires_matrixcore requires_openclml requires_x86_amx "
                "requires_x86_avx512 requires_x86_vnni "
                "requires_corstone300 requires_cublas requires_cuda requires_cuda_compute_version "
                "requires_cudagraph requires_cudnn requires_cutlass requires_ethosn requires_gpu "
                "requires_hexagon requires_libtorch requires_llvm requires_metal requires_micro "
                "requires_nvcc_version requires_nvptx requires_opencl requires_package "
                "requires_rocm requires_rpc requires_tensorcore requires_vitis_ai requires_vulkan "
                "requires_x86 skip_if_32bit skip_if_wheel_test slow uses_gpu"
            ),
            "slipway.testing.threads": "run_threads",
            "slipway.testing.spans": "disable_span_filling enable_span_filling",
            "slipway.testing.processes": "echo identity_after install_request_hook terminate_self",
        }
    ),
    "aot": "slipway.testing.aot",
    "plugin": "slipway.testing.plugin",
    "utils": "slipway.testing.utils",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
