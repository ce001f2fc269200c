"""Servers and trackers that lie before anything is proved: the client says so in words."""

import contextlib
import json
import socket
import struct
import threading
import time

import pytest

from slipway import rpc
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc import protocol
from slipway.rpc.protocol import HEADER, VALUE, Code, Failure, Role, Tag, error_payload, frame

ESCAPES = "\x1b]0;a title\x07\nthe next line\r\u202e"


def greet(*answers, token=None):
    """Greet a peer that sends `answers`, whatever it is asked."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        theirs.sendall(b"".join(answers))
        return protocol.greet(ours, key="", session_timeout_s=0, token=token, peer="a peer")


def welcome(version=1, frame_bytes=1024, key=b"key", name=b"name"):
    fields = (b"SLIPWAY\n", version, 0, 0, 0, frame_bytes, 0, bytes(32), len(key), len(name), 0)
    return frame(Code.WELCOME, 1, protocol._WELCOME.pack(*fields) + key + b"\0" + name + b"\0")


@pytest.mark.parametrize("size", [0, 8])
def test_refusal_without_its_fields(size):
    with pytest.raises(RPCError, match="a peer refused the session: it gives no reason"):
        greet(frame(Code.ERROR, 1, bytes(size)))


def test_refusal_does_nothing_to_a_terminal():
    with pytest.raises(RPCError, match="refused the session") as raised:
        greet(frame(Code.ERROR, 1, error_payload(Failure.AUTH, ESCAPES)))
    assert str(raised.value).isprintable()
    assert raised.value.failure == Failure.AUTH


def test_names_in_a_welcome_do_nothing_to_a_terminal():
    made = greet(welcome(key=ESCAPES.encode(), name=b"\x1b[2J\xff"))
    assert made.key.isprintable()
    assert made.description == "\\x1b[2J\ufffd"


@pytest.mark.parametrize(("version", "frame_bytes"), [(0, 1024), (9, 1024), (1, 0), (1, 1023)])
def test_welcome_against_the_specification(version, frame_bytes):
    with pytest.raises(RPCError, match="does not keep to"):
        greet(welcome(version, frame_bytes))


def test_greeting_that_comes_byte_by_byte_has_one_deadline():
    ours, theirs = socket.socketpair()

    def drip():
        with contextlib.suppress(OSError):
            for byte in welcome():
                theirs.sendall(bytes([byte]))
                time.sleep(0.05)

    dripping = threading.Thread(target=drip)
    dripping.start()
    with theirs:
        with ours, pytest.raises(RPCTimeoutError, match=r"the greeting within 0\.2 s"):
            ours.settimeout(0.2)
            protocol.greet(ours, key="", session_timeout_s=0, token=None, peer="a peer")
        dripping.join()


def test_frames_as_large_as_no_client_makes_them():
    assert greet(welcome(frame_bytes=2**32 - 1)).frame_bytes == protocol.FRAME_BYTES


class Tracker:
    """Lets every client in, and answers each request with one payload."""

    def __init__(self, payload, code=Code.RETURN, number=None):
        self.payload, self.code, self.number = payload, code, number
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.listener.accept()
                with link, contextlib.suppress(OSError, struct.error):
                    self._receive(link)
                    made = protocol.welcome_payload(Role.CLIENT, bytes(32), "a tracker")
                    link.sendall(frame(Code.WELCOME, 1, made))
                    number = self._receive(link)
                    link.sendall(frame(self.code, self.number or number, self.payload))
                    self._receive(link)  # until the client has left

    def _receive(self, link):
        size, _, _, number, _ = HEADER.unpack(protocol.receive_exactly(link, HEADER.size))
        protocol.receive_exactly(link, size)
        return number

    def session(self):
        return rpc.connect_tracker("127.0.0.1", self.listener.getsockname()[1], token="")


@contextlib.contextmanager
def tracker(*arguments):
    running = Tracker(*arguments)
    with running.listener, running.session() as session:
        yield session


def text(content):
    raw = content.encode()
    return VALUE.pack(Tag.STR, len(raw), 16) + raw + b"\0"


def summary(**fields):
    server = {"addr": ["a", 1], "key": "k", "state": "free"}
    queue = {"free": 1, "total": 1, "pending": 0}
    whole = {"server_info": [server], "queue_info": {"k": queue}, "farm": {}}
    return text(json.dumps({**whole, **fields}))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        VALUE.pack(Tag.INT, 0, 7),
        text("{{{"),
        text("[" * 900),
        text("null"),
        summary(server_info=[{"addr": [], "key": "k", "state": "free"}]),
        summary(server_info=[{"addr": ["a", 1], "key": [], "state": "free"}]),
        summary(queue_info={"k": {"free": "one", "total": 1, "pending": 0}}),
        summary(farm=None),
    ],
    ids=["nothing", "number", "no JSON", "deep", "null", "address", "key", "count", "farm"],
)
def test_summary_that_is_none(payload):
    with tracker(payload) as session, pytest.raises(RPCError, match="it sent what is no summary"):
        session.text_summary()


def test_summary_does_nothing_to_a_terminal():
    server = {"addr": [ESCAPES, 1], "key": ESCAPES, "state": "free"}
    with tracker(summary(server_info=[server])) as session:
        assert all(line.isprintable() for line in session.text_summary().split("\n"))


def grant(address, port=9090, lease=b"lease"):
    head = struct.pack("<IIII", port, len(lease), len(address), 0)
    return head + lease + b"\0" + address + b"\0"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        grant(b"a host", 0),
        grant(b"a host", 65536),
        grant(b"\xff"),
        grant(b"a\0b"),
        grant(b"h" * 300),
        grant(b"unix:/run/some.sock"),
        struct.pack("<IIII", 1, 2**31, 2**31, 0),
    ],
    ids=["nothing", "no port", "port", "no text", "NUL", "long", "socket of this machine", "sizes"],
)
def test_device_that_is_none(payload):
    with tracker(payload) as session, pytest.raises(RPCError, match="no address of a device"):
        session.request("k")


@pytest.mark.parametrize("answer", [(b"", Code.WELCOME), (b"", Code.RETURN, 99)], ids=str)
def test_answer_to_nothing(answer):
    with tracker(*answer) as session, pytest.raises(RPCError, match="answers nothing"):
        session.request("k")


@pytest.mark.parametrize("host", ["h" * 70, "a..b"])
def test_host_that_no_machine_is_called(host):
    with pytest.raises(RPCConnectionError, match="no name of a host"):
        rpc.connect(host, 9090)
