"""What type checkers see of slipway.tir; written by tools/stubs.py."""

from slipway.arith.script_range import ScriptRange as Range
from slipway.blocks.from_te import create_prim_func as create_prim_func
from slipway.blocks.index_map import IndexMap as IndexMap
from slipway.blocks.schedule import Schedule as Schedule
from slipway.blocks.tensor_intrin import BlockIntrin as TensorIntrin
from slipway.errors import ScheduleError as ScheduleError
from slipway.ir import buffer as buffer
from slipway.ir import builder as ir_builder
from slipway.ir import expr as expr
from slipway.ir import function as function
from slipway.ir import ops as op
from slipway.ir import stmt as stmt
from slipway.ir.buffer import Buffer as Buffer
from slipway.ir.buffer import decl_buffer as decl_buffer
from slipway.ir.calls import address_of as address_of
from slipway.ir.calls import call_extern as call_extern
from slipway.ir.calls import call_llvm_intrin as call_llvm_intrin
from slipway.ir.calls import call_llvm_pure_intrin as call_llvm_pure_intrin
from slipway.ir.calls import call_packed as call_packed
from slipway.ir.calls import call_pure_extern as call_pure_extern
from slipway.ir.calls import ceildiv as ceildiv
from slipway.ir.calls import hypot as hypot
from slipway.ir.calls import likely as likely
from slipway.ir.calls import prefetch as prefetch
from slipway.ir.calls import reinterpret as reinterpret
from slipway.ir.calls import ret as ret
from slipway.ir.calls import stmt_list as stmt_list
from slipway.ir.calls import stmt_seq as stmt_seq
from slipway.ir.calls import vectorcombine as vectorcombine
from slipway.ir.calls import vectorhigh as vectorhigh
from slipway.ir.calls import vectorlow as vectorlow
from slipway.ir.custom import CallEffectKind as CallEffectKind
from slipway.ir.custom import changes_own_code as changes_own_code
from slipway.ir.custom import datatype_minimum as datatype_minimum
from slipway.ir.custom import has_rules as has_rules
from slipway.ir.custom import lowered as lowered
from slipway.ir.custom import register_intrin_lowering as register_intrin_lowering
from slipway.ir.custom import register_op_attr as register_op_attr
from slipway.ir.expr import Add as Add
from slipway.ir.expr import And as And
from slipway.ir.expr import BinaryOp as BinaryOp
from slipway.ir.expr import Broadcast as Broadcast
from slipway.ir.expr import BufferLoad as BufferLoad
from slipway.ir.expr import Call as Call
from slipway.ir.expr import Cast as Cast
from slipway.ir.expr import CmpOp as CmpOp
from slipway.ir.expr import CommReducer as CommReducer
from slipway.ir.expr import Div as Div
from slipway.ir.expr import EQ as EQ
from slipway.ir.expr import FloatImm as FloatImm
from slipway.ir.expr import FloorDiv as FloorDiv
from slipway.ir.expr import FloorMod as FloorMod
from slipway.ir.expr import GE as GE
from slipway.ir.expr import GT as GT
from slipway.ir.expr import IntImm as IntImm
from slipway.ir.expr import IntImm as UIntImm
from slipway.ir.expr import IterVar as IterVar
from slipway.ir.expr import LE as LE
from slipway.ir.expr import LT as LT
from slipway.ir.expr import Let as Let
from slipway.ir.expr import Max as Max
from slipway.ir.expr import Min as Min
from slipway.ir.expr import Mod as Mod
from slipway.ir.expr import Mul as Mul
from slipway.ir.expr import NE as NE
from slipway.ir.expr import Not as Not
from slipway.ir.expr import OpName as OpName
from slipway.ir.expr import Or as Or
from slipway.ir.expr import PrimExpr
from slipway.ir.expr import PrimExpr as Expr
from slipway.ir.expr import PrimExpr as PrimExpr
from slipway.ir.expr import PrimExprLike
from slipway.ir.expr import ProducerLoad as ProducerLoad
from slipway.ir.expr import Ramp as Ramp
from slipway.ir.expr import Reduce as Reduce
from slipway.ir.expr import Select as Select
from slipway.ir.expr import Shuffle as Shuffle
from slipway.ir.expr import SizeVar as SizeVar
from slipway.ir.expr import StringImm as StringImm
from slipway.ir.expr import Sub as Sub
from slipway.ir.expr import SupportsPrimExpr as SupportsPrimExpr
from slipway.ir.expr import Var as Var
from slipway.ir.expr import plain_name as plain_name
from slipway.ir.function import BaseFunc as BaseFunc
from slipway.ir.function import BufferMap as BufferMap
from slipway.ir.function import FunctionAttrs as FunctionAttrs
from slipway.ir.function import FunctionPair as FunctionPair
from slipway.ir.function import FunctionPairs as FunctionPairs
from slipway.ir.function import GlobalVar as GlobalVar
from slipway.ir.function import IRModule as IRModule
from slipway.ir.function import PrimFunc as PrimFunc
from slipway.ir.ops import add as add
from slipway.ir.ops import all_of as all_of
from slipway.ir.ops import any_of as any_of
from slipway.ir.ops import as_expr as as_expr
from slipway.ir.ops import as_extent as as_extent
from slipway.ir.ops import as_int as as_int
from slipway.ir.ops import bitwise_not as bitwise_not
from slipway.ir.ops import broadcast_to as broadcast_to
from slipway.ir.ops import call_intrin as call_intrin
from slipway.ir.ops import cast as cast
from slipway.ir.ops import const as const
from slipway.ir.ops import const_value as const_value
from slipway.ir.ops import div as div
from slipway.ir.ops import equal as equal
from slipway.ir.ops import floordiv as floordiv
from slipway.ir.ops import floordiv as indexdiv
from slipway.ir.ops import floormod as floormod
from slipway.ir.ops import floormod as indexmod
from slipway.ir.ops import greater as greater
from slipway.ir.ops import greater_equal as greater_equal
from slipway.ir.ops import highest as highest
from slipway.ir.ops import if_then_else as if_then_else
from slipway.ir.ops import infinity as infinity
from slipway.ir.ops import less as less
from slipway.ir.ops import less_equal as less_equal
from slipway.ir.ops import logical_and as logical_and
from slipway.ir.ops import logical_not as logical_not
from slipway.ir.ops import logical_or as logical_or
from slipway.ir.ops import lowest as lowest
from slipway.ir.ops import match as match
from slipway.ir.ops import max_of_numbers as max_of_numbers
from slipway.ir.ops import max_value as max_value
from slipway.ir.ops import maximum as maximum
from slipway.ir.ops import min_value as min_value
from slipway.ir.ops import minimum as minimum
from slipway.ir.ops import mul as mul
from slipway.ir.ops import neg as neg
from slipway.ir.ops import not_equal as not_equal
from slipway.ir.ops import select as select
from slipway.ir.ops import sub as sub
from slipway.ir.ops import truncdiv as truncdiv
from slipway.ir.ops import truncmod as truncmod
from slipway.ir.stmt import Allocate as Allocate
from slipway.ir.stmt import AssertStmt as AssertStmt
from slipway.ir.stmt import AttrStmt as AttrStmt
from slipway.ir.stmt import Block as Block
from slipway.ir.stmt import BufferStore as BufferStore
from slipway.ir.stmt import Evaluate as Evaluate
from slipway.ir.stmt import For as For
from slipway.ir.stmt import ForKind as ForKind
from slipway.ir.stmt import IfThenElse as IfThenElse
from slipway.ir.stmt import LetStmt as LetStmt
from slipway.ir.stmt import NOP as NOP
from slipway.ir.stmt import ProducerRealize as ProducerRealize
from slipway.ir.stmt import ProducerStore as ProducerStore
from slipway.ir.stmt import SeqStmt as SeqStmt
from slipway.ir.stmt import Stmt as Stmt
from slipway.ir.stmt import While as While
from slipway.ir.stmt import is_nop as is_nop
from slipway.ir.stmt import seq as seq
from slipway.ir.stmt import statements as statements
from slipway.relay.types import OpenDim as Any
from slipway.script import hybrid_names as hybrid
from slipway.te import operation as operation
from slipway.te import tensor as tensor
from slipway.te.declare import compute as compute
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
from slipway.te.math import clz as clz
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
from slipway.te.reduction import min as min
from slipway.te.reduction import prod as prod
from slipway.te.reduction import reduce_axis as reduce_axis
from slipway.te.reduction import sum as sum
from slipway.te.schedule import create_schedule as create_schedule
from slipway.te.stage import Stage as Stage
from slipway.te.tensor import Tensor as Tensor
from slipway.te.tensor import TensorSlice as TensorSlice
from slipway.te.tensor_intrin import decl_tensor_intrin as decl_tensor_intrin
from slipway.te.tracing import trace as trace
from slipway.tir import analysis as analysis
from slipway.tir import schedule as schedule
from slipway.tir import stmt_functor as stmt_functor
from slipway.tir import transform as transform
from slipway.tir import usmp as usmp
from slipway.transform.loop.older import Load as Load
from slipway.transform.loop.older import Store as Store

__all__ = [
    "Add",
    "Allocate",
    "And",
    "Any",
    "AssertStmt",
    "AttrStmt",
    "BaseFunc",
    "BinaryOp",
    "Block",
    "Broadcast",
    "Buffer",
    "BufferLoad",
    "BufferMap",
    "BufferStore",
    "Call",
    "CallEffectKind",
    "Cast",
    "CmpOp",
    "CommReducer",
    "ComputeOp",
    "Div",
    "EQ",
    "Evaluate",
    "Expr",
    "ExternOp",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForKind",
    "FunctionAttrs",
    "FunctionPair",
    "FunctionPairs",
    "GE",
    "GT",
    "GlobalVar",
    "IRModule",
    "IfThenElse",
    "IndexMap",
    "IntImm",
    "IterVar",
    "LE",
    "LT",
    "Let",
    "LetStmt",
    "Load",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "NE",
    "NOP",
    "Not",
    "OpName",
    "Operation",
    "Or",
    "PlaceholderOp",
    "PrimExpr",
    "PrimFunc",
    "ProducerLoad",
    "ProducerRealize",
    "ProducerStore",
    "Ramp",
    "Range",
    "Reduce",
    "ScanOp",
    "Schedule",
    "ScheduleError",
    "Select",
    "SeqStmt",
    "Shuffle",
    "SizeVar",
    "Stage",
    "Stmt",
    "Store",
    "StringImm",
    "Sub",
    "SupportsPrimExpr",
    "Tensor",
    "TensorIntrin",
    "TensorSlice",
    "UIntImm",
    "Var",
    "While",
    "abs",
    "acos",
    "acosh",
    "add",
    "address_of",
    "all",
    "all_of",
    "analysis",
    "any",
    "any_of",
    "as_expr",
    "as_extent",
    "as_int",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "buffer",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "cast",
    "ceil",
    "ceildiv",
    "changes_own_code",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "const_value",
    "copysign",
    "cos",
    "cosh",
    "create_prim_func",
    "create_schedule",
    "datatype_minimum",
    "decl_buffer",
    "decl_tensor_intrin",
    "div",
    "equal",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "expr",
    "extern",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "function",
    "gradient",
    "greater",
    "greater_equal",
    "has_rules",
    "highest",
    "hybrid",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "ir_builder",
    "is_nop",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "less",
    "less_equal",
    "likely",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "lower",
    "lowered",
    "lowest",
    "match",
    "max",
    "max_of_numbers",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "mul",
    "multiply_high",
    "nearbyint",
    "neg",
    "not_equal",
    "op",
    "operation",
    "placeholder",
    "plain_name",
    "popcount",
    "pow",
    "power",
    "prefetch",
    "prod",
    "q_multiply_shift",
    "reduce_axis",
    "register_intrin_lowering",
    "register_op_attr",
    "reinterpret",
    "ret",
    "round",
    "rsqrt",
    "scan",
    "schedule",
    "select",
    "seq",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "statements",
    "stmt",
    "stmt_functor",
    "stmt_list",
    "stmt_seq",
    "sub",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "tensor",
    "thread_axis",
    "to_integer",
    "trace",
    "transform",
    "trunc",
    "truncdiv",
    "truncmod",
    "usmp",
    "var",
    "vectorcombine",
    "vectorhigh",
    "vectorlow",
]

def acos(x: PrimExprLike) -> PrimExpr: ...
def acosh(x: PrimExprLike) -> PrimExpr: ...
def asin(x: PrimExprLike) -> PrimExpr: ...
def asinh(x: PrimExprLike) -> PrimExpr: ...
def atan(x: PrimExprLike) -> PrimExpr: ...
def atan2(x: PrimExprLike, y: PrimExprLike, span: object = ...) -> PrimExpr: ...
def atanh(x: PrimExprLike) -> PrimExpr: ...
def bitwise_and(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr: ...
def bitwise_or(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr: ...
def bitwise_xor(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr: ...
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
def shift_left(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr: ...
def shift_right(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr: ...
def sigmoid(x: PrimExprLike) -> PrimExpr: ...
def sin(x: PrimExprLike) -> PrimExpr: ...
def sinh(x: PrimExprLike) -> PrimExpr: ...
def sqrt(x: PrimExprLike) -> PrimExpr: ...
def tan(x: PrimExprLike) -> PrimExpr: ...
def tanh(x: PrimExprLike) -> PrimExpr: ...
def trunc(x: PrimExprLike, span: object = ...) -> PrimExpr: ...
