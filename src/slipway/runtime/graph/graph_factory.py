"""A compiled model before it runs: library, graph and parameters; "default" makes executors."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from slipway.errors import ExecutionError
from slipway.runtime.artifact import Artifact
from slipway.runtime.devices import Device, RemoteDevice, cpu
from slipway.runtime.graph.graph_executor import create_native, share_params
from slipway.runtime.graph.graph_format import GraphTables
from slipway.runtime.graph.param_store import ParamStore
from slipway.runtime.libraries.native_module import NativeModule
from slipway.runtime.module import Module
from slipway.runtime.ndarray import NDArray
from slipway.runtime.params import param_pieces, read_params

# What TVM's system library is found by, in a module that was compiled for one.
SYSTEM_LIBRARY = "TVMSystemLibEntryPoint"


class GraphExecutorFactoryModule(Module):
    """What ``relay.build`` returns and ``load_module`` reads back.

    ``factory["default"](dev)`` makes an executor with its parameters set.  Executors read the
    parameters in one place; one that sets a parameter gets a copy of it.  Unpacks as
    ``graph_json, lib, params``.
    """

    type_key = "graph_factory"
    # What a script asks of the factory by name, as of any module.
    _ABOUT: ClassVar[dict[str, str]] = {
        "get_graph_json": "get_graph_json",
        "get_executor_config": "get_graph_json",
        "get_graph_params": "get_params",
        "list_module_names": "list_module_names",
        "remove_params": "without_params",
        "debug_create": "create_debugged",
    }

    def __init__(
        self,
        tables: GraphTables,
        library: Module,
        params: Mapping[str, Any] | bytes | bytearray | memoryview,
        module_name: str = "default",
        metadata: dict[str, Any] | None = None,
        graph_json: str | None = None,
    ) -> None:
        super().__init__(module_name)
        self.tables = tables
        self.library_module = library
        self.module_name = module_name
        self.metadata = metadata or {}
        self._graph_json = graph_json
        self._source: Mapping[str, Any] | bytes | bytearray | memoryview | None = params
        self._store: ParamStore | None = None
        self._is_bare = False
        self._lock = threading.Lock()
        self.has_linked_params = False
        self.imported_modules.append(library)

    @classmethod
    def from_artifact(cls, artifact: Artifact, library: Module) -> GraphExecutorFactoryModule:
        """Make the factory of a loaded artifact."""
        assert artifact.graph is not None
        text = artifact.members.get("graph.json")
        return cls(
            GraphTables.from_binary(artifact.graph),
            library,
            artifact.params or b"",
            str(artifact.metadata.get("module_name", "default")),
            artifact.metadata,
            str(text, "utf-8") if text else None,
        )

    # The classic accessors.

    def get_graph_json(self) -> str:
        """Return the graph as classic JSON."""
        if self._graph_json is None:
            self._graph_json = self.tables.to_json(int(self.metadata.get("device_type", 1)))
        return self._graph_json

    get_executor_config = get_graph_json

    def list_module_names(self) -> list[str]:
        """Return the names of the models inside: the one that it was built with."""
        return [self.module_name]

    def get_lib(self) -> Module:
        """Return the module with the compiled functions."""
        return self.library_module

    @property
    def graph_json(self) -> str:
        """The graph as JSON (the classic attribute)."""
        return self.get_graph_json()

    @property
    def params(self) -> dict[str, NDArray]:
        """The parameters (the classic attribute)."""
        return self.get_params()

    def get_params(self) -> dict[str, NDArray]:
        """Return the parameters by name: the very memory that this model's executors read.

        None where they were asked into the library, ``Executor("graph", {"link-params": True})``:
        every executor has them.
        """
        return {} if self.has_linked_params else dict(self._shared_params())

    def shared_params(self) -> Mapping[str, NDArray]:
        """Return the parameters: an executor that `graph_executor.create` makes of it has them."""
        return self._shared_params()

    def take_params(self) -> None:
        """Copy the parameters now: what they were read from may change afterwards."""
        self._shared_params()

    def _shared_params(self) -> dict[str, NDArray]:
        """Return the parameters, copied into memory of their own when first asked for."""
        with self._lock:
            if self._store is None:
                source = self._source
                if not isinstance(source, Mapping):
                    source = read_params(source) if source else {}
                self._store, self._source = ParamStore(source), None
            return self._store.arrays

    def param_bytes(self) -> bytes:
        """Return the parameters as ``save_param_dict`` writes them."""
        return b"".join(self.param_pieces())

    def param_pieces(self) -> Sequence[Any]:
        """Return the pieces of `param_bytes`, for who writes them one after the other."""
        source = self._source
        if source is None or isinstance(source, Mapping):
            return param_pieces(self._shared_params() if source is None else source)
        return (source,)

    def __iter__(self) -> Iterator[Any]:
        yield self.get_graph_json()
        yield self.get_lib()
        yield self.get_params()

    # Module.

    def function_names(self) -> list[str]:
        """Return the factory's function and those of the library."""
        return ["default", *self._ABOUT, *self.library_module.function_names()]

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        if name in ("default", self.module_name):
            return self.create_executor
        if name in self._ABOUT:
            return getattr(self, self._ABOUT[name])  # type: ignore[no-any-return]
        if name == SYSTEM_LIBRARY and self.metadata.get("system_lib"):
            return lambda: self
        return self.library_module._lookup(name, query_imports=False)

    def create_executor(self, dev: Device | None = None, *more: Device) -> NativeModule:
        """Return a new graph module on `dev`, its parameters set; give it to `GraphModule`.

        A model that was compiled for several kinds of device takes one of each; `cpu(0)` need not
        be given.
        """
        devices = (dev or cpu(0), *more)
        for given in devices:
            if not isinstance(given, Device) and isinstance(given, RemoteDevice):
                raise ExecutionError(
                    f"this library is in this process and {given} is not: export it, then "
                    "remote.upload and remote.load_module give you the library on the device."
                )
            if not isinstance(given, Device):
                raise ExecutionError(
                    "lib['default'] takes a device, for example cpu(0), or one of each kind that "
                    "the model was compiled for."
                )
            given.check()
        if self.tables.arenas:
            return self._create_over(devices)
        kind = int(self.metadata.get("device_type", 1))
        dev = next((d for d in devices if d.device_type == kind), None)
        if dev is None:
            raise ExecutionError(
                f"this model was compiled for {Device(kind, 0).type_name} and cannot run on "
                f"{devices[0]}: give lib['default'] {Device(kind, 0)}, or compile it for "
                f"{devices[0].type_name}."
            )
        made = create_native(self.tables, self.library_module, dev)
        if kind != 1:  # in the device's memory each executor has parameters of its own
            made["load_params"](self.param_bytes())
            return made
        if not self._is_bare:
            share_params(made, self.tables, self._shared_params())
        return made

    def create_debugged(self, name: str, *devices: Device) -> NativeModule:
        """Return a graph module for `GraphModuleDebug`, of the model of a name: it has one."""
        if name not in ("default", self.module_name):
            raise ExecutionError(
                f"there is no model {name!r} here: this one is {self.module_name!r}, or 'default'"
            )
        return self.create_executor(*devices)

    def _create_over(self, devices: Sequence[Device]) -> NativeModule:
        """Return a graph module whose parts run on several devices."""
        given = {device.device_type for device in devices}
        missing = [a.device_type for a in self.tables.arenas if a.device_type not in {1, *given}]
        if missing:
            kinds = dict.fromkeys(arena.device_type for arena in self.tables.arenas)
            wanted = ", ".join(str(Device(kind, 0)) for kind in kinds)
            raise ExecutionError(
                f"parts of this model run on {Device(missing[0], 0).type_name}: give "
                f"lib['default'] a device of each kind, ({wanted})."
            )
        made = create_native(self.tables, self.library_module, *devices)
        if not self._is_bare:  # what lies in the processor's memory is shared, the rest copied
            share_params(made, self.tables, self._shared_params())
        return made

    def without_params(self) -> GraphExecutorFactoryModule:
        """Return this model without its parameters: executors get them by `load_params`.

        Of parameters that were asked into the library none is left out.
        """
        if self.has_linked_params:
            return self
        bare = copy.copy(self)
        bare._is_bare, bare._source, bare._store = True, b"", None
        bare._functions = {}
        return bare

    def get_source(self, fmt: str = "") -> str:
        """Return the source of the compiled functions."""
        return self.library_module.get_source(fmt)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        if path.suffix != ".tar":
            return super()._export(path, linker, options)
        raise ExecutionError("a loaded model is a file already: copy that.")
