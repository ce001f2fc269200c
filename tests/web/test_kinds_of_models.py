"""Models with open sizes, states, branches, all types, and language models, in JavaScript."""

import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import slipway as tvm
from slipway import relay

SCRIPTS = Path(__file__).parent
MODULE = Path(tvm.libinfo.find_js_path()[0]) / "slipway.mjs"
TARGET = "llvm -mtriple=wasm32"
VERSE = SCRIPTS.parent / "llm" / "verse.gguf"
OPENING = [1, 26, 38, 31, 42, 42, 4, 19]  # "Shall I"


def models():
    """Yield (name, function, options of the build)."""
    n, h = relay.Dim("n", 1, 8), relay.Dim("h", 2, 5)
    x, image = relay.var("x", shape=(n, 3)), relay.var("image", shape=(n, 2, h))
    y, cache = relay.var("y", shape=(4,)), relay.var("cache", shape=(4,))
    yield "open", relay.Function([x], relay.cumsum(x, axis=0)), {}
    both = relay.Tuple([relay.sum(image, axis=1), relay.sum(x, axis=1)])
    yield "two_open", relay.Function([image, x], both), {}
    kept = relay.Tuple([relay.sum(cache + y), cache + y])
    for kind in ("graph", "aot"):
        options = {"state": {"cache": 1}, "executor": relay.backend.Executor(kind)}
        yield f"state_{kind}", relay.Function([cache, y], kept), options
    flag = relay.var("flag", shape=(), dtype="bool")
    branch = relay.If(flag, y * relay.const(2.0), y + relay.const(1.0))
    yield "branch", relay.Function([flag, y], branch), {}
    for dtype in ("float16", "int64", "uint64", "bool", "float64", "int8"):
        z = relay.var("z", shape=(4,), dtype=dtype)
        same = relay.logical_not(z) if dtype == "bool" else relay.negative(z)
        yield f"type_{dtype}", relay.Function([z], same), {}
    threaded = relay.var("x", shape=(64, 256))
    yield "threaded", relay.Function([threaded], relay.tanh(threaded)), {"attributes": "+atomics"}


@functools.cache
def verse():
    """Return how a language model goes on, on this machine, and its library for pages."""
    from slipway.llm import LanguageModel, Sampling
    from slipway.llm.model import Source, compile_model

    model = LanguageModel.from_file(VERSE, context=128)
    tokens = list(model.generate(OPENING, most=40, sampling=Sampling(temperature=0), stop=()))
    library, _ = compile_model(Source.read(VERSE), target=TARGET, context=128)
    return [int(token) for token in tokens], library


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("kinds")
    for name, function, options in models():
        attributes = options.pop("attributes", "")
        target = f"{TARGET} -mattr={attributes}" if attributes else TARGET
        library = relay.build(tvm.IRModule.from_expr(function), target, **options)
        library.export_library(str(made / f"{name}.wasm"))
    return made


def run_in_node(script, folder):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    environment = {**os.environ, "SLIPWAY_JS": str(MODULE), "FOLDER": str(folder)}
    done = subprocess.run(
        [node, "--test", str(SCRIPTS / script)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_kinds(folder):
    run_in_node("kinds.test.mjs", folder)


def test_sources(folder):
    run_in_node("sources.test.mjs", folder)


def test_a_language_model_goes_on_as_it_does_here(folder):
    pytest.importorskip("tokenizers", reason="no tokenizers: pip install 'slipway-ml[llm]'")
    tokens, library = verse()
    library.export_library(str(folder / "verse.wasm"))
    (folder / "verse.json").write_text(json.dumps({"opening": OPENING, "tokens": tokens}))
    run_in_node("language.test.mjs", folder)


def test_types_are_of_what_is_there():
    """Every export has its type, and no member is declared that no class has."""
    code = MODULE.read_text()
    types = (MODULE.parent / "slipway.d.ts").read_text()
    made = r"^export (?:async )?(?:function|class) (\w+)"
    given = r"^export (?:function|class) (\w+)"
    exports = set(re.findall(made, code, re.MULTILINE))
    assert exports == set(re.findall(given, types, re.MULTILINE))
    for name, body in re.findall(r"^export class (\w+)[^{]*\{\n(.*?)^\}", types, re.DOTALL | re.M):
        members = re.findall(r"^  (?:readonly )?(\w+)(?:<[^(]*)?[(:?]", body, re.MULTILINE)
        for member in members:
            assigned, method = rf"\bthis\.{member} =", rf"^  (?:async |get )?{member}\("
            listed = rf"\{{[^}}]*\b{member}\b[^}}]*\}}\);"  # of Object.assign
            there = "|".join((assigned, method, listed))
            assert re.search(there, code, re.MULTILINE), f"{name}.{member}"


def test_bundlers_find_no_module_of_node():
    """Bundlers for pages refuse `import("node:...")`, and find workers where they are started."""
    for name in ("slipway.mjs", "thread.mjs"):
        assert 'import("node:' not in (MODULE.parent / name).read_text()
    assert 'new Worker(new URL("./thread.mjs", import.meta.url)' in MODULE.read_text()
