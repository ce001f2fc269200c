"""The graph language, under classic Relay's names: ``relay.var``, ``relay.nn.conv2d``, ...

A name that is in no table is looked for among the operators.
"""

from __future__ import annotations

import typing

from slipway.lazy import by_module, load, offer
from slipway.relay import composites

_NAMES = {
    "slipway.relay.expr": (
        "Call Constant Expr Function GlobalVar If Let Op Tuple TupleGetItem TupleWrapper Var"
    ),
    "slipway.relay.types": "FuncType TensorType TupleType Type scalar_type",
    "slipway.relay.expr_functor": (
        "ExprFunctor ExprMutator ExprVisitor MixedModeMutator MixedModeVisitor"
    ),
}
_MODULES = (
    "analysis annotation backend build_module data_dep_optimization dataflow_pattern expr "
    "expr_functor frontend image interpret loops nn op op_registry parser qnn quantization "
    "quantize testing text transform types vision visit vm"
)
# Name -> "module" or "module:attribute" that holds it.
_HOMES = {
    **by_module(_NAMES),
    **{name: f"slipway.relay.{name}" for name in _MODULES.split()},
    **composites._HOMES,
    "Any": "slipway.relay.types:OpenDim",
    "Dim": "slipway.relay.dims:Dim",
    "Module": "slipway.ir.function:IRModule",
    "IncompleteType": "slipway.relay.types:IncompleteType",
    "module": "slipway.ir.module",
    "random": "slipway.relay.ops.random",
    "profiler_vm": "slipway.runtime.profiler_vm",
    "bind_params_by_name": "slipway.relay.construct:bind",
    "function": "slipway.relay.expr",
    "ty": "slipway.relay.types",
    "ScopeBuilder": "slipway.relay.scope_builder:ScopeBuilder",
    "var": "slipway.relay.construct:var",
    "bind": "slipway.relay.construct:bind",
    "const": "slipway.relay.construct:const",
    "astext": "slipway.relay.text.printer:astext",
    "fromtext": "slipway.relay.text.parser:fromtext",
    "parse": "slipway.relay.text.parser:parse",
    "parse_expr": "slipway.relay.text.parser:parse_expr",
    "parser": "slipway.relay.text.parser",
    "build": "slipway.compiler.relay_build:build",
    "build_config": "slipway.transform.graph.classic:build_config",
    "optimize": "slipway.compiler.classic_build:optimize",
    "create_executor": "slipway.compiler.create_executor:create_executor",
    "save_param_dict": "slipway.runtime.params:save_param_dict",
    "load_param_dict": "slipway.runtime.params:load_param_dict",
}
# What expressions call of the modules that are written in terms of them.
LATE = {
    "Language": (
        "slipway.relay.op_registry", "slipway.relay.text.printer", "slipway.relay.visit",
        "slipway.relay.construct",
    )
}  # fmt: skip
_offered, _ = offer(__name__, _HOMES)


def __getattr__(name: str) -> typing.Any:
    if name in _HOMES or name.startswith("_"):
        value = _offered(name)
        if name in composites._HOMES:
            globals()[name] = value = load("slipway.relay.ops.explained:explained")(value)
        return value
    operators = load("slipway.relay.op_registry:load_ops")()
    if name not in operators:
        explained = load("slipway.classic.names:missing")
        raise AttributeError(explained(__name__, name, [*_HOMES, *operators]))
    globals()[name] = value = load("slipway.relay.ops.explained:explained")(
        operators[name].make_function
    )
    return value


def __dir__() -> list[str]:
    operators = load("slipway.relay.op_registry:load_ops")()
    return sorted([*_HOMES, *(name for name in operators if "." not in name)])
