"""What type checkers see of slipway.testing.utils; written by tools/stubs.py."""

from slipway.testing import aot as aot
from slipway.testing import plugin as plugin
from slipway.testing import utils as utils
from slipway.testing.compare import assert_allclose as assert_allclose
from slipway.testing.compare import assert_prim_expr_equal as assert_prim_expr_equal
from slipway.testing.compare import check_numerical_grads as check_numerical_grads
from slipway.testing.marks import device_enabled as device_enabled
from slipway.testing.marks import enabled_targets as enabled_targets
from slipway.testing.marks import exclude_targets as exclude_targets
from slipway.testing.marks import fixture as fixture
from slipway.testing.marks import known_failing_targets as known_failing_targets
from slipway.testing.marks import main as main
from slipway.testing.marks import parameter as parameter
from slipway.testing.marks import parameters as parameters
from slipway.testing.marks import parametrize_targets as parametrize_targets
from slipway.testing.marks import requires_arm_dot as requires_arm_dot
from slipway.testing.marks import requires_cmsisnn as requires_cmsisnn
from slipway.testing.marks import requires_corstone300 as requires_corstone300
from slipway.testing.marks import requires_cublas as requires_cublas
from slipway.testing.marks import requires_cuda as requires_cuda
from slipway.testing.marks import requires_cuda_compute_version as requires_cuda_compute_version
from slipway.testing.marks import requires_cudagraph as requires_cudagraph
from slipway.testing.marks import requires_cudnn as requires_cudnn
from slipway.testing.marks import requires_cutlass as requires_cutlass
from slipway.testing.marks import requires_ethosn as requires_ethosn
from slipway.testing.marks import requires_ethosu as requires_ethosu
from slipway.testing.marks import requires_gpu as requires_gpu
from slipway.testing.marks import requires_hexagon as requires_hexagon
from slipway.testing.marks import requires_libtorch as requires_libtorch
from slipway.testing.marks import requires_llvm as requires_llvm
from slipway.testing.marks import requires_matrixcore as requires_matrixcore
from slipway.testing.marks import requires_metal as requires_metal
from slipway.testing.marks import requires_micro as requires_micro
from slipway.testing.marks import requires_nvcc_version as requires_nvcc_version
from slipway.testing.marks import requires_nvptx as requires_nvptx
from slipway.testing.marks import requires_opencl as requires_opencl
from slipway.testing.marks import requires_openclml as requires_openclml
from slipway.testing.marks import requires_package as requires_package
from slipway.testing.marks import requires_rocm as requires_rocm
from slipway.testing.marks import requires_rpc as requires_rpc
from slipway.testing.marks import requires_tensorcore as requires_tensorcore
from slipway.testing.marks import requires_vitis_ai as requires_vitis_ai
from slipway.testing.marks import requires_vulkan as requires_vulkan
from slipway.testing.marks import requires_x86 as requires_x86
from slipway.testing.marks import requires_x86_amx as requires_x86_amx
from slipway.testing.marks import requires_x86_avx512 as requires_x86_avx512
from slipway.testing.marks import requires_x86_vnni as requires_x86_vnni
from slipway.testing.marks import skip_if_32bit as skip_if_32bit
from slipway.testing.marks import skip_if_wheel_test as skip_if_wheel_test
from slipway.testing.marks import slow as slow
from slipway.testing.marks import uses_gpu as uses_gpu
from slipway.testing.processes import echo as echo
from slipway.testing.processes import identity_after as identity_after
from slipway.testing.processes import install_request_hook as install_request_hook
from slipway.testing.processes import terminate_self as terminate_self
from slipway.testing.spans import disable_span_filling as disable_span_filling
from slipway.testing.spans import enable_span_filling as enable_span_filling
from slipway.testing.threads import run_threads as run_threads

__all__ = [
    "aot",
    "assert_allclose",
    "assert_prim_expr_equal",
    "check_numerical_grads",
    "device_enabled",
    "disable_span_filling",
    "echo",
    "enable_span_filling",
    "enabled_targets",
    "exclude_targets",
    "fixture",
    "identity_after",
    "install_request_hook",
    "known_failing_targets",
    "main",
    "parameter",
    "parameters",
    "parametrize_targets",
    "plugin",
    "requires_arm_dot",
    "requires_cmsisnn",
    "requires_corstone300",
    "requires_cublas",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cudagraph",
    "requires_cudnn",
    "requires_cutlass",
    "requires_ethosn",
    "requires_ethosu",
    "requires_gpu",
    "requires_hexagon",
    "requires_libtorch",
    "requires_llvm",
    "requires_matrixcore",
    "requires_metal",
    "requires_micro",
    "requires_nvcc_version",
    "requires_nvptx",
    "requires_opencl",
    "requires_openclml",
    "requires_package",
    "requires_rocm",
    "requires_rpc",
    "requires_tensorcore",
    "requires_vitis_ai",
    "requires_vulkan",
    "requires_x86",
    "requires_x86_amx",
    "requires_x86_avx512",
    "requires_x86_vnni",
    "run_threads",
    "skip_if_32bit",
    "skip_if_wheel_test",
    "slow",
    "terminate_self",
    "uses_gpu",
    "utils",
]
