"""What type checkers see of slipway.testing; written by tools/stubs.py."""

from slipway.testing import utils as utils
from slipway.testing.compare import assert_allclose as assert_allclose
from slipway.testing.compare import assert_prim_expr_equal as assert_prim_expr_equal
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
from slipway.testing.marks import requires_cuda as requires_cuda
from slipway.testing.marks import requires_gpu as requires_gpu
from slipway.testing.marks import requires_hexagon as requires_hexagon
from slipway.testing.marks import requires_llvm as requires_llvm
from slipway.testing.marks import requires_metal as requires_metal
from slipway.testing.marks import requires_micro as requires_micro
from slipway.testing.marks import requires_opencl as requires_opencl
from slipway.testing.marks import requires_package as requires_package
from slipway.testing.marks import requires_rocm as requires_rocm
from slipway.testing.marks import requires_rpc as requires_rpc
from slipway.testing.marks import requires_vulkan as requires_vulkan
from slipway.testing.marks import requires_x86 as requires_x86
from slipway.testing.marks import skip_if_32bit as skip_if_32bit
from slipway.testing.marks import uses_gpu as uses_gpu
from slipway.testing.processes import identity_after as identity_after
from slipway.testing.processes import install_request_hook as install_request_hook
from slipway.testing.processes import terminate_self as terminate_self

__all__ = [
    "assert_allclose",
    "assert_prim_expr_equal",
    "device_enabled",
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
    "requires_arm_dot",
    "requires_cuda",
    "requires_gpu",
    "requires_hexagon",
    "requires_llvm",
    "requires_metal",
    "requires_micro",
    "requires_opencl",
    "requires_package",
    "requires_rocm",
    "requires_rpc",
    "requires_vulkan",
    "requires_x86",
    "skip_if_32bit",
    "terminate_self",
    "uses_gpu",
    "utils",
]
