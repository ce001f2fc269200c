"""`relay.build`: a model's graph to a library, a graph of kernel calls, and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.backends.backend import backend_of, compile_target
from slipway.codegen.names import check_names
from slipway.compiler.graph import ModelGraph, build_graph, place_tensors
from slipway.compiler.kernels import compile_kernels
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.optimize import optimize
from slipway.errors import defects_named
from slipway.ir.function import IRModule
from slipway.relay.backend import Executor, Runtime
from slipway.relay.expr import Expr, Function
from slipway.target import Target
from slipway.transform.context import PassContext


@defects_named("compiling the module")
def build(
    ir_mod: IRModule | Function | Expr,
    target: Target | str | Mapping[str, Any] | None = None,
    target_host: Target | str | None = None,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> ModelFactory:
    """Compile the "main" of a relay module for `target`.

    `params` binds parameters of main to constants by name; what the compiler computes from them
    (folded BatchNorm, packed weights) is in the result's own parameters.  The PassContext's
    `opt_level` (2 outside of any) chooses the graph passes.  Unpacks as ``graph, lib, params``.
    Raises TargetError, TypeInferenceError, LoweringError or CodegenError; an error inside one
    kernel names the kernel.  InternalError is a defect of the compiler.
    """
    chosen = compile_target(target, target_host)
    check_names([f"tvmgen_{mod_name}"], chosen)
    module = ir_mod if isinstance(ir_mod, IRModule) else IRModule.from_expr(ir_mod)
    Runtime.checked(runtime)
    executor = Executor.checked(executor) or Executor.of_target(chosen.attrs)
    is_aot = executor is not None and executor.name == "aot"
    graph = kernel_graph(module, chosen, params, mod_name, is_aot)
    places = place_tensors(graph)
    if is_aot:
        from slipway.compiler.aot.factory import build_aot  # most models are no program

        return build_aot(
            module,
            chosen,
            graph,
            places,
            mod_name,
            executor,
            runtime,
            workspace_memory_pools,
            constant_memory_pools,
        )
    compiled = compile_kernels(graph, chosen)
    return ModelFactory(module, chosen, graph, places, compiled, mod_name, executor, runtime)


def kernel_graph(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    aot: bool = False,
) -> ModelGraph:
    """Return the kernels that "main" of a module becomes for `target`, before any is compiled.

    `aot`: the model becomes a program, which some backends give other layouts.  Raises
    LoweringError for control flow.
    """
    optimized = optimize(module, params, target, layout_lanes=layout_lanes(target, aot))
    main = optimized["main"]
    assert isinstance(main, Function)
    return build_graph(main, mod_name=mod_name)


def layout_lanes(target: Target, aot: bool = False) -> int:
    """Return the channels in a block for `target`; 0 where the PassContext asks for none."""
    if PassContext.current().opt_level < 2:
        return 0
    return backend_of(target).layout_lanes(target, aot)
