"""Ready-made tensor expressions, under classic TVM's names (a facade: the code lies beside it).

What only graphs need, as sampling images, is made of their operators, and looked up on first use.
"""

from __future__ import annotations

import importlib
import typing

from slipway.errors import InvalidShapeError
from slipway.lazy import paths
from slipway.topi import generic, nn, sparse, utils
from slipway.topi.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    ceil,
    clip,
    cos,
    cosh,
    divide,
    elemwise_sum,
    equal,
    erf,
    exp,
    fast_erf,
    fast_exp,
    fast_tanh,
    floor,
    floor_divide,
    floor_mod,
    full,
    full_like,
    greater,
    greater_equal,
    identity,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    right_shift,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from slipway.topi.elementwise import add as broadcast_add
from slipway.topi.elementwise import divide as broadcast_div
from slipway.topi.elementwise import maximum as broadcast_maximum
from slipway.topi.elementwise import minimum as broadcast_minimum
from slipway.topi.elementwise import multiply as broadcast_mul
from slipway.topi.elementwise import subtract as broadcast_sub
from slipway.topi.explained import explain_all, explained
from slipway.topi.indexing import (
    adv_index,
    arange,
    gather,
    gather_nd,
    meshgrid,
    ndarray_size,
    one_hot,
    reverse_sequence,
    sequence_mask,
    shape,
    take,
    trilu,
    unravel_index,
)
from slipway.topi.products import (
    matmul,
    tensordot,
)
from slipway.topi.reduction import (
    all,
    any,
    argmax,
    argmin,
    max,
    mean,
    min,
    prod,
    sum,
)
from slipway.topi.sorting import (
    argsort,
    cumprod,
    cumsum,
    sort,
    topk,
)
from slipway.topi.transform import (
    broadcast_to,
    concatenate,
    expand_dims,
    expand_like,
    flip,
    repeat,
    reshape,
    split,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
)

__all__ = [
    "InvalidShapeError",
    "abs",
    "acos",
    "acosh",
    "add",
    "adv_index",
    "all",
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
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "divide",
    "elemwise_sum",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "expand_like",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "flip",
    "floor",
    "floor_divide",
    "floor_mod",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "generic",
    "greater",
    "greater_equal",
    "identity",
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
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
    "repeat",
    "reshape",
    "reverse_sequence",
    "right_shift",
    "round",
    "rsqrt",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sort",
    "sparse",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "strided_slice",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "topk",
    "transpose",
    "trilu",
    "trunc",
    "unravel_index",
    "utils",
    "where",
]

explain_all(globals(), __all__)

_LATE = {
    "adreno": "slipway.topi.cuda",
    "arm_cpu": "slipway.topi.arm_cpu",
    "bifrost": "slipway.topi.cuda",
    "broadcast": "slipway.topi.elementwise",
    "cuda": "slipway.topi.cuda",
    "gpu": "slipway.topi.cuda",
    "hexagon": "slipway.topi.generic",
    "hls": "slipway.topi.generic",
    "image": "slipway.topi.image",
    "intel_graphics": "slipway.topi.cuda",
    "mali": "slipway.topi.cuda",
    "math": "slipway.topi.elementwise",
    "random": "slipway.topi.random",
    "rocm": "slipway.topi.cuda",
    "tag": "slipway.topi.tag",
    "testing": "slipway.topi.testing",
    "vision": "slipway.topi.vision",
    "x86": "slipway.topi.x86",
}
paths(__name__, _LATE)
_OF_GRAPHS = "slipway.relay.as_topi.indexing"
# Of `utils`, whose names classic TVM's modules took over from each other.
_UTILS = ("const_matrix", "get_const_int", "get_const_tuple", "get_float_tuple", "simplify")


def __getattr__(name: str) -> typing.Any:
    if name in _LATE:
        return importlib.import_module(_LATE[name])
    if name in _UTILS:
        return getattr(utils, name)
    if not name.startswith("_"):
        found = importlib.import_module(_OF_GRAPHS)
        if name in found.__all__:
            return explained(getattr(found, name))
    missing = importlib.import_module("slipway.classic.names").missing
    raise AttributeError(missing("slipway.topi", name, __dir__()))


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATE, *_UTILS, *importlib.import_module(_OF_GRAPHS).__all__])
