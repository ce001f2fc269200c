"""The runtime: devices, arrays, functions, modules, the graph executor. Needs no compiler."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.runtime.artifact_writer": "write_artifact",
        "slipway.runtime.timing": "BenchmarkResult",
        "slipway.runtime.container": "ADT DataType DataTypeCode ShapeTuple String",
        "slipway.runtime.devices": (
            "Device cl context cpu cuda device ext_dev gpu hexagon metal mtl opencl rocm "
            "vpi vulkan webgpu"
        ),
        "slipway.runtime.features": "enabled",
        "slipway.runtime.graph.graph_executor": "GraphModule",
        "slipway.runtime.graph.graph_factory": "GraphExecutorFactoryModule",
        "slipway.runtime.libraries.library": "DsoLibrary Library",
        "slipway.runtime.load": "load_module",
        "slipway.runtime.module": "LibraryModule Module",
        "slipway.runtime.libraries.native_module": "NativeModule",
        "slipway.runtime.ndarray": "NDArray array empty from_dlpack",
        "slipway.runtime.packed_func": (
            "Function PackedFunc convert get_global_func list_global_func_names register_func "
            "remove_global_func"
        ),
        "slipway.runtime.params": (
            "load_param_dict load_param_dict_from_file save_param_dict save_param_dict_to_file"
        ),
        "slipway.runtime.libraries.system_library": "system_lib",
        "slipway.runtime.libraries.static_library": "load_static_library",
        "slipway.runtime.threads": "config_threadpool num_threads set_num_threads",
    }
)
# Modules that lie in a folder and go by their classic name too.
_HOMES |= {name: f"slipway.runtime.graph.{name}" for name in ("debug_executor", "graph_executor")}
LATE = {
    "Modules": ("slipway.runtime.libraries.native_module",),  # what a function may give
    "Compiling": ("slipway.compiler.vm",),  # what a saved model of open sizes asks for
}
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
