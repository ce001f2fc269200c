"""The kernels of a model for several kinds of device, compiled for each and joined."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slipway.codegen.compiled import CompiledModule
from slipway.codegen.device_code import DeviceCode
from slipway.compiler.artifact.export import metadata_object
from slipway.compiler.kernels import compile_kernels
from slipway.compiler.model_graph import ModelGraph
from slipway.target import Target


def compile_over(graph: ModelGraph, targets: Mapping[int, Target]) -> CompiledModule:
    """Return all kernels of a graph over devices as one module of the processor's code."""
    parts = []
    for device, target in targets.items():
        names = [name for name, where in graph.kernel_devices.items() if where == device]
        own = ModelGraph(kernels={name: graph.kernels[name] for name in names})
        if names:
            parts.append(compile_kernels(own, target))
    if not parts:
        return compile_kernels(ModelGraph(), targets[1])
    return parts[0] if len(parts) == 1 else joined(parts, targets[1])


def joined(parts: Sequence[CompiledModule], host: Target) -> CompiledModule:
    """Return modules of one processor's code as one, with the code of all their devices."""
    abouts = [json.loads(part.metadata) for part in parts]
    isa = sorted({feature for about in abouts for feature in about.get("isa", ())})
    functions = tuple(name for part in parts for name in part.functions)
    about = {**abouts[0], "functions": list(functions), "isa": isa}
    text = json.dumps(about, separators=(",", ":"))
    devices = [part.device for part in parts if part.device is not None]

    def make_objects() -> tuple[bytes, ...]:
        objects = [data for part in parts for data in part.objects]
        return (*objects, metadata_object(text, host))

    external = tuple(dict.fromkeys(name for part in parts for name in part.external))
    return replace(
        parts[0],
        target=host,
        functions=functions,
        metadata=text,
        make_objects=make_objects,
        external=external,
        device=_all_code(devices),
    )


def _all_code(devices: Sequence[DeviceCode]) -> DeviceCode | None:
    if not devices:
        return None
    return replace(devices[0], others=tuple(devices[1:]))
