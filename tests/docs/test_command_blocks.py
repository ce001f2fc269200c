"""The commands of the pages' blocks without a language: run where a board stands for theirs.

Every line that begins with ``slipway`` is parsed.  Those that need neither a real board, nor ssh,
nor minutes are run, with an emulated device in the place of the page's.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from tests.docs import test_blocks
from tests.docs.test_migration_page import write_array

import slipway
from slipway.cli.app import app
from slipway.cli.demo.device import KINDS, serve
from slipway.farm import virtual
from slipway.toolchain import emulators, native

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What is parsed only: how it begins, and where it is run or why it cannot be.
PARSED = {
    "slipway farm": "tests/farm/test_virtual.py",
    "slipway device ": "needs ssh: tests/farm/test_remote.py",
    "slipway device-server": "tests/cli/test_main.py; here it would be built anew",
    "slipway doctor /dev/": "needs a serial line: tests/doctor",
    "slipway micro": "needs a board, or a project of the block before: test_quick_starts.py",
    "slipway rpc-": "goes on until it is interrupted: tests/rpc",
    "slipway tune": "minutes: tests/tuning",
    "slipway explain mobilenet.onnx --tuning-records": "records of a search: tests/tuning",
    "slipway compile mobilenet.onnx --tuning-records": "records of a search: tests/tuning",
}
NO = {"slipway doctor": (0, 1)}  # the answer may be no


def commands():
    """Return the commands of all pages, without comments, as (page, line)."""
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language:
                continue
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("slipway "):
                    yield page.name, re.sub(r"\s+#.*", "", line).strip()


COMMANDS = list(dict.fromkeys(commands()))
RUN = [one for one in COMMANDS if not one[1].startswith(tuple(PARSED))]


def test_there_are_such_commands():
    assert len(RUN) >= 20
    for start in PARSED:
        assert any(line.startswith(start) for _, line in COMMANDS), start


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_option_exists(page, line):
    words = shlex.split(line)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("slipway", words)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """An emulated Pi, and a tracker with another, as what stands for the pages' names."""
    emulator = emulators.find("aarch64")
    if emulator is None:
        pytest.skip(emulators.install_hint("aarch64"))
    folder = tmp_path_factory.mktemp("lab")
    server = native.build_device_server(KINDS["aarch64"].server)
    farm = virtual.up(["aarch64"], 1, 0, None, folder / "farm")
    with serve(server, emulator, folder) as port:
        yield {
            r"(lab|10\.0\.0\.2):9190": f"127.0.0.1:{farm.port}",
            r"(raspberrypi|pi)\.local:9090": f"127.0.0.1:{port}",
            r"-host (raspberrypi|pi)\.local( --rpc-port 9090)?": f"-host 127.0.0.1:{port}",
            r"\brpi4\b": "aarch64",
        }
    virtual.down(folder / "farm")


@pytest.fixture(scope="module")
def files(tmp_path_factory, repository, shared):
    """A folder with small files under the names that the pages give theirs."""
    folder = tmp_path_factory.mktemp("files")
    test_blocks.write_model(folder / "model.onnx", 1)
    for name in ("mobilenet", "mobilenet_v2", "mobilenet_int8", "resnet50"):
        shutil.copy(folder / "model.onnx", folder / f"{name}.onnx")
    for name in ("kws", "float", "int8"):
        shutil.copy(shared / "models/tflite/kws_ref_model.tflite", folder / f"{name}.tflite")
    write_array(folder / "model_data.cc", (folder / "kws.tflite").read_bytes())
    x = np.random.default_rng(0).normal(size=(3, 1, 3, 224, 224)).astype("float32")
    for name in ("cat", "x"):
        np.savez(folder / f"{name}.npz", x=x[0])
    model = slipway.compile(folder / "model.onnx", quiet=True)
    np.savez(folder / "images.npz", x=x, labels=[model(one).argmax() for one in x])
    model.save(folder / "old.tar")
    for name in ("new", "mobilenet"):
        shutil.copy(folder / "old.tar", folder / f"{name}.tar")
    there = slipway.compile(folder / "model.onnx", target="raspberry-pi/4b-aarch64", quiet=True)
    for name in ("model", "pi"):
        there.save(folder / f"{name}.tar")
    (folder / "train_and_compile.py").write_text("print('done')\n")
    (folder / "server.log").write_text("a line\n")
    shutil.copy(repository / "src/slipway/models/digits/digits.onnx", folder)
    return folder


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("page", "line"), RUN)
def test_every_command_runs(page, line, lab, files):
    if "encoder.pt2" in line:
        torch = pytest.importorskip("torch")
        program = torch.export.export(torch.nn.Linear(4, 2), (torch.zeros(1, 4),))
        torch.export.save(program, files / "encoder.pt2")
    for theirs, ours in lab.items():
        line = re.sub(theirs, ours, line)
    path = os.pathsep.join(p for p in (str(ROOT / "src"), os.environ.get("PYTHONPATH")) if p)
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)], cwd=files, env=env,
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    allowed = next((codes for start, codes in NO.items() if line.startswith(start)), (0,))
    assert done.returncode in allowed, f"{line}\n{done.stdout}\n{done.stderr}"
