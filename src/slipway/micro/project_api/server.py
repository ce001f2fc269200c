"""The server's half of the Project API: what a `microtvm_api_server.py` imports, or copies.

A project is driven by a process of its own, so that a template may use whatever it likes.  One
request is one line of JSON-RPC 2.0 on a pipe, one reply one line on another; bytes travel in
base 85.  Names and protocol are classic TVM's (protocol version 1), so its templates work.  This
file needs the standard library only.
"""

from __future__ import annotations

import abc
import argparse
import base64
import enum
import inspect
import json
import logging
import os
import pathlib
import re
import select
import sys
import time
import traceback
import typing

PROTOCOL_VERSION = 1
_LOG = logging.getLogger(__name__)


class _OptionFields(typing.NamedTuple):
    name: str
    choices: typing.Any = None
    default: typing.Any = None
    type: str = "str"
    required: typing.Any = None
    optional: typing.Any = None
    help: str = ""


class ProjectOption(_OptionFields):
    """An option of a template: for which methods it is required or optional, its type and help."""

    def __new__(cls, name: str, **fields: typing.Any) -> ProjectOption:
        """Make an option; everything but the name is given by keyword."""
        if fields.get("required") is None and fields.get("optional") is None:
            raise ValueError(f"option {name!r} must be required or optional for some method")
        if "type" not in fields:
            raise ValueError(f"option {name!r} has no type")
        return super().__new__(cls, name, **fields)

    def replace(self, attributes: dict[str, typing.Any]) -> ProjectOption:
        """Return the option with some fields changed."""
        return self._replace(**attributes)


class ServerInfo(typing.NamedTuple):
    """What a server says about itself."""

    platform_name: str
    is_template: bool
    model_library_format_path: pathlib.Path | str | None
    project_options: list[ProjectOption]


class TransportTimeouts(typing.NamedTuple):
    """Seconds to wait: between two greetings, for the greeting, and for a reply; 0 for ever."""

    session_start_retry_timeout_sec: float
    session_start_timeout_sec: float
    session_established_timeout_sec: float


class ErrorCode(enum.IntEnum):
    """JSON-RPC's codes, and the one for whatever a handler raised."""

    SERVER_ERROR = -32000
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603


class JSONRPCError(Exception):
    """An error as it travels: a code, a sentence, and any further data."""

    def __init__(
        self, code: int, message: str, data: typing.Any = None, client_context: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.client_context = client_context

    def to_json(self) -> dict[str, typing.Any]:
        """Return the `error` member of a reply."""
        return {"code": int(self.code), "message": self.message, "data": self.data}

    def __str__(self) -> str:
        text = f"{self.client_context}: " if self.client_context else ""
        text += self.message
        if isinstance(self.data, dict) and self.data.get("traceback"):
            return f"{text}\n{self.data['traceback']}"
        return f"{text}\n{self.data!r}" if self.data else text

    @classmethod
    def from_json(
        cls, client_context: str | None, json_error: dict[str, typing.Any]
    ) -> JSONRPCError:
        """Rebuild the error of a reply; a known `ServerError` gets its own class back."""
        code, message = json_error["code"], json_error["message"]
        data = json_error.get("data")
        if code != ErrorCode.SERVER_ERROR:
            return JSONRPCError(code, message, data, client_context)
        for known in ServerError.__subclasses__():
            if known.__name__ == message:
                return known(data=data, client_context=client_context)
        return ServerError(message, data, client_context)


class ServerError(JSONRPCError):
    """Something failed while a valid request was handled."""

    def __init__(
        self,
        message: str | None = None,
        data: typing.Any = None,
        client_context: str | None = None,
    ) -> None:
        name = type(self).__name__
        super().__init__(ErrorCode.SERVER_ERROR, message or name, data, client_context)

    @classmethod
    def from_exception(cls, exc: BaseException, **fields: typing.Any) -> ServerError:
        """Wrap an exception together with its traceback."""
        error = cls(**fields)
        error.set_traceback(traceback.TracebackException.from_exception(exc).format())
        return error

    def set_traceback(self, lines: typing.Iterable[str]) -> None:
        """Keep the server's traceback, unless there is one already."""
        data = dict(self.data) if isinstance(self.data, dict) else {}
        data.setdefault("traceback", "".join(lines))
        self.data = data


class TransportClosedError(ServerError):
    """The transport cannot be used any more: unplugged, ended, closed."""


class IoTimeoutError(ServerError):
    """A read got no byte, or a write could not send all, before the timeout."""


class UnsupportedTVMVersionError(ServerError):
    """The template does not work with this version of the compiler."""


class ProjectAPIHandler(abc.ABC):
    """What a template implements.  Paths are absolute; options are a dictionary of values."""

    @abc.abstractmethod
    def server_info_query(self, tvm_version: str) -> ServerInfo:
        """Describe the template or project and its options."""

    @abc.abstractmethod
    def generate_project(
        self,
        model_library_format_path: pathlib.Path,
        standalone_crt_dir: pathlib.Path,
        project_dir: pathlib.Path,
        options: dict,  # type: ignore[type-arg]
    ) -> None:
        """Create `project_dir`, which does not exist, from a model archive and the runtime."""

    @abc.abstractmethod
    def build(self, options: dict) -> None:  # type: ignore[type-arg]
        """Compile the project."""

    @abc.abstractmethod
    def flash(self, options: dict) -> None:  # type: ignore[type-arg]
        """Program the device."""

    @abc.abstractmethod
    def open_transport(self, options: dict) -> TransportTimeouts:  # type: ignore[type-arg]
        """Open the byte stream to the running firmware."""

    @abc.abstractmethod
    def close_transport(self) -> None:
        """Close the byte stream; nothing to do when it is closed."""

    @abc.abstractmethod
    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        """Read up to `n` bytes, at least one; IoTimeoutError or TransportClosedError if none."""

    @abc.abstractmethod
    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        """Write all of `data`, or raise IoTimeoutError or TransportClosedError."""


class ProjectAPIServer:
    """Serves one client, one request at a time, until its pipe ends."""

    def __init__(
        self,
        read_file: typing.BinaryIO,
        write_file: typing.BinaryIO,
        handler: ProjectAPIHandler,
    ) -> None:
        self._read_file = read_file
        self._write_file = write_file
        self._handler = handler

    def serve_forever(self) -> None:
        """Serve requests until no more are available."""
        while self.serve_one_request():
            pass

    def serve_one_request(self) -> bool:
        """Handle one line; False when the stream has ended or cannot be understood."""
        line = self._read_file.readline()
        if not line:
            return False
        try:
            request = json.loads(line)
        except ValueError:
            _LOG.exception("a request is not JSON")
            return False
        request_id = request.get("id") if isinstance(request, dict) else None
        try:
            _validate(request)
        except JSONRPCError as error:
            self._reply(None, error=error.to_json())
            return False
        try:
            self._reply(request_id, result=self._dispatch(request))
        except JSONRPCError as error:
            if isinstance(error, ServerError):
                error.set_traceback(traceback.TracebackException.from_exception(error).format())
            self._reply(request_id, error=error.to_json())
        except Exception as error:
            message = f"calling method {request['method']}: {error}"
            data = {"class": type(error).__name__, "words": _message(error)}
            told = ServerError.from_exception(error, message=message, data=data)
            self._reply(request_id, error=told.to_json())
        return True

    def _dispatch(self, request: dict[str, typing.Any]) -> typing.Any:
        name, params = request["method"], request["params"]
        if not hasattr(ProjectAPIHandler, name) or name.startswith("_"):
            raise JSONRPCError(ErrorCode.METHOD_NOT_FOUND, f"{name}: no such method")
        wanted = list(inspect.signature(getattr(ProjectAPIHandler, name)).parameters)[1:]
        for missing in (p for p in wanted if p not in params):
            raise JSONRPCError(
                ErrorCode.INVALID_PARAMS, f"method {name}: parameter {missing} not given"
            )
        extra = [p for p in params if p not in wanted]
        if extra:
            raise JSONRPCError(
                ErrorCode.INVALID_PARAMS, f"{name}: extra parameters: {', '.join(extra)}"
            )
        return getattr(self, f"_on_{name}", getattr(self._handler, name))(**params)

    def _on_server_info_query(self, tvm_version: str) -> dict[str, typing.Any]:
        info = self._handler.server_info_query(tvm_version)
        reply = info._asdict()
        if info.model_library_format_path is not None:
            reply["model_library_format_path"] = str(info.model_library_format_path)
        reply["project_options"] = [option._asdict() for option in info.project_options]
        reply.setdefault("protocol_version", PROTOCOL_VERSION)
        return reply

    def _on_generate_project(
        self,
        model_library_format_path: str,
        standalone_crt_dir: str,
        project_dir: str,
        options: dict[str, typing.Any],
    ) -> None:
        self._handler.generate_project(
            pathlib.Path(model_library_format_path),
            pathlib.Path(standalone_crt_dir),
            pathlib.Path(project_dir),
            options,
        )

    def _on_open_transport(self, options: dict[str, typing.Any]) -> dict[str, typing.Any]:
        return {"timeouts": self._handler.open_transport(options)._asdict()}

    def _on_read_transport(self, n: int, timeout_sec: float | None) -> dict[str, str]:
        data = self._handler.read_transport(n, timeout_sec)
        return {"data": base64.b85encode(data).decode("ascii")}

    def _on_write_transport(self, data: str, timeout_sec: float | None) -> None:
        self._handler.write_transport(base64.b85decode(data), timeout_sec)

    def _reply(self, request_id: typing.Any, **outcome: typing.Any) -> None:
        reply = {"jsonrpc": "2.0", "id": request_id, **outcome}
        line = memoryview(json.dumps(reply).encode() + b"\n")
        while line:
            line = line[self._write_file.write(line) :]
        self._write_file.flush()


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _validate(request: typing.Any) -> None:
    """Raise the JSON-RPC error of a request that is none."""

    def refuse(what: str) -> typing.NoReturn:
        raise JSONRPCError(ErrorCode.INVALID_REQUEST, what)

    if not isinstance(request, dict):
        refuse(f"request: want dict; got {request!r}")
    if request.get("jsonrpc") != "2.0":
        refuse(f'request["jsonrpc"]: want "2.0"; got {request.get("jsonrpc")!r}')
    method = request.get("method")
    if not isinstance(method, str) or not re.fullmatch(r"[a-zA-Z0-9_]+", method):
        refuse(f'request["method"]: want a method\'s name; got {method!r}')
    if not isinstance(request.get("params"), dict):
        refuse(f'request["params"]: want dict; got {type(request.get("params")).__name__}')
    if not isinstance(request.get("id"), str | int | None):
        refuse(f'request["id"]: want str, number, null; got {request.get("id")!r}')


def _wait(fd: int, write: bool, end_time: float | None) -> None:
    if end_time is None:
        return
    left = max(0.0, end_time - time.monotonic())
    ready = select.select([] if write else [fd], [fd] if write else [], [fd], left)
    if not any(ready):
        raise IoTimeoutError()


def read_with_timeout(fd: int, n: int, timeout_sec: float | None) -> bytes:
    """Read 1 to `n` bytes of a non-blocking descriptor; at its end it is closed."""
    end_time = None if timeout_sec is None else time.monotonic() + timeout_sec
    while True:
        _wait(fd, False, end_time)
        try:
            data = os.read(fd, n)
            break
        except BlockingIOError:
            if end_time is None:
                select.select([fd], [], [])
    if not data:
        os.close(fd)
        raise TransportClosedError()
    return data


def write_with_timeout(fd: int, data: bytes, timeout_sec: float | None) -> int:
    """Write to a non-blocking descriptor and return how many bytes it took before the timeout."""
    end_time = None if timeout_sec is None else time.monotonic() + timeout_sec
    written = 0
    while written < len(data):
        try:
            _wait(fd, True, end_time)
        except IoTimeoutError:
            if written:
                return written
            raise
        try:
            count = os.write(fd, data[written:])
        except BlockingIOError:
            select.select([], [fd], [], None if end_time is None else 0.05)
            continue
        except BrokenPipeError:
            raise TransportClosedError() from None
        written += count
    return written


def default_project_options(**changes: dict[str, typing.Any]) -> list[ProjectOption]:
    """Return the options that most templates share, with fields of some of them changed."""
    generate = ["generate_project"]
    options = [
        ProjectOption(
            "verbose", optional=generate, type="bool", default=False, help="Show the build."
        ),
        ProjectOption(
            "project_type", required=generate, type="str", help="Type of project to generate."
        ),
        ProjectOption(
            "board", required=generate, type="str", help="Name of the board to build for."
        ),
        ProjectOption(
            "cmsis_path",
            optional=generate,
            type="str",
            default=os.environ.get("CMSIS_PATH"),
            help="Path to the CMSIS directory.",
        ),
        ProjectOption(
            "warning_as_error",
            optional=generate,
            type="bool",
            default=False,
            help="Treat warnings as errors.",
        ),
        ProjectOption(
            "compile_definitions",
            optional=generate,
            type="str",
            help="Extra definitions for the compiler.",
        ),
        ProjectOption(
            "extra_files_tar",
            optional=generate,
            type="str",
            help="A tar file that is unpacked into the project.",
        ),
    ]
    unknown = [name for name in changes if name not in {o.name for o in options}]
    if unknown:
        raise ValueError(f"there is no default option {unknown[0]!r}")
    return [o.replace(changes[o.name]) if o.name in changes else o for o in options]


def main(handler: ProjectAPIHandler, argv: list[str] | None = None) -> None:
    """Serve `handler` on the descriptors that the command line names."""
    parser = argparse.ArgumentParser(description="a Project API server")
    parser.add_argument("--read-fd", type=int, required=True, help="where requests come from")
    parser.add_argument("--write-fd", type=int, required=True, help="where replies go to")
    parser.add_argument("--debug", action="store_true", help="log every request")
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level="DEBUG" if args.debug else "INFO", stream=sys.stderr)
    with (
        os.fdopen(args.read_fd, "rb") as read_file,
        os.fdopen(args.write_fd, "wb") as write_file,
    ):
        ProjectAPIServer(read_file, write_file, handler).serve_forever()
