"""``tvm._ffi.runtime_ctypes``: devices and codes of arguments, where old scripts find them."""

from __future__ import annotations

from enum import IntEnum

from slipway.runtime.devices import Device
from slipway.runtime.devices import Device as TVMContext


class ArgTypeCode(IntEnum):
    """Kinds of arguments; a class of `register_extension` says that it is a tensor."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    TVM_TYPE = 5
    DLDEVICE = 6
    DLTENSOR_HANDLE = 7
    ARRAY_HANDLE = 7
    OBJECT_HANDLE = 8
    MODULE_HANDLE = 9
    PACKED_FUNC_HANDLE = 10
    STR = 11
    BYTES = 12
    NDARRAY_HANDLE = 13
    EXT_BEGIN = 15


TypeCode = ArgTypeCode  # its name in TVM 0.6

__all__ = ["ArgTypeCode", "Device", "TVMContext", "TypeCode"]
