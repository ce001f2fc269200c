"""``tvmc.main``: the command line, from a script."""

from __future__ import annotations

import sys
from typing import NoReturn

from slipway.driver.tvmc.commands import main as _main

__all__ = ["_main", "main"]


def main() -> NoReturn:
    """Run this process's command line, and exit."""
    sys.exit(_main(sys.argv[1:]))
