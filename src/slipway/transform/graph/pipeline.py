"""Graph passes that hold for every target, in the order in which backends run them.

A backend's passes are `OPENING`, then `WIDEN_PRODUCTS` or a form of its own, `MIDDLE`, what the
backend adds (layouts, packed weights), and `ENDING`, which makes kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Function, Op
from slipway.relay.verify import GraphLaws
from slipway.relay.visit import post_order
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.dead_channels import remove_dead_channels
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.fuse_ops import MAX_DEPTH, Ends, fuse_ops
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integer_arithmetic import integer_arithmetic
from slipway.transform.graph.own_outputs import own_outputs
from slipway.transform.graph.round_once import round_once
from slipway.transform.graph.select_branches import select_branches
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.simplify_inference import simplify_inference
from slipway.transform.graph.sink_reshape import sink_reshape
from slipway.transform.graph.split_joins import split_joins
from slipway.transform.graph.widen_products import widen_products
from slipway.transform.manager import Pass, Setting, always
from slipway.transform.verify import LAWS

FunctionPass = Callable[[Function], Function]
LAWS[IRModule] = ("relay.verify", GraphLaws)


def main_function(mod: IRModule) -> Function:
    """Return the relay function "main".  Raises LoweringError when there is none."""
    main = dict(mod.items()).get("main")
    if not isinstance(main, Function):
        names = ", ".join(mod) or "nothing"
        raise LoweringError(f"a model needs a relay function called 'main'; the module has {names}")
    return main


def over_functions(module: IRModule, run: FunctionPass) -> IRModule:
    """Return `module` with each of its relay functions replaced by ``run(function)``."""
    for name, function in module.items():
        if isinstance(function, Function):
            made = run(function)
            module = module if made is function else module.update(name, made)
    return module


def graph_pass(
    name: str,
    opt_level: int,
    run: FunctionPass,
    applies: Callable[[Setting], bool] = always,
    exact: bool = True,
) -> Pass:
    """Return a function over typed relay functions as a pass."""
    return Pass(
        name,
        opt_level,
        lambda module, setting: over_functions(module, lambda f: run(infer_type(f))),
        applies=applies,
        exact=exact,
    )


def setting_pass(
    name: str,
    opt_level: int,
    run: Callable[[Function, Setting], Function],
    applies: Callable[[Setting], bool] = always,
) -> Pass:
    """Return ``run(function, setting)`` as a pass."""
    return Pass(
        name,
        opt_level,
        lambda module, setting: over_functions(module, lambda f: run(infer_type(f), setting)),
        applies=applies,
    )


def fuse(ends: Ends | None = None) -> Pass:
    """Return FuseOps; `ends` says which operators are the last of their kernels."""

    def run(function: Function, setting: Setting) -> Function:
        depth = int(setting.context.option("relay.FuseOps.max_depth", MAX_DEPTH))
        return fuse_ops(function, depth, ends)

    return setting_pass("FuseOps", 1, run)


def _kernel_per_op(function: Function) -> Function:
    """Make a kernel of each operator that is in none."""
    calls: list[Any] = [e for e in post_order(function.body, into_functions=False)]
    if any(isinstance(e, Call) and isinstance(e.op, Op) for e in calls):
        return fuse_ops(function, 1)
    return function


FOLD_CONSTANT = graph_pass("FoldConstant", 2, fold_constant)
SIMPLIFY_EXPR = graph_pass("SimplifyExpr", 0, simplify_expr)
SINK_RESHAPE = graph_pass("SinkReshape", 2, sink_reshape)
WIDEN_PRODUCTS = graph_pass("WidenProducts", 2, widen_products)

OPENING: tuple[Pass, ...] = (
    graph_pass("InferType", 0, infer_type),
    graph_pass("SelectBranches", 0, select_branches),
    graph_pass("FakeQuantizationToInteger", 0, integer_arithmetic, exact=False),
    graph_pass("SimplifyInference", 0, simplify_inference),
    graph_pass("SplitJoins", 0, split_joins),
)
MIDDLE: tuple[Pass, ...] = (
    graph_pass("RoundOnce", 2, round_once, exact=False),
    FOLD_CONSTANT,
    SIMPLIFY_EXPR,
    FOLD_CONSTANT,
    graph_pass("FoldScaleAxis", 3, fold_scale_axis, exact=False),
    SINK_RESHAPE,
    SIMPLIFY_EXPR,
    FOLD_CONSTANT,
    graph_pass("RemoveDeadChannels", 2, remove_dead_channels),
    graph_pass("EliminateCommonSubexpr", 3, eliminate_common_subexpr),
)


def ending(ends: Ends | None = None) -> tuple[Pass, ...]:
    """Return the last passes: the body of the result calls kernels and nothing else."""
    return (
        graph_pass("OwnOutputs", 0, own_outputs),
        fuse(ends),
        graph_pass("KernelPerOp", 0, _kernel_per_op),
    )


# For a backend without steps of its own.
GENERAL: tuple[Pass, ...] = (*OPENING, WIDEN_PRODUCTS, *MIDDLE, *ending())
