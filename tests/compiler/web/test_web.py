"""``.wasm`` files with the runtime inside: JavaScript runs them in node and in Chromium."""

import functools
import gzip
import http.server
import json
import os
import platform
import shutil
import subprocess
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.errors import ArtifactError
from slipway.toolchain.unpack import unpack_tar

SCRIPTS = Path(__file__).parents[2] / "web"
MODULE = Path(tvm.libinfo.find_js_path()[0]) / "slipway.mjs"
TARGET = "llvm -mtriple=wasm32"


def export_functions(folder):
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: te.exp(a[i]) + 1, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], TARGET, name="expo")
    built.export_library(str(folder / "exp.wasm"))
    x = te.placeholder((4,), name="x")
    y = te.extern((4,), [x], lambda i, o: tvm.tir.call_packed("js.twice", i[0], o[0]), name="y")
    built = tvm.build(te.create_schedule(y.op), [x, y], TARGET, name="outer")
    built.export_library(str(folder / "packed.wasm"))


def export_halves(folder):
    random = np.random.default_rng(3)
    values = random.standard_normal(500) * 2.0 ** random.integers(-30, 17, 500)
    values = np.append(values, [0, -0.0, 65504, 65519.9, 65520, 2**-24, 2**-25, 2.5 * 2**-25, 1e30])
    cases = {"values": values.tolist()}
    with np.errstate(over="ignore"):
        # ml_dtypes rounds float64 to float32 first; what float32 holds is rounded once by both.
        cases["values"] = values.astype("float32").astype(float).tolist()
        for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
            found = values.astype("float32").astype(dtype)
            wide = found.astype(float).tolist()
            cases[name] = {
                "bits": found.view("uint16").tolist(),
                "values": [str(v) for v in wide],
            }
    (folder / "halves.json").write_text(json.dumps(cases))


def networks():
    """Yield (name, function, parameters, inputs, expected outputs)."""
    random = np.random.default_rng(5)

    def draw(*shape):
        return random.standard_normal(shape).astype("float32")

    image, weight, bias = draw(1, 3, 11, 9), draw(5, 3, 3, 3), draw(5)
    x, w, b = (
        relay.var("x", shape=(1, 3, 11, 9)),
        relay.var("w", shape=(5, 3, 3, 3)),
        relay.var("b", shape=(5,)),
    )
    conv = relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b)
    soft = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.relu(conv)))
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))).astype("float64")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    sums = np.einsum("ncyxhw,ochw->noyx", windows, weight) + bias[:, None, None]
    flat = np.maximum(sums, 0).reshape(1, -1)
    powers = np.exp(flat - flat.max())
    params = {"w": weight, "b": bias}
    yield "conv", relay.Function([x, w, b], soft), params, {"x": image}, [powers / powers.sum()]

    attended = [draw(2, 9, 8) for _ in "qkv"]
    q, k, v = (relay.var(name, shape=(2, 9, 8)) for name in "qkv")
    body = relay.nn.batch_matmul(
        relay.nn.softmax(relay.nn.batch_matmul(q, k)), relay.transpose(v, (0, 2, 1))
    )
    powers = np.exp(np.einsum("nsh,nth->nst", *attended[:2]).astype("float64"))
    wanted = np.einsum("nst,nth->nsh", powers / powers.sum(-1, keepdims=True), attended[2])
    inputs = dict(zip("qkv", attended, strict=True))
    yield "attention", relay.Function([q, k, v], body), {}, inputs, [wanted]

    # Of more inputs than a page of text describes.
    names = [f"input_number_{i}_of_a_model_with_a_long_name" for i in range(30)]
    given = {name: draw(2) for name in names}
    total = functools.reduce(relay.add, [relay.var(name, shape=(2,)) for name in names])
    wanted = [np.sum(list(given.values()), axis=0, dtype="float64")]
    yield "many", relay.Function(relay.analysis.free_vars(total), total), {}, given, wanted

    left, right = draw(3, 7), random.integers(-9, 9, (3, 7)).astype("int64")
    p, q = relay.var("p", shape=(3, 7)), relay.var("q", shape=(3, 7), dtype="int64")
    two = relay.Tuple([relay.sum(p, axis=1), q * relay.const(3, "int64")])
    yield "two", relay.Function([p, q], two), {}, {"p": left, "q": right}, [
        left.astype("float64").sum(1), right * 3,
    ]  # fmt: skip


def export_models(folder):
    cases = []
    for name, function, params, inputs, outputs in networks():
        for feature, mattr in (("simd", ""), ("plain", " -mattr=-simd128"), ("program", "")):
            file = f"{name}_{feature}.wasm"
            is_program = feature == "program"
            if name == "many" and not is_program:
                continue
            kind = ("aot", {"interface-api": "c"}) if is_program else ("graph",)
            executor = relay.backend.Executor(*kind)
            module = tvm.IRModule.from_expr(function)
            config = {"tir.usmp.use_workspace_io": is_program and name == "conv"}
            with tvm.transform.PassContext(config=config):
                lib = relay.build(module, TARGET + mattr, params=params, executor=executor)
            lib.export_library(str(folder / file))
            cases.append(
                {
                    "file": file,
                    "is_program": is_program,
                    "tolerance": 1e-5,
                    "inputs": {k: v.ravel().tolist() for k, v in inputs.items()},
                    "outputs": [
                        {"shape": list(v.shape), "values": v.ravel().tolist()} for v in outputs
                    ],
                }
            )
    (folder / "models.json").write_text(json.dumps(cases))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("web")
    export_functions(made)
    export_halves(made)
    export_models(made)
    return made


@pytest.mark.parametrize("script", ["functions", "models", "network"])
def test_in_node(folder, script):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    environment = {**os.environ, "SLIPWAY_JS": str(MODULE), "FOLDER": str(folder)}
    done = subprocess.run(
        [node, "--test", str(SCRIPTS / f"{script}.test.mjs")],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_has_no_graph_executor_inside(folder):
    """Compiled ahead of time: half of it, with what tensors, errors and calls need."""
    graph, program = (folder / f"conv_{kind}.wasm" for kind in ("simd", "program"))
    assert program.stat().st_size < 0.5 * graph.stat().st_size
    assert b"slw_graph" not in program.read_bytes()
    small = (folder / "two_program.wasm").read_bytes()  # hardly more than what all programs have
    assert len(gzip.compress(small)) < 11_500


def test_a_program_keeps_its_constants(folder, tmp_path):
    x = relay.var("x", shape=(4,))
    module = tvm.IRModule.from_expr(relay.Function([x], x * relay.const(np.ones(4, "float32"))))
    lib = relay.build(module, TARGET, executor=relay.backend.Executor("aot"))
    with pytest.raises(ArtifactError, match="constants inside"):
        lib.export_library(str(tmp_path / "m.wasm"), params_file=str(tmp_path / "m.params"))
    with pytest.raises(ArtifactError, match="none does not exist"):
        lib.export_library(str(tmp_path / "none" / "m.wasm"))


def test_package_is_whole(folder, tmp_path):
    """What `npm pack` takes is all that `import` of the package's name needs."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    about = json.loads((MODULE.parent / "package.json").read_text())
    installed = tmp_path / "node_modules" / package_name()
    installed.mkdir(parents=True)
    for name in ("package.json", *about["files"]):
        shutil.copy(MODULE.parent / name, installed)
    assert (installed / about["types"]).is_file()
    script = tmp_path / "use.mjs"
    script.write_text(
        f'import {{ instantiate }} from "{about["name"]}";\n'
        f"const library = await instantiate({json.dumps(str(folder / 'exp.wasm'))});\n"
        "console.log(library.listFunctionNames().join());\n"
    )
    done = subprocess.run([node, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "expo"


def package_name():
    return json.loads((MODULE.parent / "package.json").read_text())["name"]


def test_npm_packs_it(folder, tmp_path, repository):
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: apt-get install npm")
    subprocess.run(
        [npm, "pack", "--offline", "--pack-destination", str(tmp_path)], cwd=MODULE.parent,
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    (packed,) = tmp_path.glob("*.tgz")
    unpack_tar(packed, tmp_path)
    script = "const { load } = await import(process.env.PACKAGE);" + (
        "console.log((await load(process.env.MODEL)).outputs.length);"
    )
    names = {"PACKAGE": tmp_path / "package/slipway.mjs", "MODEL": folder / "two_simd.wasm"}
    done = subprocess.run(
        [shutil.which("node"), "--input-type=module", "-e", script],
        env={**os.environ, **{k: str(v) for k, v in names.items()}},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "2"
    found = {path.name for path in (tmp_path / "package").iterdir()}
    assert found == {"package.json", "slipway.mjs", "thread.mjs", "slipway.d.ts", "README.md"}
    # What it shows is what the page about JavaScript shows, whose blocks are run.
    readme = (tmp_path / "package" / "README.md").read_text(encoding="utf-8")
    shown = readme.split("```js\n")[1].split("```")[0].replace(package_name(), "./slipway.mjs")
    assert shown in (repository / "docs" / "web.md").read_text(encoding="utf-8")


def test_an_engine_without_simd_is_told_what_to_do(folder):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("only on x86 can V8 be told to have no SIMD (--no-enable-sse4-1)")
    script = "const { load } = await import(process.env.SLIPWAY_JS);" + (
        "for (const file of ['conv_simd.wasm', 'conv_plain.wasm'])"
        " try { console.log((await load(`${process.env.FOLDER}/${file}`)).outputs.length); }"
        " catch (error) { console.log(error.name, error.message); }"
    )
    done = subprocess.run(
        [node, "--no-enable-sse4-1", "--input-type=module", "-e", script],
        env={**os.environ, "SLIPWAY_JS": str(MODULE), "FOLDER": str(folder)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    refused, plain = done.stdout.splitlines()
    assert refused.startswith("UnsupportedError ")
    assert "-mattr=-simd128" in refused
    assert plain == "1"


def test_in_chromium(folder, browser):
    shutil.copy(MODULE, folder)
    (folder / "page.html").write_text(
        """<!doctype html><script type="module">
        import { load } from "./slipway.mjs";
        const answers = [];
        for (const { file, inputs } of await (await fetch("models.json")).json()) {
          const progress = [];
          const model = await load(file, { cache: "slipway", onProgress: (n) => progress.push(n) });
          const found = await model.run(inputs);
          answers.push(model.outputs.map(({ name }) => [...found[name]].map(Number)));
        }
        let error = "";
        try { await load("none.wasm"); } catch (e) { error = e.message; }
        window.answers = { answers, error };
        </script>"""
    )
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{server.server_port}/page.html")
        deadline = time.monotonic() + 60
        while (found := browser.execute_script("return window.answers")) is None:
            assert time.monotonic() < deadline, browser.get_log("browser")
            time.sleep(0.05)
        server.shutdown()
    assert "404" in found["error"]
    for case, outputs in zip(
        json.loads((folder / "models.json").read_text()), found["answers"], strict=True
    ):
        for wanted, given in zip(case["outputs"], outputs, strict=True):
            values = np.array(wanted["values"])
            np.testing.assert_allclose(given, values, rtol=0, atol=1e-5 * np.abs(values).max())


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_the_runtime_is_small(folder):
    content = (folder / "exp.wasm").read_bytes()
    assert len(content) < 60_000
    assert len(gzip.compress(content)) < 25_000


def test_equal_builds_give_equal_bytes(folder, tmp_path):
    export_functions(tmp_path)
    assert (tmp_path / "exp.wasm").read_bytes() == (folder / "exp.wasm").read_bytes()


def test_nothing_is_imported_and_vectors_are_used(folder):
    wasmtime = pytest.importorskip("wasmtime", reason="no wasmtime: pip install wasmtime")
    for file in ("conv_simd.wasm", "conv_plain.wasm", "exp.wasm"):
        module = wasmtime.Module.from_file(wasmtime.Engine(), str(folder / file))
        assert list(module.imports) == []
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 3, name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].vectorize(schedule[b].split(b.op.axis[0], 4)[1])
    assert "f32x4.mul" in tvm.build(schedule, [a, b], TARGET).get_source("asm")
    plain = tvm.build(schedule, [a, b], TARGET + " -mattr=-simd128").get_source("asm")
    assert "f32x4" not in plain


def test_a_page_takes_only_its_own_code(tmp_path):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * 2, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    with pytest.raises(ArtifactError, match="mtriple=wasm32"):
        built.export_library(str(tmp_path / "x.wasm"))
    assert not (tmp_path / "x.wasm").exists()
    built = tvm.build(te.create_schedule(b.op), [a, b], TARGET)
    for name in ("x.o", "x.a", "x.tar"):
        built.export_library(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 0
