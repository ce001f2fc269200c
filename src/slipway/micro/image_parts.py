"""What an image for a running device is made of: a built module, or a file that holds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slipway.codegen.compiled import CompiledModule
from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import ArtifactError
from slipway.micro.baremetal import TEMPLATE_SOURCES
from slipway.micro.image import ImageParts, linked_already
from slipway.micro.model_config import model_config
from slipway.micro.model_contents import library_of_aot
from slipway.micro.model_library import ModelLibrary, only_model, unpack_model_library
from slipway.micro.program import is_ahead_of_time, packed_functions
from slipway.runtime.artifact import LIBRARY_MEMBER, OBJECTS_MEMBER, check_sums, read_tar
from slipway.runtime.graph.graph_format import GraphTables
from slipway.toolchain.ar import read_archive
from slipway.toolchain.elf import is_elf
from slipway.toolchain.tempdir import scratch

_OBJECTS = (".o", ".obj")


def parts_of_module(module: Any) -> ImageParts:
    """Return the parts of what ``tvm.build`` or ``relay.build`` returned.

    Raises ArtifactError for anything else.
    """
    if isinstance(module, AotExecutorFactoryModule):
        return _aot(library_of_aot(module))
    if isinstance(module, ModelFactory):
        parts = _compiled(module.compiled)
        parts.graph, parts.params = module.tables.to_binary(), module.param_bytes()
        return parts
    if isinstance(module, OperatorModule):
        return _compiled(module.compiled)
    raise ArtifactError(
        f"a {type(module).__name__} cannot be sent to a device; give what tvm.build or relay.build "
        "returned, or a path of an object (.o), an archive (.a) or a Model Library Format .tar"
    )


def _compiled(compiled: CompiledModule) -> ImageParts:
    if "c" in compiled.sources:
        return ImageParts(compiled.functions, {"module.c": compiled.get_source("c")})
    return ImageParts(compiled.functions, objects=list(compiled.objects))


def _aot(library: ModelLibrary) -> ImageParts:
    headers = {**library.headers, "model_config.h": model_config(_whole(library), {})}
    glue = (TEMPLATE_SOURCES / "model_aot.c").read_text()
    return ImageParts(
        sources={**library.sources, "model_aot.c": glue},
        headers=headers,
        objects=list(library.objects.values()),
        aot=True,
    )


def _whole(library: ModelLibrary) -> dict[str, Any]:
    return {"model_name": library.name, **library.metadata}


def parts_of_file(path: Path) -> ImageParts:
    """Return the parts of an exported file: .o, .obj, .a, .tar, or a Model Library Format archive.

    Raises ArtifactError for another kind, OSError for a file that cannot be read.
    """
    data = path.read_bytes()
    if path.suffix in _OBJECTS:
        return ImageParts(objects=[data])
    if path.suffix == ".a":
        return ImageParts(objects=list(read_archive(data, path.name).values()))
    if path.suffix == ".tar":
        members = read_tar(data, path.name)
        if OBJECTS_MEMBER in members:
            return _artifact(members, path.name)
        objects = [c for n, c in sorted(members.items()) if n.endswith(_OBJECTS)]
        if any(n.endswith("metadata.json") for n in members) and LIBRARY_MEMBER not in members:
            return _archive(path)
        if objects:
            return ImageParts(objects=objects)
    if path.suffix in (".so", ".dll", ".dylib", ".elf", ".tar") or is_elf(data):
        raise ArtifactError(linked_already(path.name))
    raise ArtifactError(
        f"{path.name} is no code that a device could run: an object (.o, .obj), an archive (.a) or "
        "a Model Library Format archive (.tar) is. Bytes that are to travel as they are: "
        "Session.upload(path.read_bytes(), name)"
    )


def _artifact(members: dict[str, bytes], name: str) -> ImageParts:
    """Return the parts of what was exported as a .tar for a target without a system."""
    check_sums(members, name)
    return ImageParts(
        objects=list(read_archive(members[OBJECTS_MEMBER], f"{OBJECTS_MEMBER} of {name}").values()),
        graph=members.get("graph.bin", b""),
        params=members.get("params.bin", b""),
    )


def _archive(path: Path) -> ImageParts:
    with scratch("slipway-image-") as folder:
        model = only_model(unpack_model_library(path, folder))
        host = Path(folder) / "codegen" / "host"
        name = str(model["model_name"])
        library = ModelLibrary(
            name,
            model,
            {p.name: p.read_text() for p in sorted(host.glob("src/*.c"))},
            {p.name: p.read_text() for p in sorted(host.glob("include/*.h"))},
            {p.name: p.read_bytes() for p in sorted(host.glob("lib/*.o"))},
        )
        if is_ahead_of_time(model):
            return _aot(library)
        graph = Path(folder) / "executor-config" / "graph" / f"{name}.graph"
        params = Path(folder) / "parameters" / f"{name}.params"
        return ImageParts(
            packed_functions(library.sources, library.objects.values()),
            library.sources,
            objects=list(library.objects.values()),
            graph=GraphTables.from_json(graph.read_text()).to_binary() if graph.exists() else b"",
            params=params.read_bytes() if params.exists() else b"",
        )
