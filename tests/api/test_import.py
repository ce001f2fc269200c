"""Importing the package is cheap and needs nothing of the compiler."""

import subprocess
import sys

import pytest

import slipway

COMPILER = ("llvmlite", "ziglang", "onnx", "tflite", "typer", "rich", "numpy", "tvm_ffi")


def loaded_by(program: str) -> set[str]:
    """Return the modules that a program of its own process has loaded at its end."""
    command = [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


FACADES = ("", ".codegen", ".ir", ".micro", ".relay", ".runtime", ".te", ".tir", ".transform")


@pytest.mark.parametrize("facade", FACADES)
def test_import_loads_nothing(facade):
    loaded = loaded_by(f"import slipway{facade}")
    assert not loaded.intersection(COMPILER)
    own = {name for name in loaded if name.partition(".")[0] == "slipway"}
    tables = {"slipway", "slipway.lazy", "slipway.ir", "slipway.ir.offered"}
    finders = {"slipway.classic", "slipway.classic.modules"}
    assert own <= {*tables, *finders, "slipway.relay.composites", f"slipway{facade}"}


@pytest.mark.parametrize("handler", ["baremetal", "host_project", "library_projects"])
def test_a_projects_server_loads_no_graphs(handler):
    """One is started for each command of a project: 0.3 s of imports each time, of 0.1 s now."""
    loaded = loaded_by(f"import slipway.micro.{handler}")
    assert not loaded.intersection((*COMPILER, "asyncio"))
    floors = ("compiler", "ir", "relay", "rpc", "target", "te")
    assert not [name for name in loaded if name.startswith(tuple(f"slipway.{f}" for f in floors))]


def test_import_loads_little_of_pythons_library():
    """`importlib.abc` alone would load half of these, and double the time."""
    heavy = {"pathlib", "tempfile", "shutil", "random", "inspect", "importlib.resources"}
    assert not (loaded_by("import slipway") - loaded_by("pass")) & heavy


def test_the_command_line_loads_the_command_that_is_asked_for():
    """Half a second went by before `slipway --version` when every command was loaded."""
    loaded = loaded_by(
        "import sys; sys.argv = ['slipway', '--version']; from slipway.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    own = {name for name in loaded if name.startswith("slipway.")}
    assert "slipway.cli.app" in own
    assert len(own) < 15
    assert not loaded & {"numpy", "tvm_ffi", "rich.console"}


@pytest.mark.parametrize("command", ["run", "demo.command"])
def test_what_runs_models_loads_no_compiler(command):
    """The tables of `--profile` measure limits with kernels of their own."""
    loaded = loaded_by(f"import slipway.cli.{command}")
    floors = ("backends", "codegen", "relay", "te", "topi", "transform")
    assert not [name for name in loaded if name.startswith(tuple(f"slipway.{f}." for f in floors))]


def test_operators_are_loaded_without_random_numbers():
    program = "from slipway.relay.op_registry import load_ops; load_ops()"
    assert "numpy.random" not in loaded_by(program)


def test_a_kernel_is_compiled_without_graphs():
    program = """
import slipway as tvm
from slipway import te
a = te.placeholder((8,), name="a")
b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
tvm.build(te.create_schedule(b.op), [a, b], target="llvm")
"""
    loaded = loaded_by(program)
    graphs = ("slipway.transform.graph", "slipway.relay.ops", "slipway.backends.cpu.lowering")
    assert not [
        name
        for name in loaded
        if name.startswith((*graphs, "slipway.codegen.c.", "importlib.metadata"))
    ]
    # What brings a package of modules along for every kernel is seen here (232 since the analyzer
    # and the emitter of parallel loops are several files, kernels may have two ways,
    # arrays in files are a package, kernels and static programs have a file more each, the
    # compiled runtime is found in a file of its own, buffers inside of loops are as large as
    # their tile, and the primitives of a stage are files by what they change).
    own = [name for name in loaded if name.partition(".")[0] == "slipway"]
    assert len(own) <= 232, f"{len(own)} modules for one kernel"


def test_import_takes_less_than_300_ms():
    command = [sys.executable, "-X", "importtime", "-c", "import slipway"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (line,) = [line for line in report.splitlines() if line.endswith("| slipway")]
    assert int(line.split("|")[1]) < 300_000


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'relya'"):
        slipway.relya  # noqa: B018


def test_version():
    assert slipway.__version__.count(".") == 2


@pytest.mark.parametrize("name", dir(slipway))
def test_every_name_is_there(name):
    assert getattr(slipway, name) is not None


def test_functions_win_over_modules_of_their_name():
    """`tvm.build` is called; a module of that name would take its place once it is imported."""
    import slipway.relay.frontend
    import slipway.runtime.graph.graph_executor

    assert callable(slipway.build)
    assert callable(slipway.lower)
    assert callable(slipway.relay.build)


def test_a_saved_model_is_loaded_and_called_without_a_compiler(tmp_path):
    x = slipway.relay.var("x", shape=(2, 3))
    module = slipway.IRModule.from_expr(slipway.relay.Function([x], slipway.relay.exp(x)))
    slipway.compile(module, target="llvm", quiet=True).save(tmp_path / "m.tar")
    program = (
        "import numpy, slipway\n"
        f"m = slipway.load({str(tmp_path / 'm.tar')!r})\n"
        "assert (m(numpy.zeros((2, 3), 'float32')) == 1).all()\n"
        "assert (m(numpy.zeros((2, 3), 'float32')) == 1).all()"
    )
    loaded = loaded_by(program)
    floors = ("compiler", "relay", "te", "tir", "codegen", "backends", "rpc", "report", "micro")
    assert not [name for name in loaded if name.startswith(tuple(f"slipway.{f}" for f in floors))]
    assert not loaded & {"asyncio", "statistics", "numpy.typing", "llvmlite", "onnx"}
    # tvm_ffi looks itself up with these, which took half of its import.
    assert not loaded & {"importlib.metadata", "email", "concurrent.futures", "torch"}
    own = [name for name in loaded if name.partition(".")[0] == "slipway"]
    assert len(own) <= 52, f"{len(own)} modules for a model that is loaded"
