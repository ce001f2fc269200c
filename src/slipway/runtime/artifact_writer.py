"""Writing artifacts: the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.runtime.arrays.array_file import release
from slipway.runtime.artifact import FORMAT_VERSION, LIBRARY_MEMBER, SUMS_MEMBER
from slipway.toolchain.link import write_file


def tar_bytes(members: Mapping[str, bytes]) -> bytes:
    """Return a deterministic ustar archive: sorted names, no times, no owners."""
    return b"".join(_archived({name: (content,) for name, content in members.items()}))


def _archived(members: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """Yield the pieces of an archive of members in pieces, which are not copied."""
    total = 0
    for name in sorted(members):
        header = tarfile.TarInfo(name)
        header.size = sum(map(len, members[name]))
        header.mode = 0o644
        yield header.tobuf(tarfile.USTAR_FORMAT)
        for piece in members[name]:
            yield piece
            release(piece)
        yield b"\0" * (-header.size % tarfile.BLOCKSIZE)
        total += tarfile.BLOCKSIZE + header.size + -header.size % tarfile.BLOCKSIZE
    end = 2 * tarfile.BLOCKSIZE
    yield b"\0" * (end + -(total + end) % tarfile.RECORDSIZE)


def artifact_pieces(
    library: bytes,
    metadata: Mapping[str, Any],
    graph_json: str | None = None,
    graph_binary: bytes | None = None,
    params: bytes | bytearray | Sequence[Any] | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> Iterator[Any]:
    """Yield the bytes of an artifact ``.tar`` in pieces.

    `metadata` gets `format_version`, `kind` and `sha256` where it lacks them; `params` may be in
    pieces too; `extra` are further members by name.
    """
    members: dict[str, Sequence[Any]] = {LIBRARY_MEMBER: (library,)}
    members |= {name: (content,) for name, content in (extra or {}).items()}
    if graph_json is not None:
        members["graph.json"] = (graph_json.encode(),)
    if graph_binary is not None:
        members["graph.bin"] = (graph_binary,)
    if params is not None:
        members["params.bin"] = (params,) if isinstance(params, bytes | bytearray) else params
    sums = {name: _sum(pieces) for name, pieces in members.items()}
    full = {
        "format_version": FORMAT_VERSION,
        "kind": "graph" if graph_binary is not None else "library",
        **metadata,
        "sha256": dict(sorted(sums.items())),
    }
    members["metadata.json"] = ((json.dumps(full, indent=1, sort_keys=True) + "\n").encode(),)
    sums["metadata.json"] = _sum(members["metadata.json"])
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    members[SUMS_MEMBER] = (lines.encode(),)
    return _archived(members)


def artifact_bytes(library: bytes, metadata: Mapping[str, Any], **parts: Any) -> bytes:
    """Return the bytes of an artifact ``.tar``, of what `artifact_pieces` takes."""
    return b"".join(artifact_pieces(library, metadata, **parts))


def write_artifact(path: str | os.PathLike[str], library: bytes, **parts: Any) -> Path:
    """Write `artifact_pieces(library, **parts)` to a file, whole or not at all."""
    out = Path(path)
    write_file(out, artifact_pieces(library, **parts))
    return out


def _sum(pieces: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        release(piece)
    return digest.hexdigest()
