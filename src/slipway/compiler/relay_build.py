"""`relay.build`: a model's graph to a library, a graph of kernel calls, and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.arguments import table_of
from slipway.backends.backend import backend_of, compile_target
from slipway.codegen.names import check_names
from slipway.compiler.graph import build_graph, one_line, plan_storage
from slipway.compiler.input_values import input_values
from slipway.compiler.kernels import compile_kernels
from slipway.compiler.model_factory import ModelFactory, device_alignment
from slipway.compiler.model_graph import ModelGraph
from slipway.compiler.optimize import optimize
from slipway.compiler.several_devices.compiled import compile_over
from slipway.compiler.several_devices.graphs import graph_over, has_control_flow, has_serial_work
from slipway.compiler.several_devices.targets import (
    fallback_device,
    several_targets,
    without_accelerators,
)
from slipway.compiler.states import State, bind_states
from slipway.errors import TargetError, defects_named
from slipway.ir.function import IRModule
from slipway.ir.rare_collections import rare_collections
from slipway.relay.backend import Executor, Runtime
from slipway.relay.expr import Expr, Function
from slipway.relay.meaning import meanings_of
from slipway.target import Target
from slipway.target.target import TargetLike
from slipway.transform.context import PassContext


@defects_named("compiling the module")
@rare_collections()
def build(
    ir_mod: IRModule | Function | Expr,
    target: TargetLike = None,
    target_host: Target | str | None = None,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    state: State | None = None,
) -> ModelFactory:
    """Compile the "main" of a relay module for `target`.

    Several targets, ``{"cpu": "llvm", "opencl": "opencl"}``, compile a model for several kinds of
    device: each operator is where `relay.annotation.on_device` puts it.

    `params` binds parameters of main to constants by name; what the compiler computes from them
    (folded BatchNorm, packed weights) is in the result's own parameters.  `state` pairs inputs
    with the outputs (names or numbers) that are their next values: the library keeps them, and
    `params` has what they hold at first.  The PassContext's
    `opt_level` (2 outside of any) chooses the graph passes.  Unpacks as ``graph, lib, params``.
    Raises TargetError, TypeInferenceError, LoweringError or CodegenError; an error inside one
    kernel names the kernel.  InternalError is a defect of the compiler.
    """
    params = table_of(params, "params", "{'weight': array}")
    state = table_of(state, "state", "{'past': 'present'}")
    target = without_accelerators(target)
    several = several_targets(target, target_host)
    chosen = several[1] if several else compile_target(target, target_host)
    check_names([f"tvmgen_{mod_name}"], chosen)
    module = ir_mod if isinstance(ir_mod, IRModule) else IRModule.from_expr(ir_mod)
    Runtime.checked(runtime)
    executor = Executor.checked(executor) or Executor.of_target(chosen.attrs)
    is_aot = executor is not None and executor.name == "aot"
    if is_aot and not chosen.kind.is_cpu:
        raise TargetError(
            f"a program (executor aot) runs on a processor, and the target is {chosen.kind.name}: "
            'compile with Executor("graph")'
        )
    if several:
        if is_aot:
            raise TargetError(
                "a program (executor aot) runs on a processor alone, and several targets are "
                'given: compile with Executor("graph")'
            )
        if state:
            raise TargetError(
                "states are kept on one device, and several targets are given: compile the model "
                "for one of them"
            )
        return _build_over(module, several, params, mod_name, executor, runtime)
    if len(targets := targets_of(module, chosen, state)) > 1:
        return _build_over(module, targets, params, mod_name, executor, runtime, control_only=True)
    graph = kernel_graph(module, chosen, params, mod_name, is_aot, state)
    backend = backend_of(chosen)
    alignment = backend.tensor_alignment(chosen)
    storage = plan_storage(graph, alignment=1 if alignment == 64 else alignment)
    if is_aot:
        from slipway.compiler.aot.factory import build_aot  # most models are no program

        return build_aot(
            module,
            chosen,
            graph,
            storage,
            mod_name,
            executor,
            runtime,
            workspace_memory_pools,
            constant_memory_pools,
        )
    compiled = compile_kernels(graph, chosen)
    return ModelFactory(module, chosen, graph, storage, compiled, mod_name, executor, runtime)


def _build_over(
    module: IRModule,
    targets: Mapping[int, Target],
    params: Mapping[str, Any] | None,
    mod_name: str,
    executor: Executor | None,
    runtime: Runtime | None,
    control_only: bool = False,
) -> ModelFactory:
    """Compile a model whose operators run on several kinds of device."""
    graph = _graph_over(module, targets, params, mod_name, control_only)
    storage = plan_storage(graph, alignment=device_alignment(list(targets.values())))
    compiled = compile_over(graph, targets)
    processor, *others = targets.values()
    return ModelFactory(
        module, processor, graph, storage, compiled, mod_name, executor, runtime, others
    )


def targets_of(module: IRModule, target: Target, state: State | None = None) -> dict[int, Target]:
    """Return what `build` compiles a module for, by kinds of device.

    Control flow and long serial work run on a GPU's processor; states are kept on one device.
    """
    own = {target.kind.device_type: target}
    if target.kind.is_cpu or state or not (has_control_flow(module) or has_serial_work(module)):
        return own
    return {1: target.host or Target("llvm"), **own}


def _graph_over(
    module: IRModule, targets: Mapping[int, Target], params: Mapping[str, Any] | None,
    mod_name: str, control_only: bool,
) -> ModelGraph:  # fmt: skip
    lanes = {kind: layout_lanes(target) for kind, target in targets.items()}
    default = fallback_device(targets)
    graph = graph_over(module, targets, default, params, mod_name, lanes, control_only)
    _describe(graph, module)
    return graph


def kernel_graph(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    aot: bool = False,
    state: State | None = None,
) -> ModelGraph:
    """Return the kernels that "main" of a module becomes for `target`, before any is compiled.

    `aot`: the model becomes a program, which some backends give other layouts.  Raises
    LoweringError for control flow.
    """
    if len(targets := targets_of(module, target, state)) > 1:
        return _graph_over(module, targets, params, mod_name, control_only=True)
    values = params or {}
    bound = {name: value for name, value in values.items() if name not in (state or {})}
    optimized = optimize(module, bound, target, layout_lanes=layout_lanes(target, aot))
    main = optimized["main"]
    assert isinstance(main, Function)
    graph = build_graph(main, mod_name=mod_name)
    _describe(graph, module)
    return bind_states(graph, state, values, mod_name) if state else graph


def _describe(graph: ModelGraph, module: IRModule) -> None:
    """Write into a graph what the model says of its inputs and outputs."""
    _name_outputs(graph, module)
    given = module["main"]
    graph.meanings = meanings_of(given.attr("meanings"), len(graph.outputs))
    if isinstance(given, Function):
        graph.input_values = input_values(given, graph.meanings)


def _name_outputs(graph: ModelGraph, module: IRModule) -> None:
    """Give the outputs the names that the importer says they have, where it tells them.

    The attribute "output_tensor_names" is classic TVM's, from its TFLite models: they are the names
    of the outputs in C too.  A name that the model gives twice gets a number, and control
    characters become "_": the runtime lists names as lines of text.
    """
    main = module["main"]
    if not isinstance(main, Function):
        return
    classic = main.attr("output_tensor_names")
    given = main.attr("output_names") or classic
    if given is None or len(given) != len(graph.outputs):
        return
    graph.names_fields = given is classic
    names: list[str] = []
    for name in (one_line(str(name)) for name in given):
        own, number = name, 0
        while own in names:
            number += 1
            own = f"{name}_{number}"
        names.append(own)
    graph.output_names = tuple(names)


def layout_lanes(target: Target, aot: bool = False) -> int:
    """Return the channels in a block for `target`; 0 where the PassContext asks for none."""
    if PassContext.current().opt_level < 2:
        return 0
    return backend_of(target).layout_lanes(target, aot)
