"""The client's half of the Project API: start a directory's server, and call it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import slipway.version
from slipway.errors import SlipwayError
from slipway.micro.project_api import server
from slipway.rpc.child import child_environment

SERVER_LAUNCH_SCRIPT_FILENAME = "launch_microtvm_api_server.sh"
SERVER_PYTHON_FILENAME = "microtvm_api_server.py"
_GRACE_S = 5.0


class ProjectAPIErrorBase(SlipwayError):
    """Base class of the client's own errors."""


class ConnectionShutdownError(ProjectAPIErrorBase):
    """The server ended, or the client was shut down."""


class MalformedReplyError(ProjectAPIErrorBase):
    """The server's reply is not a JSON-RPC reply."""


class MismatchedIdError(ProjectAPIErrorBase):
    """The reply answers another request."""


class ProjectAPIServerNotFoundError(ProjectAPIErrorBase):
    """The directory holds no Project API server."""


class UnsupportedProtocolVersionError(ProjectAPIErrorBase):
    """The server speaks another version of the protocol."""


class ProjectAPIClient:
    """Calls one server through a pair of pipes; one request at a time."""

    def __init__(
        self,
        read_file: BinaryIO,
        write_file: BinaryIO,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.read_file = read_file
        self.write_file = write_file
        self.process = process
        self.is_shutdown = False
        self._next_id = 1

    def shutdown(self) -> None:
        """Close the pipes, which ends the server, and wait for its end."""
        if self.is_shutdown:
            return
        self.is_shutdown = True
        with contextlib.suppress(OSError):
            self.write_file.close()
        self.read_file.close()
        if self.process is not None:
            try:
                self.process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.shutdown()

    def _request(self, method: str, **params: Any) -> Any:
        if self.is_shutdown:
            raise ConnectionShutdownError("the connection to the project's server is closed")
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": self._next_id}
        self._next_id += 1
        try:
            self.write_file.write(json.dumps(request).encode() + b"\n")
            self.write_file.flush()
            line = self.read_file.readline()
        except OSError:
            line = b""
        if not line:
            self.shutdown()
            raise ConnectionShutdownError(
                f"the project's server ended during {method}; its messages are on standard error"
            )
        return self._result(line, method, request["id"])

    @staticmethod
    def _result(line: bytes, method: str, request_id: Any) -> Any:
        try:
            reply = json.loads(line)
        except ValueError:
            raise MalformedReplyError(f"{method}: the reply is no JSON: {line[:80]!r}") from None
        if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0":
            raise MalformedReplyError(f"{method}: the reply lacks 'jsonrpc': '2.0': {reply!r}")
        if reply.get("id") != request_id:
            raise MismatchedIdError(
                f"{method}: reply id {reply.get('id')!r} is not the request's, {request_id}"
            )
        if reply.get("error") is not None:
            raise server.JSONRPCError.from_json(f"calling method {method}", reply["error"])
        if "result" not in reply:
            raise MalformedReplyError(f"{method}: the reply has no 'result': {reply!r}")
        return reply["result"]

    def server_info_query(self, tvm_version: str = slipway.version.VERSION) -> dict[str, Any]:
        """Return the server's description; raises for another protocol version."""
        reply: dict[str, Any] = self._request("server_info_query", tvm_version=tvm_version)
        version = reply.get("protocol_version")
        if version != server.PROTOCOL_VERSION:
            raise UnsupportedProtocolVersionError(
                f"the project's server speaks version {version} of the Project API; this client "
                f"speaks version {server.PROTOCOL_VERSION}"
            )
        return reply

    def generate_project(
        self,
        model_library_format_path: str | Path,
        standalone_crt_dir: str | Path,
        project_dir: str | Path,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a project directory from a template."""
        self._request(
            "generate_project",
            model_library_format_path=str(model_library_format_path),
            standalone_crt_dir=str(standalone_crt_dir),
            project_dir=str(project_dir),
            options=dict(options or {}),
        )

    def build(self, options: Mapping[str, Any] | None = None) -> None:
        """Compile the project."""
        self._request("build", options=dict(options or {}))

    def flash(self, options: Mapping[str, Any] | None = None) -> None:
        """Program the device."""
        self._request("flash", options=dict(options or {}))

    def open_transport(self, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Open the byte stream; returns {"timeouts": {...}} in seconds."""
        reply: dict[str, Any] = self._request("open_transport", options=dict(options or {}))
        return reply

    def close_transport(self) -> None:
        """Close the byte stream."""
        self._request("close_transport")

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        """Read 1 to `n` bytes."""
        reply = self._request("read_transport", n=n, timeout_sec=timeout_sec)
        return base64.b85decode(reply["data"])

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        """Write all of `data`."""
        text = base64.b85encode(data).decode("ascii")
        self._request("write_transport", data=text, timeout_sec=timeout_sec)


def instantiate_from_dir(project_dir: str | Path, debug: bool = False) -> ProjectAPIClient:
    """Start the server of a template or project directory and connect to it."""
    folder = Path(project_dir).resolve()
    python_script = folder / SERVER_PYTHON_FILENAME
    launch_script = folder / SERVER_LAUNCH_SCRIPT_FILENAME
    if python_script.is_file():
        command = [sys.executable, "-m", "slipway.micro.project_api.launch", str(python_script)]
    elif launch_script.is_file():
        command = [str(launch_script)]
    else:
        raise ProjectAPIServerNotFoundError(
            f"{folder} is no project and no template: it holds neither {SERVER_PYTHON_FILENAME} "
            f"nor {SERVER_LAUNCH_SCRIPT_FILENAME}. `slipway micro create` makes a project"
        )
    server_reads, client_writes = os.pipe()
    client_reads, server_writes = os.pipe()
    command += ["--read-fd", str(server_reads), "--write-fd", str(server_writes)]
    process = subprocess.Popen(
        [*command, *(["--debug"] if debug else [])],
        pass_fds=(server_reads, server_writes),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=child_environment(),
    )
    os.close(server_reads)
    os.close(server_writes)
    return ProjectAPIClient(os.fdopen(client_reads, "rb"), os.fdopen(client_writes, "wb"), process)
