"""Every block of docs/web.md works in its order: the Python here, the JavaScript in node."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.docs import test_blocks
from tests.rpc.web.test_web_devices import Page, Site

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.libinfo import find_js_path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((test_blocks.DOCS / "web.md").read_text(encoding="utf-8"))
TARGET = "llvm -mtriple=wasm32"
VERSE = Path(__file__).parents[1] / "llm" / "verse.gguf"
# What the page's reader has where a block begins in the middle.
BEFORE = 'import { load } from "./slipway.mjs";\nconst prompt = [1, 26, 38, 31, 42];\n'


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(block, given):
    exec(compile(block, "web.md", "exec"), given)


def in_node(block, folder):
    """Run a block, and what it leaves in `shown` if it makes something that it does not print."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    script = block if "import " in block else BEFORE + block + "console.log(made.length);\n"
    (folder / "block.mjs").write_text(script)
    return run([node, "block.mjs"], folder)


def in_shell(block, folder):
    """The commands that end as they stand; of a server, only whether it knows its options."""
    for line in block.splitlines():
        words = line.split("#")[0].split()
        if words[0] == "slipway":
            serves = ["--help"] if words[1] == "web-device" else []
            run([sys.executable, "-m", *words, *serves], folder)
        else:
            assert Path(folder, words[-1]).is_dir()  # of a web server of files


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with what the page speaks of, and names for its Python."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("slipway.mjs", "thread.mjs"):
        shutil.copy(Path(find_js_path()[0]) / name, folder)
    if VERSE.is_file():
        shutil.copy(VERSE, folder / "model.gguf")
    test_blocks.write_model(folder / "mobilenet.onnx", 1)
    (folder / "classes.txt").write_text("\n".join(f"class {i}" for i in range(5)))
    x, weight = relay.var("input", shape=(1, 4)), relay.var("weight", shape=(4, 4))
    mod = tvm.IRModule.from_expr(relay.Function([x, weight], relay.nn.dense(x, weight)))
    params = {"weight": np.eye(4, dtype="float32")}
    relaxed = relay.build(mod, f"{TARGET} -mattr=+relaxed-simd", params=params)
    relaxed.export_library(str(folder / "model.relaxed.wasm"))
    names = {"tvm": tvm, "relay": relay, "rpc": rpc, "graph_executor": graph_executor}
    return folder, {**names, "mod": mod, "params": params}


def test_blocks_work_in_their_order(site, browser, monkeypatch):
    pytest.importorskip("tokenizers", reason="no tokenizers: pip install 'slipway-ml[llm]'")
    folder, given = site
    monkeypatch.chdir(folder)
    printed = []
    for language, block in BLOCKS:
        if language == "js":
            printed.append(in_node(block, folder))
        elif language == "sh":
            in_shell(block, folder)
        elif "rpc.connect" not in block:
            if "params_file" in block:  # of a model that has some
                given["lib"] = relay.build(given["mod"], TARGET, params=given["params"])
            run_python(block, given)
        else:
            use_a_browser(block, given, browser)
    assert "shape: [ 1, 4 ]" in printed[0]
    assert printed[2] == "40\n"
    size = (folder / "model.params").stat().st_size
    assert f"params {size} {size}" in printed[3]
    assert size >= 64


def use_a_browser(block, given, browser):
    run_python(BLOCKS[0][1], given)  # the model that the page began with
    site = Site()
    try:
        Page(browser, site).shows(link="connected")
        run_python(block.replace("9090", str(site.port)), given)
        given["remote"].close()
    finally:
        site.stop()


def test_names_of_the_page_are_declared():
    """The first column of what there is, in slipway.d.ts and in the module itself."""
    text = (test_blocks.DOCS / "web.md").read_text(encoding="utf-8")
    table = text.partition("## What there is\n")[2].partition("\n\n## ")[0]
    first = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    spans = [re.sub(r'"[^"]*"', "", span) for span in re.findall(r"`([^`]+)`", first)]
    names = {name for span in spans for name in re.findall(r"[A-Za-z]{3,}", span)}
    # What they are called with, and the model itself.
    names -= {"source", "saved", "name", "numbers", "model", "await", "repeat", "simd"}
    folder = Path(find_js_path()[0])
    for file in ("slipway.d.ts", "slipway.mjs"):
        known = set(re.findall(r"\w+", (folder / file).read_text(encoding="utf-8")))
        assert not names - known, file
