"""Slipway: compile a model on the workstation, launch it on any device.

``import slipway as tvm`` gives classic TVM's names.  Each is looked up on first use, so that
importing this package costs nothing, and a device host needs none of the compiler's packages.
"""

import slipway.classic.modules  # noqa: F401  (how modules of the package are found)
from slipway.lazy import by_module, offer

_PACKAGES = (
    "arith auto_scheduler autotvm contrib driver dtypes error errors exec frontends instrument ir "
    "libinfo meta_schedule micro nd parser relay rpc runtime script target te testing tir "
    "support toolchain topi transform"
)
_OF_RUNTIME = (
    "DataType DataTypeCode Function NDArray PackedFunc cl context convert cpu cuda device ext_dev "
    "get_global_func gpu hexagon metal mtl opencl register_func rocm vpi vulkan webgpu"
)
# Tensor expressions, under the names they had before `te` was a package of its own.
_OF_TE = (
    "any all abs ceil comm_reducer compute const cos create_schedule decl_tensor_intrin div erf "
    "exp extern floor indexdiv indexmod "
    "if_then_else log max min max_value min_value placeholder popcount power reduce_axis round "
    "rsqrt scan select sigmoid sin size_var sqrt sum tan tanh thread_axis trunc var"
)
# Of the loop language, likewise.
_OF_IR = {
    "slipway.ir.memory_pools": (
        "ConstantMemoryPools ConstantPoolInfo PoolInfo PoolInfoProperties WorkspaceMemoryPools "
        "WorkspacePoolInfo"
    ),
    "slipway.ir.buffer": "decl_buffer",
    "slipway.ir.calls": (
        "call_extern call_intrin call_llvm_intrin call_llvm_pure_intrin call_packed "
        "call_pure_extern"
    ),
    "slipway.ir.ops": "floordiv floormod truncdiv truncmod",
    "slipway.transform.loop.older": (
        "build_config ir_pass make register_intrin_rule float16 float32 float64 int8 int16 int32 "
        "int64 uint8 uint16 uint32 uint64"
    ),
}
# Modules of TVM 0.6 -> what holds their names now.
_OLD_MODULES = {
    "expr": "tir", "stmt": "tir", "schedule": "te.schedule", "tensor": "te", "api": "te", "module":
    "runtime.classic_module", "ndarray": "nd", "ir_builder": "ir.builder", "intrin": "te",
}  # fmt: skip

# Name -> "module" or "module:attribute" that holds it.
_HOMES = {
    **{name: f"slipway.{name}" for name in _PACKAGES.split()},
    **by_module({"slipway.runtime": _OF_RUNTIME, "slipway.te": _OF_TE, **_OF_IR}),
    **{old: f"slipway.{new}" for old, new in _OLD_MODULES.items()},
    "call_pure_intrin": "slipway.ir.calls:call_intrin",
    "IRModule": "slipway.ir.function:IRModule",
    "TypeCode": "slipway._ffi.runtime_ctypes:TypeCode",
    "_ffi": "slipway._ffi",
    "codegen": "slipway.codegen",
    "container": "slipway.runtime.container",
    "hybrid": "slipway.script.hybrid_names",
    "load_json": "slipway.ir.text.serialize:load_json",
    "save_json": "slipway.ir.text.serialize:save_json",
    "tag_scope": "slipway.te.declare:tag_scope",
    "trace": "slipway.te.tracing:trace",
    "Object": "slipway.ir.node:Node",
    "register_object": "slipway.ir.node:register_object",
    "register_extension": "slipway.runtime.extension:register_extension",
    "SlipwayError": "slipway.errors:SlipwayError",
    "TVMError": "slipway.errors:TVMError",
    "register_error": "slipway.errors:register_error",
    "build": "slipway.compiler.driver:build",
    "compile": "slipway.deploy.compile:compile",
    "load": "slipway.deploy.load:load",
    "Model": "slipway.deploy.model:Model",
    "lower": "slipway.compiler.driver:lower",
    "quantize": "slipway.frontends.onnx.quantize.api:quantize",
    "__version__": "slipway.version:VERSION",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
