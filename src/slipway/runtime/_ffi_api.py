"""Functions of the runtime under the path of classic TVM's C++ side."""

from slipway.runtime.libraries.c_source import create as CSourceModuleCreate

__all__ = ["CSourceModuleCreate"]
