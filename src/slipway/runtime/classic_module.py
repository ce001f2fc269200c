"""``tvm.module`` of TVM 0.6: modules, and how they are loaded (a facade)."""

from slipway.runtime.features import enabled
from slipway.runtime.load import load_module as load
from slipway.runtime.module import Module
from slipway.runtime.system_library import system_lib

__all__ = ["Module", "enabled", "load", "system_lib"]
