"""Temporary directories that go away with the object that stands for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar


class TempDirectory:
    """A directory, removed when `remove` is called, when a ``with`` block ends, or at collection.

    Attributes: `path`, a `Path`; `temp_dir`, the same as a string (the classic name).
    """

    _keeps: ClassVar[bool] = False

    def __init__(
        self,
        custom_path: str | os.PathLike[str] | None = None,
        keep_for_debug: bool | None = None,
    ) -> None:
        if custom_path is None:
            self.path = Path(tempfile.mkdtemp(prefix="slipway-"))
        else:
            self.path = Path(custom_path)
            self.path.mkdir(parents=True)
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        if self._keeps if keep_for_debug is None else keep_for_debug:
            self._finalizer.detach()

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Let directories that are made in a ``with`` block stay, for somebody to look into."""
        before = cls._keeps
        cls._keeps = set_to
        try:
            yield
        finally:
            cls._keeps = before

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


def tempdir(
    custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None
) -> TempDirectory:
    """Make a temporary directory; at `custom_path`, which must not exist yet, when given.

    With `keep_for_debug` nothing removes it.
    """
    return TempDirectory(custom_path, keep_for_debug)
