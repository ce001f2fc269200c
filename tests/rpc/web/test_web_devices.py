"""Browsers as devices: a page in Chromium that dials a proxy, and the same session in node."""

import asyncio
import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from tests.rpc.faults.waiting import wait_for

import slipway as tvm
from slipway import nd, relay, rpc, te
from slipway.contrib import graph_executor
from slipway.errors import RemoteError, RPCError
from slipway.libinfo import find_js_path
from slipway.rpc.connections.reception import GREETING_TIMEOUT_S
from slipway.rpc.proxy import ProxyServer
from slipway.rpc.web.devices import serve_devices
from slipway.toolchain.web_runtime import web_device

TARGET = "llvm -mtriple=wasm32"
KEY = "web"


class Site:
    """A proxy and its page, served by a thread."""

    def __init__(self, token="", port=0, page_port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.page = socket.create_server(("127.0.0.1", page_port))
        self.port = self.listener.getsockname()[1]
        self.page_port = self.page.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.page_port}/"
        self.proxy = ProxyServer(token)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        async def serve():
            await asyncio.gather(
                self.proxy.serve(self.listener), serve_devices(self.proxy, self.page)
            )

        asyncio.set_event_loop(self.loop)
        self._task = self.loop.create_task(serve())
        try:
            self.loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(asyncio.sleep(0.1))  # transports close in turns of theirs
            self.loop.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """A kernel for any length, one that takes seconds, and a model with its expected output."""
    folder = tmp_path_factory.mktemp("web_devices")
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: te.exp(a[i]) + 1, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], TARGET, name="expo")
    built.export_library(str(folder / "expo.wasm"))

    steps = [te.reduce_axis((0, 1 << 20)), te.reduce_axis((0, 1 << 20))]
    x = te.placeholder((1,), name="x")
    y = te.compute((1,), lambda i: te.sum(te.sin(x[i] + steps[0] * steps[1]), axis=steps))
    built = tvm.build(te.create_schedule(y.op), [x, y], TARGET, name="forever")
    built.export_library(str(folder / "forever.wasm"))

    random = np.random.default_rng(5)
    p = relay.var("image", shape=(1, 3, 12, 12))
    w = relay.const(random.random((4, 3, 3, 3), "float32"))
    function = relay.Function([p], relay.nn.relu(relay.nn.conv2d(p, w)))
    mod = tvm.IRModule.from_expr(function)
    relay.build(mod, TARGET).export_library(str(folder / "conv.wasm"))
    image = random.standard_normal((1, 3, 12, 12)).astype("float32")
    here = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    here.set_input("image", image)
    here.run()
    return folder, image, here.get_output(0).numpy()


def use(session, modules):
    """What a device is for, all of it."""
    folder, image, wanted = modules
    dev = session.cpu(0)
    assert dev.exist
    assert not session.cuda(0).exist
    session.upload(str(folder / "expo.wasm"))
    expo = session.load_module("expo.wasm")
    x = np.linspace(-3, 3, 1001).astype("float32")
    a, b = nd.array(x, dev), nd.empty(x.shape, "float32", dev)
    expo["expo"](a, b)
    np.testing.assert_allclose(b.numpy(), np.exp(x) + 1, rtol=1e-6)
    timed = expo.time_evaluator("expo", dev, number=3, repeat=4)(a, b)
    assert len(timed.results) == 4
    assert min(timed.results) >= 0
    b.copyfrom(np.zeros_like(x))
    expo["expo"](nd.array(x + 1, dev), b)
    np.testing.assert_allclose(b.numpy(), np.exp(x + 1) + 1, rtol=1e-6)

    session.upload(str(folder / "conv.wasm"))
    model = graph_executor.GraphModule(session.load_module("conv.wasm")["default"](dev))
    model.set_input("image", image)
    model.run()
    np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert model.module.time_evaluator("run", dev, number=2, repeat=2)().mean > 0
    # What a module hands out is its own memory, not a copy of it.
    model.get_input(0).copyfrom(np.zeros_like(image))
    model.run()
    assert not model.get_output(0).numpy().any()
    # A tensor that lies in one module's memory is lent to another, and comes back.
    other = session.load_module("expo.wasm")
    a.copyfrom(x)
    other["expo"](a, b)
    np.testing.assert_allclose(b.numpy(), np.exp(x) + 1, rtol=1e-6)
    expo["expo"](b, a)
    np.testing.assert_allclose(a.numpy(), np.exp(np.exp(x) + 1) + 1, rtol=1e-5)
    assert sorted(session.listdir()) == ["conv.wasm", "expo.wasm"]
    assert session.download("expo.wasm") == (folder / "expo.wasm").read_bytes()
    session.remove("expo.wasm")
    assert session.listdir() == ["conv.wasm"]


def refuse(session, modules, tmp_path):
    """What cannot be, in words."""
    folder = modules[0]
    session.upload(str(folder / "expo.wasm"))
    expo = session.load_module("expo.wasm")
    dev = session.cpu(0)
    with pytest.raises(AttributeError, match="no function 'none'"):
        expo["none"]
    with pytest.raises(TypeError, match="expo: got 1 arguments, expected 2"):
        expo["expo"](nd.empty((3,), "float32", dev))
    with pytest.raises(ValueError, match="expo"):
        expo["expo"](nd.empty((3,), "float32", dev), nd.empty((4,), "float32", dev))
    with pytest.raises(RemoteError, match=r"no file 'other.wasm' in this session"):
        session.load_module("other.wasm")
    session.upload(b"\x7fELF of another machine", "lib.so")
    with pytest.raises(RPCError, match=r"no WebAssembly .* compile for"):
        session.load_module("lib.so")
    session.upload((folder / "expo.wasm").read_bytes()[:-9], "cut.wasm")
    with pytest.raises(RPCError, match="refuses the module"):
        session.load_module("cut.wasm")
    with pytest.raises(ValueError, match="no tensor of a page"):
        nd.empty((1 << 40,), "float32", dev)
    with pytest.raises(RPCError, match=r"has cpu\(0\)"):
        nd.empty((4,), "float32", session.cuda(0))
    with pytest.raises(RPCError, match="functions of the client"):
        expo["expo"](lambda: None)
    x = nd.array(np.zeros(4, "float32"), dev)
    expo["expo"](x, x)  # it lives on
    np.testing.assert_array_equal(x.numpy(), np.full(4, 2, "float32"))


def test_session_in_node(modules, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    command = [node, f"{find_js_path()[0]}/device/stdio.mjs", str(web_device())]
    with rpc.PopenSession(command) as session:
        use(session, modules)
    with rpc.PopenSession(command) as session:
        refuse(session, modules, tmp_path)


class Page:
    def __init__(self, browser, site, key=KEY, token="", width=1280):
        self.browser = browser
        metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        # Where no page of ours runs: one that connects again would keep its key behind this.
        browser.get(f"{site.url}device/page.mjs")
        browser.execute_script("sessionStorage.clear()")
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(site.url)
        for name, value in (("key", key), ("token", token)):
            field = browser.find_element(By.ID, name)
            field.clear()
            field.send_keys(value)
        wait_for(browser.find_element(By.ID, "go").is_enabled)
        browser.find_element(By.ID, "go").click()

    def text(self, name):
        return self.browser.find_element(By.ID, name).text

    def shows(self, **texts):
        seen = {}

        def are_shown():
            seen.update({name: self.text(name) for name in texts})
            return seen == texts

        try:
            return wait_for(are_shown)
        except AssertionError:
            raise AssertionError(f"the page shows {seen}, not {texts}") from None


@pytest.fixture
def site():
    running = Site()
    yield running
    running.stop()


def test_browser_is_a_device(site, browser, modules, tmp_path):
    page = Page(browser, site)
    page.shows(link="connected", title="Waiting for somebody", kind=KEY)
    with rpc.connect("127.0.0.1", site.port, key=KEY) as session:
        assert session.key == KEY
        use(session, modules)
        page.shows(link="in use", title="In use")
        assert "slipway" in page.text("client")
        wait_for(lambda: "conv.wasm" in page.text("modules"))
        wait_for(lambda: int(page.text("calls")) > 5)
        with pytest.raises(RPCError, match="no 'web' became free"):
            rpc.connect("127.0.0.1", site.port, key=KEY)
    page.shows(link="connected", sessions="1", client="nobody")
    with rpc.connect("127.0.0.1", site.port, key=KEY) as session:
        refuse(session, modules, tmp_path)
    errors = [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    assert not errors


DYING_CLIENT = """
import sys, numpy
from slipway import nd, rpc
session = rpc.connect("127.0.0.1", int(sys.argv[1]), key="web")
session.upload(sys.argv[2])
x = nd.array(numpy.ones(1, "float32"), session.cpu(0))
session.load_module("forever.wasm")["forever"](x, x)
"""


def load_forever(session, folder):
    session.upload(str(folder / "forever.wasm"))
    x = nd.array(np.ones(1, "float32"), session.cpu(0))
    return session.load_module("forever.wasm"), x


def test_what_never_ends_is_ended_and_the_page_lives(site, browser, modules):
    page = Page(browser, site)
    page.shows(link="connected")
    with rpc.connect("127.0.0.1", site.port, key=KEY, session_timeout=2) as session:
        started = time.monotonic()
        with pytest.raises(RPCError, match="time limit of 2 s passed"):
            forever, x = load_forever(session, modules[0])
            forever["forever"](x, x)
        assert time.monotonic() - started < 30
    page.shows(link="connected", client="nobody")
    with rpc.connect("127.0.0.1", site.port, key=KEY) as session:
        forever, x = load_forever(session, modules[0])
        session.timeout = 1
        with pytest.raises(RPCError, match="forever: the time limit of 1 s passed"):
            forever["forever"](x, x)
    # What the page shows lags behind what the client is told: "forever, 1 s" would be that call's.
    page.shows(link="connected", client="nobody", sessions="2")
    # A client that dies in the middle of a call takes the call with it.
    words = [sys.executable, "-c", DYING_CLIENT, str(site.port), str(modules[0] / "forever.wasm")]
    with subprocess.Popen(words) as client:
        # The page counts the seconds; on a busy machine the first may be over when it is read.
        wait_for(lambda: re.fullmatch(r"forever, [1-9]\d* s", page.text("running")))
        client.kill()
    page.shows(link="connected", client="nobody", sessions="3")
    with rpc.connect("127.0.0.1", site.port, key=KEY) as session:
        assert session.ping(b"x") == b"x"


def test_page_comes_back_to_a_proxy_that_was_restarted(browser, modules):
    first = Site()
    page = Page(browser, first, key="phone")
    page.shows(link="connected")
    port, page_port = first.port, first.page_port
    first.stop()
    page.shows(link="reconnecting")
    again = Site(port=port, page_port=page_port)
    try:
        page.shows(link="connected")
        with rpc.connect("127.0.0.1", port, key="phone") as session:
            assert session.ping(b"x") == b"x"
    finally:
        again.stop()


def test_page_that_is_closed_in_the_middle_of_a_call(site, browser, modules):
    """One clear error, soon; a page that is reloaded in the middle is a device again."""
    for close in ("about:blank", "reload"):
        page = Page(browser, site)
        page.shows(link="connected")
        session = rpc.connect("127.0.0.1", site.port, key=KEY)
        forever, x = load_forever(session, modules[0])
        failed = []

        def call(forever=forever, x=x, failed=failed):
            with pytest.raises(RPCError) as caught:
                forever["forever"](x, x)
            failed.append(caught.value)

        calling = threading.Thread(target=call)
        calling.start()
        page.shows(link="in use")
        wait_for(lambda page=page: page.text("running").startswith("forever"))
        if close == "reload":
            browser.refresh()
        else:
            browser.get(close)
        started = time.monotonic()
        calling.join(60)
        assert not calling.is_alive()
        assert time.monotonic() - started < 20
        assert "the page was closed" in str(failed[0])
        with pytest.raises(RPCError):
            session.ping(b"x")
        session.close()
        if close == "reload":
            page.shows(link="connected")
            with rpc.connect("127.0.0.1", site.port, key=KEY) as again:
                assert again.ping(b"x") == b"x"


def test_many_sessions_in_a_row(site, browser, modules):
    """A page ends each session's worker: the last of many finds what the first found."""
    page = Page(browser, site)
    page.shows(link="connected")
    for number in range(30):
        with rpc.connect("127.0.0.1", site.port, key=KEY) as session:
            assert session.listdir() == []
            session.upload(str(modules[0] / "expo.wasm"))
            dev = session.cpu(0)
            a = nd.array(np.full(4, number, "float32"), dev)
            b = nd.empty((4,), "float32", dev)
            session.load_module("expo.wasm")["expo"](a, b)
            np.testing.assert_allclose(b.numpy(), np.exp(np.float32(number)) + 1, rtol=1e-6)
    page.shows(link="connected", sessions="30")


def test_token_is_proved_both_ways(browser, modules):
    site = Site(token="secret")
    try:
        page = Page(browser, site, token="wrong")
        wait_for(lambda: "token is not the one" in page.text("message"))
        page = Page(browser, site)  # on the same machine, and yet
        wait_for(lambda: "asks for its token" in page.text("message"))
        page = Page(browser, site, token="secret")
        page.shows(link="connected")
        with pytest.raises(RPCError, match="token"):
            rpc.connect("127.0.0.1", site.port, key=KEY, token="wrong")
        with rpc.connect("127.0.0.1", site.port, key=KEY, token="secret") as session:
            use(session, modules)
    finally:
        site.stop()
    plain = Site()
    try:
        page = Page(browser, plain, token="secret")
        wait_for(lambda: "prove that it has the same token" in page.text("message"))
    finally:
        plain.stop()


def test_page_fits_a_phone(site, browser):
    key = "kind-with-a-name-that-is-longer-than-the-screen-of-any-phone-is-wide-and-more"
    page = Page(browser, site, key=key, width=390)
    page.shows(link="connected", kind=key)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= 390


def upgrade(site, **headers):
    """Ask for a WebSocket; return the status of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", site.page_port, timeout=10)
    status = asked(connection, headers)
    connection.close()
    return status


def asked(connection, headers):
    wanted = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    } | headers
    connection.request("GET", "/device/proxy", headers=wanted)
    return connection.getresponse().status


@pytest.mark.parametrize("opcode", [0x9, 0xA], ids=["ping", "pong"])
def test_who_floods_with_pings_is_dropped_at_once(site, opcode):
    """Thousands came with one read, and each was answered before anybody else's turn."""
    answered = b"\x8a\x00"
    frame = bytes((0x80 | opcode, 0x80)) + bytes(4)  # without a payload, masked with zeros
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.page_port)) as connection:
        assert asked(connection, {}) == 101
        connection.sock.settimeout(GREETING_TIMEOUT_S * 0.9)  # which ends it, too
        connection.sock.sendall(frame * 90)
        if opcode == 0x9:
            assert connection.sock.makefile("rb").read(90 * 2) == answered * 90
        flooded = bytearray()
        with contextlib.suppress(ConnectionError):
            connection.sock.sendall(frame * 40_000)
            while data := connection.sock.recv(65536):
                flooded += data
    assert len(flooded) <= 10 * 2


def test_other_sites_get_no_websocket(site):
    own = f"127.0.0.1:{site.page_port}"
    assert upgrade(site, Origin=f"http://{own}") == 101
    assert upgrade(site, Origin="http://elsewhere.example") == 403
    assert upgrade(site, Origin="null") == 403
    assert upgrade(site, Host="elsewhere.example", Origin="http://elsewhere.example") == 403


def test_headers_of_the_page(site):
    connection = http.client.HTTPConnection("127.0.0.1", site.page_port, timeout=30)
    for path in ("/", "/device/page.mjs", "/device/session.wasm"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    connection.request("GET", "/device/../pyproject.toml")
    assert connection.getresponse().status == 404
    connection.close()


def test_answer_on_its_way_when_the_proxy_stops_is_no_traceback():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    command = [sys.executable, "-m", "slipway.exec.rpc_proxy", "--port", "0", "--web-port"]
    with subprocess.Popen([*command, str(port)], stderr=subprocess.PIPE, text=True) as process:
        while "browsers become devices" not in process.stderr.readline():
            assert process.poll() is None
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port)) as link:
                link.sendall(b"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                link.recv(1)
        process.terminate()
        told = process.stderr.read()
    assert "Traceback" not in told
    assert process.returncode == 0
