"""The runtime's own ELF loader in a static program, on every processor it knows."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from slipway.runtime.artifact_writer import write_artifact
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import save_param_dict
from slipway.toolchain import emulators, native, zig
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.link import link_shared

HERE = Path(__file__).parent
KERNELS = HERE.parent / "runtime" / "kernels.c"
TRIPLES = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "armv7": "armv7l-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}


@pytest.fixture(scope="module", params=list(TRIPLES))
def device(request, tmp_path_factory):
    """(command that runs the loader there, linked kernels)."""
    architecture = request.param
    emulator = emulators.find(architecture)
    if emulator is None:
        pytest.skip(emulators.install_hint(architecture))
    triple = TRIPLES[architecture]
    folder = tmp_path_factory.mktemp(architecture)
    target = zig.musl_target(triple)
    native.compile_static(
        target, folder / "loader", "src", "posix", extra=(str(HERE / "loader_main.c"),)
    )
    cpu = ["-mcpu=cortex_a7"] if architecture == "armv7" else []
    flags = ["-O2", "-ffreestanding", "-fPIC", "-fvisibility=hidden", "-c", *cpu]
    include = ["-I", str(native.include_path()), f'-DTRIPLE="{triple}"', '-DISA=""']
    files = ["-o", str(folder / "k.o"), str(KERNELS)]
    zig.run_zig(["cc", "-target", target, *flags, *include, *files], purpose="compiling kernels")
    library = link_shared([folder / "k.o"], triple, folder / "k.so")
    return [*emulator, str(folder / "loader")], library


def run(command, *args, expect=0):
    done = subprocess.run([*command, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def test_library_needs_nothing_from_outside(device):
    elf = ElfFile(device[1].read_bytes())
    assert elf.undefined == []
    assert elf.needed == []


def test_kernels_run_on_all_threads_and_fail_with_words(device):
    command, library = device
    out = run(command, "lib", library)
    assert "add_one ok" in out
    assert "fail: ValueError: this kernel always fails" in out
    assert "nothing: AttributeError: the library has no function 'nothing'; it has: " in out
    assert "add_one" in out.split("it has: ")[1]


def test_model_runs_from_an_artifact(device, tmp_path):
    command, library = device
    entries = tuple(GraphEntry((2, 3), "float32", i) for i in range(4))
    tables = GraphTables(
        nodes=(
            GraphNode("data", None, ()),
            GraphNode("weight", None, ()),
            GraphNode("sum", "add", ((0, 0), (1, 0))),
            GraphNode("plus", "add_one", ((2, 0),)),
        ),
        entries=entries,
        inputs=(0, 1),
        outputs=((3, 0),),
    )
    path = write_artifact(
        tmp_path / "m.tar",
        library.read_bytes(),
        metadata={},
        graph_json=tables.to_json(),
        graph_binary=tables.to_binary(),
        params=save_param_dict({"weight": np.full((2, 3), 10, "float32")}),
    )
    assert run(command, "model", path).split() == ["11", "12", "13", "14", "15", "16"]
    content = path.read_bytes()
    assert run(command, "rewritten", path).splitlines() == ["11 12 13 14 15 16 "] * 2
    broken = bytearray(content)
    broken[broken.index(b"\x7fELF") + 3000] ^= 1
    path.write_bytes(broken)
    assert "SHA-256 sum of its member lib.so does not match" in run(
        command, "model", path, expect=1
    )


def test_truncated_library_is_refused(device, tmp_path):
    command, library = device
    content = library.read_bytes()
    cut = tmp_path / "cut.so"
    for size in (1, 16, 63, 64, 200, len(content) // 3, len(content) // 2):
        cut.write_bytes(content[:size])
        assert "ArtifactError" in run(command, "lib", cut, expect=1)


def test_library_of_another_processor_is_refused(device, tmp_path):
    command, library = device
    content = bytearray(library.read_bytes())
    content[18] = 62 if content[18] != 62 else 183
    other = tmp_path / "other.so"
    other.write_bytes(content)
    assert "was compiled for" in run(command, "lib", other, expect=1)
