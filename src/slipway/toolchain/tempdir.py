"""Temporary directories that go away with the object that stands for them.

A ``with`` block's goes away too where the process is asked to end: see `unwound`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import ClassVar

_REQUESTS = (signal.SIGTERM, signal.SIGHUP)  # both end a process where it stands, if none asks
_kept: set[Path] = set()  # folders of this process, outside of any block
_received: list[int] = []  # the signal that a block is left for


def _leave(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # whoever asks again need not wait for foreign code
    _received.append(number)
    sys.exit(128 + number)


def _end() -> None:
    """End as the signal would have ended the process: whoever caught the exit need not know."""
    for folder in [*_kept]:
        _remove(folder)
    signal.signal(_received[0], signal.SIG_DFL)
    os.kill(os.getpid(), _received[0])


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _kept.discard(folder)


def _take_default() -> None:
    """Let a forked process end at once: what is to be tidied is its parent's."""
    _kept.clear()
    for number in _REQUESTS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_take_default)


@contextlib.contextmanager
def unwound() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave a ``with`` block as Ctrl-C does: what it made is removed.

    The process ends by the signal then.  Handlers of the program's own stay, and only the main
    thread can have any.
    """
    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in _REQUESTS if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in taken:
            signal.signal(number, _leave)
        yield
    finally:
        for number in taken:
            if signal.getsignal(number) is _leave:
                signal.signal(number, signal.SIG_DFL)
        if taken and _received:
            _end()


@contextlib.contextmanager
def scratch(prefix: str = "slipway-", folder: Path | None = None) -> Iterator[Path]:
    """Give a directory that is removed when the block ends; in `folder`, else where TMPDIR says."""
    with unwound(), tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as name:
        yield Path(name)


@contextlib.contextmanager
def made_whole(folder: Path) -> Iterator[None]:
    """Make a directory in a block, whole or not at all: one that was not there, or empty.

    What others have put into it, or beside it, stays.  Raises FileExistsError where another
    process makes it at the same time.
    """
    with unwound():
        made = _made(folder)
        with _claimed(folder):
            is_empty = not any(folder.iterdir())
            try:
                yield
            except BaseException:
                if is_empty:
                    _emptied(folder)
                    for one in reversed(made):
                        with contextlib.suppress(OSError):  # something of others is in it
                            one.rmdir()
                raise


def _made(folder: Path) -> list[Path]:
    """Make a directory and those above it; return the ones that were not there, top first."""
    made = []
    for one in reversed((folder, *folder.absolute().parents)):
        try:
            one.mkdir()
            made.append(one)
        except OSError:
            if not one.is_dir():
                raise
    return made


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FileExistsError(
            f"{folder} is being made by another process; wait for it, or give another name"
        ) from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(handle)


def _emptied(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
        with contextlib.suppress(OSError):
            entry.unlink(missing_ok=True)


def lasting(prefix: str) -> Path:
    """Return a new directory that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _kept.add(folder)
    atexit.register(_remove, folder)
    return folder


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
        self._finalizer = weakref.finalize(self, _remove, self.path)
        _kept.add(self.path)
        self._unwound = contextlib.ExitStack()
        if self._keeps if keep_for_debug is None else keep_for_debug:
            self._finalizer.detach()
            _kept.discard(self.path)

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
        self._unwound.enter_context(unwound())
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
        self._unwound.close()


def tempdir(
    custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None
) -> TempDirectory:
    """Make a temporary directory; at `custom_path`, which must not exist yet, when given.

    With `keep_for_debug` nothing removes it.
    """
    return TempDirectory(custom_path, keep_for_debug)


def name_finished(made: Path, out: Path) -> None:
    """Give a finished file the name `out`; a device or a pipe of that name is written to."""
    if out.exists() and not (out.is_file() or out.is_dir()):
        out.write_bytes(made.read_bytes())
        made.unlink()
    else:
        made.replace(out)
