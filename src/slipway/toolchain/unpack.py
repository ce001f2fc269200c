"""Unpacking archives that came from elsewhere: nothing is written outside the folder named.

`tarfile` has filters for this from Python 3.11.4 on; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from slipway.errors import ArtifactError

# What `tarfile` raises for damaged archives; it recurses where headers announce further headers.
TAR_ERRORS = (
    tarfile.TarError, EOFError, OverflowError, RecursionError, gzip.BadGzipFile, zlib.error,
    lzma.LZMAError,
)  # fmt: skip


def unpack_tar(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Unpack the files and folders of a tar archive (compressed or not) into `folder`.

    Owners, times and modes other than "executable" are not taken over. Raises ArtifactError for
    what is no tar archive, and for one with links, devices, holes (a file that is larger than what
    the archive has of it) or names that lead out of the folder.
    """
    target = Path(folder)
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                _unpack_member(archive, member, target, os.fspath(path))
    except (*TAR_ERRORS, ValueError) as error:
        raise ArtifactError(f"{path} is no tar archive, or it is damaged: {error}") from error


def _unpack_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, archive_name: str
) -> None:
    name = PurePosixPath(member.name)
    is_plain = member.isdir() or (member.isfile() and not member.issparse())
    if name.is_absolute() or ".." in name.parts or not is_plain:
        kind = "a file outside its folder" if is_plain else "a link or a file with holes"
        raise ArtifactError(
            f"{archive_name} would unpack {kind}, {member.name!r}: it is damaged or not to be "
            "trusted. Nothing of it was used."
        )
    out = target / name
    if member.isdir():
        out.mkdir(parents=True, exist_ok=True)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    assert content is not None
    with content, out.open("wb") as file:
        shutil.copyfileobj(content, file)
    out.chmod(0o755 if member.mode & 0o100 else 0o644)
