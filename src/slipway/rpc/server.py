"""Serving this machine: ``server = rpc.Server("127.0.0.1", 9090)``.

The work is done by the C supervisor (``crt/posix/rpc/rpc_server.c``), which runs each session in a
process of its own.  Python chooses the port, starts the supervisor in another process, and lends
it the functions registered with ``register_func``.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import logging
import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from slipway.errors import RPCArgumentError, RPCConnectionError, RPCError
from slipway.rpc import native
from slipway.rpc.addresses import address_text
from slipway.rpc.child import child_environment
from slipway.rpc.connections.front import Front
from slipway.rpc.connections.tls import CA_VARIABLE, client_context, server_context
from slipway.rpc.protocol import key_problem
from slipway.version import VERSION

_FORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_FLUSH = ctypes.CFUNCTYPE(None, ctypes.c_int)


class _Config(ctypes.Structure):
    """``slw_rpc_server_config`` of ``slipway/rpc_server.h``."""

    _fields_ = (
        ("listen_fd", ctypes.c_int),
        ("watch_fd", ctypes.c_int),
        ("key", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("token_size", ctypes.c_uint64),
        ("max_sessions", ctypes.c_uint32),
        ("session_timeout_ms", ctypes.c_uint32),
        ("greeting_timeout_ms", ctypes.c_uint32),
        ("always_needs_token", ctypes.c_uint32),
        ("max_upload_bytes", ctypes.c_uint64),
        ("max_memory_bytes", ctypes.c_uint64),
        ("max_cpu_s", ctypes.c_uint32),
        ("is_quiet", ctypes.c_uint32),
        ("max_handles", ctypes.c_uint32),
        ("tracker_port", ctypes.c_uint32),
        ("tracker_host", ctypes.c_char_p),
        ("custom_address", ctypes.c_char_p),
        ("own_port", ctypes.c_uint32),
        ("proxied_needs_token", ctypes.c_uint32),
        ("adopt_fd", ctypes.c_int32),
        ("log_json", ctypes.c_uint32),
        ("is_single", ctypes.c_uint32),
        ("max_files", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("fork_session", _FORK),
        ("ffi_get_global", ctypes.c_void_p),
        ("ffi_take_error", ctypes.c_void_p),
        ("ffi_set_error", ctypes.c_void_p),
        ("flush_output", _FLUSH),
    )


_LIMITS = (
    "session_timeout_s", "max_sessions", "max_upload_bytes", "max_memory_bytes", "max_cpu_s",
    "max_files", "max_handles",
)  # fmt: skip


@dataclass(frozen=True)
class ServerOptions:
    """What a server allows; the defaults suit one's own machine.

    Attributes
    ----------
    key
        the kind of device this is; clients may ask for it.
    token
        what clients from other machines must prove to have; "" refuses them all.
    require_token
        ask clients of this machine for the token, too.
    max_sessions
        at one time.
    session_timeout_s, greeting_timeout_s
        seconds; 0 is no limit.
    max_upload_bytes, max_memory_bytes
        bytes of one file, and of memory a session may add; 0 is what the system has.
    max_cpu_s
        processor seconds of one session; 0 is no limit.
    max_files
        descriptors of one session's process, of which it needs about 20; 0 is what the system has.
    max_handles
        remote objects that one session may hold.
    tracker, custom_address
        (host, port) to register with, and the address that it shall give to clients; the device
        then serves only those whom the tracker sends.
    through_proxy
        `tracker` is a proxy, which also brings the connections: nothing is listened to here.
    tls_cert, tls_key
        files of the certificate and key for clients; "" is plain TCP.
    tls_ca, tls_name
        speak TLS with the tracker or proxy: file of whom to trust ("system": whom the system
        does), and the name in its certificate where that is not its address.
    is_quiet, log_format
        write no log; "text" for people, or "json" for JSON lines.

    """

    key: str = ""
    token: str = ""
    require_token: bool = False
    max_sessions: int = 16
    session_timeout_s: float = 0.0
    greeting_timeout_s: float = 10.0
    max_upload_bytes: int = 0
    max_memory_bytes: int = 0
    max_cpu_s: int = 0
    max_files: int = 0
    max_handles: int = 65536
    tracker: tuple[str, int] | None = None
    custom_address: str = ""
    through_proxy: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    tls_ca: str = ""
    tls_name: str = ""
    is_quiet: bool = False
    log_format: str = "text"

    def __post_init__(self) -> None:
        """Refuse a key that could not be asked for, or would forge a line of a log."""
        if problem := key_problem(self.key):
            raise RPCArgumentError(f"{self.key!r} is no kind of device: {problem}.")
        for name in _LIMITS:
            if (value := getattr(self, name)) < 0:  # the runtime's are unsigned: it had no limit
                raise RPCArgumentError(f"{name} is {value:g}: a limit is 0 (none) or more.")


PORT_OPTIONS = "--port and --port-end, port= and port_end= in Python"


def listen(host: str, port: int, port_end: int, options: str = PORT_OPTIONS) -> socket.socket:
    """Return a listening socket on the first free port from `port` to `port_end`.

    Port 0 lets the system choose; `options` are what a user chooses others with.  Raises
    RPCConnectionError when all are taken, or the address is not this machine's.
    """
    if not 0 <= port <= 65535:
        raise RPCArgumentError(f"{port} is not a port; choose one from 0 (any free one) to 65535.")
    if host.startswith("unix:"):
        return listen_unix(host.removeprefix("unix:"))
    last: OSError | None = None
    end = min(max(port_end, port + 1), 65536)
    for candidate in range(port, end):
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host, candidate, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise RPCConnectionError(
                f"cannot listen on {host!r}: {error.strerror or error}."
            ) from error
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(64)
            return listener
        except OSError as error:
            listener.close()
            last = error
            if error.errno != 98 and error.errno != 48:  # EADDRINUSE on Linux, on macOS
                end = candidate + 1
                break
    last_port = end - 1 if port else 0
    ports = f"port {port}" if port == last_port else f"ports {port} to {last_port}"
    reason = (last.strerror or str(last)) if last else "no port given"
    if isinstance(last, PermissionError) and 0 < port < 1024:
        reason += " (ports below 1024 are the administrator's)"
    raise RPCConnectionError(
        f"cannot listen on {host}, {ports}: {reason}. Choose others: {options}."
    )


def listen_unix(path: str) -> socket.socket:
    """Return a socket that listens at `path`, for its owner only; replaces one nobody serves."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
            raise RPCConnectionError(f"cannot listen on {path!r}: another server does.")
        with contextlib.suppress(FileNotFoundError):
            if Path(path).is_socket():
                Path(path).unlink()
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(64)
        return listener
    except BaseException as error:
        listener.close()
        if isinstance(error, OSError):
            raise RPCConnectionError(
                f"cannot listen on {path!r}: {error.strerror or error}."
            ) from error
        raise


def front_of(options: ServerOptions) -> Front:
    """Return what speaks TLS for a server; FileError says what is wrong with its files."""
    tls = server_context(options.tls_cert, options.tls_key or None) if options.tls_cert else None
    ca = options.tls_ca or os.environ.get(CA_VARIABLE) if options.tracker is not None else None
    return Front(tls, options.tracker, client_context(ca) if ca else None, options.tls_name or None)


def port_of(listener: socket.socket) -> int:
    """Return where a socket listens; 0 for one that is no TCP."""
    return 0 if listener.family == socket.AF_UNIX else int(listener.getsockname()[1])


def is_loopback(host: str) -> bool:
    """Return whether `host` can only be this machine."""
    return host in ("localhost", "::1") or host.startswith(("127.", "unix:"))


def serve(
    listener: socket.socket | None,
    options: ServerOptions,
    watch_fd: int = -1,
    connection: int | None = None,
    line: tuple[str, int] | None = None,
) -> int:
    """Serve on `listener` until a signal or the end of `watch_fd`; return an errno or 0.

    With `connection`, a socket's descriptor, or -1 for standard input and output, serve that one
    session instead; with `line`, a serial port and its rate, whoever opens sessions over that.
    Takes over the process: call it on the main thread of one that has nothing else to do.
    """
    library = native.library()
    config = _Config()
    front = front_of(options)
    config.listen_fd = listener.fileno() if listener is not None and front.tls is None else -1
    config.adopt_fd = -1
    config.watch_fd = watch_fd
    tracker = options.tracker
    if front.tls is not None or front.tracker_tls is not None:
        config.adopt_fd, tunnel = front.start(listener)
        if tunnel and tracker is not None:
            config.proxied_needs_token = int(not is_loopback(tracker[0]))
            tracker = (tunnel, tracker[1])
    config.key = options.key.encode()
    name = f"slipway {VERSION} (Python {platform.python_version()}) on "
    config.description = f"{name}{platform.system()} {platform.machine()}".encode()
    token = options.token.encode()
    config.token, config.token_size = token, len(token)
    config.max_sessions = options.max_sessions
    config.session_timeout_ms = round(options.session_timeout_s * 1000)
    config.greeting_timeout_ms = round(options.greeting_timeout_s * 1000)
    config.always_needs_token = int(options.require_token)
    config.max_upload_bytes = options.max_upload_bytes
    config.max_memory_bytes = options.max_memory_bytes
    config.max_cpu_s = options.max_cpu_s
    config.max_files = options.max_files
    config.max_handles = options.max_handles
    config.custom_address = options.custom_address.encode()
    config.own_port = 0 if listener is None else port_of(listener)
    if tracker is not None:
        config.tracker_host, config.tracker_port = tracker[0].encode(), tracker[1]
    config.is_quiet = int(options.is_quiet)
    config.log_json = int(options.log_format == "json")
    # Python's fork, so that the interpreter in the session's process is in order.
    config.fork_session = _FORK(lambda _context: os.fork())
    ffi = _load_ffi()
    config.ffi_get_global = ctypes.cast(ffi.TVMFFIFunctionGetGlobal, ctypes.c_void_p).value
    config.ffi_take_error = ctypes.cast(ffi.TVMFFIErrorMoveFromRaised, ctypes.c_void_p).value
    config.ffi_set_error = ctypes.cast(ffi.TVMFFIErrorSetRaisedFromCStr, ctypes.c_void_p).value
    config.flush_output = _FLUSH(_flush_output)
    _flush_output(0)  # or each session would print again what waits here
    if connection is not None:
        library.slw_rpc_server_adopt.restype = ctypes.c_bool
        fd = library.slw_rpc_stdio_connection() if connection < 0 else connection
        if not library.slw_rpc_server_adopt(ctypes.byref(config), fd):
            raise RPCError("cannot serve the connection: there are no descriptors left.")
    if line is not None:
        library.slw_rpc_server_serial.restype = ctypes.c_bool
        opened = library.slw_rpc_server_serial(ctypes.byref(config), os.fsencode(line[0]), line[1])
        if not opened:
            raise RPCConnectionError(
                f"cannot open the serial line {line[0]} at {line[1]} baud: "
                f"{_line_problem(line[0])}."
            )
    run = library.slw_rpc_server_run
    run.argtypes, run.restype = [ctypes.POINTER(_Config)], ctypes.c_int
    status: int = run(ctypes.byref(config))
    return status


def _line_problem(path: str) -> str:
    """Return why a serial line cannot be opened, as far as this process can tell."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        return error.strerror or str(error)
    try:
        return "it does not take that rate" if os.isatty(handle) else "it is no serial line"
    finally:
        os.close(handle)


def _flush_output(begins: int) -> None:
    if begins:  # whatever they are in this process, the client is to see them
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _load_ffi() -> Any:
    """Load tvm-ffi's library without its Python package, which imports what frameworks there are.

    That would take seconds where PyTorch is installed.  A process that has the package gets the
    same library.
    """
    spec = importlib.util.find_spec("tvm_ffi")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted(Path(folder, "lib").glob("libtvm_ffi.*")):
            if path.suffix in (".so", ".dylib"):
                return ctypes.CDLL(str(path))
    from tvm_ffi import libinfo

    return ctypes.CDLL(str(libinfo.find_libtvm_ffi()))


class Server:
    """An RPC server in a process of its own, ended by `terminate` or with this process.

    Parameters
    ----------
    host, port, port_end
        address to listen on, and the range of ports to try; `port` 0 lets the system choose.
    use_popen
        start a fresh interpreter.  False forks this one: functions registered here before are
        then callable by clients, and `server_init_callback` runs in the server first.
    tracker_addr, custom_addr
        tracker to register with, and the address that it gives to clients.
    key, token, silent
        see `ServerOptions`; `token` defaults to the environment's SLIPWAY_RPC_TOKEN.

    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        is_proxy: bool = False,
        tracker_addr: tuple[str, int] | None = None,
        key: str = "",
        load_library: str | None = None,
        custom_addr: str | None = None,
        silent: bool = False,
        no_fork: bool = False,
        use_popen: bool = True,
        server_init_callback: Callable[[], None] | None = None,
        *,
        token: str | None = None,
        options: ServerOptions | None = None,
        **_classic: Any,
    ) -> None:
        if is_proxy:
            tracker_addr = None  # the proxy registers it with the tracker that it was given
        if (is_proxy or tracker_addr is not None) and not key:
            raise RPCArgumentError(
                "a server that registers with a tracker or a proxy needs key=, its kind of device."
            )
        del no_fork
        options = options or ServerOptions(
            token=os.environ.get("SLIPWAY_RPC_TOKEN", ""), is_quiet=silent
        )
        options = replace(
            options,
            key=key or options.key,
            token=options.token if token is None else token,
            is_quiet=silent or options.is_quiet,
            tracker=(host, port) if is_proxy else tracker_addr or options.tracker,
            through_proxy=is_proxy or options.through_proxy,
            custom_address=custom_addr or options.custom_address,
        )
        self.host = host or "127.0.0.1"
        native.library()  # compile the runtime here, once, and report what is missing
        front_of(options)
        listener = None if options.through_proxy else listen(self.host, port, port_end)
        self.port: int = port if listener is None else port_of(listener)
        self._watch_read, self._watch_write = os.pipe()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        with listener or contextlib.nullcontext():
            if use_popen and server_init_callback is None:
                self._start_process(listener, options, load_library)
            else:
                self._start_fork(listener, options, server_init_callback)
        os.close(self._watch_read)
        if not options.is_quiet:
            logging.info("RPCServer: bind to %s:%d", self.host, self.port)

    def _start_process(
        self, listener: socket.socket | None, options: ServerOptions, load_library: str | None
    ) -> None:
        command = [
            sys.executable, "-m", "slipway.exec.rpc_server",
            "--watch-fd", str(self._watch_read), *options_to_arguments(options),
        ]  # fmt: skip
        descriptors = [self._watch_read]
        if listener is not None:
            command += ["--listen-fd", str(listener.fileno())]
            descriptors.append(listener.fileno())
        if load_library:
            command += ["--load-library", load_library]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            env=child_environment(SLIPWAY_RPC_TOKEN=options.token),
            start_new_session=True,
        )
        self._pid = self._process.pid

    def _start_fork(
        self,
        listener: socket.socket | None,
        options: ServerOptions,
        server_init_callback: Callable[[], None] | None,
    ) -> None:
        pid = os.fork()
        if pid == 0:
            self._run_fork(listener, options, server_init_callback)
        self._pid = pid

    def _run_fork(
        self,
        listener: socket.socket | None,
        options: ServerOptions,
        server_init_callback: Callable[[], None] | None,
    ) -> NoReturn:
        status = 1
        try:
            os.setsid()
            os.close(self._watch_write)
            if server_init_callback is not None:
                server_init_callback()
            status = serve(listener, options, self._watch_read)
        except BaseException:
            logging.exception("the RPC server ended")
        finally:
            os._exit(status)

    @property
    def is_alive(self) -> bool:
        """Whether the server's process still runs."""
        if not self._pid:
            return False
        if self._process is not None:
            return self._process.poll() is None
        with contextlib.suppress(ChildProcessError):
            done, _ = os.waitpid(self._pid, os.WNOHANG)
            return done == 0
        return False

    def terminate(self) -> None:
        """End the server and all its sessions; their folders are removed."""
        if not self._pid:
            return
        pid, self._pid = self._pid, 0
        os.close(self._watch_write)  # the supervisor watches the other end
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        else:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def __del__(self) -> None:
        if getattr(self, "_pid", 0):
            with contextlib.suppress(Exception):
                self.terminate()


def options_to_arguments(options: ServerOptions) -> list[str]:
    """Return the command line of ``slipway.exec.rpc_server`` for `options`, without the token."""
    arguments = [
        "--max-sessions", str(options.max_sessions),
        "--session-timeout", str(options.session_timeout_s),
        "--max-upload", str(options.max_upload_bytes >> 20),
        "--max-memory", str(options.max_memory_bytes >> 20),
        "--max-cpu", str(options.max_cpu_s),
        "--max-files", str(options.max_files),
        "--max-handles", str(options.max_handles),
    ]  # fmt: skip
    if options.key:
        arguments += ["--key", options.key]
    if options.tracker is not None and options.through_proxy:
        arguments += ["--through-proxy", "--host", options.tracker[0]]
        arguments += ["--port", str(options.tracker[1])]
    elif options.tracker is not None:
        arguments += ["--tracker", address_text(*options.tracker)]
    for name, value in (
        ("--tls-cert", options.tls_cert), ("--tls-key", options.tls_key),
        ("--tls-ca", options.tls_ca), ("--tls-name", options.tls_name),
    ):  # fmt: skip
        if value:
            arguments += [name, value]
    if options.custom_address:
        arguments += ["--custom-addr", options.custom_address]
    if options.require_token:
        arguments.append("--require-token")
    arguments += ["--log-format", options.log_format]
    if options.is_quiet:
        arguments.append("--silent")
    return arguments
