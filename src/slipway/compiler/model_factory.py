"""What `relay.build` returns: the kernels of a model, its graph, its parameters, what it tells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slipway.backends.backend import backend_of
from slipway.codegen.compiled import CompiledModule
from slipway.compiler.artifact.export import export
from slipway.compiler.artifact.parts import ModelParts
from slipway.compiler.artifact.system_library import with_runtime
from slipway.compiler.cost import kernel_cost
from slipway.compiler.graph import StoragePlan, one_line
from slipway.compiler.imported import with_imports
from slipway.compiler.input_values import meaning_of
from slipway.compiler.memory_plan.images import Image
from slipway.compiler.model_graph import ModelGraph, TensorRef
from slipway.compiler.open_sizes import (
    formula_of,
    largest_bytes,
    largest_shape,
    open_sizes,
    sizes_of,
)
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import ArtifactError
from slipway.ir.function import BaseFunc, IRModule
from slipway.relay.backend import Executor, Runtime
from slipway.relay.dims import SymbolDim, is_open
from slipway.runtime.graph.graph_factory import GraphExecutorFactoryModule
from slipway.runtime.graph.graph_format import Arena, GraphEntry, GraphNode, GraphTables, Storage
from slipway.runtime.graph.graph_sizes import OpenAxis, OpenSize
from slipway.runtime.ndarray import NDArray
from slipway.target import Target
from slipway.toolchain.link import write_file


def graph_tables(
    graph: ModelGraph, storage: StoragePlan, alignment: int = 64, kind: int = 1
) -> GraphTables:
    """Return the graph as the runtime's tables, with the planned storage of all tensors.

    Parameters begin at multiples of `alignment` bytes.  `kind` is that of the only device.
    """
    nodes: list[GraphNode] = []
    entries: list[GraphEntry] = []
    storages: list[Storage] = []
    owners: list[int] = []  # of each storage, the device
    images: dict[int, Image] = {}  # by the number of a storage
    dims: list[OpenAxis] = []
    index: dict[int, int] = {}
    plans = storage.by_device or {0: storage.plan}
    sizes = {device: made.size_bytes for device, made in plans.items()}
    entry_of = {name: (ref.node, ref.index) for name, ref in graph.tellers.items()}
    tellers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        tellers |= {n: len(entries) + at for n, (of, at) in entry_of.items() if of == number}
        nodes.append(
            GraphNode(
                node.name,
                node.function or None,
                tuple((ref.node, ref.index) for ref in node.inputs),
                len(node.types),
                {"layer": one_line(node.layer)} if node.layer else {},
            )
        )
        for position, type_ in enumerate(node.types):
            planned = storage.of(number, position)
            size = largest_bytes(type_)
            if planned.group not in index:
                index[planned.group] = len(storages)
                device = graph.devices[number] if graph.devices else 0
                owners.append(device)
                if planned.image is not None:
                    images[len(storages)] = planned.image
                    storages.append(Storage(0, planned.image.size_bytes))
                elif planned.offset is None:  # a parameter: memory of its own after the arena
                    arena = -(-sizes[device] // alignment) * alignment
                    storages.append(Storage(arena, size))
                    sizes[device] = arena + size
                else:
                    storages.append(Storage(planned.offset, size))
            at = index[planned.group]
            if storages[at].size < size:
                storages[at] = Storage(storages[at].offset, size)
            dims += [
                OpenAxis(len(entries), axis, formula_of(extent))
                for axis, extent in enumerate(type_.shape)
                if isinstance(extent, SymbolDim)
            ]
            dims += [
                OpenAxis(len(entries), exact.axis, (name,))
                for name, exact in graph.exact.items()
                if exact.tensor == TensorRef(number, position)
            ]
            entries.append(GraphEntry(largest_shape(type_), type_.dtype, at))
    inputs = tuple(i for i, n in enumerate(graph.nodes) if not n.function)
    begins, total = _one_after_another(sizes)
    moved = [Storage(s.offset + begins[d], s.size) for s, d in zip(storages, owners, strict=True)]
    arenas = [Arena(device, begin) for device, begin in begins.items()] if graph.devices else []
    kinds = owners if graph.devices else [kind] * len(owners)
    total = _add_images(images, kinds, arenas, moved, total)
    return GraphTables(
        tuple(nodes),
        tuple(entries),
        inputs,
        tuple((ref.node, ref.index) for ref in graph.outputs),
        tuple(moved),
        total,
        graph.output_names,
        sizes_of(graph, tellers),
        tuple(dims),
        tuple(arenas),
    )


def _add_images(
    images: Mapping[int, Image], kinds: Sequence[int], arenas: list[Arena],
    storages: list[Storage], total: int,
) -> int:  # fmt: skip
    """Make an arena of each image, by the number of its storage; return what all arenas take."""
    if images and not arenas:  # of the only device
        arenas.append(Arena(kinds[0], 0))
    for number, image in images.items():
        begin = -(-total // 64) * 64
        arenas.append(Arena(kinds[number], begin, image.texels, image.bits))
        storages[number] = Storage(begin, image.size_bytes)
        total = begin + image.size_bytes
    return total


def _one_after_another(sizes: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return where each device's part of the arena begins, and what all take."""
    begins, total = {}, 0
    for device, size in sizes.items():
        total = begins[device] = -(-total // 64) * 64
        total += size
    return begins, total


class ModelFactory(GraphExecutorFactoryModule):
    """What ``relay.build`` returns: a compiled model, to run here or to export."""

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        graph: ModelGraph,
        storage: StoragePlan,
        compiled: CompiledModule,
        mod_name: str,
        executor: Executor | None,
        runtime: Runtime | None,
        others: Sequence[Target] = (),
    ) -> None:
        compiled = with_runtime(compiled, runtime)
        library = OperatorModule(compiled)
        metadata = _metadata(graph, storage, mod_name)
        metadata["device_type"] = target.kind.device_type
        alignment = device_alignment([target, *others])
        if others:
            metadata["device_types"] = sorted(set(graph.devices))
        super().__init__(
            graph_tables(graph, storage, alignment, target.kind.device_type),
            library,
            {**graph.params, **graph.initial},
            mod_name,
            metadata,
        )
        self.ir_mod = ir_mod
        self.target = target
        self.targets = {each.kind.device_type: each for each in (target, *others)}
        self.graph = graph
        self.memory_plan = storage.plan
        self.compiled = compiled
        self._has_store = False
        self.executor = executor or Executor("graph")
        self.runtime = runtime or Runtime("cpp")
        if self.runtime["system-lib"]:
            metadata["system_lib"] = True
        self.has_linked_params = self.executor.name == "graph" and self.executor["link-params"]
        if self.has_linked_params:
            library.model = self

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
            for name, values in arrays.items():
                own = self.graph.initial if name in self.graph.initial else self.graph.params
                own[name] = values._read()
            self._has_store = True
        return arrays

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        model = ModelParts(
            self.get_graph_json(), self.tables.to_binary(), self.param_pieces(), self.metadata
        )
        return export(path, self._whole(), model, linker, options)

    def _whole(self) -> CompiledModule:
        """Return the kernels with the code of the modules that are imported."""
        own = self.lib
        imported = [m for m in (*self.imported_modules, *own.imported_modules) if m is not own]
        return with_imports(self.compiled, imported)

    def _export_apart(
        self, path: Path, params_file: Path, linker: Any, options: Sequence[str] | None
    ) -> Path:
        """Write a ``.wasm`` without parameters that knows the sum of those in `params_file`."""
        if path.suffix != ".wasm":
            raise ArtifactError(
                f"params_file={str(params_file)!r}: only a .wasm is written without its "
                f"parameters, and {path.name} is to hold them. Leave params_file out."
            )
        data = self.param_bytes()
        about = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        metadata = {**self.metadata, "params": about}
        model = ModelParts(self.get_graph_json(), self.tables.to_binary(), (), metadata)
        written = export(path, self._whole(), model, linker, options)
        write_file(params_file, data)
        return written


def device_alignment(targets: Sequence[Target]) -> int:
    """Return the multiple of bytes at which each tensor of a model for all these begins."""
    return max(backend_of(target).tensor_alignment(target) for target in targets)


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


def _size(size: OpenSize) -> dict[str, Any]:
    """What metadata.json says of an open size; which entry tells it is the tables' matter."""
    return {key: value for key, value in asdict(size).items() if key != "teller"}


def _metadata(graph: ModelGraph, storage: StoragePlan, mod_name: str) -> dict[str, Any]:
    """What metadata.json says of the model beside what the library's own metadata says."""
    sizes = open_sizes(type_ for node in graph.nodes for type_ in node.types)

    def described(name: str, type_: Any) -> dict[str, Any]:
        shape = [str(d) if is_open(d) else d for d in type_.shape]
        largest = list(largest_shape(type_))
        bound = {"largest": largest} if shape != largest else {}
        return {"name": name, "shape": shape, "dtype": type_.dtype, **bound}

    inputs = [
        described(node.name, node.types[0]) | graph.input_values.get(node.name, {})
        for node in graph.nodes
        if not node.function and node.name not in graph.params and node.name not in graph.states
    ]
    states = [described(n.name, n.types[0]) for n in graph.nodes if n.name in graph.states]
    plans = list(storage.by_device.values()) or [storage.plan]
    names = graph.output_names or tuple(graph.nodes[ref.node].name for ref in graph.outputs)
    known = graph.meanings.outputs or (None,) * len(graph.outputs)
    outputs = [
        described(name, graph.type_of(ref)) | meaning_of(meaning)
        for name, ref, meaning in zip(names, graph.outputs, known, strict=True)
    ]
    return {
        "module_name": mod_name,
        "inputs": inputs,
        "outputs": outputs,
        **({"states": states} if states else {}),
        **({"open_sizes": [_size(size) for size in sizes]} if sizes else {}),
        "operators": _operators(graph),
        "memory": {
            "workspace_bytes": storage.size_bytes,
            "lower_bound_bytes": sum(made.lower_bound_bytes for made in plans)
            + storage.image_bytes,
            "planner": storage.plan.algorithm,
            "params_bytes": sum(a.nbytes for a in graph.params.values()),
        },
    }
