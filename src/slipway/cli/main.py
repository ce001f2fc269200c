"""The entry point: runs a command and turns what a user can cause into one paragraph.

A command that fails says why on stderr in one paragraph; `exit_codes` has its codes.
``SLIPWAY_DEBUG=1`` shows the traceback as well.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

from slipway.cli.exit_codes import FAILED, INTERRUPTED, MISSING, code_of
from slipway.errors import SlipwayError, internal_error
from slipway.version import install_line


def main() -> NoReturn:
    """Run the command line of this process, and exit."""
    try:
        import rich
        import typer

        del rich, typer
    except ModuleNotFoundError as missing:
        fail(f"the command line needs {missing.name}: {install_line('cli')}", MISSING)
    from slipway.cli.app import app

    try:
        app(prog_name="slipway")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if os.environ.get("SLIPWAY_DEBUG", "0") != "0":
            traceback.print_exc()
        if isinstance(error, MemoryError):
            fail("this needs more memory than the process gets")
        if not isinstance(error, (SlipwayError, OSError, ModuleNotFoundError)):
            error = internal_error(f"slipway {' '.join(sys.argv[1:2])}", error)
        fail(describe(error), code_of(error))
    sys.exit(0)


def describe(error: Exception) -> str:
    """Return the words for a user: the message, or file and reason of a system error."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, SlipwayError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Print one paragraph on stderr and exit with `code`."""
    print(f"slipway: error: {message}", file=sys.stderr)
    sys.exit(code)
