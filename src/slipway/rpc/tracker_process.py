"""A tracker in a process of its own: ``tracker = rpc.Tracker("127.0.0.1", 9190)``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from slipway.rpc.server import listen


class Tracker:
    """A tracker, ended by `terminate` or with this process; `port` is where it listens.

    Parameters are classic TVM's; `token` is what peers from other machines must have, by default
    the environment's SLIPWAY_RPC_TOKEN.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9290,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        token: str | None = None,
    ) -> None:
        del reuse_addr, timeout
        self.host = host
        watch_read, self._watch_write = os.pipe()
        with listen(host, port, port_end) as listener:
            self.port: int = listener.getsockname()[1]
            command = [sys.executable, "-m", "slipway.exec.rpc_tracker"]
            command += ["--listen-fd", str(listener.fileno()), "--watch-fd", str(watch_read)]
            command += ["--silent"] if silent else []
            environment = dict(os.environ)
            search = environment.get("PYTHONPATH", "")
            package_root = str(Path(__file__).resolve().parents[2])
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_root, search]))
            if token is not None:
                environment["SLIPWAY_RPC_TOKEN"] = token
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=(listener.fileno(), watch_read),
                env=environment,
                start_new_session=True,
            )
        os.close(watch_read)

    def terminate(self) -> None:
        """End the tracker; its devices try to reach it again until they end."""
        if self._process is None:
            return
        process, self._process = self._process, None
        os.close(self._watch_write)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            with contextlib.suppress(Exception):
                self.terminate()
