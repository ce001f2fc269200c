"""Where a command writes, looked at before its work: compiling first and failing then costs hours.

What cannot be written is an error of the system, with what to do about it; what would overwrite the
command's own input is one of the command line.
"""

from __future__ import annotations

import os
from pathlib import Path

from slipway.cli.exit_codes import OptionError
from slipway.toolchain.link import where_it_lies


def need_output(option: str, path: Path | None, *inputs: Path | None) -> None:
    """Raise OSError where no file can be written at `path`; None is no file at all.

    Raises OptionError where that is one of the files that the command reads.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder: give the name of a file in it")
    for given in inputs:
        if given is not None and given.exists() and path.exists() and path.samefile(given):
            raise OptionError(f"{option} {path} is what the command reads: give another name")
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe
        return
    need_folder(option, where_it_lies(path).parent)


def need_output_folder(option: str, path: Path | None) -> None:
    """Raise OSError where the folder `path` cannot be made, with those that it is in."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{option} {path} is a file: name a folder, which may be new")
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    need_folder(option, existing)


def need_folder(option: str, folder: Path) -> None:
    """Raise OSError for a folder that is not there, or that this user cannot write in."""
    if not folder.exists():
        raise FileNotFoundError(
            f"{option}: there is no folder {folder}; make it first, or give another name"
        )
    if not folder.is_dir():
        raise NotADirectoryError(f"{option}: {folder} is a file, and no folder to write in")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{option}: this user cannot write in {folder}; give another name")
