"""What type checkers see of slipway.te; written by tools/stubs.py."""

from slipway.arith.script_range import ScriptRange as Range
from slipway.blocks.from_te import create_prim_func as create_prim_func
from slipway.ir.expr import IterVar as IterVar
from slipway.ir.expr import Reduce as Reduce
from slipway.ir.expr import Select as Select
from slipway.ir.expr import SizeVar as SizeVar
from slipway.ir.expr import Var as Var
from slipway.ir.ops import cast as cast
from slipway.ir.ops import floordiv as floordiv
from slipway.ir.ops import floormod as floormod
from slipway.ir.ops import highest as highest
from slipway.ir.ops import if_then_else as if_then_else
from slipway.ir.ops import infinity as infinity
from slipway.ir.ops import lowest as lowest
from slipway.ir.ops import max_value as max_value
from slipway.ir.ops import min_value as min_value
from slipway.ir.ops import select as select
from slipway.ir.ops import truncdiv as truncdiv
from slipway.ir.ops import truncmod as truncmod
from slipway.script import hybrid_names as hybrid
from slipway.te import operation as operation
from slipway.te import schedule as schedule
from slipway.te import tensor as tensor
from slipway.te.declare import compute as compute
from slipway.te.declare import const as const
from slipway.te.declare import extern as extern
from slipway.te.declare import placeholder as placeholder
from slipway.te.declare import scan as scan
from slipway.te.declare import size_var as size_var
from slipway.te.declare import tag_scope as tag_scope
from slipway.te.declare import thread_axis as thread_axis
from slipway.te.declare import var as var
from slipway.te.derivatives import gradient as gradient
from slipway.te.lowering import lower as lower
from slipway.te.math import abs as abs
from slipway.te.math import acos as acos
from slipway.te.math import acosh as acosh
from slipway.te.math import asin as asin
from slipway.te.math import asinh as asinh
from slipway.te.math import atan as atan
from slipway.te.math import atan2 as atan2
from slipway.te.math import atanh as atanh
from slipway.te.math import ceil as ceil
from slipway.te.math import clz as clz
from slipway.te.math import copysign as copysign
from slipway.te.math import cos as cos
from slipway.te.math import cosh as cosh
from slipway.te.math import div as div
from slipway.te.math import erf as erf
from slipway.te.math import exp as exp
from slipway.te.math import exp10 as exp10
from slipway.te.math import exp2 as exp2
from slipway.te.math import floor as floor
from slipway.te.math import fma as fma
from slipway.te.math import fmod as fmod
from slipway.te.math import indexdiv as indexdiv
from slipway.te.math import indexmod as indexmod
from slipway.te.math import isfinite as isfinite
from slipway.te.math import isinf as isinf
from slipway.te.math import isnan as isnan
from slipway.te.math import ldexp as ldexp
from slipway.te.math import log as log
from slipway.te.math import log10 as log10
from slipway.te.math import log1p as log1p
from slipway.te.math import log2 as log2
from slipway.te.math import multiply_high as multiply_high
from slipway.te.math import nearbyint as nearbyint
from slipway.te.math import popcount as popcount
from slipway.te.math import pow as pow
from slipway.te.math import power as power
from slipway.te.math import q_multiply_shift as q_multiply_shift
from slipway.te.math import round as round
from slipway.te.math import rsqrt as rsqrt
from slipway.te.math import sigmoid as sigmoid
from slipway.te.math import sin as sin
from slipway.te.math import sinh as sinh
from slipway.te.math import sqrt as sqrt
from slipway.te.math import tan as tan
from slipway.te.math import tanh as tanh
from slipway.te.math import to_integer as to_integer
from slipway.te.math import trunc as trunc
from slipway.te.operation import ComputeOp as ComputeOp
from slipway.te.operation import ExternOp as ExternOp
from slipway.te.operation import Operation as Operation
from slipway.te.operation import PlaceholderOp as PlaceholderOp
from slipway.te.operation import ScanOp as ScanOp
from slipway.te.reduction import all as all
from slipway.te.reduction import any as any
from slipway.te.reduction import comm_reducer as comm_reducer
from slipway.te.reduction import max as max
from slipway.te.reduction import max_of_numbers as max_of_numbers
from slipway.te.reduction import min as min
from slipway.te.reduction import prod as prod
from slipway.te.reduction import reduce_axis as reduce_axis
from slipway.te.reduction import sum as sum
from slipway.te.schedule import Schedule as Schedule
from slipway.te.schedule import create_schedule as create_schedule
from slipway.te.stage import Stage as Stage
from slipway.te.tensor import Tensor as Tensor
from slipway.te.tensor import TensorSlice as TensorSlice
from slipway.te.tensor_intrin import TensorIntrin as TensorIntrin
from slipway.te.tensor_intrin import decl_tensor_intrin as decl_tensor_intrin
from slipway.te.tracing import trace as trace

__all__ = [
    "ComputeOp",
    "ExternOp",
    "IterVar",
    "Operation",
    "PlaceholderOp",
    "Range",
    "Reduce",
    "ScanOp",
    "Schedule",
    "Select",
    "SizeVar",
    "Stage",
    "Tensor",
    "TensorIntrin",
    "TensorSlice",
    "Var",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cast",
    "ceil",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "copysign",
    "cos",
    "cosh",
    "create_prim_func",
    "create_schedule",
    "decl_tensor_intrin",
    "div",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "extern",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "gradient",
    "highest",
    "hybrid",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "log10",
    "log1p",
    "log2",
    "lower",
    "lowest",
    "max",
    "max_of_numbers",
    "max_value",
    "min",
    "min_value",
    "multiply_high",
    "nearbyint",
    "operation",
    "placeholder",
    "popcount",
    "pow",
    "power",
    "prod",
    "q_multiply_shift",
    "reduce_axis",
    "round",
    "rsqrt",
    "scan",
    "schedule",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "tensor",
    "thread_axis",
    "to_integer",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
