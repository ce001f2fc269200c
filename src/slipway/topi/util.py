"""The name that `slipway.topi.utils` had in TVM 0.6."""

from slipway.topi.utils import (
    ceil_div,
    equal_const_int,
    get_const_float,
    get_const_int,
    get_const_tuple,
    get_float_tuple,
    prod,
    ravel_index,
    simplify,
    traverse_inline,
    unravel_index,
)

__all__ = [
    "ceil_div",
    "equal_const_int",
    "get_const_float",
    "get_const_int",
    "get_const_tuple",
    "get_float_tuple",
    "prod",
    "ravel_index",
    "simplify",
    "traverse_inline",
    "unravel_index",
]
