"""What type checkers see of slipway; written by tools/stubs.py."""

from slipway import arith as arith
from slipway import auto_scheduler as auto_scheduler
from slipway import autotvm as autotvm
from slipway import codegen as codegen
from slipway import contrib as contrib
from slipway import driver as driver
from slipway import dtypes as dtypes
from slipway import error as error
from slipway import errors as errors
from slipway import exec as exec
from slipway import frontends as frontends
from slipway import instrument as instrument
from slipway import ir as ir
from slipway import libinfo as libinfo
from slipway import meta_schedule as meta_schedule
from slipway import micro as micro
from slipway import nd as nd
from slipway import nd as ndarray
from slipway import parser as parser
from slipway import relay as relay
from slipway import rpc as rpc
from slipway import runtime as runtime
from slipway import script as script
from slipway import support as support
from slipway import target as target
from slipway import te as api
from slipway import te as intrin
from slipway import te as te
from slipway import te as tensor
from slipway import testing as testing
from slipway import tir as expr
from slipway import tir as stmt
from slipway import tir as tir
from slipway import toolchain as toolchain
from slipway import topi as topi
from slipway import transform as transform
from slipway._ffi.runtime_ctypes import TypeCode as TypeCode
from slipway.compiler.driver import build as build
from slipway.compiler.driver import lower as lower
from slipway.deploy.compile import compile as compile
from slipway.deploy.load import load as load
from slipway.deploy.model import Model as Model
from slipway.errors import SlipwayError as SlipwayError
from slipway.errors import TVMError as TVMError
from slipway.errors import register_error as register_error
from slipway.frontends.onnx.quantize.api import quantize as quantize
from slipway.ir import builder as ir_builder
from slipway.ir.buffer import decl_buffer as decl_buffer
from slipway.ir.calls import call_extern as call_extern
from slipway.ir.calls import call_intrin as call_intrin
from slipway.ir.calls import call_intrin as call_pure_intrin
from slipway.ir.calls import call_llvm_intrin as call_llvm_intrin
from slipway.ir.calls import call_llvm_pure_intrin as call_llvm_pure_intrin
from slipway.ir.calls import call_packed as call_packed
from slipway.ir.calls import call_pure_extern as call_pure_extern
from slipway.ir.function import IRModule as IRModule
from slipway.ir.memory_pools import ConstantMemoryPools as ConstantMemoryPools
from slipway.ir.memory_pools import ConstantPoolInfo as ConstantPoolInfo
from slipway.ir.memory_pools import PoolInfo as PoolInfo
from slipway.ir.memory_pools import PoolInfoProperties as PoolInfoProperties
from slipway.ir.memory_pools import WorkspaceMemoryPools as WorkspaceMemoryPools
from slipway.ir.memory_pools import WorkspacePoolInfo as WorkspacePoolInfo
from slipway.ir.node import Node as Object
from slipway.ir.node import register_object as register_object
from slipway.ir.ops import floordiv as floordiv
from slipway.ir.ops import floormod as floormod
from slipway.ir.ops import truncdiv as truncdiv
from slipway.ir.ops import truncmod as truncmod
from slipway.ir.text.serialize import load_json as load_json
from slipway.ir.text.serialize import save_json as save_json
from slipway.runtime import DataType as DataType
from slipway.runtime import DataTypeCode as DataTypeCode
from slipway.runtime import Function as Function
from slipway.runtime import NDArray as NDArray
from slipway.runtime import PackedFunc as PackedFunc
from slipway.runtime import cl as cl
from slipway.runtime import classic_module as module
from slipway.runtime import container as container
from slipway.runtime import context as context
from slipway.runtime import convert as convert
from slipway.runtime import cpu as cpu
from slipway.runtime import cuda as cuda
from slipway.runtime import device as device
from slipway.runtime import ext_dev as ext_dev
from slipway.runtime import get_global_func as get_global_func
from slipway.runtime import gpu as gpu
from slipway.runtime import hexagon as hexagon
from slipway.runtime import metal as metal
from slipway.runtime import mtl as mtl
from slipway.runtime import opencl as opencl
from slipway.runtime import register_func as register_func
from slipway.runtime import rocm as rocm
from slipway.runtime import vpi as vpi
from slipway.runtime import vulkan as vulkan
from slipway.runtime import webgpu as webgpu
from slipway.runtime.extension import register_extension as register_extension
from slipway.script import hybrid_names as hybrid
from slipway.te import abs as abs
from slipway.te import all as all
from slipway.te import any as any
from slipway.te import ceil as ceil
from slipway.te import comm_reducer as comm_reducer
from slipway.te import compute as compute
from slipway.te import const as const
from slipway.te import cos as cos
from slipway.te import create_schedule as create_schedule
from slipway.te import decl_tensor_intrin as decl_tensor_intrin
from slipway.te import div as div
from slipway.te import erf as erf
from slipway.te import exp as exp
from slipway.te import extern as extern
from slipway.te import floor as floor
from slipway.te import if_then_else as if_then_else
from slipway.te import indexdiv as indexdiv
from slipway.te import indexmod as indexmod
from slipway.te import log as log
from slipway.te import max as max
from slipway.te import max_value as max_value
from slipway.te import min as min
from slipway.te import min_value as min_value
from slipway.te import placeholder as placeholder
from slipway.te import popcount as popcount
from slipway.te import power as power
from slipway.te import reduce_axis as reduce_axis
from slipway.te import round as round
from slipway.te import rsqrt as rsqrt
from slipway.te import scan as scan
from slipway.te import schedule as schedule
from slipway.te import select as select
from slipway.te import sigmoid as sigmoid
from slipway.te import sin as sin
from slipway.te import size_var as size_var
from slipway.te import sqrt as sqrt
from slipway.te import sum as sum
from slipway.te import tan as tan
from slipway.te import tanh as tanh
from slipway.te import thread_axis as thread_axis
from slipway.te import trunc as trunc
from slipway.te import var as var
from slipway.te.declare import tag_scope as tag_scope
from slipway.te.tracing import trace as trace
from slipway.transform.loop.older import build_config as build_config
from slipway.transform.loop.older import float16 as float16
from slipway.transform.loop.older import float32 as float32
from slipway.transform.loop.older import float64 as float64
from slipway.transform.loop.older import int16 as int16
from slipway.transform.loop.older import int32 as int32
from slipway.transform.loop.older import int64 as int64
from slipway.transform.loop.older import int8 as int8
from slipway.transform.loop.older import ir_pass as ir_pass
from slipway.transform.loop.older import make as make
from slipway.transform.loop.older import register_intrin_rule as register_intrin_rule
from slipway.transform.loop.older import uint16 as uint16
from slipway.transform.loop.older import uint32 as uint32
from slipway.transform.loop.older import uint64 as uint64
from slipway.transform.loop.older import uint8 as uint8
from slipway.version import VERSION as __version__

__all__ = [
    "ConstantMemoryPools",
    "ConstantPoolInfo",
    "DataType",
    "DataTypeCode",
    "Function",
    "IRModule",
    "Model",
    "NDArray",
    "Object",
    "PackedFunc",
    "PoolInfo",
    "PoolInfoProperties",
    "SlipwayError",
    "TVMError",
    "TypeCode",
    "WorkspaceMemoryPools",
    "WorkspacePoolInfo",
    "__version__",
    "abs",
    "all",
    "any",
    "api",
    "arith",
    "auto_scheduler",
    "autotvm",
    "build",
    "build_config",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "call_pure_intrin",
    "ceil",
    "cl",
    "codegen",
    "comm_reducer",
    "compile",
    "compute",
    "const",
    "container",
    "context",
    "contrib",
    "convert",
    "cos",
    "cpu",
    "create_schedule",
    "cuda",
    "decl_buffer",
    "decl_tensor_intrin",
    "device",
    "div",
    "driver",
    "dtypes",
    "erf",
    "error",
    "errors",
    "exec",
    "exp",
    "expr",
    "ext_dev",
    "extern",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "floormod",
    "frontends",
    "get_global_func",
    "gpu",
    "hexagon",
    "hybrid",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "instrument",
    "int16",
    "int32",
    "int64",
    "int8",
    "intrin",
    "ir",
    "ir_builder",
    "ir_pass",
    "libinfo",
    "load",
    "load_json",
    "log",
    "lower",
    "make",
    "max",
    "max_value",
    "meta_schedule",
    "metal",
    "micro",
    "min",
    "min_value",
    "module",
    "mtl",
    "nd",
    "ndarray",
    "opencl",
    "parser",
    "placeholder",
    "popcount",
    "power",
    "quantize",
    "reduce_axis",
    "register_error",
    "register_extension",
    "register_func",
    "register_intrin_rule",
    "register_object",
    "relay",
    "rocm",
    "round",
    "rpc",
    "rsqrt",
    "runtime",
    "save_json",
    "scan",
    "schedule",
    "script",
    "select",
    "sigmoid",
    "sin",
    "size_var",
    "sqrt",
    "stmt",
    "sum",
    "support",
    "tag_scope",
    "tan",
    "tanh",
    "target",
    "te",
    "tensor",
    "testing",
    "thread_axis",
    "tir",
    "toolchain",
    "topi",
    "trace",
    "transform",
    "trunc",
    "truncdiv",
    "truncmod",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "var",
    "vpi",
    "vulkan",
    "webgpu",
]
