"""Slipway: compile a model on the workstation, launch it on any device.

``import slipway as tvm`` gives classic TVM's names.  Each is looked up on first use, so that
importing this package costs nothing, and a device host needs none of the compiler's packages.
"""

from __future__ import annotations

import importlib
from typing import Any

_PACKAGES = (
    "arith auto_scheduler autotvm contrib dtypes error errors exec frontends instrument ir libinfo "
    "meta_schedule micro nd parser relay rpc runtime script target te testing tir toolchain topi "
    "transform"
)
_OF_RUNTIME = (
    "NDArray PackedFunc cl context convert cpu cuda device ext_dev get_global_func gpu hexagon "
    "metal mtl opencl register_func rocm vpi vulkan webgpu"
)
# Tensor expressions, under the names they had before `te` was a package of its own.
_OF_TE = (
    "any all abs ceil comm_reducer compute const cos create_schedule decl_tensor_intrin div erf "
    "exp extern floor indexdiv indexmod "
    "if_then_else log max min max_value min_value placeholder power reduce_axis round rsqrt scan "
    "select sigmoid sin size_var sqrt sum tan tanh thread_axis trunc var"
)
# Of the loop language, likewise.
_OF_IR = {
    "ir.buffer": "decl_buffer",
    "ir.calls": (
        "call_extern call_intrin call_llvm_intrin call_llvm_pure_intrin call_packed "
        "call_pure_extern"
    ),
    "ir.ops": "floordiv floormod truncdiv truncmod",
    "transform.loop.older": (
        "build_config ir_pass make register_intrin_rule float16 float32 float64 int8 int16 int32 "
        "int64 uint8 uint16 uint32 uint64"
    ),
}
# Modules of TVM 0.6 -> what holds their names now.
_OLD_MODULES = {
    "expr": "tir", "stmt": "tir", "schedule": "te", "tensor": "te", "api": "te", "module":
    "runtime", "ndarray": "nd", "ir_builder": "ir.builder", "intrin": "te",
}  # fmt: skip

# Name -> "module" or "module:attribute" that holds it.
_PLACES = {
    **{name: f"slipway.{name}" for name in _PACKAGES.split()},
    **{name: f"slipway.runtime:{name}" for name in _OF_RUNTIME.split()},
    **{name: f"slipway.te:{name}" for name in _OF_TE.split()},
    **{name: f"slipway.{m}:{name}" for m, names in _OF_IR.items() for name in names.split()},
    **{old: f"slipway.{new}" for old, new in _OLD_MODULES.items()},
    "call_pure_intrin": "slipway.ir.calls:call_intrin",
    "IRModule": "slipway.ir.function:IRModule",
    "Object": "slipway.ir.node:Node",
    "TVMError": "slipway.errors:TVMError",
    "register_error": "slipway.errors:register_error",
    "build": "slipway.compiler.driver:build",
    "lower": "slipway.compiler.driver:lower",
    "quantize": "slipway.frontends.onnx.quantize.api:quantize",
    "__version__": "slipway.version:VERSION",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        from slipway.classic_names import missing

        raise AttributeError(missing("slipway", name, list(_PLACES)))
    module, _, attribute = place.partition(":")
    value = importlib.import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
