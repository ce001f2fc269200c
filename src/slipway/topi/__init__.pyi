"""What type checkers see of slipway.topi; written by tools/stubs.py."""

from slipway.errors import InvalidShapeError as InvalidShapeError
from slipway.ir.expr import PrimExprLike
from slipway.relay.as_topi.indexing import argwhere as argwhere
from slipway.relay.as_topi.indexing import einsum as einsum
from slipway.relay.as_topi.indexing import fixed_point_multiply as fixed_point_multiply
from slipway.relay.as_topi.indexing import invert_permutation as invert_permutation
from slipway.relay.as_topi.indexing import layout_transform as layout_transform
from slipway.relay.as_topi.indexing import matrix_set_diag as matrix_set_diag
from slipway.relay.as_topi.indexing import reinterpret as reinterpret
from slipway.relay.as_topi.indexing import scatter as scatter
from slipway.relay.as_topi.indexing import scatter_add as scatter_add
from slipway.relay.as_topi.indexing import scatter_nd as scatter_nd
from slipway.relay.as_topi.indexing import searchsorted as searchsorted
from slipway.relay.as_topi.indexing import sliding_window as sliding_window
from slipway.relay.as_topi.indexing import sparse_reshape as sparse_reshape
from slipway.relay.as_topi.indexing import sparse_to_dense as sparse_to_dense
from slipway.relay.as_topi.indexing import stft as stft
from slipway.relay.as_topi.indexing import strided_set as strided_set
from slipway.relay.as_topi.indexing import unique as unique
from slipway.te.tensor import Tensor
from slipway.topi import arm_cpu as arm_cpu
from slipway.topi import cuda as adreno
from slipway.topi import cuda as bifrost
from slipway.topi import cuda as cuda
from slipway.topi import cuda as gpu
from slipway.topi import cuda as intel_graphics
from slipway.topi import cuda as mali
from slipway.topi import cuda as rocm
from slipway.topi import elementwise as broadcast
from slipway.topi import elementwise as math
from slipway.topi import generic as generic
from slipway.topi import generic as hexagon
from slipway.topi import generic as hls
from slipway.topi import image as image
from slipway.topi import nn as nn
from slipway.topi import random as random
from slipway.topi import sparse as sparse
from slipway.topi import tag as tag
from slipway.topi import testing as testing
from slipway.topi import utils as utils
from slipway.topi import vision as vision
from slipway.topi import x86 as x86
from slipway.topi.elementwise import cast as cast
from slipway.topi.elementwise import clip as clip
from slipway.topi.elementwise import elemwise_sum as elemwise_sum
from slipway.topi.elementwise import full as full
from slipway.topi.elementwise import full_like as full_like
from slipway.topi.elementwise import where as where
from slipway.topi.indexing import adv_index as adv_index
from slipway.topi.indexing import arange as arange
from slipway.topi.indexing import gather as gather
from slipway.topi.indexing import gather_nd as gather_nd
from slipway.topi.indexing import meshgrid as meshgrid
from slipway.topi.indexing import ndarray_size as ndarray_size
from slipway.topi.indexing import one_hot as one_hot
from slipway.topi.indexing import reverse_sequence as reverse_sequence
from slipway.topi.indexing import sequence_mask as sequence_mask
from slipway.topi.indexing import shape as shape
from slipway.topi.indexing import take as take
from slipway.topi.indexing import trilu as trilu
from slipway.topi.indexing import unravel_index as unravel_index
from slipway.topi.products import matmul as matmul
from slipway.topi.products import tensordot as tensordot
from slipway.topi.reduction import mean as mean
from slipway.topi.sorting import argsort as argsort
from slipway.topi.sorting import sort as sort
from slipway.topi.sorting import topk as topk
from slipway.topi.transform import broadcast_to as broadcast_to
from slipway.topi.transform import concatenate as concatenate
from slipway.topi.transform import expand_dims as expand_dims
from slipway.topi.transform import expand_like as expand_like
from slipway.topi.transform import flip as flip
from slipway.topi.transform import repeat as repeat
from slipway.topi.transform import reshape as reshape
from slipway.topi.transform import split as split
from slipway.topi.transform import squeeze as squeeze
from slipway.topi.transform import stack as stack
from slipway.topi.transform import strided_slice as strided_slice
from slipway.topi.transform import tile as tile
from slipway.topi.transform import transpose as transpose
from slipway.topi.utils import const_matrix as const_matrix
from slipway.topi.utils import get_const_int as get_const_int
from slipway.topi.utils import get_const_tuple as get_const_tuple
from slipway.topi.utils import get_float_tuple as get_float_tuple
from slipway.topi.utils import simplify as simplify
import typing

__all__ = [
    "InvalidShapeError",
    "abs",
    "acos",
    "acosh",
    "add",
    "adreno",
    "adv_index",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "arm_cpu",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bifrost",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_add",
    "broadcast_div",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_mul",
    "broadcast_sub",
    "broadcast_to",
    "cast",
    "ceil",
    "clip",
    "concatenate",
    "const_matrix",
    "cos",
    "cosh",
    "cuda",
    "cumprod",
    "cumsum",
    "divide",
    "einsum",
    "elemwise_sum",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "expand_like",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "fixed_point_multiply",
    "flip",
    "floor",
    "floor_divide",
    "floor_mod",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "generic",
    "get_const_int",
    "get_const_tuple",
    "get_float_tuple",
    "gpu",
    "greater",
    "greater_equal",
    "hexagon",
    "hls",
    "identity",
    "image",
    "intel_graphics",
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
    "mali",
    "math",
    "matmul",
    "matrix_set_diag",
    "max",
    "maximum",
    "mean",
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
    "power",
    "prod",
    "random",
    "reinterpret",
    "repeat",
    "reshape",
    "reverse_sequence",
    "right_shift",
    "rocm",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "simplify",
    "sin",
    "sinh",
    "sliding_window",
    "sort",
    "sparse",
    "sparse_reshape",
    "sparse_to_dense",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "stft",
    "strided_set",
    "strided_slice",
    "subtract",
    "sum",
    "tag",
    "take",
    "tan",
    "tanh",
    "tensordot",
    "testing",
    "tile",
    "topk",
    "transpose",
    "trilu",
    "trunc",
    "unique",
    "unravel_index",
    "utils",
    "vision",
    "where",
    "x86",
]

def abs(x: Tensor) -> Tensor: ...
def acos(x: Tensor) -> Tensor: ...
def acosh(x: Tensor) -> Tensor: ...
def add(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def all(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def any(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def argmax(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def argmin(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def asin(x: Tensor) -> Tensor: ...
def asinh(x: Tensor) -> Tensor: ...
def atan(x: Tensor) -> Tensor: ...
def atanh(x: Tensor) -> Tensor: ...
def bitwise_and(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def bitwise_not(x: Tensor) -> Tensor: ...
def bitwise_or(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def bitwise_xor(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_add(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_div(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_maximum(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_minimum(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_mul(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def broadcast_sub(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def ceil(x: Tensor) -> Tensor: ...
def cos(x: Tensor) -> Tensor: ...
def cosh(x: Tensor) -> Tensor: ...
def cumprod(data: Tensor, axis: int | None = ..., dtype: str | None = ..., exclusive: bool | None = ...) -> Tensor: ...
def cumsum(data: Tensor, axis: int | None = ..., dtype: str | None = ..., exclusive: bool | None = ...) -> Tensor: ...
def divide(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def equal(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def erf(x: Tensor) -> Tensor: ...
def exp(x: Tensor) -> Tensor: ...
def fast_erf(x: Tensor) -> Tensor: ...
def fast_exp(x: Tensor) -> Tensor: ...
def fast_tanh(x: Tensor) -> Tensor: ...
def floor(x: Tensor) -> Tensor: ...
def floor_divide(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def floor_mod(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def greater(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def greater_equal(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def identity(x: Tensor) -> Tensor: ...
def isfinite(x: Tensor) -> Tensor: ...
def isinf(x: Tensor) -> Tensor: ...
def isnan(x: Tensor) -> Tensor: ...
def left_shift(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def less(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def less_equal(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def log(x: Tensor) -> Tensor: ...
def log10(x: Tensor) -> Tensor: ...
def log2(x: Tensor) -> Tensor: ...
def logical_and(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def logical_not(x: Tensor) -> Tensor: ...
def logical_or(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def logical_xor(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def max(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def maximum(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def min(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def minimum(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def mod(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def multiply(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def negative(x: Tensor) -> Tensor: ...
def not_equal(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def power(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def prod(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def right_shift(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def round(x: Tensor) -> Tensor: ...
def rsqrt(x: Tensor) -> Tensor: ...
def sigmoid(x: Tensor) -> Tensor: ...
def sign(x: Tensor) -> Tensor: ...
def sin(x: Tensor) -> Tensor: ...
def sinh(x: Tensor) -> Tensor: ...
def sqrt(x: Tensor) -> Tensor: ...
def subtract(lhs: PrimExprLike, rhs: PrimExprLike) -> typing.Any: ...
def sum(data: Tensor, axis: typing.Any = ..., keepdims: bool = ...) -> Tensor: ...
def tan(x: Tensor) -> Tensor: ...
def tanh(x: Tensor) -> Tensor: ...
def trunc(x: Tensor) -> Tensor: ...
