"""Compiled kernels on disk, found by the hash of everything that made them.

Files live under ``<cache folder>/kernels`` (``SLIPWAY_CACHE``, or ~/.cache/slipway): each holds a
SHA-256 of its content and the content.  They are written beside and renamed, so that processes
may share the folder; a damaged file counts as missing.  ``SLIPWAY_KERNEL_CACHE=0`` turns the cache
off.

The folder keeps to `LIMIT_BYTES`: who writes looks at the whole folder once in `SWEEP_BYTES` on
average, and deletes the files used longest ago.  Which file is followed by such a look says its
name, a hash: no process needs to know what others have written.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from slipway.toolchain.runtime_library import cache_dir

LIMIT_BYTES = 512 << 20
SWEEP_BYTES = LIMIT_BYTES >> 5
LARGEST_BYTES = LIMIT_BYTES >> 2  # of a file: a larger one would drive out too many others
_DIGEST = 32


def key_of(*parts: str | bytes) -> str:
    """Return the name under which the result of `parts` is kept."""
    digest = hashlib.sha256(_compiler_identity())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _compiler_identity() -> bytes:
    """Return what stands for the compilers: their versions, and the code that drives LLVM."""
    from importlib import resources

    versions = [_installed(name) for name in ("llvmlite", "ziglang")]
    here = resources.files("slipway.codegen.llvm")
    names = ("machine.py", "worker.py", "pointer_steps.py")
    code = [here.joinpath(name).read_bytes() for name in names]
    return " ".join(versions).encode() + b"\0" + hashlib.sha256(b"\0".join(code)).digest()


def _installed(package: str) -> str:
    """Return what names the installed version of `package`, empty where there is none.

    That is the folder beside it that installers leave, such as llvmlite-0.44.0.dist-info: parsing
    what is in it (importlib.metadata) takes longer than all else in a kernel that is remembered.
    """
    from importlib.util import find_spec

    spec = None
    with suppress(ImportError):
        spec = find_spec(package)
    if spec is None:
        return ""
    roots = [Path(location).parent for location in spec.submodule_search_locations or ()]
    beside = (path.name for root in roots for path in root.glob(f"{package}-*-info"))
    named = " ".join(sorted(beside))
    if named:
        return named
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return package


def _enabled() -> bool:
    return os.environ.get("SLIPWAY_KERNEL_CACHE", "1") != "0"


def _path(key: str) -> Path:
    return cache_dir() / "kernels" / key[:2] / key[2:]


def load(key: str) -> bytes | None:
    """Return what was stored under `key`, or None."""
    if not _enabled():
        return None
    try:
        data = _path(key).read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def store(key: str, content: bytes) -> None:
    """Keep `content` under `key`; a folder that cannot be written is no error.

    More than `LARGEST_BYTES` are not kept.
    """
    if not _enabled() or len(content) > LARGEST_BYTES:
        return
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink()
            raise
    except OSError:
        return
    if is_due(key, len(content)):
        sweep()


def is_due(key: str, size_bytes: int) -> bool:
    """Return whether the folder is looked at after a file: for one in SWEEP_BYTES / size_bytes."""
    return int(key[:8], 16) * SWEEP_BYTES < size_bytes << 32


def remembered(key: str, make: Callable[[], Any]) -> Any:
    """Return what `make` gives: texts, numbers and lists of them; from the cache where it is known.

    An empty `key` stands for nothing, so that it is made.
    """
    found = load(key) if key else None
    if found is not None:
        return json.loads(found)
    made = make()
    if key:
        store(key, json.dumps(made, separators=(",", ":")).encode())
    return made


def sweep(limit_bytes: int = LIMIT_BYTES) -> None:
    """Delete the files used longest ago until the folder holds at most `limit_bytes`."""
    found = []
    for path in (cache_dir() / "kernels").glob("*/*"):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit_bytes:
            return
        path.unlink(missing_ok=True)
        total -= size
