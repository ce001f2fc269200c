"""The runtime: devices, arrays, functions, modules, the graph executor. Needs no compiler.

Names are looked up on first use, so that importing this package loads nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "slipway.runtime.artifact_writer": "write_artifact",
    "slipway.runtime.timing": "BenchmarkResult",
    "slipway.runtime.devices": (
        "Device cl context cpu cuda device ext_dev gpu hexagon metal mtl opencl rocm "
        "vpi vulkan webgpu"
    ),
    "slipway.runtime.features": "enabled",
    "slipway.runtime.graph_executor": "GraphModule",
    "slipway.runtime.graph_factory": "GraphExecutorFactoryModule",
    "slipway.runtime.library": "DsoLibrary Library",
    "slipway.runtime.load": "load_module",
    "slipway.runtime.module": "LibraryModule Module",
    "slipway.runtime.ndarray": "NDArray array empty from_dlpack",
    "slipway.runtime.packed_func": (
        "Function PackedFunc convert get_global_func list_global_func_names register_func "
        "remove_global_func"
    ),
    "slipway.runtime.params": (
        "load_param_dict load_param_dict_from_file save_param_dict save_param_dict_to_file"
    ),
    "slipway.runtime.threads": "config_threadpool num_threads set_num_threads",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _PLACES.get(name)
    if module is None:
        try:
            return importlib.import_module(f"slipway.runtime.{name}")
        except ModuleNotFoundError:
            from slipway.classic_names import missing

            raise AttributeError(missing("slipway.runtime", name, list(_PLACES))) from None
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
