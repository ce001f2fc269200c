"""The name that `slipway.topi.nn.utils` had in TVM 0.6."""

from slipway.topi.nn.utils import (
    get_pad_tuple,
    get_pad_tuple1d,
    get_pad_tuple3d,
    get_pad_tuple_generic,
    infer_pad,
    infer_stride,
)

__all__ = [
    "get_pad_tuple",
    "get_pad_tuple1d",
    "get_pad_tuple3d",
    "get_pad_tuple_generic",
    "infer_pad",
    "infer_stride",
]
