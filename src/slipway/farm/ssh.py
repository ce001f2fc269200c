"""Another machine, reached with the system's ``ssh``: commands for it, and files for it.

Nothing passes through a shell of this machine.  There, `ssh` hands one line to the login shell: it
is ``sh -c SCRIPT``, quoted, so that it means the same to each of them.  Files go through ``cat``
and not ``scp``, because small systems have no SFTP server.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slipway.errors import (
    ArgumentValueError,
    DeviceError,
    FileError,
    RPCConnectionError,
    RPCTimeoutError,
    ToolchainError,
)

CONNECT_S = 10.0
COMMAND_S = 600.0  # a server of some megabytes over a slow radio
SSH_FAILED = 255

# What `ssh` says -> what that means, and what to do; the first that is found counts.
_REASONS: tuple[tuple[str, str], ...] = (
    (
        "Could not resolve hostname",
        "no machine of that name is known; see the spelling, or write its address",
    ),
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one known here: another machine, or one that was installed anew. "
        "If you know why, `ssh-keygen -R {known}` forgets the old key",
    ),
    (
        "Host key verification failed",
        "its host key is not known here yet; `ssh {way}` once by hand shows and keeps it",
    ),
    (
        "Permission denied",
        "it does not let you in without a password; `ssh-copy-id {way}` gives it your key, or "
        "name one with --identity",
    ),
    ("Connection refused", "nothing listens at its ssh port; switch ssh on there, or --ssh-port"),
    ("No route to host", "there is no way to it; is it on, and in this network?"),
    ("Network is unreachable", "there is no way to it; is this machine in a network?"),
    ("timed out", "it does not answer; is it on, and in this network?"),
)


@dataclass(frozen=True)
class Host:
    """A machine as ``[USER@]NAME``, and how to log in there."""

    address: str
    port: int | None = None
    identity: str | None = None
    timeout_s: float = CONNECT_S

    def __post_init__(self) -> None:
        text = self.address
        if not text or text.startswith("-") or not text.isprintable() or re.search(r"\s", text):
            raise ArgumentValueError(
                f"{text!r} is no machine; write USER@HOST, pi@raspberrypi.local"
            )
        if text.rpartition("@")[2].count(":") == 1:
            host, _, port = text.rpartition(":")
            raise ArgumentValueError(f"{text!r}: write {host!r}, and --ssh-port {port} beside it")
        if self.identity is not None and not Path(self.identity).is_file():
            raise FileError(f"--identity {self.identity}: there is no such file")

    def command(self, script: str) -> list[str]:
        """Return the command that runs a script of ``sh`` there."""
        return [*self._ssh(), "--", self.address, shlex.join(["sh", "-c", script])]

    def run(self, script: str, *, send: bytes | None = None) -> str:
        """Run a script there, with `send` as its input; return what it prints.

        Raises ToolchainError without ``ssh``, RPCConnectionError where there is no way in, and
        DeviceError with what it said when the script fails.
        """
        command = self.command(script)
        try:
            done = subprocess.run(
                command, input=send or b"", capture_output=True, timeout=COMMAND_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise RPCTimeoutError(
                f"{self.address} did not end a command in {COMMAND_S:g} s"
            ) from None
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode == SSH_FAILED:
            raise RPCConnectionError(self._reason(said))
        if done.returncode != 0:
            last = said.splitlines()[-1] if said else f"it ended with {done.returncode}"
            raise DeviceError(f"{self.address}: {last}")
        return done.stdout.decode("utf-8", "replace")

    def network_name(self) -> str:
        """Return its name or address in the network; for an alias that of ~/.ssh/config."""
        command = [*self._ssh(), "-G", "--", self.address]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        found = re.search(r"^hostname (\S+)$", done.stdout, re.MULTILINE)
        return found[1] if found else self.address.rpartition("@")[2]

    def _ssh(self) -> list[str]:
        program = shutil.which("ssh")
        if program is None:
            raise ToolchainError(
                "ssh is not installed; on Debian or Ubuntu: sudo apt-get install openssh-client"
            )
        # Nobody is asked: a password or a doubt about a host key is an error that says what to do.
        command = [
            program,
            "-o",
            "BatchMode=yes",
            "-o",
            f"ConnectTimeout={max(1, round(self.timeout_s))}",
        ]
        command += ["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"]
        if self.port is not None:
            command += ["-p", str(self.port)]
        if self.identity is not None:
            command += ["-i", os.path.abspath(self.identity)]  # noqa: PTH100 - a link stays a link
        return command

    def _reason(self, said: str) -> str:
        host = self.address.rpartition("@")[2]
        known = host if self.port in (None, 22) else shlex.quote(f"[{host}]:{self.port}")
        way = f"{self.address}" if self.port is None else f"-p {self.port} {self.address}"
        for cause, meaning in _REASONS:
            if cause in said:
                return f"{self.address}: {meaning.format(way=way, known=known)}"
        last = said.splitlines()[-1] if said else "it said nothing"
        return f"{self.address} cannot be reached with ssh: {last}"
