"""``tvm.module`` of TVM 0.6: modules, and how they are loaded (a facade)."""

from slipway.runtime.features import enabled
from slipway.runtime.libraries.system_library import system_lib
from slipway.runtime.load import load_module as load
from slipway.runtime.module import Module

__all__ = ["Module", "enabled", "load", "system_lib"]
