"""Programs of the C runtime, compiled with sanitizers."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.toolchain import native

HERE = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
CHECKS = ["-fno-sanitize-recover=all", "-g", "-O1"]


@pytest.fixture(scope="session")
def build_checked(tmp_path_factory):
    """Return a function (main file, *runtime sources) -> sanitized program.

    Programs, and the workers of one run, share the objects of the sources that they have in common.
    """
    cc = shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        pytest.skip("needs gcc or clang: apt-get install gcc")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def compiled(source, flags, own):
        key = hashlib.sha256("\0".join([str(source), *flags]).encode()).hexdigest()[:16]
        found = shared / "checked" / f"{source.stem}-{key}.o"
        if not found.is_file():
            made = own / found.name
            done = subprocess.run(
                [cc, *flags, "-c", "-o", made, source], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            found.parent.mkdir(exist_ok=True)
            made.replace(found)
        return found

    def build(main, *sources, static=False, sanitize="address,undefined"):
        own = tmp_path_factory.mktemp("checked")
        checks = [f"-fsanitize={sanitize}", *CHECKS]
        flags = ["-std=c11", "-D_GNU_SOURCE=", "-pthread", *WARNINGS, *checks]
        flags += ["-I", str(native.include_path())]
        objects = []
        for source in (HERE / main, *sources):
            without = static and "SLW_STATIC" in source.read_text()  # in headers: what is visible
            objects.append(compiled(source, [*flags, *["-DSLW_STATIC"][:without]], own))
        out = own / Path(main).stem
        link = [cc, "-pthread", checks[0], "-o", out, *objects, *["-ldl"][static:]]
        done = subprocess.run(link, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return out

    return build


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A small model as `.so` and `.tar`, and its output for an input of ones."""
    data = relay.var("input", shape=(1, 3, 8, 8), dtype="float32")
    weight = relay.var("weight", shape=(4, 3, 3, 3), dtype="float32")
    pooled = relay.nn.global_avg_pool2d(
        relay.nn.relu(relay.nn.conv2d(data, weight, padding=(1, 1)))
    )
    body = relay.nn.softmax(relay.nn.batch_flatten(pooled))
    values = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")
    mod = tvm.IRModule.from_expr(relay.Function([data, weight], body))
    lib = relay.build(mod, target="llvm", params={"weight": tvm.nd.array(values)})
    folder = tmp_path_factory.mktemp("model")
    library, archive = (lib.export_library(str(folder / f"model.{end}")) for end in ("so", "tar"))
    executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input("input", np.ones((1, 3, 8, 8), "float32"))
    executor.run()
    output = executor.get_output(0).numpy().ravel()
    params = {"weight": tvm.nd.array(values)}
    return SimpleNamespace(
        library=library, archive=archive, output=output, module=mod, params=params
    )


@pytest.fixture(scope="session")
def sized_model(tmp_path_factory):
    """A model of one to four rows, which says which numbers are positive, and keeps their sum.

    Its products of "x" and "gain" are the output "scaled", and the positive ones "found".
    """
    rows = relay.Dim("n", 1, 4)
    x, gain = (relay.var(name, shape=(rows, 3)) for name in ("x", "gain"))
    total = relay.var("total", shape=(3,))
    scaled = x * gain
    flat = relay.reshape(scaled, (-1,))
    is_found = relay.cast(flat > relay.const(0.0), "int64")
    order = relay.argsort(relay.negative(flat))
    first = relay.sized(relay.take(flat, order), relay.sum(is_found), relay.Dim("k", 0, 12))
    kept = total + relay.sum(scaled, axis=0)
    outputs = relay.Tuple([scaled, relay.negative(relay.negative(first)), kept + kept, kept])
    function = relay.Function([x, gain, total], outputs)
    lib = relay.build(tvm.IRModule.from_expr(function), "llvm", state={"total": 3})
    return lib.export_library(str(tmp_path_factory.mktemp("sized") / "sized.tar"))
