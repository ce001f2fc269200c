"""Asking a tracker for devices: ``rpc.connect_tracker(host, port).request("rpi4")``."""

from __future__ import annotations

import getpass
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from slipway.errors import (
    RPCArgumentError,
    RPCConnectionError,
    RPCError,
    RPCTimeoutError,
    printable,
)
from slipway.rpc import checks
from slipway.rpc.client import CONNECT_TIMEOUT_S, RPCSession, connect, open_socket
from slipway.rpc.connections.tls import TLSOption, client_context, wrap
from slipway.rpc.protocol import (
    HEADER,
    Code,
    Failure,
    Feature,
    Role,
    frame,
    greet,
    key_problem,
    read_refusal,
    receive_exactly,
)

REQUEST_TIMEOUT_S = 600.0
_MAX_REPLY_BYTES = 64 << 20


class TrackerSession:
    """A connection to a tracker; threads may share it, one request runs at a time."""

    _socket: socket.socket | None = None

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None = None,
        *,
        tls: TLSOption = None,
        tls_name: str | None = None,
        admin_token: str | None = None,
        purpose: str = "",
        timeout: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._step_s = checks.seconds(timeout, "timeout")
        self._tls = client_context(tls)
        self._tls_name = tls_name
        self._admin_token = checks.secret(admin_token, "the administrator's token")
        self._purpose = purpose
        self._address = (host, port)
        checks.secret(token)
        self._token = os.environ.get("SLIPWAY_RPC_TOKEN") if token is None else token
        self._lock = threading.Lock()
        self._number = 1
        with self._lock:
            self._connect()

    def close(self) -> None:
        """Close the connection; devices that were handed out stay with their sessions."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> TrackerSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TrackerSession({self._address[0]}:{self._address[1]})"

    def request(
        self,
        key: str,
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 5,
        session_constructor_args: Any = None,
        *,
        timeout: float = REQUEST_TIMEOUT_S,
    ) -> RPCSession:
        """Wait for a device of kind `key` and open a session with it.

        Parameters
        ----------
        key
            the kind of device.
        priority
            larger ones are served first.
        session_timeout
            seconds after which the device ends the session, 0 for no limit.
        max_retry
            how many devices that cannot be reached to try in turn.
        session_constructor_args
            how the session goes on from the device, as `slipway.rpc.connect` takes it.
        timeout
            seconds to wait for a device to become free.

        Raises RPCTimeoutError with the reason when none became free.

        """
        checks.text(key, "the kind of device")
        checks.seconds(session_timeout, "session_timeout", "no limit")
        priority = checks.whole(priority, "priority", -(2**31), 2**31 - 1)
        deadline = time.monotonic() + checks.seconds(timeout, "timeout")
        failure: RPCError | None = None
        tries = 0
        while tries < max(1, max_retry):
            left = deadline - time.monotonic()
            if left <= 0 and failure is not None:
                break
            try:
                address, port, lease = self._request(key, priority, max(left, 0.001))
            except RPCTimeoutError:
                if failure is None:
                    raise
                break  # the tracker keeps a device for a while that nobody reached
            tries += 1
            try:
                session = connect(
                    address, port, f"{key}:{lease}", session_timeout,
                    session_constructor_args, token=self._token,
                    tls=self._tls or False, tls_name=self._tls_name,
                )  # fmt: skip
                return _with_linker(session)
            except RPCError as error:
                failure = error
        if tries == 1:
            raise RPCConnectionError(
                f"{self} handed out a device of kind {key!r} that could not be reached: {failure}"
            ) from failure
        raise RPCConnectionError(
            f"{self} handed out {tries} devices of kind {key!r}, and none could be reached. "
            f"The last one: {failure}"
        ) from failure

    def request_and_run(
        self,
        key: str,
        func: Callable[[RPCSession], Any],
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 2,
    ) -> Any:
        """Run ``func(session)`` on a device of kind `key`; again on another one if it breaks."""
        failure: RPCError | None = None
        for _ in range(max(1, max_retry)):
            try:
                with self.request(key, priority, session_timeout) as session:
                    return func(session)
            except (RPCConnectionError, RPCTimeoutError) as error:
                failure = error
        raise RPCError(
            f"{max_retry} tries on devices of kind {key!r} failed. The last one: {failure}"
        ) from failure

    def summary(self) -> dict[str, Any]:
        """Return ``queue_info`` (free, total, pending for each kind) and ``server_info``."""
        payload = self._exchange(Code.SUMMARY, b"", self._step_s)
        try:
            _, size, at = struct.unpack_from("<iIq", payload)
            found: dict[str, Any] = json.loads(payload[at : at + size])
            if _is_summary(found):
                return found
        except (struct.error, ValueError, RecursionError):
            pass
        raise self._broken("what is no summary of devices")

    def kick(self, device: int, session: str) -> None:
        """End the session on a device; both as `summary` names them.  An administrator's act."""
        checks.whole(device, "device", 0, 2**32 - 1)
        raw = checks.text(session, "the session").encode()
        request = struct.pack("<II", device, len(raw)) + raw + b"\0"
        self._exchange(Code.KICK, request, self._step_s)

    def drain(self, device: int, on: bool = True) -> None:
        """Let a device finish its session and get no other, until ``on=False``.

        An administrator's act.
        """
        checks.whole(device, "device", 0, 2**32 - 1)
        self._exchange(Code.DRAIN, struct.pack("<II", device, on), self._step_s)

    def text_summary(self) -> str:
        """Return the summary as text for people."""
        summary = self.summary()
        lines = ["Server List", "-" * 64, f"{'server-address':<28}{'key':<20}state"]
        lines.append("-" * 64)
        for server in summary["server_info"]:
            address = f"{server['addr'][0]}:{server['addr'][1]}"
            lines.append(printable(f"{address:<28}{server['key']:<20}{server['state']}"))
        lines += ["-" * 64, "", "Queue Status", "-" * 44]
        lines += [f"{'key':<20}{'total':<8}{'free':<8}pending", "-" * 44]
        for key, queue in sorted(summary["queue_info"].items()):
            line = f"{key:<20}{queue['total']:<8}{queue['free']:<8}{queue['pending']}"
            lines.append(printable(line))
        lines.append("-" * 44)
        return "\n".join(lines)

    def _request(self, key: str, priority: int, timeout_s: float) -> tuple[str, int, str]:
        if problem := key_problem(key):
            raise RPCArgumentError(f"{key!r} is no kind of device: {problem}.")
        raw = key.encode()
        head = struct.pack("<iIII", priority, round(timeout_s * 1000), len(raw), 0)
        payload = self._exchange(Code.REQUEST, head + raw + b"\0", timeout_s + self._step_s)
        try:
            port, lease_size, address_size, _ = struct.unpack_from("<IIII", payload)
            at = 17 + lease_size
            lease = payload[16 : 16 + lease_size].decode()
            address = payload[at : at + address_size].decode()
        except (struct.error, UnicodeDecodeError):
            raise self._broken("what is no address of a device") from None
        # A tracker names machines; a socket of this one is not for it to choose.
        is_host = 0 < len(address) < 256 and (address + lease).isprintable()
        if not is_host or address.startswith("unix:") or not 0 < port < 65536:
            raise self._broken("what is no address of a device")
        return address, port, lease

    def _broken(self, what: str) -> RPCError:
        """Leave a tracker that sent `what`; return the error that says so."""
        self.close()
        return RPCError(f"{self} breaks the RPC protocol: it sent {what}.")

    def _connect(self) -> socket.socket:
        host, port = self._address
        peer = f"tracker {host}:{port}"
        link = open_socket(
            host, port, self._step_s,
            f"python -m slipway.exec.rpc_tracker --host {host} --port {port}",
        )  # fmt: skip
        try:
            if self._tls is not None:
                link = wrap(link, self._tls, self._tls_name or host, peer)
            greet(
                link, key="", session_timeout_s=0, token=self._admin_token or self._token,
                peer=peer, role=Role.ADMIN if self._admin_token else Role.CLIENT,
                name=" ".join(
                    [f"{getpass.getuser()}@{socket.gethostname()} {os.getpid()}", self._purpose]
                ).strip(),
            )  # fmt: skip
        except BaseException:
            link.close()
            raise
        self._socket = link
        return link

    def _exchange(self, code: Code, payload: bytes, timeout_s: float) -> bytes:
        with self._lock:
            link = self._socket or self._connect()
            self._number += 1
            try:
                link.settimeout(timeout_s)
                link.sendall(frame(code, self._number, payload))
                head = receive_exactly(link, HEADER.size, "tracker")
                size, answer, _, number, _ = HEADER.unpack(head)
                is_reply = answer in (Code.RETURN, Code.ERROR) and number == self._number
                if size > _MAX_REPLY_BYTES or not is_reply:
                    raise self._broken("a frame that answers nothing")
                content = receive_exactly(link, size, "tracker")
            except TimeoutError as error:
                self.close()
                raise RPCTimeoutError(f"{self} did not answer within {timeout_s:g} s.") from error
            except OSError as error:
                self.close()
                raise RPCConnectionError(
                    f"the connection to {self} broke: {error}. Is the tracker still running?"
                ) from error
            except BaseException:
                self.close()  # Ctrl-C: the tracker forgets the request
                raise
        if answer == Code.ERROR:
            failure, message = read_refusal(content)
            is_wait = code == Code.REQUEST and failure == Failure.NOT_FOUND
            kind = RPCTimeoutError if is_wait else RPCError
            raise kind(f"{self}: {message}.")
        return content


def _with_linker(session: RPCSession) -> RPCSession:
    """Return the session; one whose uploads are linked here where the device wants that."""
    if not session.link.features & Feature.LINKED:
        return session
    from slipway.micro.device_rpc import DeviceRPCSession

    return DeviceRPCSession.of_board(session)


def _is_summary(found: Any) -> bool:
    """Whether `found` has the fields that people and programs read of it."""
    try:
        servers, queues, farm = found["server_info"], found["queue_info"], found["farm"]
        words = [server[name] for server in servers for name in ("key", "state")]
        words += [server["addr"][0] for server in servers]
        counts = [queue[name] for queue in queues.values() for name in ("total", "free", "pending")]
        counts += [server["addr"][1] for server in servers]
    except (KeyError, IndexError, TypeError, AttributeError):
        return False
    has_types = all(type(word) is str for word in words) and all(type(n) is int for n in counts)
    return has_types and isinstance(farm, dict)


def connect_tracker(
    url: str,
    port: int,
    *,
    token: str | None = None,
    tls: TLSOption = None,
    tls_name: str | None = None,
    admin_token: str | None = None,
    purpose: str = "",
    timeout: float = CONNECT_TIMEOUT_S,
) -> TrackerSession:
    """Connect to the tracker at `url`:`port`.

    `token` defaults to the environment's SLIPWAY_RPC_TOKEN.  `tls` and `tls_name` are those of
    `connect`, and hold for the devices, too.  With `admin_token` the session may `kick` and
    `drain`.  `purpose` is what the tracker's page says beside the user: what devices are for.
    `timeout`: seconds for each step of connecting, and for each answer of the tracker's own.
    """
    return TrackerSession(
        url, port, token, tls=tls, tls_name=tls_name, admin_token=admin_token, purpose=purpose,
        timeout=timeout,
    )  # fmt: skip
