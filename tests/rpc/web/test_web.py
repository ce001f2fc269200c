"""The tracker's page: its JSON, events, metrics, and who may do what through it."""

import asyncio
import http.client
import json
import socket
import sys
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.rpc.faults.waiting import wait_for

from slipway.rpc.farm.commands import Command
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.store import Store
from slipway.rpc.farm.view import take_sample
from slipway.rpc.web import auth as web_auth
from slipway.rpc.web import feed as web_feed
from slipway.rpc.web.app import serve_page

TOKEN = "the administrator's"


class Link:
    """A simulated device: accepts, and gives back what it is asked for."""

    def __init__(self, farm):
        self.farm, self.device, self.released = farm, None, []

    def assign(self, lease):
        asyncio.get_running_loop().call_soon(self.farm.answered, self.device, lease, True)

    def release(self, lease, reason):
        self.released.append(reason)
        asyncio.get_running_loop().call_soon(self.farm.idle, self.device, lease, reason)

    def close(self):
        pass


class Site:
    """The page of a farm, served by a thread; `run` calls a function in its loop."""

    def __init__(self, token=TOKEN, names=(), store=None, commands=()):
        self.farm = Farm()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        self.cookie = ""
        self._serving = self.loop.create_task(
            serve_page(self.farm, self._listener, token, names, None, store, commands), name="page"
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serving)
        except asyncio.CancelledError:
            pass
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(60)
        self._listener.close()
        assert not self._thread.is_alive()

    def run(self, function, *args):
        async def call():
            return function(*args)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(60)

    def add(self, key="board", port=9090, address="10.0.0.1"):
        def add():
            link = Link(self.farm)
            link.device = self.farm.add(key, address, port, "a board", link)
            return link.device

        return self.run(add)

    def hand_out(self, holder="slipway 0.1 ana@here 7 at 10.0.0.9", key="board"):
        got = []
        self.run(self.farm.request, key, 1, holder, got.append)
        wait_for(lambda: got)
        return got[0].device

    def ask(self, method, path, body=None, **headers):
        """Return (status, headers, text) of a request."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "POST":
            headers.setdefault("Content-Type", "application/json")
        if self.cookie:
            headers.setdefault("Cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text

    def sign_in(self, token=TOKEN):
        """Sign in and return the CSRF token."""
        status, headers, text = self.ask("POST", "/api/login", {"token": token})
        assert status == 200, text
        assert "HttpOnly" in headers["Set-Cookie"]
        assert "SameSite=strict" in headers["Set-Cookie"]
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        return json.loads(text)["csrf"]

    def state(self):
        return json.loads(self.ask("GET", "/api/farm")[2])


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(web_auth, "_WRONG_TOKEN_DELAY_S", 0.0)
    monkeypatch.setattr(web_feed, "PERIOD_S", 0.02)
    running = Site()
    yield running
    running.stop()


class Events:
    """A reader of the page's live events."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.request("GET", "/api/events")
        self._response = self._connection.getresponse()
        self.headers = self._response.headers
        self.status = self._response.status

    def next(self):
        """Return (event, data)."""
        lines = []
        while True:
            line = self._response.readline().decode().rstrip("\n")
            if line:
                lines.append(line)
            elif lines and not lines[0].startswith(":"):
                return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))
            else:
                lines = []

    def close(self):
        self._response.close()
        self._connection.close()


def test_page_and_its_files_are_served_with_strict_headers(site):
    for path, kind in (("/", "text/html"), ("/farm.css", "text/css"), ("/icon.svg", "image/svg")):
        status, headers, text = site.ask("GET", path)
        assert status == 200
        assert headers["Content-Type"].startswith(kind)
        assert text
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
    assert "javascript" in site.ask("GET", "/farm.js")[1]["Content-Type"]


@pytest.mark.parametrize("path", ["/../web.py", "/%2e%2e/web.py", "/page/index.html", "/api"])
def test_nothing_else_is_served(site, path):
    assert site.ask("GET", path)[0] == 404


def test_state_as_json_names_no_secret(site):
    device = site.add()
    site.hand_out()
    status, headers, text = site.ask("GET", "/api/farm")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert device.lease not in text
    (shown,) = json.loads(text)["devices"]
    assert (shown["state"], shown["session"]) == ("busy", device.session)


def test_events_tell_what_changed(site):
    site.add()
    events = Events(site.port)
    assert events.headers["Content-Type"].startswith("text/event-stream")
    name, everything = events.next()
    assert name == "farm"
    assert [device["state"] for device in everything["devices"]] == ["free"]
    site.add(port=9091)
    name, change = events.next()
    assert name == "change"
    assert [device["port"] for device in change["devices"]] == [9091]
    assert change["kinds"]["board"]["free"] == 2
    site.run(take_sample, site.farm)
    _, change = events.next()
    assert change["sample"][1:] == [2, 0, 0, 0]
    assert change["devices"] == []
    assert "kinds" not in change
    events.close()


def test_two_readers_see_the_same(site):
    first, second = Events(site.port), Events(site.port)
    first.next()
    second.next()
    site.add()
    assert first.next()[1]["devices"] == second.next()[1]["devices"] != []
    first.close()
    second.close()


def test_readers_are_bounded(site, monkeypatch):
    monkeypatch.setattr(web_feed, "MAX_READERS", 1)
    first = Events(site.port)
    first.next()
    assert site.ask("GET", "/api/events")[0] == 503
    first.close()


def test_metrics_are_what_prometheus_reads(site):
    site.add()
    site.add("phone", 9091)
    device = site.hand_out()
    site.run(site.farm.idle, device, device.lease, "SIGSEGV")
    site.hand_out()
    site.run(site.farm.request, 'odd "name"\n', 1, "me", lambda _: None)
    site.run(site.farm.request, "board", 1, "me", lambda _: None)
    status, headers, text = site.ask("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    board = ("key", "board")
    assert found["slipway_devices", (board, ("state", "busy"))] == 1
    assert found["slipway_devices", (("key", "phone"), ("state", "free"))] == 1
    assert found["slipway_queue_length", (board,)] == 1
    assert found["slipway_queue_length", (("key", ""),)] == 1
    assert found["slipway_requests_total", (board, ("result", "granted"))] == 2
    assert found["slipway_sessions_total", (board, ("result", "failed"))] == 1
    assert found["slipway_request_wait_seconds_count", ()] == 2
    assert found["slipway_request_wait_seconds_bucket", (("le", "+Inf"),)] == 2
    assert found["slipway_session_seconds_count", ()] == 1
    assert found["process_resident_memory_bytes", ()] > 1e6


# Acting


def test_nothing_is_done_without_the_token(site):
    device = site.add()
    site.hand_out()
    for act in ("kick", "drain", "resume"):
        path = f"/api/devices/{device.number}/{act}"
        assert site.ask("POST", path, {"session": device.session})[0] == 401
        wrong = site.ask("POST", path, {}, Authorization="Bearer wrong")
        assert wrong[0] == 401
    assert site.ask("POST", "/api/login", {"token": "wrong"})[0] == 401
    assert site.ask("POST", "/api/login", {"token": 7})[0] == 400
    assert site.ask("GET", f"/api/devices/{device.number}/drain")[0] == 405
    assert site.state()["devices"][0]["state"] == "busy"


def test_administrator_drains_resumes_and_kicks(site):
    device = site.add()
    csrf = site.sign_in()
    site.hand_out()
    path = f"/api/devices/{device.number}"

    def act(verb, **body):
        return site.ask("POST", f"{path}/{verb}", body, X_CSRF_Token=csrf)[0]

    assert act("drain") == 200
    assert site.state()["devices"][0]["drained"]
    assert act("kick", session="0" * 12) == 409
    assert act("kick", session=device.session) == 200
    assert device.link.released == ["an administrator of the tracker ended the session"]
    site.run(lambda: None)
    assert site.state()["devices"][0]["state"] == "drained"
    assert act("resume") == 200
    assert site.state()["devices"][0]["state"] == "free"
    assert act("explode") == 404
    path = "/api/devices/77"
    assert act("drain") == 409


def test_programs_use_the_token_directly(site):
    device = site.add()
    path = f"/api/devices/{device.number}/drain"
    assert site.ask("POST", path, {}, Authorization=f"Bearer {TOKEN}")[0] == 200
    assert site.state()["devices"][0]["state"] == "drained"


def test_other_sites_cannot_act_with_the_administrators_cookie(site):
    device = site.add()
    csrf = site.sign_in()
    path = f"/api/devices/{device.number}/drain"
    assert site.ask("POST", path, {})[0] == 403
    assert site.ask("POST", path, {}, X_CSRF_Token="x" * len(csrf))[0] == 403
    evil = {"X_CSRF_Token": csrf, "Origin": "http://evil.example"}
    assert site.ask("POST", path, {}, **evil)[0] == 403
    assert site.ask("POST", path, {}, X_CSRF_Token=csrf, Sec_Fetch_Site="cross-site")[0] == 403
    form = {"X_CSRF_Token": csrf, "Content_Type": "application/x-www-form-urlencoded"}
    assert site.ask("POST", path, {}, **form)[0] == 415
    assert site.state()["devices"][0]["state"] == "free"
    own = {"X_CSRF_Token": csrf, "Origin": f"http://127.0.0.1:{site.port}"}
    assert site.ask("POST", path, {}, **own)[0] == 200


def test_signing_out_ends_the_session(site):
    csrf = site.sign_in()
    assert json.loads(site.ask("GET", "/api/me")[2])["is_admin"]
    assert site.ask("POST", "/api/logout", {}, X_CSRF_Token=csrf)[0] == 200
    assert not json.loads(site.ask("GET", "/api/me")[2])["is_admin"]
    assert site.ask("POST", "/api/devices/1/drain", {}, X_CSRF_Token=csrf)[0] == 401


def test_other_names_are_not_answered(site):
    """A site elsewhere that lets its name point here reads nothing."""
    assert site.ask("GET", "/api/farm", Host="evil.example")[0] == 421
    assert site.ask("GET", "/api/farm", Host=f"localhost:{site.port}")[0] == 200
    assert site.ask("GET", "/api/farm", Host=f"[::1]:{site.port}")[0] == 200


def test_names_that_were_given_are_answered():
    running = Site(names=("farm.example",))
    try:
        assert running.ask("GET", "/api/farm", Host="Farm.example:80")[0] == 200
    finally:
        running.stop()


def test_without_an_administrators_token_nobody_acts():
    running = Site(token="")
    try:
        assert not json.loads(running.ask("GET", "/api/me")[2])["can_sign_in"]
        status, _, text = running.ask("POST", "/api/login", {"token": ""})
        assert status == 403
        assert "SLIPWAY_RPC_ADMIN_TOKEN" in text
        assert running.ask("POST", "/api/devices/1/drain", {}, Authorization="Bearer ")[0] == 403
    finally:
        running.stop()


def test_bodies_are_bounded(site):
    assert site.ask("POST", "/api/login", {"token": "x" * 20_000})[0] == 413


def test_guesses_are_slow_and_few(monkeypatch):
    monkeypatch.setattr(web_auth, "_WRONG_TOKEN_DELAY_S", 0.5)
    running = Site()
    try:
        answers = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(running.ask("POST", "/api/login", {"token": "x"})[0])
            )
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert set(answers) <= {401, 429}
        assert 429 in answers
    finally:
        running.stop()


COMMANDS = [
    Command("power cycle", (sys.executable, "-c", "import sys; print(sys.argv[1:])", "{address}"),
            kinds=("board",)),
    Command("break", (sys.executable, "-c", "raise SystemExit('no relay')")),
    Command("one more", (sys.executable, "-c", "print('started')"), farm=True),
]  # fmt: skip


@pytest.fixture
def equipped(monkeypatch, tmp_path):
    monkeypatch.setattr(web_auth, "_WRONG_TOKEN_DELAY_S", 0.0)
    store = Store(tmp_path / "farm.sqlite")
    running = Site(store=store, commands=COMMANDS)
    running.store = store
    yield running
    running.stop()
    store.close()


def test_notes_tags_and_reservations(equipped):
    number = equipped.add().number
    path = f"/api/devices/{number}"
    body = {"note": "keep the\ncable free", "tags": "camera, rack 2"}
    assert equipped.ask("POST", f"{path}/describe", body)[0] == 401
    csrf = equipped.sign_in()

    def act(name, body):
        return equipped.ask("POST", f"{path}/{name}", body, X_CSRF_Token=csrf)[0]

    assert act("describe", body) == 200
    assert act("reserve", {"who": "ana", "minutes": 30}) == 200
    (device,) = equipped.state()["devices"]
    assert (device["note"], device["tags"]) == ("keep the cable free", ["camera", "rack 2"])
    assert device["reserved_for"] == "ana"
    assert device["reserved_until"] == pytest.approx(time.time() + 1800, abs=60)
    assert equipped.hand_out().holder.startswith("slipway 0.1 ana")
    assert act("reserve", {"who": "ana", "minutes": 0}) == 200
    assert equipped.state()["devices"][0]["reserved_for"] == ""
    for name, wrong in (
        ("describe", {"note": 3}), ("describe", {"note": "x" * 500}), ("describe", {"tags": []}),
        ("reserve", {"who": "ana", "minutes": "soon"}), ("reserve", {"who": 1, "minutes": 5}),
        ("reserve", {"who": "ana", "minutes": -1}), ("reserve", {"who": "ana", "minutes": 1e9}),
        ("reserve", {"who": "ana", "minutes": True}), ("reserve", {"who": " ", "minutes": 5}),
    ):  # fmt: skip
        assert act(name, wrong) == 400, (name, wrong)
    assert equipped.ask(
        "POST", "/api/devices/77/describe", {"note": "x"}, X_CSRF_Token=csrf
    )[0] == 409  # fmt: skip


def test_commands_of_the_trackers_file(equipped):
    number = equipped.add().number
    other = equipped.add("phone", 9091).number
    assert equipped.ask("POST", "/api/command", {"name": "one more"})[0] == 401
    assert json.loads(equipped.ask("GET", "/api/me")[2]).get("commands") == []
    csrf = equipped.sign_in()
    names = [c["name"] for c in json.loads(equipped.ask("GET", "/api/me")[2])["commands"]]
    assert names == ["power cycle", "break", "one more"]
    assert "argv" not in equipped.ask("GET", "/api/me")[2]  # what they run is not told

    def act(path, name):
        status, _, text = equipped.ask("POST", path, {"name": name}, X_CSRF_Token=csrf)
        return status, json.loads(text)

    status, said = act(f"/api/devices/{number}/command", "power cycle")
    assert (status, said["result"], said["text"]) == (200, "ok", "['10.0.0.1']")
    assert act(f"/api/devices/{number}/command", "break")[1]["text"] == "exit code 1: no relay"
    assert act("/api/command", "one more")[1]["text"] == "started"
    for path, name in (
        (f"/api/devices/{other}/command", "power cycle"),  # of another kind
        (f"/api/devices/{number}/command", "one more"), ("/api/command", "power cycle"),
        (f"/api/devices/{number}/command", "no such"), ("/api/devices/77/command", "power cycle"),
    ):  # fmt: skip
        assert act(path, name)[0] == 404, (path, name)
    jobs = equipped.state()["jobs"]
    assert [(j["kind"], j["result"]) for j in jobs] == [
        ("one more", "ok"), ("break", "failed"), ("power cycle", "ok"),
    ]  # fmt: skip
    assert jobs[2]["device"] == "board at 10.0.0.1:9090"


def test_a_day_of_history(equipped):
    equipped.add()
    equipped.run(take_sample, equipped.farm)
    equipped.run(equipped.store.write, equipped.farm)
    ((at, online, used, waiting, finished),) = json.loads(equipped.ask("GET", "/api/day")[2])[
        "history"
    ]
    assert at == pytest.approx(time.time(), abs=60)
    assert (online, used, waiting, finished) == (1, 0, 0, 0)
