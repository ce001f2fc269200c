"""What type checkers see of slipway.relay.op; written by tools/stubs.py."""

from slipway.relay import annotation as annotation
from slipway.relay import image as image
from slipway.relay import nn as nn
from slipway.relay import vision as vision
from slipway.relay.expr import Axes
from slipway.relay.expr import Call
from slipway.relay.expr import ExprLike
from slipway.relay.expr import Op
from slipway.relay.expr import Op as Op
from slipway.relay.op import contrib as contrib
from slipway.relay.op_registry import OpPattern as OpPattern
from slipway.relay.op_rules import register_alter_op_layout as register_alter_op_layout
from slipway.relay.op_rules import register_convert_op_layout as register_convert_op_layout
from slipway.relay.op_rules import register_legalize as register_legalize
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

__all__ = [
    "Op",
    "OpPattern",
    "abs",
    "acos",
    "acosh",
    "add",
    "adv_index",
    "all",
    "annotation",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "broadcast_to_like",
    "cast",
    "cast_like",
    "ceil",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "concatenate",
    "contrib",
    "copy",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "divide",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "fixed_point_multiply",
    "floor",
    "floor_divide",
    "floor_mod",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "get",
    "greater",
    "greater_equal",
    "image",
    "invert_permutation",
    "isfinite",
    "isinf",
    "isnan",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
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
    "multiply",
    "ndarray_size",
    "negative",
    "nn",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "power",
    "prod",
    "register_alter_op_layout",
    "register_convert_op_layout",
    "register_legalize",
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
    "tile",
    "topk",
    "transpose",
    "trilu",
    "trunc",
    "trunc_divide",
    "trunc_mod",
    "unravel_index",
    "variance",
    "vision",
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
def get(name: str) -> Op: ...
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
