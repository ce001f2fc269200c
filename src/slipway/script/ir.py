"""The language of modules in TVMScript, imported as I: ``@I.ir_module``, ``I.module_attrs``."""

from slipway.script.module import ir_module, module_attrs

__all__ = ["ir_module", "module_attrs"]
