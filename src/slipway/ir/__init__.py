"""The loop language: expressions, statements, functions, and generic tools over them.

Names are looked up on first use.  What every node needs is loaded here: the operators between
expressions, and how nodes are written.
"""

from __future__ import annotations

import importlib
from typing import Any

from slipway.ir import ops, printer, script_text, serialize

__all__ = ["ops", "printer", "script_text", "serialize"]

_NAMES = {
    "slipway.ir.buffer": "Buffer decl_buffer",
    "slipway.ir.custom": "register_intrin_lowering register_op_attr",
    "slipway.ir.expr": "IterVar PrimExpr Range Var",
    "slipway.ir.function": "BaseFunc GlobalVar IRModule PrimFunc",
    "slipway.ir.node": "Node",
    "slipway.ir.op_attrs": "reset_op_attr",
    "slipway.ir.serialize": "load_json save_json",
    "slipway.ir.structural": "assert_structural_equal structural_equal structural_hash",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _PLACES.get(name)
    if module is not None:
        return getattr(importlib.import_module(module), name)
    try:
        return importlib.import_module(f"slipway.ir.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module 'slipway.ir' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(_PLACES)
