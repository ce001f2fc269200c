"""Programs of the C runtime, compiled with sanitizers."""

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
    """Return a function (main file, *runtime sources) -> sanitized program."""
    cc = shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        pytest.skip("needs gcc or clang: apt-get install gcc")

    def build(main, *sources, flags=(), sanitize="address,undefined"):
        out = tmp_path_factory.mktemp("checked") / Path(main).stem
        include = ["-I", str(native.include_path())]
        paths = [str(HERE / main), *(str(path) for path in sources)]
        checks = [f"-fsanitize={sanitize}", *CHECKS]
        command = [cc, "-std=c11", "-D_GNU_SOURCE=", "-pthread", *WARNINGS, *checks, *flags]
        done = subprocess.run(
            [*command, *include, "-o", str(out), *paths], capture_output=True, text=True
        )
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
