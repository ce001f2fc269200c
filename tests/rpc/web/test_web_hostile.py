"""The page and those who send it half of something, too much of it, or what it does not expect."""

import asyncio
import contextlib
import http.client
import itertools
import json
import resource
import socket
import time

import pytest
from tests.rpc.web.test_web import TOKEN, Site

from slipway.rpc.web import auth as web_auth
from slipway.rpc.web import feed as web_feed
from slipway.rpc.web import server as web_server


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(web_auth, "_WRONG_TOKEN_DELAY_S", 0.0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    running = Site()
    yield running
    running.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


HALVES = {
    "nothing": b"",
    "half a line": b"GET /api/fa",
    "half a head": b"GET /api/farm HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
    "half a body": b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"tok',
    "half a second request": b"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /",
}


def _read_answer(link):
    """Read to the end of the first answer, or of a link that was refused."""
    got = b""
    with contextlib.suppress(OSError):
        while b"</svg>" not in got and (more := link.recv(4096)):
            got += more


@pytest.mark.parametrize("case", list(HALVES))
def test_half_sent_requests_keep_nobody_out(site, case):
    with contextlib.ExitStack() as strangers:
        links = []
        for _ in range(600):
            with contextlib.suppress(OSError):
                link = socket.create_connection(("127.0.0.1", site.port), timeout=20)
                links.append(strangers.enter_context(link))
                link.sendall(HALVES[case])
        if case == "half a second request":  # until the first ones are answered, they have places
            for link in links:
                _read_answer(link)
        for _ in range(3):
            start = time.monotonic()
            assert site.ask("GET", "/api/farm")[0] == 200
            assert time.monotonic() - start < 5


@pytest.mark.parametrize("path", ["/farm.js", "/api/events"])
def test_who_does_not_read_is_put_out(site, monkeypatch, path):
    """What it asks for fills its connection, which would stay for as long as it likes."""
    monkeypatch.setattr(web_server, "STALL_TIMEOUT_S", 0.2)
    monkeypatch.setattr(web_feed, "PERIOD_S", 0.01)
    site._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    numbers = [site.add("k" * 150, port=1 + k).number for k in range(100)]
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(20)
        link.connect(("127.0.0.1", site.port))
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 20)
        deadline = time.monotonic() + 20
        for iteration in itertools.count():
            site.run(
                lambda note: [site.farm.describe(n, note, ()) for n in numbers], f"{iteration}"
            )
            # of the page, of its feed, and this one
            if iteration > 10 and site.run(lambda: len(asyncio.all_tasks(site.loop))) <= 4:
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with contextlib.suppress(ConnectionResetError):
            while link.recv(65536):
                pass


def test_body_that_ends_in_its_middle_is_no_defect_of_ours(site, caplog):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as link:
            link.sendall(HALVES["half a body"])
            time.sleep(0.2)  # until the head is being answered
    assert site.ask("GET", "/api/farm")[0] == 200
    time.sleep(0.2)
    assert not caplog.records


def test_readers_of_events_are_no_more_than_allowed(site):
    """All at once: a place is taken when it is asked for, not when the first event goes out."""
    links = []
    request = b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for _ in range(150):  # who is silent for a second may be put out
        links.append(socket.create_connection(("127.0.0.1", site.port), timeout=20))
        links[-1].sendall(request)
    answers = [link.recv(12) for link in links]
    assert answers.count(b"HTTP/1.1 200") == web_feed.MAX_READERS
    assert answers.count(b"HTTP/1.1 503") == 150 - web_feed.MAX_READERS
    for link in links:
        link.close()
    deadline = time.monotonic() + 20
    while True:  # their places are free again
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as link:
            link.sendall(request)
            if link.recv(12) == b"HTTP/1.1 200":
                break
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_readers_of_one_address_keep_no_other_out(site, monkeypatch):
    """The oldest of the address that has most goes, and its answer ends."""
    monkeypatch.setattr(web_feed, "MAX_READERS", 4)
    request = b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    def read(address):
        link = socket.create_connection(("127.0.0.1", site.port), 20, source_address=(address, 0))
        link.sendall(request)
        return link, link.recv(12)

    many = [read("127.0.0.2") for _ in range(5)]
    assert [answer[9:] for _, answer in many] == [b"200"] * 4 + [b"503"]
    others = [read("127.0.0.3") for _ in range(3)]
    assert [answer[9:] for _, answer in others] == [b"200", b"200", b"503"]  # two each
    for link, _ in many[:2]:
        while link.recv(65536):
            pass
    for link, _ in many + others:
        link.close()


BODIES = {
    "a number": b'{"token": 5}',
    "nothing": b'{"token": null}',
    "a list": b'{"token": ["a"]}',
    "half a surrogate": b'{"token": "\\ud800"}',
    "a control character": b'{"token": "a\\u0000b"}',
    "4,000 brackets": b"[" * 4000,
    "8,000 brackets": b"[" * 8000,
    "4,000 objects": b'{"a":' * 1600,
    "a list of it": b'[{"token": "a"}]',
    "no JSON": b"token",
    "no text": b"\xff\xfe\x00",
    "a number of 8,000 digits": b'{"token": ' + b"9" * 8000 + b"}",
    "a number beyond floats": b'{"token": 1e999}',
    "too much": b'{"token": "' + b"a" * 9000 + b'"}',
    "no body": b"",
}


def post(site, path, body, headers=()):
    link = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    link.request("POST", path, body, {"Content-Type": "application/json", **dict(headers)})
    answer = link.getresponse()
    status, text = answer.status, answer.read()
    link.close()
    return status, text


@pytest.mark.parametrize("case", list(BODIES))
@pytest.mark.parametrize("path", ["/api/login", "/api/devices/1/kick"])
def test_what_is_no_body_of_ours_is_the_senders_mistake(site, path, case):
    headers = {"Authorization": f"Bearer {TOKEN}"} if "devices" in path else {}
    status, text = post(site, path, BODIES[case], headers)
    assert 400 <= status < 500, text
    assert json.loads(text)["error"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/devices/1/drain", {"Authorization": b"Bearer \xff\xfe"}),
        ("/api/devices/1/drain", {"Authorization": "Bearer"}),
        ("/api/devices/1/drain", {"Cookie": "slipway_admin=\x80", "X-CSRF-Token": b"\xe9"}),
        (f"/api/devices/{'9' * 5000}/drain", {"Authorization": f"Bearer {TOKEN}"}),
        ("/api/devices/-1/drain", {"Authorization": f"Bearer {TOKEN}"}),
        ("/api/devices/%D9%A1/drain", {"Authorization": f"Bearer {TOKEN}"}),
        ("/api/devices/1/%00", {"Authorization": f"Bearer {TOKEN}"}),
        ("/api/logout", {}),
    ],
)
def test_heads_that_nobody_expects(site, path, headers):
    status, text = post(site, path, b"{}", headers)
    assert 400 <= status < 500, text
    assert json.loads(text)["error"]


def test_proof_of_origin_may_hold_anything(site):
    site.sign_in()
    headers = {"Cookie": site.cookie, "X-CSRF-Token": b"\xe9\xff"}
    assert post(site, "/api/logout", b"{}", headers)[0] == 403


@pytest.mark.parametrize("name", ["..", "%2e%2e/web.py", "..%2fweb.py", "farm.js%00", "FARM.JS"])
def test_only_the_four_files_are_served(site, name):
    assert site.ask("GET", f"/{name}")[0] in (400, 404)
