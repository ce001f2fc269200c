"""Writing artifacts: the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.runtime.artifact import FORMAT_VERSION, LIBRARY_MEMBER, SUMS_MEMBER
from slipway.toolchain.link import write_file


def tar_bytes(members: Mapping[str, bytes]) -> bytes:
    """Return a deterministic ustar archive: sorted names, no times, no owners."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(members):
            header = tarfile.TarInfo(name)
            header.size = len(members[name])
            header.mode = 0o644
            archive.addfile(header, io.BytesIO(members[name]))
    return out.getvalue()


def artifact_bytes(
    library: bytes,
    metadata: Mapping[str, Any],
    graph_json: str | None = None,
    graph_binary: bytes | None = None,
    params: bytes | bytearray | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the bytes of an artifact ``.tar``.

    `metadata` gets `format_version`, `kind` and `sha256` where it lacks them; `extra` are further
    members by name.
    """
    members: dict[str, bytes] = {LIBRARY_MEMBER: library, **(extra or {})}
    if graph_json is not None:
        members["graph.json"] = graph_json.encode()
    if graph_binary is not None:
        members["graph.bin"] = graph_binary
    if params is not None:
        members["params.bin"] = bytes(params)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    full = {
        "format_version": FORMAT_VERSION,
        "kind": "graph" if graph_binary is not None else "library",
        **metadata,
        "sha256": dict(sorted(sums.items())),
    }
    members["metadata.json"] = (json.dumps(full, indent=1, sort_keys=True) + "\n").encode()
    sums["metadata.json"] = hashlib.sha256(members["metadata.json"]).hexdigest()
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    members[SUMS_MEMBER] = lines.encode()
    return tar_bytes(members)


def write_artifact(path: str | os.PathLike[str], library: bytes, **parts: Any) -> Path:
    """Write `artifact_bytes(library, **parts)` to a file, whole or not at all."""
    out = Path(path)
    write_file(out, artifact_bytes(library, **parts))
    return out
