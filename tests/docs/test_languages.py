"""Every block of docs/languages.md is a file or a command, and works in its order."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import libinfo

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?:#|//|/\*) ([\w./]+\.\w+)")


@pytest.fixture(scope="module")
def folder(repository, tmp_path_factory):
    """A folder after all blocks have been written and run, and what they printed."""
    for tool in ("g++", "cc", "cargo"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("languages")
    tools = folder / "tools"
    tools.mkdir()
    for name, command in (("slipway", "-m slipway"), ("python", "")):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        tool.chmod(0o755)
    paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    library = str(Path(libinfo.find_lib_path()[0]).parent)  # test_rust.py compiles it instead
    environment = {
        **os.environ,
        "SLIPWAY_LIB_DIR": library,
        "LD_LIBRARY_PATH": library,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": paths,
        "CARGO_TARGET_DIR": str(folder / "target"),
    }
    printed = {}
    text = (repository / "docs" / "languages.md").read_text(encoding="utf-8")
    for language, block in BLOCK.findall(text):
        command = block
        if language != "sh":
            name = NAME.match(block)[1]
            (folder / name).write_text(block)
            if language != "python":
                continue
            command = f"python {name}"
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed[command.strip().split("\n")[-1]] = done.stdout
    return folder, printed


def output_of(folder, part):
    return next(text for command, text in folder[1].items() if part in command)


def numbers(text):
    return [float(number) for number in re.findall(r"\d\.\d+", text)]


def test_each_language_runs_the_model(folder):
    """C++, C and Rust print what Python computes."""
    import numpy as np

    import slipway as tvm

    lib = tvm.runtime.load_module(folder[0] / "model.so")
    model = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    model.set_input("input", np.ones((1, 3, 8, 8), "float32"))
    model.run()
    want = pytest.approx(model.get_output(0).numpy().ravel(), abs=6e-5)
    assert numbers(output_of(folder, "-o app &&")) == want
    assert numbers(output_of(folder, "app_of_c").splitlines()[-1]) == want
    rust = output_of(folder, "cargo run")
    assert numbers(rust) == want
    assert rust.splitlines()[-1] == "3"


def test_functions_cross(folder):
    assert output_of(folder, "call.py") == "3 81\n"


def test_listed_names_are_in_the_header(repository):
    """The classic C names that the page lists are those that are declared."""
    text = (repository / "docs" / "languages.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(TVM\w+)`", text))
    declared = set()
    for name in ("c_runtime_api.h", "c_backend_api.h"):
        path = repository / "src/slipway/crt/include/tvm/runtime" / name
        declared |= set(
            re.findall(r"^TVM_DLL [\w ]+?\**(TVM\w+)\(", path.read_text(), re.MULTILINE)
        )
    listed -= {"TVM_REGISTER_GLOBAL"}
    assert declared - listed == {"TVMDLManagedTensorCallDeleter"}
    assert listed <= declared


def test_functions_of_c_are_those_of_the_headers(repository):
    """Each is declared, all of model.h are named, and the page says which give no status."""
    text = (repository / "docs" / "languages.md").read_text(encoding="utf-8")
    table = text.partition("| load, run, free | |\n")[2].partition("\n\n")[0]
    listed = set(re.findall(r"`(slw_\w+)\(", table))
    folder = repository / "src/slipway/crt/include/slipway"
    returned, of_models = {}, set()
    for path in folder.glob("*.h"):
        found = re.findall(r"^SLW_API ([\w ]+?\**)(slw_\w+)\(", path.read_text(), re.MULTILINE)
        returned |= {name: kind.strip() for kind, name in found}
        of_models |= {name for _, name in found if path.name == "model.h"}
    assert of_models <= listed <= set(returned)
    before, _, after = table.partition("| **errors** |")
    told = {name for name in re.findall(r"`(slw_\w+)\(", before) if returned[name] != "slw_status"}
    counts = {f"slw_model_num_{part}s" for part in ("input", "output")}
    found = {f"slw_model_{part}" for part in ("input_name", "output_name", "input", "output")}
    assert told == counts | found | {"slw_model_close"}
    texts = {"slw_error_kind", "slw_error_message", "slw_status_text", "slw_module_release"}
    assert {n for n in re.findall(r"`(slw_\w+)\(", after) if returned[n] != "slw_status"} == texts


def test_versions_are_those_of_the_crate(repository):
    text = (repository / "docs" / "languages.md").read_text(encoding="utf-8")
    crate = (Path(libinfo.find_rust_path()[0]) / "Cargo.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'rust-version = "([\d.]+)"', crate)
    assert f"with Rust {version} or newer" in text
    assert re.search(r"^\[dependencies\]\s*(\[|\Z)", crate, re.MULTILINE), crate


def test_listed_headers_are_there(repository):
    """All but those that module.h, ndarray.h and packed_func.h include."""
    text = (repository / "docs" / "languages.md").read_text(encoding="utf-8")
    listed = re.findall(r"The classic headers, C\+\+14: (.*?)\.\n", text, re.DOTALL)
    folder = repository / "src/slipway/crt/include/tvm/runtime"
    there = {path.name for path in folder.rglob("*.h")}
    parts = {"module_node.h", "object.h", "packed_value.h", "ret_value.h"}
    assert {
        name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.h)`", listed[0])
    } == there - parts


def test_paths():
    assert (Path(libinfo.find_rust_path()[0]) / "Cargo.toml").is_file()
    assert (Path(libinfo.find_include_path()[0]) / "tvm/runtime/module.h").is_file()
