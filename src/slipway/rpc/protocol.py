"""The RPC protocol in Python: constants, packing, and the client's greeting.

``docs/rpc-protocol.md`` is the specification; ``crt/include/slipway/rpc_frame.h`` holds the same
constants for C.  All integers are little-endian.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import os
import socket
import struct
import time
from dataclasses import dataclass

from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError, printable
from slipway.rpc import checks
from slipway.version import VERSION

MAGIC = b"SLIPWAY\n"
VERSION_MIN = 1
VERSION_MAX = 1
FRAME_BYTES = 4 << 20  # largest payload that this end takes
HELLO_MAX_BYTES = 1024
NAME_MAX_BYTES = 200
LEASE_DIGITS = 32  # of the hexadecimal text that names one hand-out of a device
KEY_MAX_BYTES = 160  # of a device's own key: with ':' and a lease it is a name

HEADER = struct.Struct("<IHHII")  # payload size, code, flags, id, channel
VALUE = struct.Struct("<iIq")  # tag, size, payload
FLOAT_VALUE = struct.Struct("<iId")
DEVICE_VALUE = struct.Struct("<iIii")
HANDLE_VALUE = struct.Struct("<iIQ")
TENSOR_HEAD = struct.Struct("<QiiBBHIQ")  # handle, device, dtype, ndim, nbytes
_HELLO = struct.Struct("<8sHHIQIIHHI")
_WELCOME = struct.Struct("<8sHHIQII32sHHI")
_ERROR = struct.Struct("<IIII")


class Code(enum.IntEnum):
    """What a frame asks or answers."""

    HELLO = 1
    CHALLENGE = 2
    AUTHENTICATE = 3
    WELCOME = 4
    GOODBYE = 5
    PING = 16
    CALL = 17
    GET_FUNCTION = 18
    LOAD_MODULE = 19
    FREE = 20
    TENSOR_ALLOC = 21
    TENSOR_WRITE = 22
    TENSOR_READ = 23
    TENSOR_COPY = 24
    FILE_WRITE = 25
    FILE_READ = 26
    FILE_REMOVE = 27
    FILE_LIST = 28
    DEVICE_QUERY = 29
    TIME = 30
    OUTPUT = 32
    REGISTER = 64
    ASSIGN = 65
    IDLE = 66
    HEARTBEAT = 67
    REQUEST = 68
    SUMMARY = 69
    KICK = 70
    DRAIN = 71
    REVOKE = 72
    OPEN = 96
    RETURN = 128
    ERROR = 129


class Role(enum.IntEnum):
    """What a peer greets for."""

    SESSION = 0
    DEVICE = 1
    CLIENT = 2
    CARRIER = 3  # a device brings the connection that a proxy asked it for
    ADMIN = 4


class Feature(enum.IntFlag):
    """What a device offers, and what a client asks for."""

    FILES = 1
    MODULES = 2
    TIMING = 4
    OUTPUT = 8
    CALLBACKS = 16
    PROOF = 32  # in a HELLO: the peer has a token, and wants it proved
    LINKED = 64  # in a WELCOME: code is linked by the client, for the device's memory


class Tag(enum.IntEnum):
    """Type of an argument or result."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    DTYPE = 5
    DEVICE = 6
    STR = 8
    BYTES = 9
    FUNCTION = 68
    SHAPE = 69
    TENSOR = 70
    LIST = 71
    MODULE = 73
    TENSOR_DESC = 128
    CALLBACK = 129
    TENSOR_DATA = 130


class Failure(enum.IntEnum):
    """Why a request failed; `Failure.PROTOCOL` and those marked fatal end the session."""

    PROTOCOL = 1
    VERSION = 2
    AUTH = 3
    BUSY = 4
    UNSUPPORTED = 5
    ARGUMENT = 6
    HANDLE = 7
    NOT_FOUND = 8
    LIMIT = 9
    MEMORY = 10
    IO = 11
    REMOTE = 12
    TIMEOUT = 13
    CRASHED = 14
    CANCELLED = 15

    @property
    def is_fatal(self) -> bool:
        """Whether the session is over after it."""
        return self in _FATAL


_FATAL = frozenset(
    {
        Failure.PROTOCOL,
        Failure.VERSION,
        Failure.AUTH,
        Failure.BUSY,
        Failure.TIMEOUT,
        Failure.CRASHED,
        Failure.CANCELLED,
    }
)

FLAG_MORE = 1
FLAG_NO_REPLY = 2
FLAGS = FLAG_MORE | FLAG_NO_REPLY
REGISTER_BUSY = 1  # flags of a REGISTER
REGISTER_PROXIED = 2


@dataclass(frozen=True)
class Welcome:
    """What the device said in answer to the greeting."""

    version: int
    features: int
    frame_bytes: int
    timeout_ms: int  # longest session, 0: no limit
    key: str
    description: str


def padded(size: int) -> int:
    """Round `size` up to a multiple of 8."""
    return (size + 7) & ~7


def pad(content: bytes) -> bytes:
    """Append zeros up to a multiple of 8."""
    return content + bytes(padded(len(content)) - len(content))


def frame(code: int, request_id: int, payload: bytes, flags: int = 0) -> bytes:
    """Return one frame; the payload is padded."""
    payload = pad(payload)
    return HEADER.pack(len(payload), code, flags, request_id, 0) + payload


def read_error(payload: bytes | memoryview) -> tuple[int, str, str]:
    """Take an ERROR frame's payload apart: failure code, kind, message, which may have lines.

    Raises struct.error where it has not even its fields.
    """
    code, kind_size, message_size, _ = _ERROR.unpack_from(payload, 0)
    kind = bytes(payload[16 : 16 + kind_size]).decode("utf-8", "replace")
    start = 16 + kind_size + 1
    message = bytes(payload[start : start + message_size]).decode("utf-8", "replace")
    return code, printable(kind), printable(message, "\n\t")


def read_refusal(payload: bytes) -> tuple[int, str]:
    """Return failure code and reason, one line, of an ERROR by a peer that nothing is known of."""
    try:
        code, _, message = read_error(payload)
    except struct.error:
        return Failure.PROTOCOL, "it gives no reason, though the protocol wants one"
    return code, printable(message)


def greet(
    link: socket.socket,
    *,
    key: str,
    session_timeout_s: float,
    token: str | None,
    peer: str,
    role: Role = Role.SESSION,
    name: str = "",
    features: int = 0,
    wants_proof: bool = True,
) -> Welcome:
    """Introduce this client on a fresh connection; with a token, both ends prove that they have it.

    `wants_proof` false leaves that to the device: for what this process started itself, and for a
    cable.  The socket's timeout bounds all of it, however the peer divides its bytes.  Raises
    RPCConnectionError, RPCTimeoutError, or RPCError with the device's own reason for refusing.
    """
    checks.text(key, "the device key")
    checks.secret(token)
    session_timeout_s = checks.seconds(session_timeout_s, "session_timeout", "no limit")
    raw_name = f"slipway {VERSION} {name}".strip().encode("utf-8", "replace")[:NAME_MAX_BYTES]
    raw_key = key.encode()
    if len(raw_key) > NAME_MAX_BYTES:
        raise RPCError(f"the device key {key!r} is longer than {NAME_MAX_BYTES} bytes.")
    if not key.isprintable():
        raise RPCError(f"the device key {key!r} is not printable text.")
    if token and wants_proof:
        features |= Feature.PROOF
    timeout_ms = round(session_timeout_s * 1000)
    hello = hello_payload(role, raw_key, raw_name, timeout_ms, features)
    limit_s = link.gettimeout()
    try:
        code, payload, nonce, challenge = _answer_to(link, hello, token, peer)
        link.settimeout(limit_s)
    except TimeoutError as error:
        raise RPCTimeoutError(
            f"{peer} accepted the connection but did not answer the greeting within "
            f"{limit_s:g} s. Is it a Slipway RPC server, and is it alive?"
        ) from error
    except OSError as error:
        raise RPCConnectionError(f"the connection to {peer} broke in the greeting: {error}.") from (
            error
        )
    if token and (wants_proof or challenge):
        proof = server_proof(token, nonce, challenge) if challenge else b""
    else:
        proof = None
    return _read_welcome(code, payload, proof, peer)


def _answer_to(
    link: socket.socket, hello: bytes, token: str | None, peer: str
) -> tuple[int, bytes, bytes, bytes]:
    """Return code and payload of the answer to HELLO, and nonce and challenge of the proof."""
    nonce, challenge = b"", b""
    limit_s = link.gettimeout()
    end = None if limit_s is None else time.monotonic() + limit_s
    link.sendall(frame(Code.HELLO, 1, hello))
    code, payload = _receive(link, end)
    for _ in range(2):  # a proxy asks first, then the device behind it
        if code != Code.CHALLENGE:
            break
        if not token:
            raise RPCError(
                f"{peer} asks for its token, and none is set here. Set SLIPWAY_RPC_TOKEN to "
                "the token that its server was started with.",
                Failure.AUTH,
            )
        nonce, challenge = os.urandom(32), payload[:32]
        mac = client_proof(token, challenge, nonce)
        link.sendall(frame(Code.AUTHENTICATE, 1, nonce + mac))
        code, payload = _receive(link, end)
    return code, payload, nonce, challenge


def _read_welcome(code: int, payload: bytes, expected: bytes | None, peer: str) -> Welcome:
    """Read WELCOME, whose proof is to be as expected where one is; RPCError for all else."""
    if code == Code.ERROR:
        failure, message = read_refusal(payload)
        raise RPCError(f"{peer} refused the session: {message}.", failure)
    if code != Code.WELCOME or len(payload) < _WELCOME.size or payload[:8] != MAGIC:
        raise RPCError(f"{peer} does not speak Slipway's RPC protocol; it answered with {code}.")
    fields = _WELCOME.unpack_from(payload)
    version, features, frame_bytes, timeout_ms, proof, key_size, name_size = (
        fields[1], fields[4], fields[5], fields[6], fields[7], fields[8], fields[9],
    )  # fmt: skip
    if expected is not None and not hmac.compare_digest(proof, expected):
        raise RPCError(
            f"{peer} let this client in, but could not prove that it has the token itself: it "
            "may be another machine than it seems. Nothing was sent to it. Start its server "
            "with the same token, or, where a peer without one is meant, connect with "
            "token=''.",
            Failure.AUTH,
        )
    if not VERSION_MIN <= version <= VERSION_MAX or frame_bytes < HELLO_MAX_BYTES:
        raise RPCError(
            f"{peer} does not keep to Slipway's RPC protocol: it answers with version {version} "
            f"and takes frames of {frame_bytes} bytes, where this client knows version "
            f"{VERSION_MAX} and the minimum is {HELLO_MAX_BYTES}.",
            Failure.VERSION,
        )
    at = _WELCOME.size
    key = payload[at : at + key_size].decode("utf-8", "replace")
    described = payload[at + key_size + 1 : at + key_size + 1 + name_size]
    return Welcome(
        version,
        features,
        min(frame_bytes, FRAME_BYTES),  # larger ones bring nothing
        timeout_ms,
        printable(key),
        printable(described.decode("utf-8", "replace")),
    )


@dataclass(frozen=True)
class Hello:
    """What a peer said of itself."""

    version_min: int
    version_max: int
    role: int
    key: str
    name: str
    features: int = 0
    timeout_ms: int = 0  # longest session that it wants, 0: as the device allows


def key_problem(key: str) -> str:
    """Return what keeps `key` from being a device's key, "" for nothing."""
    if len(key.encode("utf-8", "surrogateescape")) > KEY_MAX_BYTES:
        return f"a device's key has at most {KEY_MAX_BYTES} bytes"
    if not key.isprintable():
        return "a device's key is printable UTF-8"
    return "it ends like the lease of a device" if split_lease(key)[1] else ""


def split_lease(key: str) -> tuple[str, str]:
    """Return (key, lease) of what a client asks for: "key:lease", or a key alone."""
    own, _, lease = key.rpartition(":")
    is_lease = len(lease) == LEASE_DIGITS and all(c in "0123456789abcdef" for c in lease)
    return (own, lease) if is_lease else (key, "")


def read_hello(payload: bytes) -> Hello | None:
    """Take a HELLO apart; None if it is none."""
    if len(payload) < _HELLO.size or payload[:8] != MAGIC:
        return None
    fields = _HELLO.unpack_from(payload)
    _, low, high, role, features, _, timeout_ms, key_size, name_size, _ = fields
    at = _HELLO.size
    key = payload[at : at + key_size]
    name = payload[at + key_size + 1 : at + key_size + 1 + name_size]
    end = at + key_size + 1 + name_size
    if len(payload) <= end or max(key_size, name_size) > NAME_MAX_BYTES:
        return None
    if b"\0" in key + name or payload[at + key_size] or payload[end]:
        return None
    # What is no UTF-8 stays visible, and is refused as a key.
    text = key.decode("utf-8", "surrogateescape")
    return Hello(low, high, role, text, name.decode("utf-8", "replace"), features, timeout_ms)


def hello_payload(
    role: int, key: bytes, name: bytes, timeout_ms: int = 0, features: int = 0
) -> bytes:
    """Return a HELLO of this version."""
    head = _HELLO.pack(
        MAGIC,
        VERSION_MIN,
        VERSION_MAX,
        role,
        features,
        FRAME_BYTES,
        timeout_ms,
        len(key),
        len(name),
        0,
    )
    return head + key + b"\0" + name + b"\0"


def with_key(hello: bytes, key: str) -> bytes:
    """Return a HELLO, checked by `read_hello`, that asks for another key."""
    fields = list(_HELLO.unpack_from(hello))
    raw = key.encode()
    rest = hello[_HELLO.size + fields[7] :][: fields[8] + 2]
    fields[7] = len(raw)
    return _HELLO.pack(*fields) + raw + rest


def read_proof(payload: bytes) -> bytes | None:
    """Return the proof in a WELCOME; None if it is none."""
    if len(payload) < _WELCOME.size or payload[:8] != MAGIC:
        return None
    proof: bytes = _WELCOME.unpack_from(payload)[7]
    return proof


def with_welcome(welcome: bytes, proof: bytes, features: int) -> bytes:
    """Return a device's WELCOME as this process gives it: its proof, features and version.

    Raises struct.error where it is none.
    """
    fields = list(_WELCOME.unpack_from(welcome))
    texts = welcome[_WELCOME.size :]
    key, name = texts[: fields[8] + 1], texts[fields[8] + 1 :][: fields[9]]
    name = f"slipway {VERSION} ".encode() + name.removeprefix(b"slipway ")
    fields[4] |= features
    fields[7] = proof
    fields[9] = len(name)
    return _WELCOME.pack(*fields) + key + name + b"\0"


def welcome_payload(role: int, proof: bytes, name: str) -> bytes:
    """Return a WELCOME of a peer that offers no session."""
    raw = name.encode()
    head = _WELCOME.pack(MAGIC, VERSION_MAX, 0, role, 0, FRAME_BYTES, 0, proof, 0, len(raw), 0)
    return head + b"\0" + raw + b"\0"


def error_payload(failure: Failure, message: str, kind: str = "RPCError") -> bytes:
    """Return the payload of an ERROR."""
    raw_kind, raw = kind.encode(), message.encode()
    return _ERROR.pack(failure, len(raw_kind), len(raw), 0) + raw_kind + b"\0" + raw + b"\0"


def client_proof(token: str, challenge: bytes, nonce: bytes) -> bytes:
    """Return what AUTHENTICATE must carry after the nonce."""
    return _mac(token, b"slipway rpc 1 client\0", challenge, nonce)


def server_proof(token: str, nonce: bytes, challenge: bytes) -> bytes:
    """Return the proof of a WELCOME."""
    return _mac(token, b"slipway rpc 1 server\0", nonce, challenge)


def _mac(token: str, label: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.new(token.encode(), label + first + second, hashlib.sha256).digest()


def _receive(link: socket.socket, end: float | None) -> tuple[int, bytes]:
    head = receive_exactly(link, HEADER.size, end=end)
    size, code, flags, _, channel = HEADER.unpack(head)
    if size > 2 * HELLO_MAX_BYTES or size % 8 or flags or channel:
        raise ConnectionError("the peer answered with something that is not this protocol")
    return code, receive_exactly(link, size, end=end)


def receive_exactly(
    link: socket.socket, size: int, peer: str = "peer", *, end: float | None = None
) -> bytes:
    """Return the next `size` bytes.  Raises ConnectionError when the connection ends before.

    Without `end` (of `time.monotonic`) the socket's timeout bounds the wait for each part.
    """
    parts = bytearray()
    while len(parts) < size:
        if end is not None:
            left_s = end - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the time is over")
            link.settimeout(left_s)
        part = link.recv(size - len(parts))
        if not part:
            raise ConnectionError(f"the {peer} closed the connection")
        parts += part
    return bytes(parts)
