"""What type checkers see of slipway.relay; written by tools/stubs.py."""

from slipway.compiler.create_executor import create_executor as create_executor
from slipway.compiler.relay_build import build as build
from slipway.ir import function as module
from slipway.ir.function import IRModule as Module
from slipway.relay import analysis as analysis
from slipway.relay import annotation as annotation
from slipway.relay import backend as backend
from slipway.relay import build_module as build_module
from slipway.relay import dataflow_pattern as dataflow_pattern
from slipway.relay import expr as expr
from slipway.relay import expr as function
from slipway.relay import expr_functor as expr_functor
from slipway.relay import frontend as frontend
from slipway.relay import image as image
from slipway.relay import interpret as interpret
from slipway.relay import nn as nn
from slipway.relay import op as op
from slipway.relay import op_registry as op_registry
from slipway.relay import parser as parser
from slipway.relay import qnn as qnn
from slipway.relay import quantization as quantization
from slipway.relay import quantize as quantize
from slipway.relay import testing as testing
from slipway.relay import text as text
from slipway.relay import transform as transform
from slipway.relay import types as ty
from slipway.relay import types as types
from slipway.relay import vision as vision
from slipway.relay import visit as visit
from slipway.relay import vm as vm
from slipway.relay.construct import bind as bind
from slipway.relay.construct import bind as bind_params_by_name
from slipway.relay.construct import const as const
from slipway.relay.construct import var as var
from slipway.relay.expr import Axes
from slipway.relay.expr import Call
from slipway.relay.expr import Call as Call
from slipway.relay.expr import Constant as Constant
from slipway.relay.expr import Expr as Expr
from slipway.relay.expr import ExprLike
from slipway.relay.expr import Function as Function
from slipway.relay.expr import GlobalVar as GlobalVar
from slipway.relay.expr import If as If
from slipway.relay.expr import Let as Let
from slipway.relay.expr import Op as Op
from slipway.relay.expr import Tuple as Tuple
from slipway.relay.expr import TupleGetItem as TupleGetItem
from slipway.relay.expr import TupleWrapper as TupleWrapper
from slipway.relay.expr import Var as Var
from slipway.relay.expr_functor import ExprFunctor as ExprFunctor
from slipway.relay.expr_functor import ExprMutator as ExprMutator
from slipway.relay.expr_functor import ExprVisitor as ExprVisitor
from slipway.relay.expr_functor import MixedModeMutator as MixedModeMutator
from slipway.relay.expr_functor import MixedModeVisitor as MixedModeVisitor
from slipway.relay.ops.nn.activation import clip as clip
from slipway.relay.ops.packed.blocked import layout_transform as layout_transform
from slipway.relay.ops.recurrence import scan as scan
from slipway.relay.ops.tensor.arithmetic import fixed_point_multiply as fixed_point_multiply
from slipway.relay.ops.tensor.arithmetic import mean_std as mean_std
from slipway.relay.ops.tensor.arithmetic import mean_variance as mean_variance
from slipway.relay.ops.tensor.arithmetic import trunc_divide as trunc_divide
from slipway.relay.ops.tensor.arithmetic import trunc_mod as trunc_mod
from slipway.relay.ops.tensor.binary import where as where
from slipway.relay.ops.tensor.create import arange as arange
from slipway.relay.ops.tensor.create import full as full
from slipway.relay.ops.tensor.create import full_like as full_like
from slipway.relay.ops.tensor.create import ones as ones
from slipway.relay.ops.tensor.create import ones_like as ones_like
from slipway.relay.ops.tensor.create import zeros as zeros
from slipway.relay.ops.tensor.create import zeros_like as zeros_like
from slipway.relay.ops.tensor.index import gather as gather
from slipway.relay.ops.tensor.index import gather_nd as gather_nd
from slipway.relay.ops.tensor.index import one_hot as one_hot
from slipway.relay.ops.tensor.index import strided_slice as strided_slice
from slipway.relay.ops.tensor.index import take as take
from slipway.relay.ops.tensor.indexing import adv_index as adv_index
from slipway.relay.ops.tensor.indexing import invert_permutation as invert_permutation
from slipway.relay.ops.tensor.indexing import matrix_set_diag as matrix_set_diag
from slipway.relay.ops.tensor.indexing import meshgrid as meshgrid
from slipway.relay.ops.tensor.indexing import reverse_sequence as reverse_sequence
from slipway.relay.ops.tensor.indexing import scatter as scatter
from slipway.relay.ops.tensor.indexing import scatter_add as scatter_add
from slipway.relay.ops.tensor.indexing import searchsorted as searchsorted
from slipway.relay.ops.tensor.indexing import segment_sum as segment_sum
from slipway.relay.ops.tensor.indexing import sequence_mask as sequence_mask
from slipway.relay.ops.tensor.indexing import sliding_window as sliding_window
from slipway.relay.ops.tensor.indexing import sparse_to_dense as sparse_to_dense
from slipway.relay.ops.tensor.indexing import strided_set as strided_set
from slipway.relay.ops.tensor.indexing import trilu as trilu
from slipway.relay.ops.tensor.indexing import unravel_index as unravel_index
from slipway.relay.ops.tensor.join import concatenate as concatenate
from slipway.relay.ops.tensor.join import split as split
from slipway.relay.ops.tensor.join import stack as stack
from slipway.relay.ops.tensor.like import broadcast_to_like as broadcast_to_like
from slipway.relay.ops.tensor.like import cast_like as cast_like
from slipway.relay.ops.tensor.like import collapse_sum_like as collapse_sum_like
from slipway.relay.ops.tensor.like import collapse_sum_to as collapse_sum_to
from slipway.relay.ops.tensor.like import ndarray_size as ndarray_size
from slipway.relay.ops.tensor.like import reshape_like as reshape_like
from slipway.relay.ops.tensor.like import reverse_reshape as reverse_reshape
from slipway.relay.ops.tensor.like import shape_of as shape_of
from slipway.relay.ops.tensor.like import slice_like as slice_like
from slipway.relay.ops.tensor.reduce import argmax as argmax
from slipway.relay.ops.tensor.reduce import argmin as argmin
from slipway.relay.ops.tensor.reduce import logsumexp as logsumexp
from slipway.relay.ops.tensor.reduce import std as std
from slipway.relay.ops.tensor.reduce import variance as variance
from slipway.relay.ops.tensor.repeat import broadcast_to as broadcast_to
from slipway.relay.ops.tensor.repeat import repeat as repeat
from slipway.relay.ops.tensor.repeat import reverse as reverse
from slipway.relay.ops.tensor.repeat import tile as tile
from slipway.relay.ops.tensor.scatter import scatter_elements as scatter_elements
from slipway.relay.ops.tensor.scatter import scatter_nd as scatter_nd
from slipway.relay.ops.tensor.shape import expand_dims as expand_dims
from slipway.relay.ops.tensor.shape import reshape as reshape
from slipway.relay.ops.tensor.shape import squeeze as squeeze
from slipway.relay.ops.tensor.shape import swapaxes as swapaxes
from slipway.relay.ops.tensor.shape import transpose as transpose
from slipway.relay.ops.tensor.sort import argsort as argsort
from slipway.relay.ops.tensor.sort import sort as sort
from slipway.relay.ops.tensor.sort import topk as topk
from slipway.relay.ops.tensor.unary import bitwise_not as bitwise_not
from slipway.relay.ops.tensor.unary import cast as cast
from slipway.relay.ops.tensor.unary import copy as copy
from slipway.relay.ops.tensor.unary import logical_not as logical_not
from slipway.relay.ops.tensor.unary import reinterpret as reinterpret
from slipway.relay.parser import parse as fromtext
from slipway.relay.scope_builder import ScopeBuilder as ScopeBuilder
from slipway.relay.text import astext as astext
from slipway.relay.types import FuncType as FuncType
from slipway.relay.types import IncompleteType as IncompleteType
from slipway.relay.types import OpenDim as Any
from slipway.relay.types import TensorType as TensorType
from slipway.relay.types import TupleType as TupleType
from slipway.relay.types import Type as Type
from slipway.relay.types import scalar_type as scalar_type
from slipway.runtime.params import load_param_dict as load_param_dict
from slipway.runtime.params import save_param_dict as save_param_dict
from slipway.transform.graph.classic import build_config as build_config

__all__ = [
    "Any",
    "Call",
    "Constant",
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "IncompleteType",
    "Let",
    "MixedModeMutator",
    "MixedModeVisitor",
    "Module",
    "Op",
    "ScopeBuilder",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "TupleWrapper",
    "Type",
    "Var",
    "abs",
    "acos",
    "acosh",
    "add",
    "adv_index",
    "all",
    "analysis",
    "annotation",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "astext",
    "atan",
    "atanh",
    "backend",
    "bind",
    "bind_params_by_name",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "broadcast_to_like",
    "build",
    "build_config",
    "build_module",
    "cast",
    "cast_like",
    "ceil",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "concatenate",
    "const",
    "copy",
    "cos",
    "cosh",
    "create_executor",
    "cumprod",
    "cumsum",
    "dataflow_pattern",
    "divide",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "expr",
    "expr_functor",
    "fixed_point_multiply",
    "floor",
    "floor_divide",
    "floor_mod",
    "fromtext",
    "frontend",
    "full",
    "full_like",
    "function",
    "gather",
    "gather_nd",
    "greater",
    "greater_equal",
    "image",
    "interpret",
    "invert_permutation",
    "isfinite",
    "isinf",
    "isnan",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
    "load_param_dict",
    "log",
    "log10",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matrix_set_diag",
    "max",
    "maximum",
    "mean",
    "mean_std",
    "mean_variance",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "module",
    "multiply",
    "ndarray_size",
    "negative",
    "nn",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "op",
    "op_registry",
    "parser",
    "power",
    "prod",
    "qnn",
    "quantization",
    "quantize",
    "reinterpret",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_reshape",
    "reverse_sequence",
    "right_shift",
    "round",
    "rsqrt",
    "save_param_dict",
    "scalar_type",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "segment_sum",
    "sequence_mask",
    "shape_of",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice_like",
    "sliding_window",
    "sort",
    "sparse_to_dense",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "strided_set",
    "strided_slice",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "tan",
    "tanh",
    "testing",
    "text",
    "tile",
    "topk",
    "transform",
    "transpose",
    "trilu",
    "trunc",
    "trunc_divide",
    "trunc_mod",
    "ty",
    "types",
    "unravel_index",
    "var",
    "variance",
    "vision",
    "visit",
    "vm",
    "where",
    "zeros",
    "zeros_like",
]

def abs(data: ExprLike) -> Call: ...
def acos(data: ExprLike) -> Call: ...
def acosh(data: ExprLike) -> Call: ...
def add(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def all(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def any(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def asin(data: ExprLike) -> Call: ...
def asinh(data: ExprLike) -> Call: ...
def atan(data: ExprLike) -> Call: ...
def atanh(data: ExprLike) -> Call: ...
def bitwise_and(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def bitwise_or(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def bitwise_xor(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def ceil(data: ExprLike) -> Call: ...
def cos(data: ExprLike) -> Call: ...
def cosh(data: ExprLike) -> Call: ...
def cumprod(data: ExprLike, axis: int | None = ..., dtype: str | None = ..., exclusive: bool = ...) -> Call: ...
def cumsum(data: ExprLike, axis: int | None = ..., dtype: str | None = ..., exclusive: bool = ...) -> Call: ...
def divide(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def equal(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def erf(data: ExprLike) -> Call: ...
def exp(data: ExprLike) -> Call: ...
def floor(data: ExprLike) -> Call: ...
def floor_divide(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def floor_mod(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def greater(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def greater_equal(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def isfinite(data: ExprLike) -> Call: ...
def isinf(data: ExprLike) -> Call: ...
def isnan(data: ExprLike) -> Call: ...
def left_shift(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def less(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def less_equal(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def log(data: ExprLike) -> Call: ...
def log10(data: ExprLike) -> Call: ...
def log2(data: ExprLike) -> Call: ...
def logical_and(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def logical_or(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def logical_xor(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def max(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def maximum(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def mean(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def min(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def minimum(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def mod(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def multiply(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def negative(data: ExprLike) -> Call: ...
def not_equal(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def power(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def prod(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def right_shift(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def round(data: ExprLike) -> Call: ...
def rsqrt(data: ExprLike) -> Call: ...
def sigmoid(data: ExprLike) -> Call: ...
def sign(data: ExprLike) -> Call: ...
def sin(data: ExprLike) -> Call: ...
def sinh(data: ExprLike) -> Call: ...
def sqrt(data: ExprLike) -> Call: ...
def subtract(lhs: ExprLike, rhs: ExprLike) -> Call: ...
def sum(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def tan(data: ExprLike) -> Call: ...
def tanh(data: ExprLike) -> Call: ...
def trunc(data: ExprLike) -> Call: ...
