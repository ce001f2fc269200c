"""An ahead-of-time program as an object file: by LLVM, or by the C compiler of its target."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from slipway.backends.backend import backend_of
from slipway.codegen.c.backend import c_to_object
from slipway.codegen.compiled import merge_objects
from slipway.codegen.llvm.machine import CompiledText, support_parts
from slipway.compiler.aot.sources import AotSources
from slipway.errors import LoweringError
from slipway.target import Target
from slipway.toolchain.ar import write_archive
from slipway.toolchain.link import write_file

PROGRAM_SUFFIXES = (".o", ".obj", ".a", ".tar")


def program_object(sources: AotSources, target: Target) -> bytes:
    """Compile a program for its target; the object needs nothing but the compiler's own library.

    Raises ToolchainError when the target's compiler is missing.
    """
    if backend_of(target).language(target) == "llvm":
        code = [CompiledText(sources.source, target, "the program").object_bytes]
        return merge_objects((*code, *support_parts(code, target)))
    text = sources.source.replace(f'#include "{sources.header_name}"', sources.header)
    return c_to_object(text, target)


def write_program(path: Path, sources: AotSources, code: bytes) -> Path:
    """Write a program's object: alone (.o), in an archive (.a), or with its header in a .tar.

    Equal programs give equal bytes.
    """
    name = f"{Path(sources.source_name).stem}.o"
    if path.suffix == ".tar":
        members = {name: code, sources.header_name: sources.header.encode()}
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for member in sorted(members):
                info = tarfile.TarInfo(member)
                info.size, info.mode = len(members[member]), 0o644
                archive.addfile(info, io.BytesIO(members[member]))
        code = buffer.getvalue()
    elif path.suffix == ".a":
        code = write_archive({name: code})
    if not path.parent.is_dir():
        raise LoweringError(f"cannot write {path}: the folder {path.parent} does not exist")
    write_file(path, code)
    return path
