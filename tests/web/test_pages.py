"""A model in a worker, behind a service worker, and in pages that are reloaded, in Chromium."""

import functools
import http.server
import shutil
import threading
import time
from pathlib import Path

import pytest
from tests.rpc.faults.waiting import wait_for

import slipway as tvm
from slipway import relay

FOLDER = Path(tvm.libinfo.find_js_path()[0])

PAGE = """<!doctype html><script type="module">
import { load } from "./slipway.mjs";
const x = [[1, 2, 3], [4, 5, 6]];
const found = {};
async function store(name, make) {
  found[name] = await make().catch(String);
}
const query = new URLSearchParams(location.search);
const run = async (model) => [...(await (await load(model)).run({ x })).output];
await store("page", () => run(query.get("model") ?? "open.wasm"));
if (query.has("more")) {
  await store("dropped", async () => run(new File([await (await fetch("open.wasm")).blob()], "m")));
  await store("cut", () => load("cut.wasm"));
  await store("worker", () => new Promise((resolve, reject) => {
    const worker = new Worker("worker.mjs", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage(x);
  }));
  await store("service", async () => {
    await navigator.serviceWorker.register("service.mjs", { type: "module" });
    await navigator.serviceWorker.ready;
    return "ready";
  });
}
window.found = found;
</script>"""
WORKER = """import { load } from "./slipway.mjs";
const model = load("open.wasm");
onmessage = async ({ data }) => postMessage([...(await (await model).run({ x: data })).output]);
"""
SERVICE = """const files = ["./slipway.mjs", "./open.wasm", "./page.html"];
oninstall = (event) => event.waitUntil(caches.open("kept").then((cache) => cache.addAll(files)));
onactivate = (event) => event.waitUntil(clients.claim());
onfetch = (event) => event.respondWith(
  caches.match(event.request, { ignoreSearch: true }).then((kept) => kept ?? fetch(event.request)));
"""
SUMS = [1, 2, 3, 5, 7, 9]


class _Server(http.server.SimpleHTTPRequestHandler):
    """Files; `slow.wasm` stops in the middle until the page is gone or asks again."""

    requests = 0
    protocol_version = "HTTP/1.1"

    def end_headers(self):
        if "policy" in self.path:
            self.send_header("Content-Security-Policy", "script-src 'self' 'unsafe-inline'")
        super().end_headers()

    def do_GET(self):
        if not self.path.startswith("/slow.wasm"):
            super().do_GET()
            return
        content = (Path(self.directory) / "open.wasm").read_bytes()
        type(self).requests += 1
        # Of a kind that no streaming compiler takes.
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if type(self).requests > 1:
            self.wfile.write(content)
        else:
            self.wfile.write(content[: len(content) // 2])
            time.sleep(5)
            self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def address(tmp_path):
    n = relay.Dim("n", 1, 8)
    x = relay.var("x", shape=(n, 3))
    library = relay.build(relay.Function([x], relay.cumsum(x, axis=0)), "llvm -mtriple=wasm32")
    library.export_library(str(tmp_path / "open.wasm"))
    (tmp_path / "cut.wasm").write_bytes((tmp_path / "open.wasm").read_bytes()[:5000])
    shutil.copy(FOLDER / "slipway.mjs", tmp_path)
    for name, text in (("page.html", PAGE), ("worker.mjs", WORKER), ("service.mjs", SERVICE)):
        (tmp_path / name).write_text(text)
    _Server.requests = 0
    handler = functools.partial(_Server, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page.html"
        server.shutdown()


def found_in(browser):
    deadline = time.monotonic() + 60
    while (found := browser.execute_script("return window.found")) is None:
        assert time.monotonic() < deadline, browser.get_log("browser")
        time.sleep(0.05)
    return found


def test_in_a_worker_from_a_file_and_behind_a_service_worker(address, browser):
    browser.get(f"{address}?more")
    found = found_in(browser)
    assert found.pop("cut").startswith("ArtifactError: this engine refuses the module")
    assert found == {"page": SUMS, "dropped": SUMS, "worker": SUMS, "service": "ready"}
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        browser.get(address)
        assert found_in(browser) == {"page": SUMS}
    finally:
        offline |= {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)


def test_a_page_that_is_reloaded_while_it_loads(address, browser):
    browser.get(f"{address}?model=slow.wasm")
    wait_for(lambda: _Server.requests)
    browser.refresh()
    assert found_in(browser) == {"page": SUMS}
    assert _Server.requests == 2


def test_a_policy_without_webassembly_is_said_to_be_the_reason(address, browser):
    browser.get(f"{address}?policy")
    (error,) = found_in(browser).values()
    assert error.startswith(
        "UnsupportedError: the page's Content-Security-Policy forbids WebAssembly"
    )
    assert "add 'wasm-unsafe-eval' to its script-src" in error
