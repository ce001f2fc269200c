"""Modules whose memory workers share: in node, and in pages that are isolated or not."""

import functools
import http.server
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.script import tir as T

SCRIPTS = Path(__file__).parents[2] / "web"
FOLDER = Path(tvm.libinfo.find_js_path()[0])
THREADED = "llvm -mtriple=wasm32 -mattr=+atomics"


def network():
    random = np.random.default_rng(5)
    x = relay.var("x", shape=(1, 16, 56, 56))
    wide, deep = (
        relay.const(random.standard_normal(shape).astype("float32") / 12)
        for shape in ((48, 16, 3, 3), (32, 48, 1, 1))
    )
    body = relay.nn.relu(relay.nn.conv2d(x, wide, padding=(1, 1)))
    body = relay.nn.softmax(relay.nn.max_pool2d(relay.nn.conv2d(body, deep), (4, 4), (4, 4)), 1)
    return tvm.IRModule.from_expr(relay.Function([x], body))


@T.prim_func
def checks(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.parallel(64):
        assert x[i] >= T.float32(0), "a number is below zero"
        y[i] = x[i] * T.float32(2)


@T.prim_func
def calls(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        T.evaluate(T.call_packed("js.slow", i))
        y[i] = x[i]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("threads")
    with tvm.transform.PassContext(opt_level=3):
        for name, target in (("threads", THREADED), ("single", "llvm -mtriple=wasm32")):
            relay.build(network(), target).export_library(str(made / f"{name}.wasm"))
    for name, function in (("checks", checks), ("calls", calls)):
        built = tvm.build(tvm.IRModule({name: function}), target=THREADED)
        built.export_library(str(made / f"{name}.wasm"))
    return made


def test_in_node(folder):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    environment = {**os.environ, "SLIPWAY_JS": str(FOLDER / "slipway.mjs"), "FOLDER": str(folder)}
    done = subprocess.run(
        [node, "--test", "--test-timeout=60000", str(SCRIPTS / "threads.test.mjs")],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


class _Pages(http.server.SimpleHTTPRequestHandler):
    """Files; those whose address ends in ?isolated have the headers that isolate a page."""

    def end_headers(self):
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        if "isolated" in self.path:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        super().end_headers()

    def log_message(self, *args):
        pass


PAGE = """<!doctype html><link rel="icon" href="data:,"><script type="module">
import { load } from "./slipway.mjs";
const image = Float32Array.from({ length: 16 * 56 * 56 }, (_, i) => Math.sin(i));
const answer = { isolated: crossOriginIsolated, outputs: [], threads: [], error: "" };
for (const options of [{ threads: 1 }, {}, { threads: 3 }]) {
  try {
    const model = await load("threads.wasm", options);
    answer.threads.push(model.runtime.numThreads);
    answer.outputs.push((await model.run({ x: image })).output.join());
    model.dispose();
  } catch (error) { answer.error = `${error.name}: ${error.message}`; }
}
window.answer = answer;
</script>"""


def test_in_pages_that_are_isolated_or_not(folder, browser):
    for name in ("slipway.mjs", "thread.mjs"):
        shutil.copy(FOLDER / name, folder)
    (folder / "page.html").write_text(PAGE)
    found = {}
    handler = functools.partial(_Pages, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in ("isolated", "open"):
            browser.get(f"http://127.0.0.1:{server.server_port}/page.html?{name}")
            deadline = time.monotonic() + 60
            while (answer := browser.execute_script("return window.answer")) is None:
                assert time.monotonic() < deadline, browser.get_log("browser")
                time.sleep(0.05)
            found[name] = answer
        server.shutdown()
    isolated, plain = found["isolated"], found["open"]
    assert isolated["isolated"]
    assert not plain["isolated"]
    assert not isolated["error"]
    cores = browser.execute_script("return navigator.hardwareConcurrency")
    assert isolated["threads"] == [1, min(16, cores), 3]
    assert plain["threads"] == [1, 1]
    assert plain["error"].startswith("UnsupportedError: 3 threads need a page that is isolated")
    assert len({*isolated["outputs"], *plain["outputs"]}) == 1
    assert len(isolated["outputs"][0]) > 1000


def test_equal_builds_give_equal_bytes(folder, tmp_path):
    built = tvm.build(tvm.IRModule({"checks": checks}), target=THREADED)
    built.export_library(str(tmp_path / "checks.wasm"))
    assert (tmp_path / "checks.wasm").read_bytes() == (folder / "checks.wasm").read_bytes()
