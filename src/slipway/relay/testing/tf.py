"""Models that TensorFlow publishes as archives, under classic's names."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from slipway.errors import DownloadError
from slipway.toolchain.download import download_testdata
from slipway.toolchain.unpack import unpack_tar


def convert_to_list(x: Any) -> list[Any]:
    """Return `x` where it is a list, else a list of it."""
    return x if isinstance(x, list) else [x]


def get_workload_official(model_url: str, model_sub_path: str, retries: int = 5) -> str:
    """Fetch an archive (.tgz, .gz, .zip), unpack it, and return the path of a file in it.

    `retries` is classic's: the fetching decides on its own what it tries again.  Raises
    DownloadError where the archive cannot be had, or lacks the file.
    """
    del retries
    archive = Path(download_testdata(model_url, Path(model_url).name, module=["tf", "official"]))
    folder = archive.parent
    if archive.suffix in (".tgz", ".gz", ".tar"):
        unpack_tar(archive, folder)
    elif archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    else:
        raise DownloadError(f"{model_url} is no archive: its name ends in .tgz, .gz or .zip")
    found = folder / model_sub_path
    if not found.exists():
        raise DownloadError(f"the archive {model_url} holds no {model_sub_path}")
    return str(found)
