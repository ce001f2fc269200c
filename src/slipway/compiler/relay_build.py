"""`relay.build`: a model's graph to a library, a graph of kernel calls, and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.backends.backend import backend_of, compile_target
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.names import check_names
from slipway.compiler.cost import kernel_cost
from slipway.compiler.export import ModelParts, export
from slipway.compiler.graph import ModelGraph, TensorPlaces, build_graph, place_tensors
from slipway.compiler.kernels import compile_kernels
from slipway.compiler.operator_module import OperatorModule
from slipway.compiler.optimize import optimize
from slipway.errors import defects_named
from slipway.ir.function import BaseFunc, IRModule
from slipway.relay.backend import Executor, Runtime
from slipway.relay.expr import Expr, Function
from slipway.runtime.graph_factory import GraphExecutorFactoryModule
from slipway.runtime.graph_format import GraphEntry, GraphNode, GraphTables, Storage
from slipway.runtime.ndarray import NDArray
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
    executor = executor or Executor.of_target(chosen.attrs)
    is_aot = executor is not None and executor.name == "aot"
    graph = kernel_graph(module, chosen, params, mod_name, is_aot)
    places = place_tensors(graph)
    if is_aot:
        from slipway.compiler.aot.factory import build_aot

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


def graph_tables(graph: ModelGraph, places: TensorPlaces) -> GraphTables:
    """Return the graph as the runtime's tables, with the planned places of all tensors."""
    nodes: list[GraphNode] = []
    entries: list[GraphEntry] = []
    storages: list[Storage] = []
    index: dict[int, int] = {}
    arena = places.plan.size_bytes
    for number, node in enumerate(graph.nodes):
        nodes.append(
            GraphNode(
                node.name,
                node.function or None,
                tuple((ref.node, ref.index) for ref in node.inputs),
                len(node.types),
                {"layer": node.layer} if node.layer else {},
            )
        )
        for position, type_ in enumerate(node.types):
            place = places.of(number, position)
            size = type_.size_bytes
            if place.group not in index:
                index[place.group] = len(storages)
                if place.offset is None:  # a parameter: memory of its own after the arena
                    arena = -(-arena // 64) * 64
                    storages.append(Storage(arena, size))
                    arena += size
                else:
                    storages.append(Storage(place.offset, size))
            at = index[place.group]
            if storages[at].size < size:
                storages[at] = Storage(storages[at].offset, size)
            entries.append(GraphEntry(type_.shape, type_.dtype, at))
    inputs = tuple(i for i, n in enumerate(graph.nodes) if not n.function)
    outputs = tuple((ref.node, ref.index) for ref in graph.outputs)
    return GraphTables(tuple(nodes), tuple(entries), inputs, outputs, tuple(storages), arena)


class ModelFactory(GraphExecutorFactoryModule):
    """What ``relay.build`` returns: a compiled model, to run here or to export."""

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        graph: ModelGraph,
        places: TensorPlaces,
        compiled: CompiledModule,
        mod_name: str,
        executor: Executor | None,
        runtime: Runtime | None,
    ) -> None:
        library = OperatorModule(compiled)
        metadata = _metadata(graph, places, mod_name)
        super().__init__(graph_tables(graph, places), library, graph.params, mod_name, metadata)
        self.ir_mod = ir_mod
        self.target = target
        self.graph = graph
        self.memory_plan = places.plan
        self.compiled = compiled
        self._has_store = False
        self.executor = executor or Executor("graph")
        self.runtime = runtime or Runtime("cpp")

    @property
    def libmod_name(self) -> str:
        """The name given at build time (the classic attribute)."""
        return self.module_name

    @property
    def lib(self) -> OperatorModule:
        """The module with the compiled kernels (the classic attribute)."""
        assert isinstance(self.library_module, OperatorModule)
        return self.library_module

    @property
    def function_metadata(self) -> dict[str, BaseFunc]:
        """The relay function behind each kernel's name."""
        return dict(self.graph.kernels)

    def get_source(self, fmt: str = "") -> str:
        """Return the source of the compiled functions."""
        return self.compiled.get_source(fmt)

    def _shared_params(self) -> dict[str, NDArray]:
        """Return the parameters; the compiler's own arrays of them go once they are copied."""
        arrays = super()._shared_params()
        if not self._has_store:
            self.graph.params.update((name, values._read()) for name, values in arrays.items())
            self._has_store = True
        return arrays

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        model = ModelParts(
            self.get_graph_json(), self.tables.to_binary(), self.param_bytes(), self.metadata
        )
        return export(path, self.compiled, model, linker, options)


def _operators(graph: ModelGraph) -> dict[str, dict[str, Any]]:
    """For each kernel call the model's nodes in it, the main one first, and what it costs."""
    costs = {name: kernel_cost(function) for name, function in graph.kernels.items()}
    return {
        node.name: {
            "layer": node.layer,
            "nodes": list(node.layers),
            "flops": round(costs[node.function].flops),
            "work": round(costs[node.function].work),
            "bytes": costs[node.function].bytes,
        }
        for node in graph.nodes
        if node.function in costs
    }


def _metadata(graph: ModelGraph, places: TensorPlaces, mod_name: str) -> dict[str, Any]:
    """What metadata.json says of the model beside what the library's own metadata says."""

    def described(name: str, type_: Any) -> dict[str, Any]:
        return {"name": name, "shape": list(type_.shape), "dtype": type_.dtype}

    inputs = [
        described(node.name, node.types[0])
        for node in graph.nodes
        if not node.function and node.name not in graph.params
    ]
    outputs = [described(graph.nodes[ref.node].name, graph.type_of(ref)) for ref in graph.outputs]
    return {
        "module_name": mod_name,
        "inputs": inputs,
        "outputs": outputs,
        "operators": _operators(graph),
        "memory": {
            "workspace_bytes": places.plan.size_bytes,
            "lower_bound_bytes": places.plan.lower_bound_bytes,
            "planner": places.plan.algorithm,
            "params_bytes": sum(a.nbytes for a in graph.params.values()),
        },
    }
