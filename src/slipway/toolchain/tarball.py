"""Archives of objects (classic ``contrib.tar``)."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ArtifactError, ToolchainError
from slipway.toolchain.unpack import unpack_tar


def tar(output: str | os.PathLike[str], files: str | Sequence[str]) -> None:
    """Put files into an archive under their own names.

    Raises ToolchainError for two files of one name, and for one that is not there.
    """
    paths = [Path(f) for f in ([files] if isinstance(files, str) else files)]
    names = [path.name for path in paths]
    for path in paths:
        if not path.exists():
            raise ToolchainError(f"cannot put {path} into {output}: there is no such file")
        if names.count(path.name) > 1:
            raise ToolchainError(f"two files for {output} are called {path.name}: rename one")
    with tarfile.open(output, "w") as archive:
        for path in paths:
            archive.add(path, path.name)


tar.output_format = "tar"  # type: ignore[attr-defined]


def untar(tar_file: str | os.PathLike[str], directory: str | os.PathLike[str]) -> None:
    """Unpack an archive into a folder; nothing in it can leave the folder.

    Raises ToolchainError where the file is no archive, or a member would.
    """
    try:
        unpack_tar(tar_file, directory)
    except (ArtifactError, OSError) as error:
        raise ToolchainError(f"cannot unpack {tar_file} into {directory}: {error}") from error


def normalize_file_list_by_unpacking_tars(temp: object, file_list: Sequence[str]) -> list[str]:
    """Return the files with archives among them replaced by what they hold, unpacked in `temp`."""
    found: list[str] = []
    folder = Path(os.fspath(temp))  # type: ignore[call-overload]
    for number, name in enumerate(file_list):
        if not tarfile.is_tarfile(name):
            found.append(name)
            continue
        inside = folder / f"tar{number}"
        untar(name, inside)
        found += [str(path) for path in sorted(inside.rglob("*")) if path.is_file()]
    return found
