"""Executors of a model in this process, which need tvm-ffi's package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.runtime.artifact import Artifact
from slipway.runtime.devices import AnyDevice
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.load import module_of_artifact


def executor_of(library: Any, devices: Sequence[AnyDevice]) -> GraphModule:
    """Return a graph executor of what `relay.build` or `load_module` returned, or of a file."""
    module = module_of_artifact(library) if isinstance(library, Artifact) else library
    return GraphModule(module["default"](*devices))
