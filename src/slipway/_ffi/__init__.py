"""``tvm._ffi``: functions by name and the base of errors, where old scripts import them from."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module({"slipway.runtime.packed_func": "get_global_func register_func"}),
    "base": "slipway._ffi.base",
    "runtime_ctypes": "slipway._ffi.runtime_ctypes",
    "function": "slipway.runtime.packed_func",
    "registry": "slipway.runtime.packed_func",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
