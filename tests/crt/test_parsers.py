"""Every parser of the device gets every truncation and every changed byte, under sanitizers."""

import json
import subprocess

import numpy as np
import pytest

from slipway.runtime.artifact_writer import tar_bytes
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.graph.graph_sizes import OpenAxis, OpenSize
from slipway.runtime.params import save_param_dict
from slipway.toolchain import native
from slipway.toolchain.link import link_shared

TABLES = GraphTables(
    nodes=(
        GraphNode("data", None, ()),
        GraphNode("weight", None, ()),
        GraphNode("sum", "add", ((0, 0), (1, 0))),
        GraphNode("plus", "add_one", ((2, 0),)),
        GraphNode("flat", "__nop", ((3, 0),)),
    ),
    entries=(
        *(GraphEntry((2, 3), "float32", i) for i in range(4)),
        GraphEntry((6,), "float32", 3),
    ),
    inputs=(0, 1),
    outputs=((4, 0),),
)
# The second node tells how much of what the third one makes there is.
TOLD = GraphTables(
    nodes=(
        GraphNode("data", None, ()),
        GraphNode("count", "add", ((0, 0),)),
        GraphNode("part", "add_one", ((0, 0), (1, 0))),
    ),
    entries=(
        GraphEntry((6,), "float32", 0),
        GraphEntry((1,), "int64", 1),
        GraphEntry((6,), "float32", 2),
    ),
    inputs=(0,),
    outputs=((2, 0),),
    open_sizes=(OpenSize("n", 1, 6), OpenSize("found", 0, 5, 1)),
    open_dims=(OpenAxis(0, 0, ("n",)), OpenAxis(2, 0, ("found", 1, "+"))),
)
PARAMS = bytes(save_param_dict({"weight": np.ones((2, 3), "float32"), "gone": np.zeros(2, "i1")}))
CORE = (
    "device elf elf_load error format graph graph_check graph_module graph_module_create "
    "graph_module_info graph_module_params graph_module_zero_copy "
    "graph_module_state graph_sizes "
    "metadata module object params status tar tensor timer"
)
CPU = sorted((native.CRT / "posix").glob("cpu*.c"))
LIBRARY = """
int (*slot)(int);
static int twice(int x) { return 2 * x; }
static int (*table[])(int) = {twice};
__attribute__((visibility("default"))) int f(int x) { return slot ? slot(x) : table[0](x); }
__attribute__((visibility("default"))) const char __slipway_metadata[] =
  "{\\"format_version\\":1,\\"isa\\":[\\"sse2\\"]}";
"""


@pytest.fixture(scope="module")
def program(build_checked):
    core = [native.CRT / "src" / f"{name}.c" for name in CORE.split()]
    return build_checked("parsers_main.c", *core, native.CRT / "posix" / "platform.c", *CPU)


def feed(program, tmp_path, kind, content):
    file = tmp_path / kind
    file.write_bytes(content)
    done = subprocess.run([program, kind, file], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_tar(program, tmp_path):
    out = feed(
        program, tmp_path, "tar", tar_bytes({"a": b"x" * 100, "b": b"", "c": b"y" * 700})[:4096]
    )
    assert "truncated 4096 accepted 512\n" in out  # cut inside the second block of the end mark


@pytest.mark.parametrize("tables", [TABLES, TOLD], ids=["fixed", "told"])
def test_graph(program, tmp_path, tables):
    out = feed(program, tmp_path, "graph", tables.to_binary())
    assert "accepted 0\n" in out  # no truncated graph passes


def test_params(program, tmp_path):
    out = feed(program, tmp_path, "params", PARAMS)
    assert "accepted 0\n" in out


def test_metadata(program, tmp_path):
    text = {
        "compiler": 'sl\\"ipway',
        "format_version": 1,
        "isa": ["sse2", "popcnt"],
        "x": {"y": [1]},
    }
    # It reads single fields, so text that is cut behind them passes; it must not read past its end.
    assert "changed" in feed(program, tmp_path, "metadata", json.dumps(text).encode())


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "armv7-linux-gnueabihf"])
def test_elf(program, tmp_path, target):
    from slipway.toolchain import zig

    (tmp_path / "l.c").write_text(LIBRARY)
    command = [
        "cc",
        "-target",
        zig.musl_target(target),
        "-c",
        "-fPIC",
        "-O1",
        "-g0",
        "-fno-unwind-tables",
    ]
    files = ["-fvisibility=hidden", "-o", str(tmp_path / "l.o"), str(tmp_path / "l.c")]
    zig.run_zig([*command, *files], purpose="compiling")
    library = link_shared(
        [tmp_path / "l.o"], target, tmp_path / "l.so", options=["-s", "-zmax-page-size=4096"]
    )
    assert library.stat().st_size < 8192
    feed(program, tmp_path, "elf", library.read_bytes())


def test_graph_module_survives_every_failed_allocation(build_checked, tmp_path):
    core = [native.CRT / "src" / f"{name}.c" for name in CORE.split()]
    program = build_checked("graph_main.c", *core, *CPU)
    (tmp_path / "graph.bin").write_bytes(TABLES.to_binary())
    (tmp_path / "params.bin").write_bytes(PARAMS)
    done = subprocess.run(
        [program, tmp_path / "graph.bin", tmp_path / "params.bin"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
