"""Writing compiled code to files: libraries, objects, archives and artifacts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.codegen.compiled import CompiledModule
from slipway.compiler.artifact.system_library import linkable_objects
from slipway.errors import ArtifactError
from slipway.runtime.artifact import OBJECTS_MEMBER
from slipway.runtime.artifact_writer import write_artifact
from slipway.target import Target
from slipway.toolchain.ar import write_archive
from slipway.toolchain.link import (
    Linker,
    link_shared,
    linked_bytes,
    write_file,
)

if TYPE_CHECKING:
    from slipway.compiler.artifact.parts import ModelParts

SUFFIXES = (".tar", ".so", ".dylib", ".dll", ".wasm", ".o", ".obj", ".a")


def export(
    path: str | os.PathLike[str],
    compiled: CompiledModule,
    model: ModelParts | None = None,
    cc: Linker | None = None,
    options: Sequence[str] | None = None,
) -> Path:
    """Write compiled functions (and their model) to `path`, in the format its ending names.

    ``.tar``: the artifact.  ``.so``, ``.dylib``: the linked library, a model inside it as data.
    ``.wasm``: the same for a browser, with the runtime inside.  ``.o``: one object; ``.a``: an
    archive of objects.  `cc` replaces the linker that comes with Slipway: a compiler's path, or a
    function like ``ndk.create_shared``.  All but an object carry the code of a device, where
    there is some.  Equal inputs give equal bytes, and the file is there
    whole or not at all.  Raises ArtifactError for an unknown ending, ToolchainError when linking
    fails.
    """
    out = Path(path)
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArtifactError(
            f"cannot tell from {out.name!r} what to write: the name must end in "
            f"{', '.join(SUFFIXES)}"
        )
    if not out.parent.is_dir():
        raise ArtifactError(f"cannot write {out}: the folder {out.parent} does not exist")
    if suffix == ".tar":
        return _write_tar(out, compiled, model, cc, options)
    is_object = suffix in (".o", ".obj")
    objects = list(compiled.objects if is_object else compiled.library_objects)
    if suffix not in (".wasm", ".o", ".obj", ".a"):
        parts = [*objects, *(model_objects(compiled, model) if model is not None else ())]
        link_shared(parts, compiled.target.triple, out, cc=cc, options=options)
        return out
    if suffix == ".wasm":
        _write_page(out, compiled, model, cc, options)
        return out
    if model is not None:
        objects += map(b"".join, model_objects(compiled, model))
    if is_object:
        objects = linkable_objects(compiled, objects)
        write_file(out, objects[0] if len(objects) == 1 else _merged(compiled, objects))
    else:
        write_file(out, _archive(linkable_objects(compiled, objects)))
    return out


def _archive(objects: Sequence[bytes]) -> bytes:
    return write_archive({f"slipway{i}.o": data for i, data in enumerate(objects)})


def _write_page(
    out: Path,
    compiled: CompiledModule,
    model: ModelParts | None,
    cc: Linker | None,
    options: Sequence[str] | None,
) -> None:
    from slipway.compiler.artifact.web import web_objects, write_page

    if not compiled.target.parsed_triple.is_page:
        raise ArtifactError(
            f"cannot write {out}: the code is for {compiled.target.triple}. Compile for "
            '"llvm -mtriple=wasm32" to write a .wasm file, or write a .tar or .so.'
        )
    objects = [*compiled.library_objects, *web_objects(compiled, model)]
    write_page(out, objects, compiled.target, _whole_metadata(compiled, model), cc, options)


def _merged(compiled: CompiledModule, objects: Sequence[bytes]) -> bytes:
    from slipway.codegen.compiled import merge_objects

    return merge_objects(tuple(objects))


def _write_tar(
    out: Path,
    compiled: CompiledModule,
    model: ModelParts | None,
    cc: Linker | None,
    options: Sequence[str] | None,
) -> Path:
    is_bare = compiled.target.parsed_triple.is_bare
    linked = linked_bytes(
        compiled.library_objects, compiled.target.triple, "lib.so", cc, options=options,
        may_need=_is_of_a_compiler if is_bare else None,
    )  # fmt: skip
    extra = {}
    if is_bare:  # linked again, for the memory of a device
        extra[OBJECTS_MEMBER] = _archive(linkable_objects(compiled, list(compiled.objects)))
    if model is None:
        return write_artifact(out, linked, metadata=json.loads(compiled.metadata), extra=extra)
    return write_artifact(
        out,
        linked,
        metadata=_whole_metadata(compiled, model),
        extra=extra,
        graph_json=model.graph_json,
        graph_binary=model.graph_binary,
        params=model.param_pieces,
    )


def _is_of_a_compiler(symbol: str) -> bool:
    """Return whether compilers' own libraries define it: arithmetic that a core has no code for."""
    return symbol.startswith("__")


def _whole_metadata(compiled: CompiledModule, model: ModelParts | None) -> dict[str, Any]:
    return {**json.loads(compiled.metadata), **(model.metadata if model is not None else {})}


def metadata_object(text: str, target: Target) -> bytes:
    """Return an object with what a library says of itself, instead of what its parts say."""
    from slipway.codegen.llvm.data import data_object
    from slipway.runtime.libraries.library import METADATA_SYMBOL

    return data_object({METADATA_SYMBOL: text.encode() + b"\0"}, target)


def model_objects(compiled: CompiledModule, model: ModelParts) -> list[Sequence[Any]]:
    """Return objects that hold the model's graph, parameters and metadata as exported data.

    Each is in pieces: the parameters are not copied.  The metadata lies in a section of its own:
    no device reads it, and firmware leaves it out.
    """
    from slipway.codegen.llvm.data import data_pieces
    from slipway.runtime.libraries.library import GRAPH_SYMBOL, MODEL_METADATA_SYMBOL, PARAMS_SYMBOL

    blobs = {GRAPH_SYMBOL: (model.graph_binary,), PARAMS_SYMBOL: model.param_pieces}
    about = {
        MODEL_METADATA_SYMBOL: (
            json.dumps(_whole_metadata(compiled, model), separators=(",", ":")).encode(),
        )
    }
    return [
        data_pieces(blobs, compiled.target),
        data_pieces(about, compiled.target, ".rodata.slipway_metadata"),
    ]
