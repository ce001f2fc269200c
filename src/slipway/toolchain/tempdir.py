"""Temporary directories that go away with the object that stands for them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class TempDirectory:
    """A directory, removed when `remove` is called, when a ``with`` block ends, or at collection.

    Attributes: `path`, a `Path`; `temp_dir`, the same as a string (the classic name).
    """

    def __init__(self, custom_path: str | os.PathLike[str] | None = None) -> None:
        if custom_path is None:
            self.path = Path(tempfile.mkdtemp(prefix="slipway-"))
        else:
            self.path = Path(custom_path)
            self.path.mkdir(parents=True)
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    @property
    def temp_dir(self) -> str:
        """The path as a string."""
        return str(self.path)

    def relpath(self, name: str) -> str:
        """Return the path of `name` inside the directory, as a string; nothing is created."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        """Return the names in the directory, sorted."""
        return sorted(entry.name for entry in self.path.iterdir())

    def remove(self) -> None:
        """Delete the directory and all that is in it, now; a second call does nothing."""
        self._finalizer()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __fspath__(self) -> str:
        return str(self.path)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def tempdir(custom_path: str | os.PathLike[str] | None = None) -> TempDirectory:
    """Make a temporary directory; at `custom_path`, which must not exist yet, when given."""
    return TempDirectory(custom_path)
