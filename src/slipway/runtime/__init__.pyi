"""What type checkers see of slipway.runtime; written by tools/stubs.py."""

from slipway.runtime.artifact_writer import write_artifact as write_artifact
from slipway.runtime.container import ADT as ADT
from slipway.runtime.container import DataType as DataType
from slipway.runtime.container import DataTypeCode as DataTypeCode
from slipway.runtime.container import ShapeTuple as ShapeTuple
from slipway.runtime.container import String as String
from slipway.runtime.devices import Device as Device
from slipway.runtime.devices import cl as cl
from slipway.runtime.devices import context as context
from slipway.runtime.devices import cpu as cpu
from slipway.runtime.devices import cuda as cuda
from slipway.runtime.devices import device as device
from slipway.runtime.devices import ext_dev as ext_dev
from slipway.runtime.devices import gpu as gpu
from slipway.runtime.devices import hexagon as hexagon
from slipway.runtime.devices import metal as metal
from slipway.runtime.devices import mtl as mtl
from slipway.runtime.devices import opencl as opencl
from slipway.runtime.devices import rocm as rocm
from slipway.runtime.devices import vpi as vpi
from slipway.runtime.devices import vulkan as vulkan
from slipway.runtime.devices import webgpu as webgpu
from slipway.runtime.features import enabled as enabled
from slipway.runtime.graph import debug_executor as debug_executor
from slipway.runtime.graph import graph_executor as graph_executor
from slipway.runtime.graph.graph_executor import GraphModule as GraphModule
from slipway.runtime.graph.graph_factory import GraphExecutorFactoryModule as GraphExecutorFactoryModule
from slipway.runtime.libraries.library import DsoLibrary as DsoLibrary
from slipway.runtime.libraries.library import Library as Library
from slipway.runtime.libraries.native_module import NativeModule as NativeModule
from slipway.runtime.libraries.static_library import load_static_library as load_static_library
from slipway.runtime.libraries.system_library import system_lib as system_lib
from slipway.runtime.load import load_module as load_module
from slipway.runtime.module import LibraryModule as LibraryModule
from slipway.runtime.module import Module as Module
from slipway.runtime.ndarray import NDArray as NDArray
from slipway.runtime.ndarray import array as array
from slipway.runtime.ndarray import empty as empty
from slipway.runtime.ndarray import from_dlpack as from_dlpack
from slipway.runtime.packed_func import Function as Function
from slipway.runtime.packed_func import PackedFunc as PackedFunc
from slipway.runtime.packed_func import convert as convert
from slipway.runtime.packed_func import get_global_func as get_global_func
from slipway.runtime.packed_func import list_global_func_names as list_global_func_names
from slipway.runtime.packed_func import register_func as register_func
from slipway.runtime.packed_func import remove_global_func as remove_global_func
from slipway.runtime.params import load_param_dict as load_param_dict
from slipway.runtime.params import load_param_dict_from_file as load_param_dict_from_file
from slipway.runtime.params import save_param_dict as save_param_dict
from slipway.runtime.params import save_param_dict_to_file as save_param_dict_to_file
from slipway.runtime.threads import config_threadpool as config_threadpool
from slipway.runtime.threads import num_threads as num_threads
from slipway.runtime.threads import set_num_threads as set_num_threads
from slipway.runtime.timing import BenchmarkResult as BenchmarkResult

__all__ = [
    "ADT",
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "DsoLibrary",
    "Function",
    "GraphExecutorFactoryModule",
    "GraphModule",
    "Library",
    "LibraryModule",
    "Module",
    "NDArray",
    "NativeModule",
    "PackedFunc",
    "ShapeTuple",
    "String",
    "array",
    "cl",
    "config_threadpool",
    "context",
    "convert",
    "cpu",
    "cuda",
    "debug_executor",
    "device",
    "empty",
    "enabled",
    "ext_dev",
    "from_dlpack",
    "get_global_func",
    "gpu",
    "graph_executor",
    "hexagon",
    "list_global_func_names",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "metal",
    "mtl",
    "num_threads",
    "opencl",
    "register_func",
    "remove_global_func",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "set_num_threads",
    "system_lib",
    "vpi",
    "vulkan",
    "webgpu",
    "write_artifact",
]
