"""The graph language, under classic Relay's names: ``relay.var``, ``relay.nn.conv2d``, ...

A face: every name is looked up on first use, on whatever floor it lives.  A name that is in no
table is looked for among the operators.  What expressions themselves ask for is loaded here.
"""

from __future__ import annotations

import importlib
import typing

from slipway.relay import op_registry, text, visit

__all__ = ["op_registry", "text", "visit"]

_OF_EXPR = "Call Constant Expr Function GlobalVar If Let Op Tuple TupleGetItem TupleWrapper Var"
_OF_TYPES = "FuncType TensorType TupleType Type scalar_type"
_OF_FUNCTOR = "ExprFunctor ExprMutator ExprVisitor MixedModeMutator MixedModeVisitor"
_MODULES = (
    "analysis annotation backend build_module dataflow_pattern expr expr_functor frontend image "
    "interpret nn op op_registry qnn quantization testing transform vision visit vm"
)
_COMPOSITES = {
    "tensor.arithmetic": "fixed_point_multiply mean_std mean_variance trunc_divide trunc_mod",
    "tensor.create": "full_like ones ones_like zeros zeros_like",
    "tensor.like": (
        "broadcast_to_like cast_like collapse_sum_like collapse_sum_to ndarray_size reshape_like "
        "reverse_reshape shape_of slice_like"
    ),
    "tensor.places": (
        "adv_index invert_permutation matrix_set_diag meshgrid reverse_sequence scatter "
        "scatter_add searchsorted segment_sum sequence_mask sliding_window sparse_to_dense "
        "strided_set trilu unravel_index"
    ),
    "tensor.reduce": "logsumexp std variance",
    "tensor.shape": "swapaxes",
    "tensor.sort": "argsort sort",
}

# Name -> "module" or "module:attribute" that holds it.
_PLACES = {
    **{name: f"slipway.relay.expr:{name}" for name in _OF_EXPR.split()},
    **{name: f"slipway.relay.types:{name}" for name in _OF_TYPES.split()},
    **{name: f"slipway.relay.{name}" for name in _MODULES.split()},
    **{
        name: f"slipway.relay.ops.{family}:{name}"
        for family, names in _COMPOSITES.items()
        for name in names.split()
    },
    "Any": "slipway.relay.types:OpenDim",
    **{name: f"slipway.relay.expr_functor:{name}" for name in _OF_FUNCTOR.split()},
    "bind_params_by_name": "slipway.relay.construct:bind",
    "function": "slipway.relay.expr",
    "ty": "slipway.relay.types",
    "ScopeBuilder": "slipway.relay.scope_builder:ScopeBuilder",
    "var": "slipway.relay.construct:var",
    "bind": "slipway.relay.construct:bind",
    "const": "slipway.relay.op_registry:const",
    "astext": "slipway.relay.text:astext",
    "fromtext": "slipway.relay.parser:parse",
    "build": "slipway.compiler.relay_build:build",
    "build_config": "slipway.compiler.classic_passes:build_config",
    "create_executor": "slipway.compiler.create_executor:create_executor",
    "save_param_dict": "slipway.runtime.params:save_param_dict",
    "load_param_dict": "slipway.runtime.params:load_param_dict",
}


def __getattr__(name: str) -> typing.Any:
    place = _PLACES.get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        value = importlib.import_module(module)
        if attribute:
            value = getattr(value, attribute)
    else:
        if name.startswith("_"):
            raise AttributeError(f"module 'slipway.relay' has no attribute {name!r}")
        registry = importlib.import_module("slipway.relay.op_registry")
        definition = registry.load_ops().get(name)
        if definition is None:
            known = [*_PLACES, *registry.OPS]
            near = importlib.import_module("slipway.errors").did_you_mean(name, known)
            raise AttributeError(f"module 'slipway.relay' has no attribute {name!r}.{near}")
        value = definition.face_function
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PLACES, *(name for name in op_registry.load_ops() if "." not in name)])
