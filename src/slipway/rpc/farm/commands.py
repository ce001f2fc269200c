"""Commands that a tracker runs for an administrator: to switch a device's power, to start one more.

They stand in a file that the tracker is started with, not in a request.  No shell is run; {key},
{address} and {port} become a device's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.errors import FileError

MAX_COMMANDS = 40
_FIELDS = {"name", "run", "kinds", "farm", "timeout_s"}
_SAID = 400  # characters of what a command printed that are kept


@dataclass(frozen=True)
class Command:
    """One entry of the file; `farm`: it is about no device.  No `kinds`: of every kind."""

    name: str
    words: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    farm: bool = False
    timeout_s: float = 60.0

    def serves(self, key: str) -> bool:
        """Return whether it is offered for devices of a kind."""
        return not self.farm and (not self.kinds or key in self.kinds)


def read_commands(path: Path) -> list[Command]:
    """Read the file of commands: ``[[command]]`` with name, run, and kinds or farm = true.

    Raises SlipwayError with the entry at fault.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as a file of commands: {error}") from error
    entries = data.get("command", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise FileError(f'{path}: write each command as [[command]], name = "...", run = "..."')
    found = [_command(path, entry) for entry in entries]
    names = [command.name for command in found]
    for name in names:
        if names.count(name) > 1:
            raise FileError(f"{path}: two commands are called {name!r}")
    if len(found) > MAX_COMMANDS:
        raise FileError(f"{path}: {len(found)} commands, and {MAX_COMMANDS} are the maximum")
    return found


def _command(path: Path, entry: Mapping[str, Any]) -> Command:
    name, run = entry.get("name"), entry.get("run")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 40:
        raise FileError(f"{path}: a command needs a name of at most 40 characters, not {name!r}")
    where = f"{path}: the command {name!r}"
    if unknown := set(entry) - _FIELDS:
        raise FileError(f"{where} has {', '.join(sorted(unknown))}; it knows {sorted(_FIELDS)}")
    try:
        words = tuple(shlex.split(run)) if isinstance(run, str) else ()
    except ValueError as error:
        raise FileError(f"{where}: run = {run!r}: {error}") from error
    kinds, timeout_s = entry.get("kinds", []), entry.get("timeout_s", 60)
    if not words:
        raise FileError(f'{where} needs run = "a program and its words"')
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise FileError(f"{where}: kinds is a list of names")
    if not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 3600:
        raise FileError(f"{where}: timeout_s is a number of seconds up to 3600")
    return Command(name, words, tuple(kinds), bool(entry.get("farm", False)), float(timeout_s))


async def run_command(command: Command, values: Mapping[str, str]) -> tuple[str, str]:
    """Run a command to its end; return ok, failed or timeout, and the end of what it printed.

    `values` stand for {key}, {address} and {port}.
    """
    for name, value in values.items():
        if value.startswith("-"):  # a device says these: none may be an option
            return "failed", f"{name} is {value!r}"
    words = [_filled(word, values) for word in command.words]
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return "failed", f"{words[0]}: {error.strerror or error}"
    try:
        output, _ = await asyncio.wait_for(process.communicate(), command.timeout_s)
    except (TimeoutError, asyncio.CancelledError) as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(error, asyncio.CancelledError):
            raise
        return "timeout", f"it took more than {command.timeout_s:g} s, and was ended"
    said = output.decode("utf-8", "replace").strip()[-_SAID:]
    if process.returncode == 0:
        return "ok", said
    return "failed", f"exit code {process.returncode}: {said}".rstrip(": ")


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word
