"""What a client is given by mistake: one error in words, before anything is sent."""

import math
import socket

import pytest

from slipway import nd, rpc
from slipway.errors import SlipwayError

UNTIMELY = [-1, math.inf, math.nan, 1e10, "5", True]


class Nobody:
    """A port that somebody listens on, and nobody is asked anything at."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    def sent(self):
        """Return what came, of the connections that were made."""
        content = b""
        while True:
            try:
                link, _ = self.listener.accept()
            except BlockingIOError:
                return content
            with link:
                content += link.recv(64)


@pytest.fixture
def nobody():
    made = Nobody()
    yield made
    made.listener.close()


def refuses(call, what):
    with pytest.raises(SlipwayError, match=what) as raised:
        call()
    assert isinstance(raised.value, ValueError | TypeError | ConnectionError)


@pytest.mark.parametrize("value", UNTIMELY, ids=str)
def test_times_that_cannot_be_kept(nobody, value):
    connect = rpc.connect
    refuses(lambda: connect("127.0.0.1", nobody.port, session_timeout=value), "session_timeout=")
    refuses(lambda: connect("127.0.0.1", nobody.port, timeout=value), "^timeout=")
    refuses(lambda: rpc.PopenSession(["true"], timeout=value), "^timeout=")
    assert nobody.sent() == b""


def test_no_time_to_connect(nobody):
    refuses(lambda: rpc.connect("127.0.0.1", nobody.port, timeout=0), "more than 0")


@pytest.mark.parametrize("token", ["\ud800", b"secret", 31337], ids=["half", "bytes", "number"])
@pytest.mark.parametrize("connect", [rpc.connect, rpc.connect_tracker])
def test_tokens_that_nobody_can_prove(nobody, connect, token):
    with pytest.raises(SlipwayError, match="the token is") as raised:
        connect("127.0.0.1", nobody.port, token=token)
    assert "secret" not in str(raised.value)
    assert "31337" not in str(raised.value)
    assert nobody.sent() == b""


@pytest.mark.parametrize("key", ["\ud800", b"k", None, 5], ids=str)
def test_keys_that_are_no_text(nobody, key):
    refuses(lambda: rpc.connect("127.0.0.1", nobody.port, key), "the device key")
    assert nobody.sent() == b""


@pytest.mark.parametrize(
    ("host", "port", "what"),
    [
        (None, 9090, "the server's address"),
        ("127.0.0.1", "9090", "port='9090' is no whole number"),
        ("127.0.0.1", 1.5, "port=1.5 is no whole number"),
        ("127.0.0.1", 2**80, "port=.* is not from"),
    ],
)
def test_addresses_that_are_none(host, port, what):
    refuses(lambda: rpc.connect(host, port), what)


def test_requests_that_no_tracker_could_read():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as running:
        tracker = rpc.connect_tracker("127.0.0.1", running.port)
        refuses(lambda: tracker.request(5), "the kind of device")
        refuses(lambda: tracker.request("k", priority=2**31), "priority=")
        refuses(lambda: tracker.request("k", priority="1"), "priority=")
        refuses(lambda: tracker.request("k", session_timeout=-1), "session_timeout=")
        refuses(lambda: tracker.request("k", timeout=math.nan), "timeout=")
        refuses(lambda: tracker.kick(-1, "a"), "device=")
        refuses(lambda: tracker.drain("1"), "device=")
        assert tracker.summary()["queue_info"] == {}


def test_session_keeps_its_time_when_it_is_given_none(remote):
    before = remote.timeout
    for value in UNTIMELY:
        with pytest.raises(SlipwayError, match="timeout="):
            remote.timeout = value
    assert remote.timeout == before
    assert remote.ping(b"x") == b"x"


def test_names_that_no_device_knows(remote):
    """Also longer ones than the protocol carries: they cost no session."""
    with pytest.raises(AttributeError, match="no global function"):
        remote.get_function("f" * 201)
    for name in ("\ud800", 5, None):
        for request in (
            remote.get_function,
            remote.download,
            lambda n: remote.upload(b"x", n or 5),
        ):
            refuses(lambda request=request, name=name: request(name), "name")
    refuses(lambda: remote.upload(None), "upload takes bytes or a file's path")
    assert remote.ping(b"x") == b"x"


def test_names_with_marks_that_end_lines_elsewhere(remote):
    for name in ("a\u2028b", "c\u2029d e"):
        remote.upload(b"x", name)
    assert {"a\u2028b", "c\u2029d e"} <= set(remote.listdir())


def test_arguments_that_cannot_travel(remote, kernels):
    remote.upload(kernels)
    module = remote.load_module("kernels.so")
    refuses(lambda: module["segfault"]("\ud800"), "argument 0 .* no Unicode text")
    for what, value in {"number": 2**31, "repeat": 1.5, "min_repeat_ms": "3"}.items():
        refuses(lambda w=what, v=value: module.time_evaluator("segfault", **{w: v}), f"^{what}=")
    assert remote.ping(b"x") == b"x"


@pytest.mark.parametrize("shape", [("a",), None, (1.5,), "ab", 2.0], ids=str)
def test_shapes_that_are_none(remote, shape):
    """Half an extent was cut off, here and there."""
    for device in (None, remote.cpu(0)):
        refuses(lambda device=device: nd.empty(shape, "float32", device), "is no shape")
