"""Fetching files over HTTP (classic ``contrib.download``)."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from slipway.errors import DownloadError
from slipway.toolchain.tempdir import name_finished, unwound

TIMEOUT_S = 60


def download(
    url: str,
    path: str | os.PathLike[str],
    overwrite: bool = False,
    size_compare: bool = False,
    retries: int = 3,
) -> None:
    """Fetch `url` into the file `path`, unless it is there already.

    With `size_compare` a file there of another size than the one at `url` is fetched again, with
    `overwrite` any.  The file appears whole or not at all.  Raises DownloadError after `retries`
    attempts.
    """
    target = Path(path)
    if target.is_dir():
        raise DownloadError(f"cannot fetch {url} into {target}, which is a folder: name a file")
    if target.is_file() and not overwrite:
        if not size_compare:
            return
        with _open(url) as answer:
            if str(target.stat().st_size) == answer.headers.get("Content-Length"):
                return
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(max(retries, 1)):
        try:
            _fetch(url, target)
            return
        except DownloadError as error:
            if attempt + 1 >= retries or not isinstance(error.__cause__, TimeoutError):
                raise
            time.sleep(1)


def _fetch(url: str, target: Path) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with unwound(), os.fdopen(handle, "wb") as out, _open(url) as answer:
            shutil.copyfileobj(answer, out)
            expected = answer.headers.get("Content-Length")
            if expected is not None and out.tell() != int(expected):
                raise DownloadError(
                    f"{url} ended after {out.tell()} of {expected} bytes: try again"
                )
        name_finished(Path(name), target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, DownloadError) or not isinstance(error, OSError):
            raise
        raise DownloadError(f"cannot fetch {url}: {error}") from error


def _open(url: str) -> Any:
    """Return the answer of a server.  Raises DownloadError for no address, and for a refusal."""
    try:
        return urllib.request.urlopen(url, timeout=TIMEOUT_S)
    except ValueError as error:
        raise DownloadError(
            f"{url!r} is no address: write it as https://..., or file:///..."
        ) from error
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        cause = getattr(error, "reason", error)
        reason = cause if isinstance(cause, BaseException) else error
        raise DownloadError(f"cannot fetch {url}: {error}") from reason


def download_testdata(
    url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False
) -> str:
    """Fetch `url` into a folder that is kept between runs, and return where it lies there.

    The folder is $TEST_DATA_ROOT_PATH, or ~/.slipway_test_data; `module` names folders within it.
    """
    root = Path(os.environ.get("TEST_DATA_ROOT_PATH", Path.home() / ".slipway_test_data"))
    folders = [module] if isinstance(module, str) else list(module or ())
    path = root.joinpath(*folders, relpath)
    download(url, path, overwrite=overwrite, size_compare=False)
    return str(path)
