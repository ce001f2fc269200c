"""Unpacking archives that came from elsewhere: nothing is written outside the folder named.

`tarfile` has filters for this from Python 3.11.4 on; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from slipway.errors import ArtifactError


def unpack_tar(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Unpack the files and folders of a tar archive (compressed or not) into `folder`.

    Owners, times and modes other than "executable" are not taken over. Raises ArtifactError for
    what is no tar archive, and for one with links, devices or names that lead out of the folder.
    """
    target = Path(folder)
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                _unpack_member(archive, member, target, os.fspath(path))
    except tarfile.TarError as error:
        raise ArtifactError(f"{path} is no tar archive, or it is damaged: {error}") from error


def _unpack_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, archive_name: str
) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
        kind = "a file outside its folder" if member.isfile() or member.isdir() else "a link"
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
