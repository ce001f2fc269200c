"""Slipway: compile a model on the workstation, launch it on any device.

``import slipway as tvm`` gives classic TVM's names.  Each is looked up on first use, so that
importing this package costs nothing, and a device host needs none of the compiler's packages.
"""

from __future__ import annotations

import importlib
from typing import Any

_PACKAGES = (
    "arith contrib dtypes errors exec frontends ir libinfo micro nd relay rpc runtime target te "
    "tir toolchain topi transform"
)
_OF_RUNTIME = (
    "NDArray PackedFunc cl context convert cpu cuda device ext_dev get_global_func gpu hexagon "
    "metal opencl register_func rocm vulkan webgpu"
)
# Tensor expressions, under the names they had before `te` was a package of its own.
_OF_TE = (
    "any all abs ceil compute const cos create_schedule div erf exp extern floor "
    "if_then_else log max min max_value min_value placeholder power reduce_axis round rsqrt scan "
    "select sigmoid sin size_var sqrt sum tan tanh thread_axis trunc var"
)

# Name -> "module" or "module:attribute" that holds it.
_PLACES = {
    **{name: f"slipway.{name}" for name in _PACKAGES.split()},
    **{name: f"slipway.runtime:{name}" for name in _OF_RUNTIME.split()},
    **{name: f"slipway.te:{name}" for name in _OF_TE.split()},
    "IRModule": "slipway.ir.function:IRModule",
    "build": "slipway.compiler.driver:build",
    "lower": "slipway.compiler.driver:lower",
    "quantize": "slipway.frontends.onnx.quantize.api:quantize",
    "__version__": "slipway.version:VERSION",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'slipway' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value = importlib.import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
