"""What type checkers see of slipway.relay; written by tools/stubs.py."""

from slipway.compiler.classic_build import optimize as optimize
from slipway.compiler.create_executor import create_executor as create_executor
from slipway.compiler.relay_build import build as build
from slipway.ir import module as module
from slipway.ir.function import IRModule as Module
from slipway.relay import analysis as analysis
from slipway.relay import annotation as annotation
from slipway.relay import backend as backend
from slipway.relay import build_module as build_module
from slipway.relay import data_dep_optimization as data_dep_optimization
from slipway.relay import dataflow_pattern as dataflow_pattern
from slipway.relay import expr as expr
from slipway.relay import expr as function
from slipway.relay import expr_functor as expr_functor
from slipway.relay import frontend as frontend
from slipway.relay import image as image
from slipway.relay import interpret as interpret
from slipway.relay import loops as loops
from slipway.relay import nn as nn
from slipway.relay import op as op
from slipway.relay import op_registry as op_registry
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
from slipway.relay.dims import Dim as Dim
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
from slipway.relay.ops import random as random
from slipway.relay.ops.annotation import device_copy as device_copy
from slipway.relay.ops.control import branch as branch
from slipway.relay.ops.control import while_loop as while_loop
from slipway.relay.ops.nn.activation import clip as clip
from slipway.relay.ops.packed.blocked import layout_transform as layout_transform
from slipway.relay.ops.recurrence import scan as scan
from slipway.relay.ops.tensor.arithmetic import fixed_point_multiply as fixed_point_multiply
from slipway.relay.ops.tensor.arithmetic import mean_std as mean_std
from slipway.relay.ops.tensor.arithmetic import mean_variance as mean_variance
from slipway.relay.ops.tensor.arithmetic import trunc_divide as trunc_divide
from slipway.relay.ops.tensor.arithmetic import trunc_mod as trunc_mod
from slipway.relay.ops.tensor.binary import add as add
from slipway.relay.ops.tensor.binary import bitwise_and as bitwise_and
from slipway.relay.ops.tensor.binary import bitwise_or as bitwise_or
from slipway.relay.ops.tensor.binary import bitwise_xor as bitwise_xor
from slipway.relay.ops.tensor.binary import divide as divide
from slipway.relay.ops.tensor.binary import equal as equal
from slipway.relay.ops.tensor.binary import floor_divide as floor_divide
from slipway.relay.ops.tensor.binary import floor_mod as floor_mod
from slipway.relay.ops.tensor.binary import greater as greater
from slipway.relay.ops.tensor.binary import greater_equal as greater_equal
from slipway.relay.ops.tensor.binary import left_shift as left_shift
from slipway.relay.ops.tensor.binary import less as less
from slipway.relay.ops.tensor.binary import less_equal as less_equal
from slipway.relay.ops.tensor.binary import logical_and as logical_and
from slipway.relay.ops.tensor.binary import logical_or as logical_or
from slipway.relay.ops.tensor.binary import logical_xor as logical_xor
from slipway.relay.ops.tensor.binary import maximum as maximum
from slipway.relay.ops.tensor.binary import minimum as minimum
from slipway.relay.ops.tensor.binary import mod as mod
from slipway.relay.ops.tensor.binary import multiply as multiply
from slipway.relay.ops.tensor.binary import not_equal as not_equal
from slipway.relay.ops.tensor.binary import power as power
from slipway.relay.ops.tensor.binary import right_shift as right_shift
from slipway.relay.ops.tensor.binary import subtract as subtract
from slipway.relay.ops.tensor.binary import where as where
from slipway.relay.ops.tensor.create import arange as arange
from slipway.relay.ops.tensor.create import full as full
from slipway.relay.ops.tensor.create import full_like as full_like
from slipway.relay.ops.tensor.create import ones as ones
from slipway.relay.ops.tensor.create import ones_like as ones_like
from slipway.relay.ops.tensor.create import zeros as zeros
from slipway.relay.ops.tensor.create import zeros_like as zeros_like
from slipway.relay.ops.tensor.einsum import einsum as einsum
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
from slipway.relay.ops.tensor.reduce import mean as mean
from slipway.relay.ops.tensor.reduce import prod as prod
from slipway.relay.ops.tensor.reduce import std as std
from slipway.relay.ops.tensor.reduce import variance as variance
from slipway.relay.ops.tensor.repeat import broadcast_to as broadcast_to
from slipway.relay.ops.tensor.repeat import repeat as repeat
from slipway.relay.ops.tensor.repeat import reverse as reverse
from slipway.relay.ops.tensor.repeat import tile as tile
from slipway.relay.ops.tensor.scan import cumprod as cumprod
from slipway.relay.ops.tensor.scan import cumsum as cumsum
from slipway.relay.ops.tensor.scatter import scatter_elements as scatter_elements
from slipway.relay.ops.tensor.scatter import scatter_nd as scatter_nd
from slipway.relay.ops.tensor.sets import argwhere as argwhere
from slipway.relay.ops.tensor.sets import unique as unique
from slipway.relay.ops.tensor.shape import expand_dims as expand_dims
from slipway.relay.ops.tensor.shape import reshape as reshape
from slipway.relay.ops.tensor.shape import squeeze as squeeze
from slipway.relay.ops.tensor.shape import swapaxes as swapaxes
from slipway.relay.ops.tensor.shape import transpose as transpose
from slipway.relay.ops.tensor.sized import sized as sized
from slipway.relay.ops.tensor.sort import argsort as argsort
from slipway.relay.ops.tensor.sort import sort as sort
from slipway.relay.ops.tensor.sort import topk as topk
from slipway.relay.ops.tensor.sparse_tensors import sparse_fill_empty_rows as sparse_fill_empty_rows
from slipway.relay.ops.tensor.sparse_tensors import sparse_reshape as sparse_reshape
from slipway.relay.ops.tensor.spectral import dft as dft
from slipway.relay.ops.tensor.spectral import stft as stft
from slipway.relay.ops.tensor.unary import acos as acos
from slipway.relay.ops.tensor.unary import acosh as acosh
from slipway.relay.ops.tensor.unary import asin as asin
from slipway.relay.ops.tensor.unary import asinh as asinh
from slipway.relay.ops.tensor.unary import atan as atan
from slipway.relay.ops.tensor.unary import atanh as atanh
from slipway.relay.ops.tensor.unary import bitwise_not as bitwise_not
from slipway.relay.ops.tensor.unary import cast as cast
from slipway.relay.ops.tensor.unary import ceil as ceil
from slipway.relay.ops.tensor.unary import copy as copy
from slipway.relay.ops.tensor.unary import cos as cos
from slipway.relay.ops.tensor.unary import cosh as cosh
from slipway.relay.ops.tensor.unary import erf as erf
from slipway.relay.ops.tensor.unary import exp as exp
from slipway.relay.ops.tensor.unary import floor as floor
from slipway.relay.ops.tensor.unary import isfinite as isfinite
from slipway.relay.ops.tensor.unary import isinf as isinf
from slipway.relay.ops.tensor.unary import isnan as isnan
from slipway.relay.ops.tensor.unary import log as log
from slipway.relay.ops.tensor.unary import log10 as log10
from slipway.relay.ops.tensor.unary import log2 as log2
from slipway.relay.ops.tensor.unary import logical_not as logical_not
from slipway.relay.ops.tensor.unary import negative as negative
from slipway.relay.ops.tensor.unary import reinterpret as reinterpret
from slipway.relay.ops.tensor.unary import rsqrt as rsqrt
from slipway.relay.ops.tensor.unary import sigmoid as sigmoid
from slipway.relay.ops.tensor.unary import sign as sign
from slipway.relay.ops.tensor.unary import sin as sin
from slipway.relay.ops.tensor.unary import sinh as sinh
from slipway.relay.ops.tensor.unary import sqrt as sqrt
from slipway.relay.ops.tensor.unary import tan as tan
from slipway.relay.ops.tensor.unary import tanh as tanh
from slipway.relay.ops.tensor.unary import trunc as trunc
from slipway.relay.ops.tensor.update import dynamic_update_slice as dynamic_update_slice
from slipway.relay.scope_builder import ScopeBuilder as ScopeBuilder
from slipway.relay.text import parser as parser
from slipway.relay.text.parser import fromtext as fromtext
from slipway.relay.text.parser import parse as parse
from slipway.relay.text.parser import parse_expr as parse_expr
from slipway.relay.text.printer import astext as astext
from slipway.relay.types import FuncType as FuncType
from slipway.relay.types import IncompleteType as IncompleteType
from slipway.relay.types import OpenDim as Any
from slipway.relay.types import TensorType as TensorType
from slipway.relay.types import TupleType as TupleType
from slipway.relay.types import Type as Type
from slipway.relay.types import scalar_type as scalar_type
from slipway.runtime import profiler_vm as profiler_vm
from slipway.runtime.params import load_param_dict as load_param_dict
from slipway.runtime.params import save_param_dict as save_param_dict
from slipway.transform.graph.classic import build_config as build_config

__all__ = [
    "Any",
    "Call",
    "Constant",
    "Dim",
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
    "argwhere",
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
    "branch",
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
    "data_dep_optimization",
    "dataflow_pattern",
    "device_copy",
    "dft",
    "divide",
    "dynamic_update_slice",
    "einsum",
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
    "loops",
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
    "optimize",
    "parse",
    "parse_expr",
    "parser",
    "power",
    "prod",
    "profiler_vm",
    "qnn",
    "quantization",
    "quantize",
    "random",
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
    "sized",
    "slice_like",
    "sliding_window",
    "sort",
    "sparse_fill_empty_rows",
    "sparse_reshape",
    "sparse_to_dense",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "stft",
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
    "unique",
    "unravel_index",
    "var",
    "variance",
    "vision",
    "visit",
    "vm",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]

def abs(data: ExprLike) -> Call: ...
def all(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def any(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def max(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def min(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
def round(data: ExprLike) -> Call: ...
def sum(data: ExprLike, axis: Axes = ..., keepdims: bool = ..., exclude: bool = ...) -> Call: ...
