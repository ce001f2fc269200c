"""``relay.build_module.optimize``: the graph passes alone, in the classic form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slipway.backends.backend import compile_target
from slipway.compiler.optimize import optimize as optimize_graph
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr

if TYPE_CHECKING:
    from slipway.target.target import TargetLike


def optimize(
    mod: IRModule | Expr, target: TargetLike = None, params: Mapping[str, Any] | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """Return the module after the graph passes, whose "main" calls kernels, and its parameters.

    The parameters are constants of the module, so that none are left over.
    """
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    return optimize_graph(module, params, compile_target(target, None)), {}
