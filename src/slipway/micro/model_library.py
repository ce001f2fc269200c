"""Model Library Format: an archive of everything that firmware needs of a model.

The layout is classic TVM's, version 7::

    metadata.json                      sizes, target, memory map
    codegen/host/src/*.c               the generated code
    codegen/host/include/*.h           its interface
    codegen/host/lib/*.o               or objects, when the target is llvm
    parameters/<model>.params          weights, where the code does not hold them
    src/<model>.relay                  the model as text
    executor-config/graph/<model>.graph
    runtime/include, runtime/src       the device runtime, of models built with Runtime("crt")
    templates/*.template               what a port of that runtime starts from

Version 7 puts each model's description under ``modules``; the same keys stand at the top level as
earlier versions had them.  The same library gives the same bytes: members are sorted, owners and
times are fixed (SOURCE_DATE_EPOCH sets the export time, else it is 1970-01-01), and inputs stay in
the model's order.
"""

from __future__ import annotations

import datetime
import errno
import functools
import io
import json
import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from slipway.errors import ArtifactError
from slipway.libinfo import find_crt_include_path
from slipway.micro.exports.port_templates import TEMPLATE_FILES
from slipway.toolchain.link import write_file
from slipway.toolchain.unpack import unpack_tar

# Errors of writing, which say nothing of what is read.
WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
VERSION = 7


class ModelNamesError(ArtifactError, AssertionError):
    """Models of one archive have one name, or none; classic callers catch AssertionError."""


@dataclass
class ModelLibrary:
    """The contents of an archive; `metadata` is the description of the one model in it."""

    name: str
    metadata: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    params: bytes | None = None
    relay_text: str | None = None
    graph_json: str | None = None
    has_runtime: bool = False

    def members(self) -> dict[str, bytes]:
        """Return each member's path and bytes."""
        host = "codegen/host"
        files = {f"{host}/src/{n}": text.encode() for n, text in self.sources.items()}
        files |= {f"{host}/include/{n}": text.encode() for n, text in self.headers.items()}
        files |= {f"{host}/lib/{n}": data for n, data in self.objects.items()}
        if self.params is not None:
            files[f"parameters/{self.name}.params"] = self.params
        if self.relay_text is not None:
            files[f"src/{self.name}.relay"] = self.relay_text.encode()
        if self.graph_json is not None:
            files[f"executor-config/graph/{self.name}.graph"] = self.graph_json.encode()
        if self.has_runtime:
            files |= _runtime_files()
        whole = {**self.described(), "modules": {self.name: self.described()}, "version": VERSION}
        files["metadata.json"] = json.dumps(whole, indent=2).encode()
        return files

    def described(self) -> dict[str, Any]:
        """Return what the archive says of this model."""
        return {"export_datetime": _export_time(), "model_name": self.name, **self.metadata}


@functools.cache
def _runtime_files() -> dict[str, bytes]:
    """Return the runtime's part that needs no operating system, and what its ports start from."""
    folder = Path(find_crt_include_path()[0])
    paths = sorted([*folder.glob("include/**/*.h"), *folder.glob("src/*.[ch]")])
    runtime = {f"runtime/{path.relative_to(folder)}": path.read_bytes() for path in paths}
    return runtime | {f"templates/{n}.template": t.encode() for n, t in TEMPLATE_FILES.items()}


def _export_time() -> str:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def write_model_library(library: ModelLibrary | Sequence[ModelLibrary], path: str | Path) -> Path:
    """Write the archive of one or several models: a reader sees all of it, or nothing.

    Raises ModelNamesError when two models have one name: build them with different `mod_name`.
    """
    path = Path(path)
    buffer = io.BytesIO()
    libraries = [library] if isinstance(library, ModelLibrary) else list(library)
    names = [one.name for one in libraries]
    if not names or len(set(names)) < len(names):
        raise ModelNamesError(
            "Multiple modules should have unique names, and those of this archive are "
            f"{', '.join(names) or 'none'}; relay.build's mod_name gives one"
        )
    members = {name: data for one in libraries for name, data in one.members().items()}
    if len(libraries) > 1:
        modules = {one.name: one.described() for one in libraries}
        whole = {"modules": modules, "version": VERSION}
        members["metadata.json"] = json.dumps(whole, indent=2).encode()
    folders = {str(p) for name in members for p in PurePosixPath(name).parents} - {"."}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted([*members, *folders]):
            info = tarfile.TarInfo(f"./{name}")
            info.uname = info.gname = "root"
            if name in members:
                info.size, info.mode = len(members[name]), 0o644
                archive.addfile(info, io.BytesIO(members[name]))
            else:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
    write_file(path, buffer.getvalue())
    return path


def unpack_model_library(path: str | Path, folder: str | Path) -> dict[str, Any]:
    """Unpack an archive into a folder and return its metadata.

    Raises ArtifactError for what is no such archive, and for a version that is newer.
    """
    target = Path(folder)
    try:
        unpack_tar(path, target)
        metadata: dict[str, Any] = json.loads((target / "metadata.json").read_text())
        version = metadata["version"]
        modules = metadata.get("modules", {})
        if type(version) is not int or not all(type(m) is dict for m in modules.values()):
            raise ValueError("its metadata does not describe models")
    except (
        ArtifactError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno in WRITING:
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise ArtifactError(f"{path} is no Model Library Format archive: {error}") from error
    if version > VERSION:
        raise ArtifactError(
            f"{path} has Model Library Format version {version}; this Slipway reads up to "
            f"{VERSION}. Install a newer one."
        )
    return metadata


def only_model(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the archive's model, whatever version described it."""
    modules = metadata.get("modules")
    if modules:
        found: dict[str, Any] = next(iter(modules.values()))
        return found
    return dict(metadata)


def ports_of(model: Mapping[str, Any], side: str) -> dict[str, dict[str, Any]]:
    """Return the "inputs" or "outputs" of a model's run function by C name, all that is known.

    The memory map has dtype and size, as classic TVM's readers expect; shape, name and scale stand
    in "interface".  Earlier archives have everything in the memory map.
    """
    functions = (model.get("memory") or {}).get("functions", {})
    main = (functions.get("main") or [{}])[0]
    more = model.get("interface", {}).get(side, {})
    return {name: {**info, **more.get(name, {})} for name, info in main.get(side, {}).items()}


def unpack_into_project(archive: str | Path, project: Path) -> dict[str, Any]:
    """Unpack the model of a project to its folder ``model``, and return its description.

    The archive's copy of the runtime, and what ports of it start from, are left out: projects that
    need it have their own part of it.
    """
    model = only_model(unpack_model_library(archive, project / "model"))
    for folder in ("runtime", "templates"):
        shutil.rmtree(project / "model" / folder, ignore_errors=True)
    return model
