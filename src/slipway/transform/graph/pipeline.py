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
from slipway.target import Target
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.conv.flatten_atrous import flatten_atrous_conv
from slipway.transform.graph.conv.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.conv.plain_layouts import plain_layouts
from slipway.transform.graph.dead_channels import remove_dead_channels
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.free_reshapes import free_reshapes
from slipway.transform.graph.fuse_ops import MAX_DEPTH, Ends, fuse_ops
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.integer_arithmetic import integer_arithmetic
from slipway.transform.graph.outline_branches import outline_branches
from slipway.transform.graph.own_outputs import own_outputs
from slipway.transform.graph.precision.round_once import round_once
from slipway.transform.graph.precision.widen_products import widen_products
from slipway.transform.graph.select_branches import select_branches
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.simplify_inference import simplify_inference
from slipway.transform.graph.sink_reshape import sink_reshape
from slipway.transform.graph.softplus import exact_softplus, tanh_of_softplus
from slipway.transform.graph.split_joins import WIDE, split_joins
from slipway.transform.manager import Pass, Setting, always, never_missed
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
    run: FunctionPass,
    applies: Callable[[Setting], bool] = always,
    exact: bool = True,
    opt_level: int | None = None,
    missed: Callable[[IRModule], str] = never_missed,
) -> Pass:
    """Return a function over typed relay functions as a pass.

    `opt_level` is for a pass of the user's; ours are in the table of `transform.names`.
    """
    return Pass(
        name,
        opt_level,
        lambda module, setting: over_functions(module, lambda f: run(infer_type(f))),
        applies=applies,
        exact=exact,
        missed=missed,
    )


def setting_pass(
    name: str,
    run: Callable[[Function, Setting], Function],
    applies: Callable[[Setting], bool] = always,
    exact: bool = True,
) -> Pass:
    """Return ``run(function, setting)`` as a pass; without `exact` not for strict targets."""
    return Pass(
        name,
        None,
        lambda module, setting: over_functions(module, lambda f: run(infer_type(f), setting)),
        applies=applies,
        exact=exact,
    )


def fuse(
    ends: Ends | None = None, wide: int = WIDE, most_tensors: Callable[[Target], int] | None = None
) -> Pass:
    """Return FuseOps; `ends` and `wide` say which kernels end, and which joins are alone.

    `most_tensors` says how many a kernel for a target takes.
    """

    def run(function: Function, setting: Setting) -> Function:
        depth = int(setting.context.option("relay.FuseOps.max_depth", MAX_DEPTH))
        most = None
        if most_tensors is not None and setting.target is not None:
            most = most_tensors(setting.target)
        return fuse_ops(function, depth, ends, wide, most)

    return setting_pass("FuseOps", run)


def _kernel_per_op(function: Function) -> Function:
    """Make a kernel of each operator that is in none."""
    calls: list[Any] = [e for e in post_order(function.body, into_functions=False)]
    if any(isinstance(e, Call) and isinstance(e.op, Op) for e in calls):
        return fuse_ops(function, 1)
    return function


def _in_no_kernel(module: IRModule) -> str:
    """Return what is wrong with a module that has operators outside of kernels; "" where none."""
    lacking: list[Function] = []

    def look(function: Function) -> Function:
        typed = infer_type(function)
        if _kernel_per_op(typed) is not typed:
            lacking.append(function)
        return function

    over_functions(module, look)
    return "operators are in no kernel, and only kernels are compiled" if lacking else ""


def _has_branches(setting: Setting) -> bool:
    """Return whether the target computes one of two branches, and not both."""
    return setting.target is not None and setting.target.kind.is_cpu


def _select(function: Function, setting: Setting) -> Function:
    return select_branches(function, not _has_branches(setting))


FOLD_CONSTANT = graph_pass("FoldConstant", fold_constant)
SIMPLIFY_EXPR = graph_pass("SimplifyExpr", simplify_expr)
SINK_RESHAPE = graph_pass("SinkReshape", sink_reshape)
FREE_RESHAPES = graph_pass("FreeReshapes", free_reshapes)
WIDEN_PRODUCTS = graph_pass("WidenProducts", widen_products)

OPENING: tuple[Pass, ...] = (
    graph_pass("InferType", infer_type),
    setting_pass("SelectBranches", _select),
    graph_pass("OutlineBranches", outline_branches, _has_branches),
    graph_pass("FakeQuantizationToInteger", integer_arithmetic, exact=False),
    graph_pass("PlainLayouts", plain_layouts),
    graph_pass("FlattenAtrousConv", flatten_atrous_conv),
    graph_pass("SimplifyInference", simplify_inference),
    graph_pass("TanhOfSoftplus", tanh_of_softplus, exact=False),
    graph_pass("ExactSoftplus", exact_softplus, exact=False),
    graph_pass("SplitJoins", split_joins),
)
MIDDLE: tuple[Pass, ...] = (
    graph_pass("RoundOnce", round_once, exact=False),
    FOLD_CONSTANT,
    SIMPLIFY_EXPR,
    FOLD_CONSTANT,
    graph_pass("FoldScaleAxis", fold_scale_axis, exact=False),
    SINK_RESHAPE,
    SIMPLIFY_EXPR,
    FOLD_CONSTANT,
    graph_pass("RemoveDeadChannels", remove_dead_channels),
    graph_pass("EliminateCommonSubexpr", eliminate_common_subexpr),
)


def ending(
    ends: Ends | None = None, wide: int = WIDE, most_tensors: Callable[[Target], int] | None = None
) -> tuple[Pass, ...]:
    """Return the last passes: the body of the result calls kernels and nothing else."""
    return (
        graph_pass("OwnOutputs", own_outputs),
        fuse(ends, wide, most_tensors),
        graph_pass("KernelPerOp", _kernel_per_op, missed=_in_no_kernel),
    )


# For a backend without steps of its own.
GENERAL: tuple[Pass, ...] = (*OPENING, WIDEN_PRODUCTS, *MIDDLE, *ending())
