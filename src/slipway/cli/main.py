"""The entry point: runs a command and turns what a user can cause into one paragraph.

A command that fails says why on stderr in one paragraph; `exit_codes` has its codes.
``SLIPWAY_DEBUG=1`` shows the traceback as well.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn, TextIO

from slipway.cli.exit_codes import FAILED, FILE, INTERRUPTED, MISSING, UNREAD, USAGE, code_of
from slipway.errors import SlipwayError, internal_error, printable
from slipway.version import install_line

_LITTLE_BYTES = 1 << 20
_OPTIONS = {"dims": "--dim", "state": "--state"}  # of `compile`'s parameters
CUT_SHORT = (
    "a file of compiled Python (.pyc) is cut short, as a full disk leaves it; remove them, Python "
    "makes them again: find {} -name '*.pyc' -delete"
)
_KEPT = "\n\t"  # of what an error says: a compiler's words have lines


def main() -> NoReturn:
    """Run the command line of this process, and exit."""
    _open_streams()
    try:
        _run()
    except SystemExit as ended:
        unwritten, untold = _rest_of(sys.stdout, 1), _rest_of(sys.stderr, 2)
        # rich and typer, which print help and tables, exit with 1 when nobody reads any more.
        reasons = (unwritten, untold, ended.__context__)
        is_unread = any(isinstance(e, BrokenPipeError) for e in reasons)
        if is_unread and ended.code in (None, 0, FAILED, UNREAD):
            sys.exit(UNREAD)
        if unwritten is not None and not ended.code:
            fail(f"the output cannot be written: {unwritten.strerror}", code_of(unwritten))
        raise


def _open_streams() -> None:
    """Let streams that whoever began this process has closed lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(handle, mode))


def _rest_of(stream: TextIO, handle: int) -> OSError | None:
    """Write what was printed and lies in a buffer still; return why it cannot be."""
    try:
        stream.flush()
    except OSError as error:
        # Else the interpreter tries again as it ends, tells of it, and exits with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
        return error
    return None


def _run() -> NoReturn:
    try:
        import rich
        import typer

        del rich
    except ModuleNotFoundError as missing:
        fail(f"the command line needs {missing.name}: {install_line('cli')}", MISSING)
    from slipway.cli.app import app

    _print_every_name()
    try:
        code = app(prog_name="slipway", standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except typer.Abort as ended:  # the input ended where something was asked, or that of an import
        if "marshal" in str(ended.__cause__):
            fail(CUT_SHORT.format(shlex.quote(str(Path(__file__).parents[2]))), FILE)
        fail("nothing was answered, and nothing is done")
    except Exception as error:
        if hasattr(error, "format_message"):  # of typer, or of the click that older ones came with
            _refuse(error)
        if os.environ.get("SLIPWAY_DEBUG", "0") != "0":
            traceback.print_exc()
        if isinstance(error, MemoryError):
            fail("this needs more memory than the process gets")
        if not isinstance(error, (SlipwayError, OSError, ModuleNotFoundError)):
            error = internal_error(f"slipway {' '.join(sys.argv[1:2])}", error)
        if isinstance(error, BrokenPipeError) and error.filename is None:
            sys.exit(UNREAD)
        fail(describe(error), code_of(error))
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(error: Any) -> NoReturn:
    """Print what is wrong with the command line, and where its options are told."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help())
        sys.exit(USAGE)
    command = error.ctx.command_path if getattr(error, "ctx", None) else "slipway"
    message = _meant(error, command.removeprefix("slipway").strip())
    if _has_loose_target(message):
        message += '; a target of several words needs quotes: --target "llvm -mcpu=cortex-a72"'
    end = "" if message.endswith("?") else "."
    fail(f"{message}{end} `{command} --help` tells what there is.", USAGE)


def _meant(error: Any, command: str) -> str:
    """Return what is wrong, with what to write instead where another tool's word was written."""
    from slipway.cli.meant_options import command_advice, loose_advice, option_advice

    if (option := getattr(error, "option_name", None)) is not None and error.ctx is not None:
        known = {spelled for one in error.ctx.command.params for spelled in one.opts}
        if told := option_advice(command, option, known):
            return f"No such option: {option}; {told}"
    message: str = error.format_message().rstrip(".")
    unknown = re.match(r"No such command '([^']+)'", message)
    if unknown and (told := command_advice(command, unknown[1])):
        return f"No such command '{unknown[1]}'; {told}"
    if message.startswith("Got unexpected extra argument") and (told := loose_advice(command)):
        return f"{message}; {told}"
    return message


def _has_loose_target(message: str) -> bool:
    """Return whether an unknown option is a word of a target that is not in quotes."""
    words = sys.argv[1:]
    loose = any(word.startswith(("-mcpu=", "-mtriple=", "-mattr=", "-keys=")) for word in words)
    return loose and message.startswith("No such option")


def _print_every_name() -> None:
    """Let file names that are not UTF-8 be printed with their odd bytes escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def describe(error: Exception) -> str:
    """Return the words for a user: the message, or file and reason of a system error."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, SlipwayError):
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return message + (_full_folders() if error.errno in (errno.ENOSPC, errno.EDQUOT) else "")
    return _spelled(str(error)) or type(error).__name__


def _spelled(message: str) -> str:
    """Return a message that begins with a parameter's name with the option that gives it."""
    name, colon, told = message.partition(": ")
    return f"{_OPTIONS.get(name, name)}{colon}{told}"


def _full_folders() -> str:
    """Return which of the folders that are written to, the outputs' aside, have no space left."""
    from slipway.toolchain.runtime_library import cache_dir

    found = {"TMPDIR": _temporary(), "SLIPWAY_CACHE": cache_dir(), "the current folder": Path.cwd()}
    full = [
        f"{folder} ({name})"
        for name, folder in found.items()
        if folder is not None and shutil.disk_usage(folder).free < _LITTLE_BYTES
    ]
    return f". Full is {' and '.join(full)}: free some space, or name another." if full else ""


def _temporary() -> Path | None:
    """Return the folder of temporary files; None where none can be written any more."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        named = os.environ.get("TMPDIR")
        return Path(named) if named and Path(named).is_dir() else None


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Print one paragraph on stderr, with --json an object on stdout too, and exit with `code`."""
    with contextlib.suppress(OSError):  # nobody may read it any more, or the disk be full
        print(f"slipway: error: {printable(message, _KEPT)}", file=sys.stderr)
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):
            print(json.dumps({"error": message, "exit_code": code}), flush=True)
    sys.exit(code)
