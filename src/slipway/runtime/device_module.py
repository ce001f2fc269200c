"""`DeviceModule`: the code of a device, as a module that host functions import."""

from __future__ import annotations

import json
import os
import struct
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.errors import ArtifactError, CodegenError
from slipway.runtime.libraries.native_library import native_runtime
from slipway.runtime.module import Module

METADATA_SUFFIX = ".tvm_meta.json"
# How the name of a file with code ends -> kind of device, DLPack's number, and what formats
# `get_source` takes it for.
LANGUAGES = {
    ".cl": ("opencl", 4, ("opencl", "cl")),
    ".metal": ("metal", 8, ("metal",)),
    ".ptx": ("cuda", 2, ("ptx",)),
    ".wgsl": ("webgpu", 15, ("wgsl",)),
    ".spv": ("vulkan", 7, ()),  # words, not text: `sources` has the text
    ".hsaco": ("rocm", 10, ()),
}
_BINARY = ("vulkan", "rocm")  # kinds whose code is no text
_READABLE = ("spirv", "asm")  # the formats that stand for it
_RECORD = struct.Struct("<4siQ")  # before each code of a library: crt/posix/devices/device_code.c
_OLDER_FORMATS = {"llvm": "ll"}  # as classic TVM calls them


class DeviceModule(Module):
    """Kernels in a language of a device, which compile when the first of them is launched.

    `type_key` is the kind of device, `code` what its driver takes, `sources` the same as texts,
    by format.  Host functions find the code by its SHA-256 once it is loaded into the
    process; `import_module` keeps the two together.
    """

    def __init__(
        self,
        kind: str,
        device_type: int,
        code: bytes,
        kernels: Sequence[str],
        metadata: str = "",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.type_key = kind
        self.device_type = device_type
        self.code = code
        self.kernels = tuple(kernels)
        self.metadata = metadata
        formats = next(f for k, _, f in LANGUAGES.values() if k == kind)
        self.sources = {**dict.fromkeys(formats, self.text), **(sources or {})}

    @property
    def text(self) -> str:
        """What the driver takes, where that is text; else ""."""
        return "" if self.type_key in _BINARY else self.code.decode()

    def load(self) -> DeviceModule:
        """Make the code known to the process for as long as this module lives; return self."""
        runtime = native_runtime()
        digest = runtime.packed("device_add_code")(self.device_type, self.code)
        drop = runtime.packed("device_drop_code")
        weakref.finalize(self, drop, self.device_type, str(digest)).atexit = False
        return self

    def get_source(self, fmt: str = "") -> str:
        """Return the code as text.  Raises CodegenError for a format that it does not have."""
        if not fmt:
            return self.text or next((self.sources[f] for f in _READABLE if f in self.sources), "")
        source = self.sources.get(_OLDER_FORMATS.get(fmt, fmt))
        if source is None:
            names = ", ".join(sorted(self.sources)) or "none: this is code without its text"
            suffix = next(
                ending for ending, (kind, *_) in LANGUAGES.items() if kind == self.type_key
            )
            raise CodegenError(
                f"kernels of {self.type_key} have no source in format {fmt!r}: they have {names}. "
                f'What the driver takes is written by save("NAME{suffix}")'
            )
        return source

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the code, and what is in it to ``<name>.tvm_meta.json`` beside it.

        In the language that `fmt`, or the name's ending, says; otherwise as `load_module` takes it.
        """
        path = Path(file_name)
        source = self.sources.get(fmt or path.suffix[1:])
        path.write_bytes(self.code if source is None else source.encode())
        path.with_suffix(METADATA_SUFFIX).write_text(self.metadata or "{}\n")

    def __repr__(self) -> str:
        return f"<Module {self.type_key} with kernels {', '.join(self.kernels) or 'unknown'}>"


def modules_of_records(records: bytes) -> list[DeviceModule]:
    """Return the code of each kind of device that a library carries in ``__slipway_device_code``.

    The library makes it known to the process itself.
    """
    kinds = {number: kind for kind, number, _ in LANGUAGES.values()}
    found, at = [], 0
    while at + _RECORD.size <= len(records):
        _, device_type, size = _RECORD.unpack_from(records, at)
        at += _RECORD.size
        if device_type in kinds:
            code = records[at : at + size]
            found.append(DeviceModule(kinds[device_type], device_type, code, ()))
        at += size + -size % 8
    return found


def read_device_module(path: Path, code: bytes) -> DeviceModule:
    """Return the module of a file of code, loaded.

    Raises ArtifactError for a file whose language is text where it is none.
    """
    kind, device_type, _ = LANGUAGES[path.suffix]
    beside = path.with_suffix(METADATA_SUFFIX)
    metadata, names = "", []
    if beside.is_file():
        metadata = beside.read_text()
        try:
            names = list(json.loads(metadata).get("func_info", {}))
        except (ValueError, AttributeError) as error:
            raise ArtifactError(
                f"{beside.name} does not say what {path.name} has: {error}. Save both again."
            ) from error
    if kind not in _BINARY:
        try:
            code.decode()
        except UnicodeDecodeError as error:
            raise ArtifactError(f"{path.name} is not the text of kernels: {error}.") from error
    return DeviceModule(kind, device_type, code, names, metadata).load()
