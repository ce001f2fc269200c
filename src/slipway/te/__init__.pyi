"""What type checkers see of slipway.te; written by tools/stubs.py."""

from slipway.blocks.from_te import create_prim_func as create_prim_func
from slipway.ir.expr import IterVar as IterVar
from slipway.ir.expr import PrimExpr
from slipway.ir.expr import PrimExprLike
from slipway.ir.expr import Range as Range
from slipway.ir.expr import Reduce as Reduce
from slipway.ir.expr import Select as Select
from slipway.ir.expr import SizeVar as SizeVar
from slipway.ir.expr import Var as Var
from slipway.ir.ops import cast as cast
from slipway.ir.ops import floordiv as floordiv
from slipway.ir.ops import floordiv as indexdiv
from slipway.ir.ops import floormod as floormod
from slipway.ir.ops import floormod as indexmod
from slipway.ir.ops import highest as highest
from slipway.ir.ops import if_then_else as if_then_else
from slipway.ir.ops import infinity as infinity
from slipway.ir.ops import lowest as lowest
from slipway.ir.ops import max_value as max_value
from slipway.ir.ops import min_value as min_value
from slipway.ir.ops import select as select
from slipway.ir.ops import truncdiv as truncdiv
from slipway.ir.ops import truncmod as truncmod
from slipway.te.declare import compute as compute
from slipway.te.declare import const as const
from slipway.te.declare import extern as extern
from slipway.te.declare import placeholder as placeholder
from slipway.te.declare import scan as scan
from slipway.te.declare import size_var as size_var
from slipway.te.declare import tag_scope as tag_scope
from slipway.te.declare import thread_axis as thread_axis
from slipway.te.declare import var as var
from slipway.te.lower import lower as lower
from slipway.te.math import abs as abs
from slipway.te.math import clz as clz
from slipway.te.math import div as div
from slipway.te.math import exp10 as exp10
from slipway.te.math import fma as fma
from slipway.te.math import ldexp as ldexp
from slipway.te.math import multiply_high as multiply_high
from slipway.te.math import popcount as popcount
from slipway.te.math import q_multiply_shift as q_multiply_shift
from slipway.te.math import to_integer as to_integer
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
    "highest",
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
    "thread_axis",
    "to_integer",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]

def acos(x: PrimExprLike) -> PrimExpr: ...
def acosh(x: PrimExprLike) -> PrimExpr: ...
def asin(x: PrimExprLike) -> PrimExpr: ...
def asinh(x: PrimExprLike) -> PrimExpr: ...
def atan(x: PrimExprLike) -> PrimExpr: ...
def atan2(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def atanh(x: PrimExprLike) -> PrimExpr: ...
def ceil(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def copysign(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def cos(x: PrimExprLike) -> PrimExpr: ...
def cosh(x: PrimExprLike) -> PrimExpr: ...
def erf(x: PrimExprLike) -> PrimExpr: ...
def exp(x: PrimExprLike) -> PrimExpr: ...
def exp2(x: PrimExprLike) -> PrimExpr: ...
def floor(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def fmod(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def isfinite(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def isinf(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def isnan(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def log(x: PrimExprLike) -> PrimExpr: ...
def log10(x: PrimExprLike) -> PrimExpr: ...
def log1p(x: PrimExprLike) -> PrimExpr: ...
def log2(x: PrimExprLike) -> PrimExpr: ...
def nearbyint(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def pow(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def power(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def round(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
def rsqrt(x: PrimExprLike) -> PrimExpr: ...
def sigmoid(x: PrimExprLike) -> PrimExpr: ...
def sin(x: PrimExprLike) -> PrimExpr: ...
def sinh(x: PrimExprLike) -> PrimExpr: ...
def sqrt(x: PrimExprLike) -> PrimExpr: ...
def tan(x: PrimExprLike) -> PrimExpr: ...
def tanh(x: PrimExprLike) -> PrimExpr: ...
def trunc(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
