"""Opening what was exported: one function for every kind of file."""

from __future__ import annotations

import os
from pathlib import Path

from slipway.arguments import path_of
from slipway.errors import ArtifactError
from slipway.runtime.arrays.array_file import contents_of
from slipway.runtime.artifact import (
    LIBRARY_MEMBER,
    Artifact,
    is_archive,
    read_artifact,
    read_tar,
)
from slipway.runtime.device_module import LANGUAGES, modules_of_records, read_device_module
from slipway.runtime.graph.graph_factory import GraphExecutorFactoryModule
from slipway.runtime.libraries.library import DsoLibrary, device_records
from slipway.runtime.module import LibraryModule, Module
from slipway.toolchain.elf import ElfFile, is_elf

_OBJECT_SUFFIXES = (".o", ".obj")


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """Load an exported ``.so``, ``.tar``, ``.o``, ``.obj`` or ``.a``, or a device's ``.cl``.

    Objects are linked first, which needs ziglang.  A model gives a factory: ``module["default"]``
    makes a graph executor.  Raises FileNotFoundError, or ArtifactError when the file is damaged, of
    another version, or for another processor; none of its code has run then.
    """
    file = path_of(path, "the module to load", "model.tar")
    try:
        data = contents_of(file)
        if not is_archive(data, file.name):
            data = file.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no file {file}. Write it with export_library, or check the path "
            f"(the current folder is {Path.cwd()})."
        ) from None
    except IsADirectoryError:
        raise ArtifactError(f"{file} is a folder; load_module takes an exported file.") from None
    suffix = f".{fmt}" if fmt else file.suffix.lower()
    if suffix in LANGUAGES:
        return read_device_module(file, bytes(data))
    artifact = read_artifact(shared_library_bytes(data, suffix, file.name), file.name)
    module = module_of_artifact(artifact, file)
    if isinstance(module, GraphExecutorFactoryModule):
        module.take_params()
    return module


def module_of_artifact(artifact: Artifact, file: Path | None = None) -> Module:
    """Load a checked artifact's library into this process and return its module.

    `file` is the one that it was read from, of which an export is a copy.
    """
    code = DsoLibrary(artifact.name if file is None else file, artifact.library)
    library = LibraryModule(code, artifact.metadata)
    library.imported_modules += modules_of_records(device_records(code))
    if artifact.graph is None:
        return library
    return GraphExecutorFactoryModule.from_artifact(artifact, library)


def shared_library_bytes(data: bytes | memoryview, suffix: str, name: str) -> bytes | memoryview:
    """Return `data` in a form that loads: objects and archives of objects are linked first."""
    if suffix in _OBJECT_SUFFIXES:
        return link_for_its_machine([bytes(data)], name)
    if suffix == ".a":
        from slipway.toolchain.ar import read_archive

        return link_for_its_machine(list(read_archive(bytes(data), name).values()), name)
    if suffix == ".tar":
        members = read_tar(data, name, (*_OBJECT_SUFFIXES, LIBRARY_MEMBER))
        objects = [c for n, c in sorted(members.items()) if n.endswith(_OBJECT_SUFFIXES)]
        if objects and LIBRARY_MEMBER not in members:  # a classic .tar of objects
            return link_for_its_machine(objects, name)
    return data


def one_file_of(data: bytes, name: str) -> bytes:
    """Return what an exported file loads from: of kernels a library, of a model the whole file."""
    linked = shared_library_bytes(data, Path(name).suffix, name)
    artifact = read_artifact(linked, name, here=False)
    return artifact.library if artifact.graph is None else bytes(linked)


def link_for_its_machine(objects: list[bytes], name: str) -> bytes:
    """Link objects into a shared library for whatever machine they are for."""
    from slipway.toolchain.link import linked_bytes

    found = [content for content in objects if is_elf(content)]
    if not found:
        raise ArtifactError(
            f"{name} holds no ELF object. Save it again with save() or export_library, or copy it "
            "again in binary mode."
        )
    known = {62: "x86_64", 183: "aarch64", 40: "armv7", 164: "hexagon", 243: "riscv64"}
    architecture = known.get(ElfFile(found[0], name).machine, "unknown")
    return linked_bytes(found, f"{architecture}-linux", name)
