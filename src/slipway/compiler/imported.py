"""Modules that a module imports, and the library that all of them are exported as."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slipway.codegen.compiled import CompiledModule
from slipway.errors import ExecutionError
from slipway.runtime.device_module import DeviceModule
from slipway.runtime.libraries.static_library import StaticLibrary
from slipway.runtime.module import Module


def with_imports(compiled: CompiledModule, imports: Sequence[Module]) -> CompiledModule:
    """Return `compiled` with the code of the modules it imports, and of those they import.

    Whatever an object shares with others it defines weakly; the description of the whole replaces
    those of the parts.  Raises ExecutionError for a module whose code is in no object, or for
    another machine, and for a name that two modules have.
    """
    parts = _reached(imports)
    if not parts:
        return compiled
    objects: list[bytes] = []
    functions, about = list(compiled.functions), json.loads(compiled.metadata)
    external = list(compiled.external)
    for part in parts:
        if isinstance(part, StaticLibrary):
            objects.append(part.object_bytes)
        else:
            own: CompiledModule = part.compiled  # type: ignore[attr-defined]
            described = json.loads(own.metadata)
            if described["triple"] != about["triple"]:
                raise ExecutionError(
                    f"a module for {described['triple']} cannot be exported with one for "
                    f"{about['triple']}: compile both for one target"
                )
            objects += own.objects
            external += own.external
            about = _joined(about, described)
        for name in part.function_names():
            if name in functions:
                raise ExecutionError(
                    f"two modules that are exported together have a function {name!r}: give one "
                    "another name when it is built"
                )
            functions.append(name)
    about["functions"] = functions
    text = json.dumps(about, separators=(",", ":"))

    def make_objects() -> tuple[bytes, ...]:
        from slipway.compiler.artifact.export import metadata_object

        return (*compiled.objects, *objects, metadata_object(text, compiled.target))

    return replace(
        compiled,
        functions=tuple(functions),
        metadata=text,
        make_objects=make_objects,
        external=tuple(dict.fromkeys(external)),
    )


def _reached(imports: Sequence[Module]) -> list[Module]:
    """Return the modules with code to link, each once; the kernels of a device go with theirs."""
    found: list[Module] = []
    pending = list(imports)
    while pending:
        module = pending.pop(0)
        if isinstance(module, DeviceModule) or any(module is m for m in found):
            continue
        if not module.is_dso_exportable:
            raise ExecutionError(
                f"a module of kind {module.type_key!r} is imported, whose code is in no object: it "
                "cannot be exported. Import what tvm.build returned, or load_static_library gave"
            )
        found.append(module)
        pending += module.imported_modules
    return found


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what is true of both: the features that either needs."""
    needed = {*one.get("isa", ()), *other.get("isa", ())}
    return {**one, "isa": sorted(needed)}
