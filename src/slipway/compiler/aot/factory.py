"""What ``relay.build`` returns for ``Executor("aot")``: a model as C, and for this machine too."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import astuple
from functools import cached_property, partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from slipway.backends.backend import backend_of
from slipway.backends.in_place import Overlap
from slipway.backends.micro.kernels.library import LibraryKernel, helper_text
from slipway.codegen import cache
from slipway.codegen.c.unpacked import emit_kernels
from slipway.codegen.llvm.unpacked import emit_kernels as llvm_kernels
from slipway.codegen.unpacked import KernelFile, KernelText
from slipway.compiler.aot.emit_c import emit_c
from slipway.compiler.aot.emit_llvm import emit_llvm
from slipway.compiler.aot.objects import PROGRAM_SUFFIXES, program_object, write_program
from slipway.compiler.aot.overlap import overlaps_of
from slipway.compiler.aot.page import page_model
from slipway.compiler.aot.program import AotProgram, OwnConstants, Planner, make_program
from slipway.compiler.aot.sources import AotSources, ProgramParts
from slipway.compiler.artifact.web import web_program, write_page
from slipway.compiler.emit import COMPILER
from slipway.compiler.graph import StoragePlan
from slipway.compiler.kernels import LoweredKernels, compile_kernels
from slipway.compiler.memory_plan import ALGORITHMS, Pool, place_constants, plan_table
from slipway.compiler.memory_plan.buffers import planned_by, registered
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.model_graph import NOP, ModelGraph
from slipway.compiler.open_sizes import need_fixed_sizes
from slipway.errors import ArtifactError, LoweringError
from slipway.ir.function import IRModule
from slipway.relay.backend import Executor, Runtime
from slipway.relay.open_dims import has_open
from slipway.target import Target
from slipway.transform.context import PassContext


def build_aot(
    module: IRModule,
    target: Target,
    graph: ModelGraph,
    storage: StoragePlan,
    mod_name: str,
    executor: Executor | None,
    runtime: Runtime | None,
    workspace_memory_pools: Any,
    constant_memory_pools: Any,
) -> AotExecutorFactoryModule:
    """Compile the kernels of a model's graph, and plan its program."""
    kernels = LoweredKernels(graph, target)
    for_c = runtime is not None and runtime.name == "crt"  # it takes the program alone
    return AotExecutorFactoryModule(
        module,
        target,
        graph,
        storage,
        compile_kernels(graph, target, kernels, later=for_c),
        mod_name,
        executor,
        runtime,
        prim_funcs=kernels,
        workspace_memory_pools=workspace_memory_pools,
        constant_memory_pools=constant_memory_pools,
    )


_PLANNERS = {name: name for name in (*ALGORITHMS, "best")}


class AotExecutorFactoryModule(ModelFactory):
    """A model as one function that calls its kernels.

    `program` is the plan and the calls, `sources` the generated C.  ``lib["default"](dev)`` runs
    the same kernels in this process.  Inputs and outputs belong to the caller; everything else
    lies in the planned workspace or among the constants.
    """

    executor_kind = "aot"

    def __init__(
        self,
        *args: Any,
        prim_funcs: LoweredKernels,
        workspace_memory_pools: Any = None,
        constant_memory_pools: Any = None,
    ) -> None:
        super().__init__(*args)
        self.prim_funcs = prim_funcs
        self.workspace_memory_pools = workspace_memory_pools
        self.constant_memory_pools = constant_memory_pools
        context = PassContext.current()
        self.workspace_io = bool(context.config.get("tir.usmp.use_workspace_io", False))
        if self.workspace_io and self.executor["interface-api"] == "packed":
            raise LoweringError(
                "tir.usmp.use_workspace_io needs interface-api 'c': the packed interface takes "
                "the caller's tensors"
            )
        self.algorithm = "best"
        if context.config.get("tir.usmp.enable", False):
            self.algorithm = str(context.config.get("tir.usmp.algorithm", "best"))
        if self.algorithm not in _PLANNERS:
            raise LoweringError(
                f"tir.usmp.algorithm {self.algorithm!r} is not known; there are "
                f"{', '.join(_PLANNERS)}"
            )
        self.custom_algorithm = str(context.config.get("tir.usmp.custom_algorithm", ""))
        # A pool that is too small must fail here, not at export.
        self.program  # noqa: B018
        self.constant_pools  # noqa: B018

    @cached_property
    def overlaps(self) -> dict[str, list[Overlap]]:
        """For each kernel the operands whose bytes its output may take over."""
        operands: dict[str, set[int]] = {}
        for node in self.graph.nodes:
            names = {self.graph.nodes[ref.node].name for ref in node.inputs}
            if node.function in self.prim_funcs and not names <= set(self.graph.params):
                operands.setdefault(node.function, set()).update(
                    i for i, ref in enumerate(node.inputs) if self.graph.nodes[ref.node].function
                )
        found = {}
        for name, wanted in operands.items():
            if name in self.library:
                found[name] = [o for o in self.library[name].overlaps if o.operand in wanted]
            else:
                found[name] = self._generated_overlaps(name, wanted)
        return {name: shares for name, shares in found.items() if shares}

    def _generated_overlaps(self, name: str, operands: set[int]) -> list[Overlap]:
        key = self.prim_funcs.key_of([name], "overlaps", repr(sorted(operands)))
        rows = cache.remembered(
            key, lambda: [astuple(o) for o in overlaps_of(self.prim_funcs[name], operands)]
        )
        return [Overlap(*row) for row in rows]

    @cached_property
    def library(self) -> dict[str, LibraryKernel]:
        """Kernels that are written by hand for microcontrollers."""
        return self._written[0]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The constants as the kernels want them: weights of library kernels are rearranged."""
        return {**self.graph.params, **self.graph.initial, **self._written[1]}

    @cached_property
    def _written(self) -> tuple[dict[str, LibraryKernel], dict[str, Any], OwnConstants]:
        written = backend_of(self.target).hand_written
        found = {
            n: [] if has_open(f.checked_type) else [*written(n, f, self.target)]
            for n, f in self.graph.kernels.items()
        }
        while True:
            chosen = {name: kernels[0] for name, kernels in found.items() if kernels}
            prepared = self._prepare(chosen)
            if not isinstance(prepared, str):
                return chosen, *prepared
            del found[prepared][0]

    def _prepare(
        self, chosen: dict[str, LibraryKernel]
    ) -> tuple[dict[str, Any], OwnConstants] | str:
        """Arrange the constants of the chosen kernels; or name the first one that cannot be used.

        A constant that kernels want in different arrangements is there in each.
        """
        arranged = self._read_as_they_are()
        own: dict[tuple[int, int], str] = {}
        for number, node in enumerate(self.graph.nodes):
            names = [self.graph.nodes[ref.node].name for ref in node.inputs]
            operands = [self.graph.params.get(name) for name in names]
            wanted: dict[int, Any] = {}
            if node.function in chosen:
                prepared = chosen[node.function].prepare(operands)
                if prepared is None:
                    return node.function
                wanted = prepared
            for operand, (name, given) in enumerate(zip(names, operands, strict=True)):
                if given is None:
                    continue
                array = wanted.get(operand, given)
                kept = self._kept_as(name, array, arranged)
                if kept != name:
                    own[number, operand] = kept
        return arranged, own

    def _read_as_they_are(self) -> dict[str, Any]:
        """Return the constants that reshapes in place and the caller read."""
        graph = self.graph
        refs = [ref for node in graph.nodes if node.function == NOP for ref in node.inputs]
        names = (graph.nodes[ref.node].name for ref in (*refs, *graph.outputs))
        return {name: graph.params[name] for name in names if name in graph.params}

    def _kept_as(self, name: str, array: Any, arranged: dict[str, Any]) -> str:
        """Keep one arrangement of a constant, the first one under its name; return the name."""
        for named in chain([name], (f"{name}_{number}" for number in count(1))):
            if named != name and named in self.graph.params:
                continue
            known = arranged.setdefault(named, array)
            if known.dtype == array.dtype and np.array_equal(known, array):
                return named
        raise AssertionError("names do not end")

    def _emit(self, overlapping: Collection[str]) -> KernelFile:
        made = self._generated([n for n in self.prim_funcs if n not in self.library], overlapping)
        if not self.library:
            return made
        kernels = dict(made.kernels)
        for name, kernel in self.library.items():
            kernels[name] = KernelText(name, kernel.text, kernel.workspace_bytes, False)
        used = (family for k in self.library.values() for family in (k.family, *k.also))
        families = tuple(sorted(set(used)))
        return KernelFile(f"{made.helpers}\n{helper_text(families)}", kernels)

    def _generated(self, names: list[str], overlapping: Collection[str]) -> KernelFile:
        """Return the source of the kernels that are not written by hand, from the cache if it can.

        What they need beside them depends on all of them, so they are kept together.
        """

        def emit() -> list[Any]:
            functions = {name: self.prim_funcs[name] for name in names}
            emit_all = llvm_kernels if self.is_llvm else emit_kernels
            made = emit_all(functions, self.target, overlapping)
            return [made.helpers, [astuple(kernel) for kernel in made.kernels.values()]]

        key = self.prim_funcs.key_of(names, "program", repr(sorted(overlapping)))
        helpers, rows = cache.remembered(key, emit)
        return KernelFile(helpers, {row[0]: KernelText(*row) for row in rows})

    @cached_property
    def kernels(self) -> KernelFile:
        """The kernels' source; only those that overlap in the plan do without `restrict`."""
        return self._emit(self.program.overlapping_kernels())

    @property
    def alignment_bytes(self) -> int:
        """What workspace and constants are aligned to: the larger of the two options."""
        names = ("workspace-byte-alignment", "constant-byte-alignment")
        return max(int(self.executor.get(name, 16)) for name in names)

    @cached_property
    def program(self) -> AotProgram:
        """The planned program."""
        first = self._emit(())
        sizes = {n: k.workspace_bytes for n, k in first.kernels.items()}
        pools = [Pool("workspace")]
        if self.workspace_memory_pools is not None:
            pools = [Pool(p.pool_name, p.size_bytes) for p in self.workspace_memory_pools.pools]
        return make_program(
            self.graph,
            workspaces=sizes,
            overlaps=self.overlaps,
            pools=pools,
            algorithm=self._planner,
            alignment_bytes=self.alignment_bytes,
            name=self.module_name,
            workspace_io=self.workspace_io,
            own_constants=self._written[2],
        )

    @property
    def _planner(self) -> str | Planner:
        name = self.custom_algorithm or self.algorithm
        return name if name in _PLANNERS else partial(planned_by, registered(name), name)

    @cached_property
    def constant_pools(self) -> dict[str, str]:
        """The memory of each constant by name; empty when the linker may place them all."""
        if self.constant_memory_pools is None:
            return {}
        pools = [Pool(p.pool_name, p.size_bytes) for p in self.constant_memory_pools.pools]
        sizes = {name: self.constants[name].nbytes for name in self.program.constants}
        return place_constants(sizes, pools, self.alignment_bytes)

    @property
    def is_llvm(self) -> bool:
        """Whether the program is compiled by LLVM; else it is C for any compiler."""
        return backend_of(self.target).language(self.target) == "llvm"

    @cached_property
    def sources(self) -> AotSources:
        """The generated header and source: C, or LLVM IR for a target of kind llvm."""
        return emit_llvm(self._parts) if self.is_llvm else emit_c(self._parts)

    @cached_property
    def _parts(self) -> ProgramParts:
        return ProgramParts(
            self.program,
            self.kernels,
            self.constants,
            compiler=COMPILER,
            target=self.target,
            own_workspace=self.workspace_memory_pools is None,
            packed_entry=self.executor["interface-api"] == "packed",
            alignment_bytes=self.alignment_bytes,
            constant_pools=self.constant_pools,
        )

    @cached_property
    def object_bytes(self) -> bytes:
        """The program as an object file: the run function, its kernels and constants."""
        return program_object(self.sources, self.target)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        """Write the model to one file.

        With ``Runtime("crt")`` a ``.o``, ``.a`` or ``.tar`` holds the program, to be linked into
        firmware (a .tar has the header too).  A ``.wasm`` for pages holds it with a runtime that
        has no graph executor.  Everything else is a library that `load_module` reads, as
        `ModelFactory` writes it.
        """
        if path.suffix == ".wasm" and self.is_llvm and self.target.parsed_triple.is_page:
            if not path.parent.is_dir():
                raise ArtifactError(f"cannot write {path}: the folder {path.parent} does not exist")
            need_fixed_sizes(self.graph, "a program for pages")
            objects = web_program(self.object_bytes, page_model(self._parts), self.target)
            metadata = {**json.loads(self.compiled.metadata), **self.metadata}
            write_page(path, objects, self.target, metadata, linker, options)
            return path
        if self.runtime.name == "crt" and path.suffix in PROGRAM_SUFFIXES:
            return write_program(path, self.sources, self.object_bytes)
        return super()._export(path, linker, options)

    def _export_apart(
        self, path: Path, params_file: Path, linker: Any, options: Sequence[str] | None
    ) -> Path:
        """Refuse: the program refers to its constants by address."""
        raise ArtifactError(
            f"params_file={str(params_file)!r}: a program (executor aot) has its constants inside. "
            'Build with Executor("graph") to fetch parameters apart'
        )

    def get_source(self, fmt: str = "") -> str:
        """Return the generated source; other formats are those of the kernels' library."""
        own = ("", "ll") if self.is_llvm else ("", "c")
        return self.sources.source if fmt in own else super().get_source(fmt)

    def get_executor_config(self) -> str:
        """Return the plan as text: there is no graph to interpret."""
        return plan_table(self.program.plan)
