"""Modules of the C runtime in this process: executors, and what C++ or Rust hand to Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from slipway.runtime.libraries.native_library import native_runtime
from slipway.runtime.module import Module
from slipway.runtime.packed_func import PackedFunc

_GRAPH_FUNCTIONS = (
    *("set_input", "set_input_zero_copy", "set_output_zero_copy", "load_params", "run"),
    *("get_input", "get_output", "get_num_inputs", "get_num_outputs", "get_num_nodes"),
    *(
        "get_num_open_sizes",
        "get_input_index",
        "get_input_name",
        "get_input_info",
        "get_output_info",
        "get_node_info",
    ),
    *("run_node", "debug_get_output", "profile", "share_param", "share_params"),
)


class NativeModule(Module):
    """A module object of the C runtime, seen from Python.

    Parameters: `handle`, tvm-ffi's object for it.
    """

    def __init__(self, handle: Any, keep_alive: object = None) -> None:
        key = native_runtime().lib.slw_module_type_key
        key.restype = ctypes.c_char_p
        self.type_key = key(ctypes.c_void_p(handle.__chandle__())).decode()
        super().__init__("run" if self.type_key == "graph" else None)
        self._handle = handle
        self._keep_alive = keep_alive

    def __tvm_ffi_object__(self) -> Any:
        return self._handle

    def function_names(self) -> list[str]:
        """Return the functions of a graph module (see ``graph_module.h``)."""
        return list(_GRAPH_FUNCTIONS) if self.type_key == "graph" else []

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Return the function `name`.  Raises AttributeError if there is none."""
        found = self._lookup(name, query_imports)
        if found is not None or self.type_key == "graph":
            return found or super().get_function(name, query_imports)
        return PackedFunc(self._get(name), keep_alive=self)  # whose error lists those there are

    def _get(self, name: str) -> Any:
        return native_runtime().packed("module_get_function")(self._handle, name)

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        try:
            return PackedFunc(self._get(name), keep_alive=self)
        except AttributeError:
            return None
