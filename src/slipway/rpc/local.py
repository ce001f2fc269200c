"""Sessions with a server of one's own: in a fork of this process, or in a program one starts."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from slipway.rpc import checks, native
from slipway.rpc.child import child_environment
from slipway.rpc.client import Output, RPCSession, greeted
from slipway.rpc.server import ServerOptions, serve


class LocalSession(RPCSession):
    """A session with a fork of this process, which has the functions registered here by then.

    `output` is that of `connect`.  The fork ends with the session.
    """

    def __init__(
        self,
        session_timeout: float = 0,
        *,
        options: ServerOptions | None = None,
        output: bool | Output = False,
    ) -> None:
        native.library()
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(ours, theirs, options or ServerOptions(is_quiet=True))
        theirs.close()
        ours.settimeout(10)
        super().__init__(
            *greeted(ours, "local", "", session_timeout, None, output, wants_proof=False)
        )

    def close(self) -> None:
        """End the session and its process."""
        super().close()
        pid, self._pid = self._pid, 0
        if pid:
            os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def __del__(self) -> None:
        if getattr(self, "_pid", 0):
            with contextlib.suppress(Exception):
                self.close()


def _serve(ours: socket.socket, theirs: socket.socket, options: ServerOptions) -> None:
    status = 1
    try:
        os.setsid()
        ours.close()
        status = serve(None, options, connection=theirs.detach())
    except BaseException:
        logging.exception("the local RPC session's server ended")
    finally:
        os._exit(status)


class PopenSession(RPCSession):
    """A session over the standard input and output of a program that this starts.

    `command`: the path of a static device server; or a whole command that ends in one with
    ``--stdio``, as ``["ssh", "board", "./slipway-server", "--stdio"]``; None is the Python server
    of this installation.  The program ends with the session.
    """

    def __init__(
        self,
        command: str | Path | Sequence[str] | None = None,
        session_timeout: float = 0,
        *,
        timeout: float = 30.0,
        output: bool | Output = False,
        is_quiet: bool = False,
    ) -> None:
        checks.seconds(timeout, "timeout")
        environment = None
        if command is None:
            native.library()  # building it may take longer than a greeting waits
            command = [sys.executable, "-m", "slipway.exec.rpc_server", "--stdio", "--silent"]
            environment = child_environment()
        elif isinstance(command, str | Path):
            command = [str(command), "--stdio"]
        arguments = [str(part) for part in command]
        ours, theirs = socket.socketpair()
        with theirs:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                arguments,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL if is_quiet else None,
                env=environment,
                start_new_session=True,
            )
        ours.settimeout(timeout)
        name = f"the program {arguments[0]}"
        try:
            super().__init__(
                *greeted(ours, name, "", session_timeout, None, output, wants_proof=False)
            )
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """End the session and the program."""
        super().close()
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None and process.returncode is None:
            with contextlib.suppress(Exception):
                self.close()
