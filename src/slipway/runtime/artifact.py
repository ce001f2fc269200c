"""Exported files as they are read: checked completely before any of their code runs.

A ``.tar`` artifact holds ``lib.so`` (linked for its target), for a target without a system also
``lib.a`` (what is linked anew for a device's memory), ``metadata.json``, for a model
``graph.json``, ``graph.bin`` and ``params.bin``, and ``SHA256SUMS``: one ``<hex>  <name>`` line for
every other member, which ``sha256sum -c`` reads too.  A ``.so`` carries the same as data symbols:
the library's own metadata, and for a model its metadata, graph and parameters.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import struct
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slipway.errors import ArtifactError
from slipway.runtime.cpu_features import check_isa
from slipway.runtime.libraries.library import (
    GRAPH_SYMBOL,
    METADATA_SYMBOL,
    MODEL_METADATA_SYMBOL,
    PARAMS_SYMBOL,
)
from slipway.toolchain.elf import (
    MACHINE_NAMES,
    ElfFile,
    architecture_of,
    is_elf,
    machine_of_triple,
)

if TYPE_CHECKING:
    from pathlib import Path
from slipway.toolchain.unpack import TAR_ERRORS

FORMAT_VERSION = 1
LIBRARY_MEMBER = "lib.so"
OBJECTS_MEMBER = "lib.a"
SUMS_MEMBER = "SHA256SUMS"
_AGAIN = "Export it again, or copy it again in binary mode."


@dataclass(frozen=True)
class Artifact:
    """The contents of an exported file.

    `library` are the bytes of the shared library; `graph` and `params` are None for plain
    operators; `members` holds everything of a ``.tar``.  `params` and the members are views of the
    file as it was read: a model's parameters are copied once, into the memory that executors read.
    """

    name: str
    library: bytes
    metadata: dict[str, Any]
    graph: bytes | None = None
    params: memoryview | None = None
    members: dict[str, memoryview] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What it is: "graph" for a model, "library" for plain operators."""
        return "graph" if self.graph is not None else "library"


class _Pieces(io.RawIOBase):
    """Bytes as a file: what nobody reads of them stays where it lies."""

    def __init__(self, data: bytes | memoryview) -> None:
        super().__init__()
        self._data, self._at = memoryview(data), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence]
        self._at = max(0, base + offset)
        return self._at


def is_archive(data: bytes | memoryview, name: str) -> bool:
    """Return whether a file is a tar archive, by its name or what it begins with."""
    return name.endswith(".tar") or bytes(data[257:262]) == b"ustar"


def read_tar(
    data: bytes | memoryview, name: str, endings: str | tuple[str, ...] = ""
) -> dict[str, bytes]:
    """Return the plain files of a tar archive whose names have one of the endings.

    Raises ArtifactError if it is damaged or truncated, or has no plain file at all.
    """
    return {member: bytes(view) for member, view in tar_views(data, name, endings).items()}


def tar_views(
    data: bytes | memoryview, name: str, endings: str | tuple[str, ...] = ""
) -> dict[str, memoryview]:
    """Return the files that `read_tar` does, as views of `data`."""
    members: dict[str, memoryview] = {}
    has_files, whole = False, memoryview(data)
    if len(data) % 512 or whole[-512:] != bytes(512):
        raise ArtifactError(f"{name} is truncated: the archive's end mark is missing. {_AGAIN}")
    try:
        with tarfile.open(fileobj=_Pieces(data), mode="r:") as archive:
            for member in archive:
                if member.isreg() and not member.issparse():
                    has_files = True
                    if member.offset_data + member.size > len(data):
                        raise tarfile.ReadError("unexpected end of data")
                    if member.name.endswith(endings):
                        start = member.offset_data
                        members[member.name] = whole[start : start + member.size]
    except (*TAR_ERRORS, OSError, ValueError) as error:
        raise ArtifactError(f"{name} is not a readable tar archive: {error}. {_AGAIN}") from error
    if not has_files:
        raise ArtifactError(f"{name} is an empty or damaged tar archive. {_AGAIN}")
    return members


def _sha256(content: bytes | memoryview) -> str:
    from slipway.runtime.arrays.array_file import MIN_BYTES, release

    done = hashlib.sha256()
    for start in range(0, len(content), MIN_BYTES):
        done.update(content[start : start + MIN_BYTES])
        release(content)
    return done.hexdigest()


def check_sums(members: Mapping[str, bytes | memoryview], name: str) -> None:
    """Raise ArtifactError unless every member's SHA-256 sum is the stated one."""
    if SUMS_MEMBER not in members:
        raise ArtifactError(f"{name} has no member {SUMS_MEMBER}: it is incomplete. {_AGAIN}")
    sums: dict[str, str] = {}
    for line in str(members[SUMS_MEMBER], "utf-8", "replace").splitlines():
        digest, _, member = line.partition("  ")
        sums[member] = digest
    for member, content in members.items():
        if member != SUMS_MEMBER and sums.get(member) != _sha256(content):
            raise ArtifactError(
                f"{name} is damaged: the SHA-256 sum of its member {member} does not match. "
                + _AGAIN
            )
    absent = [member for member in sums if member not in members]
    if absent:
        raise ArtifactError(f"{name} is incomplete: {', '.join(absent)} is missing. {_AGAIN}")


def parse_metadata(text: bytes | memoryview, name: str) -> dict[str, Any]:
    """Return metadata as a dictionary; ArtifactError if damaged or of another version."""
    try:
        metadata = json.loads(bytes(text).rstrip(b"\0").decode())
        version = metadata["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(f"{name} has metadata that cannot be read. {_AGAIN}") from error
    if not isinstance(metadata, dict) or not isinstance(metadata.get("isa", []), list):
        raise ArtifactError(f"{name} has metadata that cannot be read. {_AGAIN}")
    if version != FORMAT_VERSION:
        writer = metadata.get("compiler", "another version of Slipway")
        raise ArtifactError(
            f"{name} has format version {version} (written by {writer}), and this Slipway reads "
            f"version {FORMAT_VERSION}. Compile the model again with this Slipway, or load it with "
            "the one that wrote it."
        )
    return metadata


# What else a library may be, by its first bytes.
_FOREIGN = (
    (b"\0asm", "is WebAssembly, for browsers and node: a page loads it with slipway.mjs "
     "(docs/web.md); compile the model for this machine to run it here."),
    (b"\xcf\xfa\xed\xfe", "is a library for macOS, which programs there call."),
    (b"\x7fELF", "is an ELF file that ends in its first bytes. " + _AGAIN),
)  # fmt: skip


def _what_it_is(content: bytes) -> str:
    """Say what a file that is no library for Linux is, and what to do with it."""
    for magic, meaning in _FOREIGN:
        if content[:4] == magic:
            return meaning
    return f"is not an ELF shared library, as an artifact is. {_AGAIN}"


def open_library(content: bytes, name: str) -> tuple[ElfFile, dict[str, Any]]:
    """Check a shared library's structure and metadata, without regard to this machine."""
    if not is_elf(content):
        raise ArtifactError(f"{name} {_what_it_is(content)}")
    elf = ElfFile(content, name)
    metadata: dict[str, Any] = {}
    for symbol in (METADATA_SYMBOL, MODEL_METADATA_SYMBOL):
        text = elf.symbol_bytes(symbol)
        metadata |= {} if text is None else parse_metadata(text, name)
    return elf, metadata


def check_runs_here(elf: ElfFile, metadata: dict[str, Any], name: str) -> None:
    """Raise ArtifactError if this machine cannot run the library's code."""
    here = architecture_of(platform.machine())
    machine = machine_of_triple(here)
    bits = struct.calcsize("P") * 8
    if (machine is not None and elf.machine != machine) or elf.is_64 != (bits == 64):
        triple = metadata.get("triple")
        made_for = f"{elf.machine_name} (target triple {triple})" if triple else elf.machine_name
        here_name = MACHINE_NAMES.get(machine or 0, here)
        raise ArtifactError(
            f"{name} was compiled for {made_for}, and this machine is {here_name}. Run it on such "
            "a device (over RPC, say), or compile it for this machine: Target('llvm')."
        )
    if sys.platform != "linux" and "linux" in str(metadata.get("triple", "")):
        raise ArtifactError(f"{name} is a Linux library, and this system is {sys.platform}.")
    check_isa([str(feature) for feature in metadata.get("isa", ())], name)


def read_artifact(data: bytes | memoryview, name: str, *, here: bool = True) -> Artifact:
    """Read and check an exported ``.tar`` or ``.so``; with `here` also that it can run here."""
    members: dict[str, memoryview] = {}
    if not is_archive(data, name) or is_elf(data):
        library = bytes(data)
    else:
        members = tar_views(data, name)
        check_sums(members, name)
        if LIBRARY_MEMBER not in members:
            raise ArtifactError(f"{name} holds no {LIBRARY_MEMBER}: it is incomplete. {_AGAIN}")
        library = bytes(members[LIBRARY_MEMBER])
    elf, metadata = open_library(library, name)
    if "metadata.json" in members:
        metadata = {**metadata, **parse_metadata(members["metadata.json"], name)}
    if here:
        check_runs_here(elf, metadata, name)
    graph = members.get("graph.bin") or elf.symbol_bytes(GRAPH_SYMBOL)
    params = members.get("params.bin") or elf.symbol_bytes(PARAMS_SYMBOL)
    return Artifact(
        name, library, metadata, None if graph is None else bytes(graph), params, members
    )


def check_artifact_runs_here(artifact: Artifact) -> None:
    """Raise ArtifactError if this machine cannot run what was read without regard to it."""
    elf = ElfFile(artifact.library, artifact.name)
    check_runs_here(elf, artifact.metadata, artifact.name)


def open_artifact(path: Path) -> Artifact:
    """Return an exported file's contents; it may be for another machine."""
    return read_artifact(path.read_bytes(), path.name, here=False)


def metadata_of(artifact: Path) -> dict[str, Any]:
    """Return the metadata of an exported file, which may be for another machine."""
    return open_artifact(artifact).metadata
