"""What a Model Library Format archive says and holds of a compiled model."""

from __future__ import annotations

from typing import Any

from slipway.compiler.aot.emit_converters import is_quantized
from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.compiler.aot.program import AotProgram, Port
from slipway.compiler.emit import COMPILER
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.open_sizes import largest_bytes, largest_shape
from slipway.compiler.operator_module import OperatorModule
from slipway.micro.model_library import ModelLibrary

_CPU = 1  # DLPack's kDLCPU, as archives number devices


def library_of_aot(factory: AotExecutorFactoryModule) -> ModelLibrary:
    """Describe a model compiled ahead of time; its constants are in the generated source.

    Inputs and outputs of open sizes have the memory of the largest.
    """
    program, sources = factory.program, factory.sources
    constants = sum(factory.constants[name].nbytes for name in program.constants)
    main = {
        "device": _CPU,
        "workspace_size_bytes": program.workspace_bytes,
        "constants_size_bytes": constants,
        "io_size_bytes": program.io_bytes,
        "inputs": {p.c_name: _memory(p) for p in program.inputs},
        "outputs": {p.c_name: _memory(p) for p in program.outputs},
    }
    operators = [
        {
            "function_name": name,
            "workspace": [{"device": _CPU, "workspace_size_bytes": kernel.workspace_bytes}],
        }
        for name, kernel in factory.kernels.kernels.items()
    ]
    metadata = {
        "memory": {"functions": {"main": [main], "operator_functions": operators}},
        "target": [str(factory.target)],
        "executors": ["aot"],
        "style": "full-model",
        "compiler": COMPILER,
        "memory_plan": _plan(program),
        "interface": _interface(factory),
        "constants": list(program.constants),
        "layers": _layers(factory),
    }
    return ModelLibrary(
        factory.module_name,
        metadata,
        sources={} if factory.is_llvm else {sources.source_name: sources.source},
        headers={sources.header_name: sources.header},
        objects={f"{factory.module_name}_lib0.o": factory.object_bytes} if factory.is_llvm else {},
        params=factory.param_bytes(),
        relay_text=str(factory.ir_mod),
        has_runtime=factory.runtime.name == "crt",
    )


def library_of_graph(factory: ModelFactory) -> ModelLibrary:
    """Describe a model for the graph executor."""
    tables = factory.tables
    sids = [
        {"storage_id": number, "size_bytes": storage.size}
        for number, storage in enumerate(tables.storages)
    ]
    params = factory.param_bytes()
    main = {
        "device": _CPU,
        "workspace_size_bytes": factory.memory_plan.size_bytes,
        "constants_size_bytes": sum(a.nbytes for a in factory.graph.params.values()),
        "io_size_bytes": 0,
    }
    metadata = {
        "memory": {"sids": sids, "functions": {"main": [main], "operator_functions": []}},
        "target": [str(factory.target)],
        "executors": ["graph"],
        "style": "full-model",
        "compiler": COMPILER,
    }
    library = ModelLibrary(
        factory.module_name,
        metadata,
        params=params,
        relay_text=str(factory.ir_mod),
        has_runtime=factory.runtime.name == "crt",
        graph_json=factory.get_graph_json(),
    )
    _add_code(library, factory.compiled)
    return library


def library_of_operators(module: OperatorModule) -> ModelLibrary:
    """Describe what ``tvm.build`` returned: functions without a model around them."""
    compiled = module.compiled
    metadata = {
        "memory": [],
        "target": [str(compiled.target)],
        "executors": [],
        "style": "operator",
        "compiler": COMPILER,
    }
    library = ModelLibrary(compiled.entry, metadata)
    _add_code(library, compiled)
    return library


def _add_code(library: ModelLibrary, compiled: Any) -> None:
    if "c" in compiled.sources:
        library.sources[f"{library.name}_lib0.c"] = compiled.get_source("c")
    else:
        library.objects[f"{library.name}_lib0.o"] = compiled.object_bytes()


def _memory(port: Port) -> dict[str, Any]:
    return {"dtype": port.type.dtype, "size": largest_bytes(port.type)}


def _meaning(port: Port) -> dict[str, Any]:
    meaning = port.meaning
    found: dict[str, Any] = {"shape": list(largest_shape(port.type)), "name": port.name}
    if is_quantized(port):
        found |= {"scale": meaning.scale, "zero_point": meaning.zero_point}
    if meaning.labels:
        found["labels"] = list(meaning.labels)
    return found


def _interface(factory: AotExecutorFactoryModule) -> dict[str, Any]:
    """What a caller must know beside types and sizes.

    Shapes, open sizes, the model's names and scales; whose the workspace is, and where inputs lie
    in it.
    """
    program = factory.program
    pools = [pool.name for pool in program.plan.pools]
    ports = (*program.inputs, *program.outputs)
    sizes = [{"name": s.c_name, "low": s.low, "high": s.high} for s in program.sizes]
    return {
        "inputs": {p.c_name: _meaning(p) for p in program.inputs},
        "outputs": {p.c_name: _meaning(p) for p in program.outputs},
        "caller_pools": factory.workspace_memory_pools is not None,
        "workspace_io": {
            p.c_name: {"pool": pools[p.location.index], "offset": p.location.offset}
            for p in ports
            if p.location is not None
        },
        **({"sizes": sizes} if sizes else {}),
        **({"states": [p.c_name for p in program.states]} if program.states else {}),
        "constant_pools": sorted(set(factory.constant_pools.values())),
    }


def _plan(program: AotProgram) -> dict[str, Any]:
    """The workspace, tensor by tensor, as `fit` and pictures need it."""
    plan = program.plan
    return {
        "algorithm": plan.algorithm,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "proven": plan.proven,
        "pools": [
            {"name": p.name, "size_bytes": plan.pool_bytes(i)} for i, p in enumerate(plan.pools)
        ],
        "tensors": [
            {
                "name": block.name,
                "pool": plan.pools[plan.pool_index(i)].name,
                "offset": plan.offsets[i],
                "size_bytes": block.size_bytes,
                "first": block.first,
                "last": block.last,
            }
            for i, block in enumerate(plan.blocks)
        ],
    }


def _layers(factory: AotExecutorFactoryModule) -> list[dict[str, Any]]:
    """Each call with its kernel and the bytes of its constants, in the order of execution."""
    params = factory.constants
    numbers = {node.name: i for i, node in enumerate(factory.graph.nodes)}
    return [
        {
            "name": call.layer or call.name,
            "kernel": call.kernel,
            "step": numbers.get(call.name, -1),
            "constants": {
                a.location.name: params[a.location.name].nbytes
                for a in call.arguments
                if a.location.space == "constant"
            },
        }
        for call in factory.program.calls
    ]
