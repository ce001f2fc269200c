"""Whole parts of the runtime under the sanitizers."""

import subprocess

import numpy as np

from slipway.runtime.artifact_writer import write_artifact
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import save_param_dict
from slipway.toolchain import native
from slipway.toolchain.link import link_shared


def run(program, *args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


def test_pool_has_no_races(build_checked):
    names = ("src/error.c", "src/format.c", "posix/threadpool.c")
    sources = [native.CRT / name for name in names]
    program = build_checked("threads_main.c", *sources, sanitize="thread")
    assert run(program) == "ok\n"


def test_own_loader_and_model_leak_nothing(build_checked, tmp_path):
    here = native.host_name()
    include = ["-I", str(native.include_path()), f'-DTRIPLE="{here}"', '-DISA=""']
    kernels = native.CRT.parents[2] / "tests" / "runtime" / "kernels.c"
    flags = ["-O1", "-ffreestanding", "-fPIC", "-fvisibility=hidden", *include]
    subprocess.run(["gcc", *flags, "-c", "-o", tmp_path / "k.o", kernels], check=True)
    library = link_shared([tmp_path / "k.o"], here, tmp_path / "k.so")
    entries = tuple(GraphEntry((2, 3), "float32", i) for i in range(3))
    nodes = (
        GraphNode("data", None, ()),
        GraphNode("weight", None, ()),
        GraphNode("sum", "add", ((0, 0), (1, 0))),
    )
    tables = GraphTables(nodes, entries, (0, 1), ((2, 0),))
    weight = np.ones((2, 3), "float32")
    model = write_artifact(
        tmp_path / "m.tar",
        library.read_bytes(),
        metadata={},
        graph_json=tables.to_json(),
        graph_binary=tables.to_binary(),
        params=save_param_dict({**dict.fromkeys("az", np.zeros(9000)), "weight": weight}),
    )
    sources = native.crt_sources("src", "posix")
    static = [path for path in sources if "drivers" not in path.parts]
    own = build_checked("loader_main.c", *static, static=True)
    system = build_checked("loader_main.c", *sources)
    for program in (own, system):
        assert "add_one ok" in run(program, "lib", library)
        assert run(program, "model", model).split() == ["1", "2", "3", "4", "5", "6"]
        copy = tmp_path / "copy.tar"
        copy.write_bytes(model.read_bytes())
        assert run(program, "rewritten", copy).splitlines() == ["1 2 3 4 5 6 "] * 2
