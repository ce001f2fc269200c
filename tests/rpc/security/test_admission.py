"""Who has proved nothing keeps nobody out: bounds for greetings, at servers, trackers and pages."""

import asyncio
import contextlib
import platform
import random
import re
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.rpc.raw import Raw, hello

from slipway import rpc
from slipway.errors import RPCError
from slipway.rpc.connections import reception
from slipway.rpc.protocol import Code, Role, frame, hello_payload
from slipway.rpc.tracker import TrackerServer
from slipway.toolchain import native

TOKEN = "a token"


@pytest.fixture(params=["static", "python"])
def device(request, tmp_path, monkeypatch):
    """A server that asks everybody for the token, with places for two sessions."""
    if request.param == "static":
        start = request.getfixturevalue("static_server_for_this_machine")
        running = start("--require-token", "--max-sessions", "2", token=TOKEN)
        running.pid = running.process.pid
        yield running
        running.stop()
        return
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = rpc.ServerOptions(token=TOKEN, require_token=True, max_sessions=2, is_quiet=True)
    with rpc.Server("127.0.0.1", 0, options=options) as server:
        server.pid = server._pid
        server.folder = tmp_path
        rpc.connect("127.0.0.1", server.port, token=TOKEN).close()
        yield server


def silent(port, count, content=b""):
    """Make connections that send `content` and nothing else."""
    made = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            made.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            made[-1].sendall(content)
    return made


@pytest.mark.parametrize("content", [b"", hello()[:20], hello()], ids=["silent", "half", "whole"])
def test_strangers_hold_no_session(device, content):
    """Connections that greet not, half, or without proof, again and again."""
    strangers = []
    for _ in range(3):
        strangers += silent(device.port, 30, content)
        start = time.monotonic()
        with rpc.connect("127.0.0.1", device.port, token=TOKEN) as session:
            assert session.ping(b"x") == b"x"
        assert time.monotonic() - start < 5
    for stranger in strangers:
        stranger.close()


def test_no_process_for_who_has_sent_nothing(device):
    children = Path(f"/proc/{device.pid}/task/{device.pid}/children")
    deadline = time.monotonic() + 20
    while children.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    strangers = silent(device.port, 10)
    with rpc.connect("127.0.0.1", device.port, token=TOKEN) as session:
        assert session.ping(b"x") == b"x"  # those before it have been accepted
        assert len(children.read_text().split()) == 1
    for stranger in strangers:
        stranger.close()


def test_sessions_are_still_bounded(device):
    first, second = (rpc.connect("127.0.0.1", device.port, token=TOKEN) for _ in range(2))
    with pytest.raises(RPCError, match=r"as many sessions as it may \(2\)"):
        rpc.connect("127.0.0.1", device.port, token=TOKEN)
    assert first.ping(b"x") + second.ping(b"y") == b"xy"
    first.close()
    deadline = time.monotonic() + 5
    while True:
        with contextlib.suppress(RPCError):
            rpc.connect("127.0.0.1", device.port, token=TOKEN).close()
            break
        assert time.monotonic() < deadline
    second.close()


def test_crash_gives_the_place_back(device, kernels):
    for _ in range(4):
        with rpc.connect("127.0.0.1", device.port, token=TOKEN) as session:
            session.upload(kernels)
            with pytest.raises(RPCError, match="SIGSEGV"):
                session.load_module(kernels.name)["segfault"]()


def test_wrong_token_waits_its_second(device):
    """Also one that is no proof at all, and one of another size."""
    for answer in (bytes(64), bytes(40), bytes(128)):
        connection = Raw(device, greet=False)
        connection.send(hello())
        assert connection.receive()[0] == Code.CHALLENGE
        start = time.monotonic()
        connection.send(frame(Code.AUTHENTICATE, 1, answer))
        assert connection.receive()[0] == Code.ERROR
        assert 0.95 < time.monotonic() - start < 4
        connection.close()


def test_folder_that_cannot_be_made_leaks_nothing(device):
    """Each refused session gives back what it took: mappings and descriptors."""

    def taken():
        process = Path(f"/proc/{device.pid}")
        return process.joinpath("maps").read_text().count("\n"), len(list(process.glob("fd/*")))

    def attempt():
        with pytest.raises(RPCError, match="cannot make a folder for the session: No such file"):
            rpc.connect("127.0.0.1", device.port, token=TOKEN)

    moved = device.folder.with_name("moved")
    time.sleep(1.3)  # connections linger for a second
    device.folder.rename(moved)
    try:
        attempt()
        time.sleep(1.3)
        before = taken()
        for _ in range(12):
            attempt()
        time.sleep(1.3)
        assert taken() == before
    finally:
        moved.rename(device.folder)


@pytest.fixture
def tracker():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as running:
        yield running


@pytest.mark.parametrize("content", [b"", hello()[:20]], ids=["silent", "half"])
def test_strangers_do_not_keep_a_tracker_busy(tracker, content):
    strangers = silent(tracker.port, 700, content)
    start = time.monotonic()
    with rpc.connect_tracker("127.0.0.1", tracker.port) as client:
        client.summary()
    assert time.monotonic() - start < 5
    for stranger in strangers:
        stranger.close()


def test_of_a_guest_that_has_not_spoken_there_is_no_task(monkeypatch):
    """60,000 addresses of which each sent nothing kept a tracker from answering anybody else."""
    monkeypatch.setattr(reception, "GREETING_TIMEOUT_S", 30)
    monkeypatch.setattr(reception, "MAX_GUESTS", 50)
    monkeypatch.setattr(reception, "PATIENCE_S", 0)

    async def scenario():
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        serving = asyncio.ensure_future(TrackerServer().serve(listener))
        await asyncio.sleep(0)
        before = len(asyncio.all_tasks())
        crowd = [socket.socket() for _ in range(200)]
        for number, stranger in enumerate(crowd):
            stranger.bind((f"127.0.1.{number + 1}", 0))
            stranger.connect(("127.0.0.1", port))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(hello())
        assert await asyncio.wait_for(reader.read(1), 5)
        assert len(asyncio.all_tasks()) <= before + 2  # its own, and of what it waits for
        for stranger in crowd[:100]:  # put out; of the last fifty some have their places
            stranger.settimeout(5)
            assert stranger.recv(1) == b""
        writer.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for stranger in crowd:  # nobody is left connected
            stranger.settimeout(5)
            assert stranger.recv(1) == b""
            stranger.close()

    asyncio.run(scenario())


SHORT_OF_FILES = """
import asyncio, resource, socket
from slipway.rpc.tracker import TrackerServer
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(TrackerServer().serve(listener))
"""


def test_a_crowd_that_takes_all_files_keeps_nobody_out():
    """One place was made in 50 ms, and the next stranger took it."""
    command = [sys.executable, "-c", SHORT_OF_FILES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracker:
        port = int(tracker.stdout.readline())
        crowd = silent(port, 400)
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(hello())
            start = time.monotonic()
            assert client.recv(1)
        assert time.monotonic() - start < 5
        for stranger in crowd:
            stranger.close()
        tracker.kill()


def test_the_address_with_most_guests_is_found_without_a_search():
    """Against the search through all addresses, over random arrivals and departures."""

    async def scenario():
        draw = random.Random(3)
        lobby, guests = reception.Lobby(), []
        for _ in range(600):
            if guests and draw.random() < 0.4:
                guests.pop(draw.randrange(len(guests))).leave()
            else:
                guests.append(lobby.enter(f"10.0.0.{draw.randrange(9)}", lambda: None))
            counts = Counter(guest.origin for guest in guests)
            most = max(counts.values(), default=0)
            found = Counter(guest.origin for guest in lobby._of_most())
            assert len(lobby) == len(guests)
            assert list(found.values()) == ([most] if most else [])
            assert all(counts[origin] == most for origin in found)
        lobby.end_all()
        assert len(lobby) == 0
        assert not lobby.make_room()

    asyncio.run(scenario())


def test_greetings_of_a_tracker_end_in_time(monkeypatch):
    """The deadline is one for all of it: byte by byte is no way to stay."""
    monkeypatch.setattr(reception, "GREETING_TIMEOUT_S", 0.5)

    async def scenario():
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        serving = asyncio.ensure_future(TrackerServer().serve(listener))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        start = time.monotonic()

        async def trickle():
            for byte in hello():
                writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        trickling = asyncio.ensure_future(trickle())
        with contextlib.suppress(OSError):
            assert await reader.read() == b""
        trickling.cancel()
        assert 0.4 < time.monotonic() - start < 3
        writer.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(scenario())


def test_lobby():
    """The oldest of the address that has most goes; a crowd that is young may stay a second."""

    async def scenario():
        lobby = reception.Lobby()
        gone = []
        for number in range(reception.MAX_GUESTS_OF_ONE):
            lobby.enter("10.0.0.1", lambda n=number: gone.append(n))
        lobby.enter("10.0.0.1", lambda: gone.append("new"))
        assert gone == []
        await asyncio.sleep(reception.PATIENCE_S + 0.05)
        lobby.enter("10.0.0.1", lambda: gone.append("newer"))
        assert gone == [0]
        other = lobby.enter("10.0.0.2", lambda: gone.append("other"))
        while len(lobby) < reception.MAX_GUESTS:
            lobby.enter(f"10.0.1.{len(lobby) // 32}", lambda: gone.append("crowd"))
        lobby.enter("10.0.0.3", lambda: gone.append("last"))
        assert gone == [0, 1]
        assert other in lobby
        count = len(lobby)
        other.leave()
        other.leave()
        other.end()
        assert len(lobby) == count - 1
        assert "other" not in gone

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("peer", "origin"),
    [
        (("10.1.2.3", 1), "10.1.2.3"),
        (("::ffff:10.1.2.3", 1, 0, 0), "10.1.2.3"),
        (("2001:db8:1:2:3:4:5:6", 1, 0, 0), "20010db800010002"),
        (("fe80::1%eth0", 1, 0, 2), "fe80000000000000"),
        ("", "local"),
    ],
)
def test_addresses_are_told_apart(peer, origin):
    assert reception.origin_of(peer) == origin


BAD_KEYS = {
    "newline": b"board\nINFO:root:RPCTracker: forged",
    "escape": b"\x1b[2Jboard",
    "NUL": b"bo\0ard",
    "delete": b"board\x7f",
    "no UTF-8": b"\xff\xfeboard",
    "half a character": b"board\xc3",
    "surrogate": b"\xed\xa0\x80",
    "overlong": b"\xc0\xafboard",
    "turned text": "board\u202edrao".encode(),
    "hidden": "bo\u200bard".encode(),
    "line separator": "board\u2028more".encode(),
    "C1": b"\xc2\x9b2J",
    "201 bytes": b"b" * 201,
    "4,000 bytes": b"b" * 900,
}


@pytest.mark.parametrize("case", list(BAD_KEYS))
def test_bad_keys_are_refused_at_the_door(server, tracker, case):
    """By a server as a wish, by a tracker as a device's name."""
    for peer, role in ((server, Role.SESSION), (tracker, Role.DEVICE)):
        connection = Raw(peer, greet=False)
        connection.send(frame(Code.HELLO, 1, hello_payload(role, BAD_KEYS[case], b"a test")))
        code, _, payload = connection.receive()
        assert code in (0, Code.ERROR), payload
        connection.close()


LIKE_A_LEASE = "a:" + "0f" * 16


@pytest.mark.parametrize(
    ("key", "words"),
    [(LIKE_A_LEASE, "ends like the lease"), ("b" * 161, "a device's key has")],
    ids=["lease", "long"],
)
def test_keys_that_a_lease_would_not_fit_are_refused(tracker, key, words):
    connection = Raw(tracker, greet=False)
    connection.send(frame(Code.HELLO, 1, hello_payload(Role.DEVICE, key.encode(), b"a test")))
    code, _, payload = connection.receive()
    assert code == Code.ERROR
    assert words.encode() in payload
    connection.close()
    with pytest.raises(RPCError, match=words):
        rpc.ServerOptions(key=key)


@pytest.mark.parametrize("key", [LIKE_A_LEASE, "b" * 161, "a\nb", b"\xff", "a\u202eb"])
def test_static_server_takes_no_key_that_nobody_could_ask_for(key):
    server = native.build_device_server(f"{platform.machine()}-linux-gnu")
    done = subprocess.run(
        [server, "--port", "0", "--key", key], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "the key is" in done.stderr


@pytest.mark.parametrize("key", ["Küche", "板 3", "rpi 4", "rpi:4"])
def test_keys_in_any_language_are_keys(key):
    with (
        rpc.Server("127.0.0.1", 0, key=key, silent=True) as server,
        rpc.connect("127.0.0.1", server.port, key=key) as session,
    ):
        assert session.key == key


def test_log_lines_cannot_be_forged(tmp_path):
    """A client's, a function's and a tracker's words stay on their line and move no cursor."""
    command = [sys.executable, "-m", "slipway.exec.rpc_tracker", "--port", "0"]
    with (tmp_path / "log").open("wb+") as log:
        running = subprocess.Popen(command, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(rb"bind to .*?(\d+)\n", Path(log.name).read_bytes())):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=10) as link:
                name = b"a client\x1b[2J\nINFO:root:RPCTracker: forged"
                link.sendall(frame(Code.HELLO, 1, hello_payload(Role.CLIENT, b"", name)))
                key = b"board"
                request = struct.pack("<iIII", 1, 1, len(key), 0) + key + b"\0"
                link.sendall(frame(Code.REQUEST, 2, request))
                link.settimeout(10)
                answer = b""
                while b"became free" not in answer:
                    answer += link.recv(4096)
        finally:
            running.terminate()
            running.wait(20)
        lines = Path(log.name).read_bytes().splitlines()
        assert any(b"got no 'board' in time" in line for line in lines)
        assert not any(line.startswith(b"INFO:root:RPCTracker: forged") for line in lines)
        assert b"\x1b" not in b"".join(lines)
