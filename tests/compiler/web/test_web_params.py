"""Models whose parameters a page loads apart: in node, and from Chromium's cache."""

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
from slipway import relay, te
from slipway.errors import ArtifactError, ExecutionError

SCRIPTS = Path(__file__).parents[2] / "web"
FOLDER = Path(tvm.libinfo.find_js_path()[0])
TARGET = "llvm -mtriple=wasm32"


def compiled(seed=5, target=TARGET):
    """Two layers of one shape, which share a kernel, between two others."""
    random = np.random.default_rng(seed)
    body = relay.var("x", shape=(1, 64))
    function_input = body
    for units, depth in ((4096, 64), (64, 4096), (64, 64), (64, 64)):
        weight = random.standard_normal((units, depth)).astype("float32") / depth
        body = relay.tanh(relay.nn.dense(body, relay.const(weight)))
    return relay.build(tvm.IRModule.from_expr(relay.Function([function_input], body)), target)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("params")
    library = compiled()
    library.export_library(str(made / "apart.wasm"), params_file=made / "apart.params")
    library.export_library(str(made / "whole.wasm"))
    return made


def test_in_node(folder):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    environment = {**os.environ, "SLIPWAY_JS": str(FOLDER / "slipway.mjs"), "FOLDER": str(folder)}
    done = subprocess.run(
        [node, "--test", "--test-timeout=60000", str(SCRIPTS / "params.test.mjs")],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_parameters_are_those_of_save_param_dict(folder):
    found = relay.load_param_dict((folder / "apart.params").read_bytes())
    wanted = compiled().get_params()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name].numpy(), value.numpy())


class _Counted(http.server.SimpleHTTPRequestHandler):
    requested: list[str]

    def do_GET(self):
        self.requested.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile):
        """Parameters in two halves; between them the model is there, which tells their size."""
        content = source.read()
        half = len(content) // 2 if self.path.endswith(".params") else 0
        outputfile.write(content[:half])
        outputfile.flush()
        time.sleep(2 if half else 0)
        outputfile.write(content[half:])

    def log_message(self, *args):
        pass


PAGE = """<!doctype html><link rel="icon" href="data:,"><script type="module">
import { load } from "./slipway.mjs";
const x = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i));
const progress = [];
const answer = { output: "", error: "", progress };
try {
  const onProgress = (loaded, total, file) => progress.push([loaded, total, file]);
  const options = { params: "apart.params", cache: "kept", onProgress };
  const model = await load(`apart.wasm${location.search}`, options);
  answer.output = (await model.run({ x })).output.join();
} catch (error) { answer.error = `${error.name}: ${error.message}`; }
window.answer = answer;
</script>"""


def test_a_browser_keeps_them_and_takes_no_others(folder, browser, tmp_path):
    for path in (FOLDER / "slipway.mjs", folder / "apart.wasm", folder / "apart.params"):
        shutil.copy(path, tmp_path)
    (tmp_path / "page.html").write_text(PAGE)
    handler = functools.partial(_Counted, directory=str(tmp_path))
    _Counted.requested = []

    def visit(version):
        _Counted.requested.clear()
        browser.get(f"http://127.0.0.1:{server.server_port}/page.html?{version}")
        deadline = time.monotonic() + 60
        while (answer := browser.execute_script("return window.answer")) is None:
            assert time.monotonic() < deadline, browser.get_log("browser")
            time.sleep(0.05)
        return answer, [path for path in _Counted.requested if "apart" in path]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        first, requested = visit(1)
        size = (folder / "apart.params").stat().st_size
        told = [row for row in first["progress"] if row[2] == "params"]
        assert told[-1] == [size, size, "params"]
        assert len(told) > 1
        assert not first["error"]
        assert sorted(requested) == ["/apart.params", "/apart.wasm?1"]  # at once
        again, requested = visit(1)
        assert again["output"] == first["output"]
        assert requested == []
        # The model is replaced: what the browser kept is not of this one, and is fetched again.
        library = compiled(seed=6)
        library.export_library(
            str(tmp_path / "apart.wasm"), params_file=str(tmp_path / "apart.params")
        )
        other, requested = visit(2)
        assert not other["error"]
        assert other["output"] != first["output"]
        assert sorted(requested) == ["/apart.params", "/apart.wasm?2"]  # at once
        # The server has those of another model: an error, and they are not kept.
        shutil.copy(folder / "apart.params", tmp_path)
        shutil.copy(folder / "apart.wasm", tmp_path)
        compiled(seed=7).export_library(
            str(tmp_path / "apart.wasm"), params_file=str(tmp_path / "elsewhere")
        )
        wrong, _ = visit(3)
        assert wrong["error"].startswith("ArtifactError: these are not the parameters")
        shutil.copy(tmp_path / "elsewhere", tmp_path / "apart.params")
        healed, requested = visit(3)
        assert healed["output"] not in ("", other["output"], first["output"])
        # Twice where the server says 304 of a file that changed within a second: what the browser
        # had is then not the model's, and asked for anew.
        assert requested in (["/apart.params"], ["/apart.params", "/apart.params"])
        server.shutdown()


def test_what_has_none_to_write_apart(tmp_path):
    with pytest.raises(ArtifactError, match=r"only a \.wasm"):
        compiled(target="llvm").export_library(
            str(tmp_path / "x.tar"), params_file=tmp_path / "x.params"
        )
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * 2, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], TARGET)
    with pytest.raises(ExecutionError, match="no parameters"):
        built.export_library(str(tmp_path / "x.wasm"), params_file=tmp_path / "x.params")
    assert list(tmp_path.iterdir()) == []
