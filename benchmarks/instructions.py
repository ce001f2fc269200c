"""Instructions that a model takes on AArch64, beside onnxruntime, counted under QEMU.

    python -m benchmarks instructions [--models mobilenet_v2 ds_cnn] [--runs 1 3] [--json FILE]

Both run on an emulated Cortex-A72 with one thread: Slipway through its static server, onnxruntime
in an AArch64 Python.  A figure is the difference between a process that ran the model often and
one that ran it less, over the runs between, so that loading and preparing cancel.  Needs
qemu-aarch64 (Debian's qemu-user: the static build loads no plugins), a C compiler, and, for the
peer's Python, apt with the foreign architecture enabled (``dpkg --add-architecture arm64``).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.cpu import models_of
from benchmarks.cpu_worker import describe, feeds_of

HERE = Path(__file__).parent
EMULATOR = "qemu-aarch64"
# Newer wheels crash on import under QEMU 7.2, before they run anything.
PEER = "onnxruntime==1.22.1"
PACKAGES = (
    "libc6", "libstdc++6", "libgcc-s1", "zlib1g", "libexpat1", "libssl3", "libffi8", "libbz2-1.0",
    "liblzma5", "libuuid1", "libcrypt1", "libpython3.11-minimal", "libpython3.11-stdlib",
    "python3.11-minimal",
)  # fmt: skip
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
PEER_SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:3]
import onnxruntime
from cpu_worker import feeds_of
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[3], options, providers=["CPUExecutionProvider"])
kinds = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}
feeds = feeds_of([(i.name, i.shape, kinds[i.type]) for i in session.get_inputs()])
for _ in range(int(sys.argv[4])):
    session.run(None, feeds)
"""


def plugin(folder):
    """Compile the counting plugin; return its path."""
    library = folder / "instruction_count.so"
    source = HERE / "plugins" / "instruction_count.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def peer_root():
    """Return a folder with an AArch64 Python and the peer's wheels, made at the first use."""
    from slipway.toolchain.native import cache_dir

    root = cache_dir() / "peers" / "aarch64-root"
    done = root / ".installed"
    if done.is_file():
        return root
    shutil.rmtree(root, ignore_errors=True)
    (root / "debs").mkdir(parents=True)
    subprocess.run(
        ["apt-get", "download", "-qq", *(f"{p}:arm64" for p in PACKAGES)],
        cwd=root / "debs", check=True,
    )  # fmt: skip
    for package in sorted((root / "debs").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, root], check=True)
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", *platforms,
         "--python-version", "3.11", "--implementation", "cp", "--target", root / "site", PEER],
        check=True,
    )  # fmt: skip
    done.touch()
    return root


# Loading any model takes more; the other processes of a device server take less.
MIN_COUNT = 1_000_000


def counts(folder):
    """The instructions of each process that has ended and took more than MIN_COUNT."""
    found = [file.read_text() for file in folder.glob("count.*")]
    return [int(text) for text in found if text.endswith("\n") and int(text) > MIN_COUNT]


def wait_for_count(folder, seconds=60):
    """Wait until the process that ran the model has written its count."""
    end = time.monotonic() + seconds
    while not counts(folder):
        if time.monotonic() > end:
            raise TimeoutError("the session's process wrote no count of instructions")
        time.sleep(0.05)


def counted(library, folder, run):
    """Call ``run(emulator command)``; return the instructions of the process that ran the model."""
    for old in folder.glob("count.*"):
        old.unlink()
    run([EMULATOR, "-cpu", "cortex-a72", "-plugin", f"{library},out={folder / 'count'}"])
    return max(counts(folder))


def slipway_run(path, folder):
    """Return a function of (emulator, runs) that runs the model on the static server."""
    import slipway as tvm
    from slipway import relay, rpc
    from slipway.cli.demo.device import kind_named, serve
    from slipway.contrib import graph_executor
    from slipway.toolchain.native import build_device_server

    kind = kind_named("aarch64")
    module, params = relay.frontend.from_onnx(str(path))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, target=kind.target, params=params)
    file = folder / "model.tar"
    library.export_library(str(file))
    feeds = feeds_of(describe(path))
    server = build_device_server(kind.server)
    # Idle threads spin before they sleep, which would be counted.
    os.environ["SLIPWAY_NUM_THREADS"] = "1"

    def run(emulator, runs):
        with serve(server, emulator, folder) as port:
            session = rpc.connect("127.0.0.1", port)
            session.upload(str(file))
            device = session.cpu(0)
            model = graph_executor.GraphModule(session.load_module(file.name)["default"](device))
            model.set_input(**feeds)
            for _ in range(runs):
                model.run()
            session.close()
            wait_for_count(folder)

    return run


def peer_run(path):
    """Return a function of (emulator, runs) that runs the model in onnxruntime."""
    root = peer_root()
    python = root / "usr" / "bin" / "python3.11"

    def run(emulator, runs):
        subprocess.run(
            [*emulator, "-L", root, python, "-c", PEER_SCRIPT, root / "site", HERE, path,
             str(runs)],
            check=True,
        )  # fmt: skip

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", help="folder of .onnx files")
    parser.add_argument("--runs", nargs=2, type=int, default=[1, 2], metavar=("FEW", "MANY"))
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    few, many = arguments.runs
    if not 0 <= few < many:
        parser.error("--runs takes two counts, the smaller first")
    if shutil.which(EMULATOR) is None:
        parser.error(f"{EMULATOR} is not installed; on Debian it is in the package qemu-user")
    figures = {}
    print("| model | Slipway, million | onnxruntime, million | ratio |\n|---|---:|---:|---:|")
    for path in models_of(arguments):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            library = plugin(folder)
            each = {}
            for who, run in (("slipway", slipway_run(path, folder)), ("peer", peer_run(path))):
                a, b = (
                    counted(library, folder, lambda e, n=n, run=run: run(e, n)) for n in (few, many)
                )
                each[who] = (b - a) / (many - few)
        figures[path.stem] = each
        ours, theirs = each["slipway"] / 1e6, each["peer"] / 1e6
        print(f"| {path.stem} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1))
    return 0
