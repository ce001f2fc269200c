"""Who proves what to whom: every row of the table of docs/security.md."""

import contextlib
import hashlib
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.rpc.faults.waiting import wait_for
from tests.rpc.raw import Raw, hello, own_address

from slipway import rpc
from slipway.errors import RPCError
from slipway.rpc import protocol
from slipway.rpc.protocol import HEADER, Code, Role, frame, hello_payload, welcome_payload

TOKEN = "a token"
PAGE = Path(__file__).parents[3] / "docs" / "security.md"


class Impostor:
    """Greets whoever comes, without the token, and notes the codes of what it is sent."""

    def __init__(self, manner):
        self.manner = manner
        self.codes = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.listener.accept()
                threading.Thread(target=self._greet, args=(link,), daemon=True).start()

    def _greet(self, link):
        with link, contextlib.suppress(OSError, ConnectionError, struct.error):
            role = struct.unpack_from("<I", self._receive(link), 12)[0]
            proof = bytes(32)
            if self.manner != "does not ask":
                challenge = os.urandom(32)
                link.sendall(frame(Code.CHALLENGE, 1, challenge))
                answer = self._receive(link)
                if self.manner == "sends the client's proof back":
                    proof = answer[32:64]
                if self.manner == "knows another token":
                    proof = protocol.server_proof("another", answer[:32], challenge)
            link.sendall(frame(Code.WELCOME, 1, welcome_payload(role, proof, "an impostor")))
            while True:
                self._receive(link)

    def _receive(self, link):
        size, code, *_ = HEADER.unpack(protocol.receive_exactly(link, HEADER.size))
        self.codes.append(code)
        return protocol.receive_exactly(link, size)

    def close(self):
        self.listener.close()


MANNERS = [
    "does not ask",
    "proves nothing",
    "sends the client's proof back",
    "knows another token",
]


@pytest.fixture(params=MANNERS)
def impostor(request):
    running = Impostor(request.param)
    yield running
    running.close()


def only_greeted(impostor):
    """Whether it got nothing that is worth anything."""
    return set(impostor.codes) <= {Code.HELLO, Code.AUTHENTICATE} and impostor.codes


def test_client_refuses_a_server_without_proof(impostor):
    with pytest.raises(RPCError, match="could not prove that it has the token itself"):
        rpc.connect("127.0.0.1", impostor.port, token=TOKEN)
    assert only_greeted(impostor)


def test_client_takes_the_token_of_the_environment_as_seriously(impostor, monkeypatch):
    monkeypatch.setenv("SLIPWAY_RPC_TOKEN", TOKEN)
    with pytest.raises(RPCError, match="could not prove that it has the token itself"):
        rpc.connect("127.0.0.1", impostor.port)
    with pytest.raises(RPCError, match="could not prove that it has the token itself"):
        rpc.connect_tracker("127.0.0.1", impostor.port)
    assert only_greeted(impostor)


@pytest.mark.parametrize("kind", ["token", "admin_token"])
def test_client_refuses_a_tracker_without_proof(impostor, kind):
    with pytest.raises(RPCError, match="could not prove that it has the token itself"):
        rpc.connect_tracker("127.0.0.1", impostor.port, **{"token": "", kind: TOKEN})
    assert only_greeted(impostor)


@pytest.mark.parametrize("through_proxy", [False, True])
def test_device_registers_with_nobody_without_proof(impostor, through_proxy):
    options = rpc.ServerOptions(
        key="board", token=TOKEN, tracker=("127.0.0.1", impostor.port), is_quiet=True,
        through_proxy=through_proxy,
    )  # fmt: skip
    port = impostor.port if through_proxy else 0
    with rpc.Server("127.0.0.1", port, is_proxy=through_proxy, key="board", options=options):
        wait_for(lambda: impostor.codes.count(Code.HELLO) >= 2)  # it goes on trying
    assert only_greeted(impostor)


def test_static_device_registers_with_nobody_without_proof(
    impostor, static_server_for_this_machine
):
    arguments = ("--key", "board", "--tracker", f"127.0.0.1:{impostor.port}")
    device = static_server_for_this_machine(*arguments, token=TOKEN)
    wait_for(lambda: impostor.codes.count(Code.HELLO) >= 2)
    assert "prove that it has the token" in device.text()
    device.stop()
    assert only_greeted(impostor)


def test_proxy_registers_with_nobody_without_proof(impostor):
    with rpc.Proxy(
        "127.0.0.1", 0, tracker_addr=("127.0.0.1", impostor.port), token=TOKEN, silent=True
    ) as proxy:
        device = Raw(proxy, greet=False)
        device.send(frame(Code.HELLO, 1, hello_payload(Role.DEVICE, b"board", b"a device")))
        assert device.receive()[0] == Code.WELCOME
        device.send(frame(Code.REGISTER, 2, struct.pack("<IIII", 9, 0, 0, 0) + b"\0\0"))
        code, _, payload = device.receive()
        assert code == Code.ERROR
        assert b"could not prove that it has the token" in payload
        device.close()
    assert only_greeted(impostor)


def test_session_through_a_proxy_needs_the_devices_proof():
    """The proxy asks for the token, but only the device can prove it: one without is refused."""
    with rpc.Proxy("127.0.0.1", 0, token=TOKEN, silent=True) as proxy:
        for token, key in ((TOKEN, "board"), ("", "bare")):
            options = rpc.ServerOptions(token=token, is_quiet=True)
            with rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key=key, options=options):
                assert outcome(proxy.port, key) == ("served" if token else "no proof")


def outcome(port, key):
    """Open a session, when the device has come."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with rpc.connect("127.0.0.1", port, key=key, token=TOKEN) as session:
                return "served" if session.ping(b"x") == b"x" else ""
        except RPCError as error:
            if "could not prove" in str(error):
                return "no proof"
            if time.monotonic() > deadline:
                raise


def test_both_ends_prove_it_on_one_machine():
    with rpc.Server("127.0.0.1", 0, token=TOKEN, silent=True) as server:
        with rpc.connect("127.0.0.1", server.port, token=TOKEN) as session:
            assert session.ping(b"x") == b"x"
        with rpc.connect("127.0.0.1", server.port, token="") as session:
            assert session.ping(b"x") == b"x"  # a process of this machine needs none
        with pytest.raises(RPCError, match="the token is not the one"):
            rpc.connect("127.0.0.1", server.port, token="another")
    with (
        rpc.Server("127.0.0.1", 0, token="", silent=True) as server,
        pytest.raises(RPCError, match="Start its server with the same token"),
    ):
        rpc.connect("127.0.0.1", server.port, token=TOKEN)


def test_tracker_and_its_devices_prove_it_to_each_other():
    address = None
    with rpc.Tracker("127.0.0.1", 0, token=TOKEN, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        with (
            rpc.Server("127.0.0.1", 0, key="b", tracker_addr=address, token=TOKEN, silent=True),
            rpc.connect_tracker(*address, token=TOKEN) as client,
            client.request("b", timeout=60) as session,
        ):
            assert session.ping(b"x") == b"x"
        with pytest.raises(RPCError, match="the token is not the one"):
            rpc.connect_tracker(*address, token="another")


def test_client_from_elsewhere_proves_it_to_a_proxy():
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with rpc.Proxy("0.0.0.0", 0, token=TOKEN, silent=True) as proxy:
        options = rpc.ServerOptions(token=TOKEN, is_quiet=True)
        with rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="board", options=options):
            assert outcome(proxy.port, "board") == "served"
            with rpc.connect(address, proxy.port, key="board", token=TOKEN) as session:
                assert session.ping(b"x") == b"x"
            for token, words in (("", "asks for its token"), ("another", "is not the one")):
                with pytest.raises(RPCError, match=words):
                    rpc.connect(address, proxy.port, key="board", token=token)


def test_proxy_without_a_token_serves_its_own_machine_only():
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with (
        rpc.Proxy("0.0.0.0", 0, token="", silent=True) as proxy,
        pytest.raises(RPCError, match="own machine only"),
    ):
        rpc.connect(address, proxy.port, key="board", token="")


def test_administrator_proves_it_to_a_tracker_on_its_own_machine_too():
    admin = "the administrator's"
    with rpc.Tracker("127.0.0.1", 0, token=TOKEN, admin_token=admin, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        for proven, expected in ((TOKEN, Code.ERROR), (admin, Code.WELCOME)):
            peer = Raw(tracker, greet=False)
            peer.send(hello(role=Role.ADMIN))
            code, _, challenge = peer.receive()
            assert code == Code.CHALLENGE
            nonce = os.urandom(32)
            answer = nonce + protocol.client_proof(proven, challenge, nonce)
            peer.send(frame(Code.AUTHENTICATE, 1, answer))
            assert peer.receive()[0] == expected
            peer.close()
        with pytest.raises(RPCError, match="the token is not the administrator's"):
            rpc.connect_tracker(*address, token="", admin_token=TOKEN).drain(1)
        with pytest.raises(RPCError, match="only an administrator may do that"):
            rpc.connect_tracker(*address, token=TOKEN).drain(1)
        with rpc.Server("127.0.0.1", 0, key="b", tracker_addr=address, token=TOKEN, silent=True):
            session = rpc.connect_tracker(*address, token="", admin_token=admin)
            wait_for(lambda: session.summary()["server_info"])
            session.drain(1)


def test_tracker_without_an_administrators_token_has_no_administrator():
    with rpc.Tracker("127.0.0.1", 0, token=TOKEN, admin_token="", silent=True) as tracker:
        peer = Raw(tracker, greet=False)
        peer.send(hello(role=Role.ADMIN))
        code, _, payload = peer.receive()
        assert code == Code.ERROR
        assert b"administrator" in payload
        peer.close()


def test_wrong_tokens_wait_at_a_tracker_and_a_proxy():
    for start in (rpc.Tracker, rpc.Proxy):
        with start("127.0.0.1", 0, token=TOKEN, silent=True) as program:
            peer = Raw(program, greet=False)
            payload = bytearray(hello_payload(Role.DEVICE, b"board", b"a test"))
            struct.pack_into("<Q", payload, 16, protocol.Feature.PROOF)
            peer.send(frame(Code.HELLO, 1, bytes(payload)))
            assert peer.receive()[0] == Code.CHALLENGE
            began = time.monotonic()
            peer.send(frame(Code.AUTHENTICATE, 1, bytes(64)))
            assert peer.receive()[0] == Code.ERROR
            assert 0.95 < time.monotonic() - began < 5
            peer.close()


def test_answer_to_one_challenge_is_none_to_another():
    """Neither a recorded answer, nor the server's own proof, opens a session."""
    options = rpc.ServerOptions(token=TOKEN, require_token=True, is_quiet=True)
    with rpc.Server("127.0.0.1", 0, options=options) as server:
        recorded = []
        for attempt in range(3):
            peer = Raw(server, greet=False)
            peer.send(hello())
            _, _, challenge = peer.receive()
            nonce = hashlib.sha256(b"nonce").digest()
            if attempt == 0:
                recorded.append(nonce + protocol.client_proof(TOKEN, challenge, nonce))
                expected = Code.WELCOME
            else:
                expected = Code.ERROR
            if attempt == 2:
                recorded.append(nonce + protocol.server_proof(TOKEN, nonce, challenge))
            peer.send(frame(Code.AUTHENTICATE, 1, recorded[-1]))
            assert peer.receive()[0] == expected
            peer.close()


def test_minimal_client_refuses_a_server_without_proof(impostor, tmp_path):
    library = tmp_path / "x.so"
    library.write_bytes(b"secret")
    example = Path(__file__).parents[3] / "examples" / "rpc_minimal_client.py"
    done = subprocess.run(
        [sys.executable, "-I", example, "127.0.0.1", str(impostor.port), library, "f"],
        env={**os.environ, "SLIPWAY_RPC_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "does not know the token itself" in done.stderr
    assert only_greeted(impostor)


def test_rows_of_the_table_are_tests():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    rows = {name for name in named if name in globals()}
    ours = {name for name in globals() if name.startswith("test_")}
    assert ours - rows == {"test_rows_of_the_table_are_tests"}
