"""The name that `slipway.topi.utils` had in TVM 0.6."""

from slipway.topi.utils import get_const_int, get_const_tuple

__all__ = ["get_const_int", "get_const_tuple"]
