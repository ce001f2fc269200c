"""Sessions on remote devices: ``remote = rpc.connect(host, port)``."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    RPCArgumentError,
    RPCConnectionError,
    RPCError,
    RPCTimeoutError,
    printable,
)
from slipway.rpc import batch, chain, checks
from slipway.rpc.array import RemoteNDArray
from slipway.rpc.callbacks import Callbacks
from slipway.rpc.connections.tls import TLSOption, client_context, plain_end, wrap
from slipway.rpc.device import RemoteDevice
from slipway.rpc.link import Link, remote_error
from slipway.rpc.module import RemoteFunction, RemoteModule, get_function
from slipway.rpc.protocol import NAME_MAX_BYTES, Code, Feature, greet, padded
from slipway.rpc.values import get_result

Output = Callable[[int, str], None]
CONNECT_TIMEOUT_S = 10.0
STEP_TIMEOUT_S = 60.0  # without a byte moving, for everything but calls
CALL_TIMEOUT_S = 600.0  # without an answer, where neither session nor user set a limit
_ANSWER_GRACE_S = 5.0  # for the device to report its own deadline before ours passes


class RPCSession:
    """A session with one device server; files, modules, functions and tensors live there.

    `timeout`: how long one call may run, in seconds; None is the session's limit, else
    ten minutes.  The device enforces it and says which function ran over.
    """

    has_exact_clock = False  # whether what it times is the same each time, as of a model

    def __init__(self, link: Link, key: str, description: str, timeout_ms: int) -> None:
        self.link = link
        self.key = key
        self.description = description
        self.session_timeout_s = timeout_ms / 1000
        self.call_timeout_ms = 0
        self._call_limit_s = self.session_timeout_s + _ANSWER_GRACE_S
        if not timeout_ms:
            self._call_limit_s = CALL_TIMEOUT_S
        self._timeout: float | None = None
        self.callbacks = Callbacks(self)
        self._copier: ThreadPoolExecutor | None = None

    @property
    def timeout(self) -> float | None:
        """Longest run of one call, in seconds."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        if seconds is not None:
            seconds = checks.seconds(seconds, "timeout")
        self._timeout = seconds
        self.call_timeout_ms = 0 if seconds is None else max(1, round(seconds * 1000))
        if seconds is not None:
            self._call_limit_s = seconds + _ANSWER_GRACE_S

    def begin_call(self) -> None:
        """Prepare the link for a request that runs code of the user's."""
        self.link.prepare()
        self.link.set_timeout(self._call_limit_s)

    def begin_step(self) -> None:
        """Prepare the link for a request whose time does not depend on the user's code."""
        self.link.prepare()
        self.link.set_timeout(STEP_TIMEOUT_S)

    def close(self) -> None:
        """End the session; the device removes its files and frees its memory."""
        self.link.close()
        if self._copier is not None:
            self._copier.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> RPCSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RPCSession({self.link.peer})"

    # Functions and modules

    def get_function(self, name: str) -> RemoteFunction:
        """Return a global function of the device; AttributeError if it has none of that name."""
        function = get_function(self, 0, name)
        if function is None:
            raise remote_error(
                "AttributeError",
                f"the device ({self.description}) has no global function {name!r}. Functions of "
                "an uploaded library are reached through remote.load_module(file)[name]",
            )
        return function

    def call_many(self, function: RemoteFunction, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call `function` once for each tuple of arguments; return the results in order.

        The requests travel together, so that one round trip serves many short calls.  The first
        call that fails raises; those after it have run, too.
        """
        with self.link.lock:
            if self.callbacks or self.link.on_output is not None:
                # What the device sends besides replies needs somebody who waits for each call.
                return [function(*args) for args in calls]
            return batch.call_many(self, function.handle, calls)

    def read_all(self, tensors: Sequence[RemoteNDArray]) -> list[Any]:
        """Copy several tensors of this session to the host in one round trip."""
        with self.link.lock:
            return batch.read_all(self._own(tensors))

    def write_all(self, tensors: Sequence[RemoteNDArray], sources: Sequence[Any]) -> None:
        """Copy several arrays to tensors of this session in one round trip."""
        if len(tensors) != len(sources):
            raise ArgumentValueError(
                f"{len(sources)} arrays for {len(tensors)} tensors; one for each."
            )
        with self.link.lock:
            batch.write_all(list(zip(self._own(tensors), sources, strict=True)))

    def _own(self, tensors: Sequence[RemoteNDArray]) -> Sequence[RemoteNDArray]:
        for index, tensor in enumerate(tensors):
            if tensor.session is not self:
                raise RPCError(f"tensor {index} lives in another session ({tensor.session}).")
        return tensors

    def copy_async(self, source: Any, target: Any) -> Future[Any]:
        """Copy ``source`` to ``target`` while this thread goes on; one of them is a remote tensor.

        Returns a future whose result is `target`.  Copies run in the order of their starts; other
        requests of this session go between them.  Leave both arrays alone until it is done.
        """
        if self._copier is None:
            self._copier = ThreadPoolExecutor(1, "slipway-rpc-copy")
        if isinstance(target, RemoteNDArray):
            return self._copier.submit(target.copyfrom, source)
        return self._copier.submit(source.copyto, target)

    def load_module(self, path: str | os.PathLike[str]) -> RemoteModule:
        """Load an uploaded file (.tar, .so, or an object that was linked at upload)."""
        with self.link.lock:
            self.begin_call()
            # A path here, as scripts give it, is the file that `upload` took its name from.
            name = os.fspath(path)
            size = self._put_name(Path(name).name if Path(name).is_absolute() else name)
            module = get_result(self, self.link.call(Code.LOAD_MODULE, size))
        if not isinstance(module, RemoteModule):
            raise self.link.broken("something else than a module")
        return module

    def system_lib(self) -> RemoteModule:
        """Return the module of functions that are linked into the device's server."""
        module: RemoteModule = self.get_function("runtime.SystemLib")()
        return module

    # Files

    def upload(self, data: Any, target: str | None = None) -> None:
        """Send a file (a path) or bytes to the session's folder, under the name `target`.

        Objects (.o, .a) are linked here, for the machine they were compiled for, so that the
        device needs no linker; they keep their name.
        """
        if isinstance(data, bytes | bytearray | memoryview):
            if target is None:
                raise ArgumentValueError(
                    "upload(bytes) needs target=, the file's name on the device."
                )
            content: Any = data
        else:
            if not isinstance(data, str | os.PathLike):
                raise ArgumentTypeError(
                    f"upload takes bytes or a file's path, not {type(data).__name__}; of an array, "
                    "its tobytes()."
                )
            path = Path(os.fspath(data))
            target = path.name if target is None else target
            try:
                content = _link_if_object(path)
            except OSError as error:
                raise RPCError(f"cannot upload {str(path)!r}: {error.strerror}.") from error
        self._upload(content, target)

    def _upload(self, content: Any, target: str) -> None:
        raw = checks.text(target, "a file's name").encode()
        _check_name_size(raw)
        view = memoryview(content).cast("B")
        with self.link.lock:
            self.begin_step()
            request = self.link.request
            name = raw + bytes(padded(len(raw) + 1) - len(raw))
            struct.pack_into("<QQQII", request, 0, len(view), 0, 0, len(raw), 0)
            request[32 : 32 + len(name)] = name
            address = _address_of(view)
            self.link.send_data(Code.FILE_WRITE, 32 + len(name), 8, address, len(view))

    def download(self, path: str) -> bytearray:
        """Fetch a file of the session's folder."""
        with self.link.lock:
            self.begin_step()
            return self.link.receive_unsized(Code.FILE_READ, self._put_name(path))

    def download_linked_module(self, path: str) -> bytearray:
        """Fetch an uploaded library as one file that loads; that of kernels is a shared library.

        A model's archive stays as it is: its library is nothing without the graph.
        """
        from slipway.runtime.load import one_file_of

        return bytearray(one_file_of(bytes(self.download(path)), path))

    def remove(self, path: str) -> None:
        """Delete a file of the session's folder."""
        with self.link.lock:
            self.begin_step()
            self.link.call(Code.FILE_REMOVE, self._put_name(path))

    def listdir(self) -> list[str]:
        """Return the names of the files in the session's folder."""
        with self.link.lock:
            self.begin_step()
            lines = get_result(self, self.link.call(Code.FILE_LIST, 0))
        if not isinstance(lines, str):
            raise self.link.broken("something else than a list of files")
        return sorted(line.partition(" ")[2] for line in lines.split("\n") if line)

    def _put_name(self, name: str) -> int:
        raw = checks.text(name, "a file's name").encode()
        _check_name_size(raw)
        size = 8 + padded(len(raw) + 1)
        struct.pack_into("<II", self.link.request, 0, len(raw), 0)
        self.link.request[8:size] = raw + bytes(size - 8 - len(raw))
        return size

    # Devices and tensors

    def device(self, name: str, index: int = 0) -> RemoteDevice:
        """Return a device of this session: ``remote.device("cpu", 0)``."""
        return RemoteDevice(self, name, index)

    context = device

    def cpu(self, index: int = 0) -> RemoteDevice:
        """Return the remote processor."""
        return self.device("cpu", index)

    def cuda(self, index: int = 0) -> RemoteDevice:
        """Return a remote NVIDIA GPU."""
        return self.device("cuda", index)

    gpu = cuda

    def opencl(self, index: int = 0) -> RemoteDevice:
        """Return a remote OpenCL device."""
        return self.device("opencl", index)

    cl = opencl

    def metal(self, index: int = 0) -> RemoteDevice:
        """Return a remote Metal device."""
        return self.device("metal", index)

    def vulkan(self, index: int = 0) -> RemoteDevice:
        """Return a remote Vulkan device."""
        return self.device("vulkan", index)

    def rocm(self, index: int = 0) -> RemoteDevice:
        """Return a remote AMD GPU."""
        return self.device("rocm", index)

    def ext_dev(self, index: int = 0) -> RemoteDevice:
        """Return a remote accelerator."""
        return self.device("ext_dev", index)

    def hexagon(self, index: int = 0) -> RemoteDevice:
        """Return a remote Hexagon DSP."""
        return self.device("hexagon", index)

    def webgpu(self, index: int = 0) -> RemoteDevice:
        """Return a remote WebGPU device."""
        return self.device("webgpu", index)

    def query_device(self, device_type: int, device_id: int, attribute: int) -> Any:
        """Ask for an attribute of a device; 0 is whether it exists."""
        with self.link.lock:
            self.begin_step()
            struct.pack_into("<iiII", self.link.request, 0, device_type, device_id, attribute, 0)
            return get_result(self, self.link.call(Code.DEVICE_QUERY, 16))

    def ping(self, payload: bytes = b"") -> bytes:
        """Send `payload` there and back."""
        with self.link.lock:
            self.begin_step()
            size = padded(len(payload))
            self.link.request[:size] = payload + bytes(size - len(payload))
            self.link.call(Code.PING, size)
            return bytes(self.link.reply()[: len(payload)])


def connect(
    url: str,
    port: int | None = None,
    key: str = "",
    session_timeout: float = 0,
    session_constructor_args: Any = None,
    enable_logging: bool = False,
    *,
    token: str | None = None,
    timeout: float = CONNECT_TIMEOUT_S,
    tls: TLSOption = None,
    tls_name: str | None = None,
    output: bool | Output = False,
) -> RPCSession:
    """Open a session with the device server at `url`:`port`.

    Parameters
    ----------
    url, port
        the server's address, or "unix:/path" without a port.
    key
        the kind of device wanted; refused if the server's is another.  "" takes any.
    session_timeout
        seconds after which the device ends the session, 0 for no limit.
    token
        what the server was started with; by default the environment's SLIPWAY_RPC_TOKEN.  With
        one, a server that does not prove that it has the same is refused, and gets nothing.
    timeout
        seconds for each step of connecting.
    tls, tls_name
        see `slipway.rpc.connections.tls.client_context`, by default the environment's
        SLIPWAY_RPC_TLS_CA; and the name in the server's certificate, where that is not `url`.
    output
        what the device's programs print while this session calls them: True to this process's
        stdout and stderr, or a function of the stream (1 or 2) and a text.
    session_constructor_args
        how the session goes on from there: ``["rpc.Connect", host, port, key, False]`` to another
        server that the first one reaches (and so on: what follows are the arguments of the next
        step), or ``["rpc.PopenSession", program]`` with the bytes of a static device server.
    enable_logging
        a classic parameter without effect.

    Raises RPCConnectionError, RPCTimeoutError, or RPCError with the server's reason.

    """
    del enable_logging
    checks.text(url, "the server's address")
    checks.secret(token)
    is_unix = url.startswith("unix:")
    if port is None and not is_unix:
        raise RPCError(f"connect({url!r}) needs a port.")
    port = 0 if port is None else port
    if timeout is not None:
        timeout = checks.seconds(timeout, "timeout")
    peer = url if is_unix else f"{url}:{port}"
    starter = f"python -m slipway.exec.rpc_server --host {url}"
    context = None if is_unix else client_context(tls)
    link = open_socket(url, port, timeout, starter if is_unix else f"{starter} --port {port}")
    if context is not None:
        try:
            link = wrap(link, context, tls_name or url, peer)
        except BaseException:
            link.close()
            raise
    steps = list(session_constructor_args or ())
    first_output = False if steps else output
    session = RPCSession(*greeted(link, peer, key, session_timeout, token, first_output))
    while steps:
        hop, steps = chain.go_on(session, steps)
        last_output = False if steps else output
        session = RPCSession(
            *greeted(hop.link, hop.peer, hop.key, session_timeout, token, last_output,
                     wants_proof=hop.wants_proof)
        )  # fmt: skip
    return session


def greeted(
    link: socket.socket,
    peer: str,
    key: str,
    session_timeout: float,
    token: str | None,
    output: bool | Output,
    *,
    wants_proof: bool = True,
) -> tuple[Link, str, str, int]:
    """Greet on a fresh connection; return what a session is made of.  Closes it on failure."""
    try:
        token = os.environ.get("SLIPWAY_RPC_TOKEN") if token is None else token
        features = Feature.OUTPUT if output else 0
        welcome = greet(
            link, key=key, session_timeout_s=session_timeout, token=token, peer=peer,
            features=features, wants_proof=wants_proof,
        )  # fmt: skip
        if output and not welcome.features & Feature.OUTPUT:
            raise RPCError(f"{peer} cannot send what its programs print; connect without output=.")
        if isinstance(link, ssl.SSLSocket):
            link = plain_end(link)
        made = Link(link, welcome, peer)
        if output:
            made.on_output = _print if output is True else output
        return made, welcome.key, welcome.description, welcome.timeout_ms
    except BaseException:
        link.close()
        raise


def _print(stream: int, text: str) -> None:
    print(text, end="", file=sys.stdout if stream == 1 else sys.stderr, flush=True)


def open_socket(host: str, port: int, timeout_s: float, starter: str) -> socket.socket:
    """Return a connection; `starter` is the command that a message suggests."""
    is_unix = checks.text(host, "the address").startswith("unix:")
    peer = host if is_unix else f"{host}:{port}"
    if not is_unix:
        port = checks.whole(port, "port")
    if not is_unix and not 0 < port < 65536:  # the system would take a part of the number
        raise RPCArgumentError(
            f"cannot connect to {peer}: {port} is no port; a port is a number from 1 to 65535."
        )
    try:
        if is_unix:
            return _open_unix(host.removeprefix("unix:"), timeout_s)
        link = socket.create_connection((host, port), timeout=timeout_s)
    except TimeoutError as error:
        raise RPCTimeoutError(
            f"{peer} did not accept a connection within {timeout_s:g} s. Check the address, and "
            "that no firewall is in between."
        ) from error
    except UnicodeError as error:
        raise RPCConnectionError(
            f"cannot connect to {printable(peer)!r}: that is no name of a host ({error})."
        ) from error
    except socket.gaierror as error:
        raise RPCConnectionError(
            f"cannot connect to {peer}: {error.strerror or error}. Look for a slip of the pen in "
            "the name, or give the address instead, 192.168.1.7 say."
        ) from error
    except OSError as error:
        raise RPCConnectionError(
            f"cannot connect to {peer}: {error.strerror or error}. Is the server running there? "
            f"Start it with: {starter}"
        ) from error
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def _open_unix(path: str, timeout_s: float) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(timeout_s)
        link.connect(path)
    except BaseException:
        link.close()
        raise
    return link


def _check_name_size(raw: bytes) -> None:
    if not raw or len(raw) > NAME_MAX_BYTES or b"\0" in raw:
        raise ArgumentValueError(
            f"{raw.decode()!r} is not a name for a remote file: it needs 1 to {NAME_MAX_BYTES} "
            "bytes."
        )


def _address_of(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data) if len(view) else 0


def _link_if_object(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix not in (".o", ".obj", ".a", ".tar"):
        return content
    from slipway.runtime.load import shared_library_bytes

    return bytes(shared_library_bytes(content, path.suffix, path.name))


__all__ = ["RPCSession", "RemoteDevice", "RemoteModule", "RemoteNDArray", "connect"]
