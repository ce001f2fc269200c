"""The loop language under its classic name; see `slipway.ir`."""

from __future__ import annotations

import typing

from slipway.ir.offered import offered
from slipway.lazy import load, paths

_MODULES = ("expr", "stmt", "buffer", "function", "ops", "calls", "custom")
# Name -> "module" or "module:attribute" that holds it, where it is none of these modules.
_HOMES = {
    "Expr": "slipway.ir.expr:PrimExpr",
    "UIntImm": "slipway.ir.expr:IntImm",  # of TVM 0.6; the dtype says whether it has a sign
    "Load": "slipway.transform.loop.older:Load",
    "Store": "slipway.transform.loop.older:Store",
    "Any": "slipway.relay.types:OpenDim",
    "buffer": "slipway.ir.buffer",
    "expr": "slipway.ir.expr",
    "function": "slipway.ir.function",
    "op": "slipway.ir.ops",
    "stmt": "slipway.ir.stmt",
    "trace": "slipway.te.tracing:trace",
    "Range": "slipway.arith.script_range:ScriptRange",
    "IndexMap": "slipway.blocks.index_map:IndexMap",
    "Schedule": "slipway.blocks.schedule:Schedule",
    "ScheduleError": "slipway.errors:ScheduleError",
    "TensorIntrin": "slipway.blocks.tensor_intrin:BlockIntrin",
    "analysis": "slipway.tir.analysis",
    "ir_builder": "slipway.ir.builder",
    "schedule": "slipway.tir.schedule",
    "stmt_functor": "slipway.tir.stmt_functor",
    "transform": "slipway.tir.transform",
    "usmp": "slipway.tir.usmp",
}
paths(__name__, _HOMES)


def __getattr__(name: str) -> typing.Any:
    if name in _HOMES:
        return load(_HOMES[name])
    if not name.startswith("_"):
        for module in _MODULES:
            own = offered(load(f"slipway.ir.{module}"))
            if name in own:
                return own[name]
        te = load("slipway.te")
        if name in te.__all__:  # functions of elements have the same names there
            return getattr(te, name)
    from slipway.classic.names import missing

    raise AttributeError(missing("slipway.tir", name))


def __dir__() -> list[str]:
    modules = [load(f"slipway.ir.{module}") for module in _MODULES]
    names = {name for module in modules for name in offered(module)}
    return sorted(names.union(_HOMES, load("slipway.te").__all__))
