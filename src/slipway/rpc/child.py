"""Python processes that this package starts: servers, trackers, a board's project."""

from __future__ import annotations

import os
from pathlib import Path


def child_environment(**more: str) -> dict[str, str]:
    """Return this process's environment for another Python, which finds this package first."""
    package_root = str(Path(__file__).resolve().parents[2])
    search = filter(None, [package_root, os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search), **more}
