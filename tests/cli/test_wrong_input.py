"""Wrong input to every command: one paragraph, a documented exit code, and no defect."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app
from slipway.cli.exit_codes import DEFECT, MEANINGS, code_of
from slipway.cli.main import describe
from slipway.errors import SlipwayError

SOURCES = Path(str(files("slipway"))).parent
DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"

# What each command that reads a model needs beside it.
READ_A_MODEL = {
    "bisect": "", "chat": "", "check": "", "compile": "-o out/m.tar", "explain": "",
    "fit": "--board mps2-an386",
    "micro create": "out/p --board mps2-an386", "profile": "", "quantize": "--calibration ok.npz",
    "report": "-o out/r.html", "serve": "", "tune": "--trials 1 -o out/t.json",
    "validate": "--dataset ok.npz", "web-demo": "-o out/w",
}  # fmt: skip
READ_AN_ARTIFACT = {"run": "", "profile": "", "compare": "ok.tar", "size": ""}
CLIENTS = {
    "run": "ok.tar", "profile": "DIGITS", "tune": "DIGITS --trials 1", "bisect": "DIGITS",
    "report": "DIGITS -o out/r.html", "validate": "DIGITS --dataset ok.npz",
}  # fmt: skip

OTHERS = """
run ok.tar -i empty.npz
run ok.tar -i folder.npz
run ok.tar -i missing.npz
run ok.tar --tracker nonsense
run ok.tar --tracker 127.0.0.1:9
run ok.tar --rpc-port -1 --rpc-host 127.0.0.1
run ok.tar --outputs /proc/none/x.npz
run ok.tar --dump-tensors text.txt
run ok.tar --threads 0
run ok.tar --token-file missing
run ok.tar --token-file folder
compile DIGITS -o /proc/none/x.tar
compile DIGITS -o folder
compile DIGITS -o none/x/y.tar
compile DIGITS -o x.unknown
compile DIGITS --target nope
compile DIGITS --target {
compile DIGITS --input-shapes x
compile DIGITS --dim N=99999999999999999999
compile DIGITS --bind nope=1
compile DIGITS --state a
compile DIGITS --opt-level 9
explain DIGITS --target nope
explain DIGITS --tuning-records missing
explain DIGITS --tuning-records text.txt
explain DIGITS --database text.txt
explain DIGITS --database missing/trials.sqlite
explain DIGITS --most 0
farm add nope
report DIGITS -o folder
report DIGITS --target nope -o r.html
targets --cpus zzz
device-server --target zzz
bundle -o /proc/none/x.zip
bundle --log missing
doctor host:99999
doctor --tracker 127.0.0.1:1
doctor k --tracker zz:zz
rpc-query --port 1
rpc-query --port 99999
rpc-query --token-file folder
rpc-query --interval 0
rpc-tracker --port 99999
rpc-tracker --host nowhere.invalid
rpc-tracker --token-file missing
rpc-server --port 99999
rpc-server --tracker x
rpc-server --serial /dev/nope
rpc-proxy --port 99999
web-device --web-port 99999
demo --device zzz
demo --model missing.onnx
fit DIGITS --board empty.toml
fit DIGITS --board text.txt
micro create DIGITS text.txt --board mps2-an386
micro create DIGITS /proc/none/x --board mps2-an386
micro create DIGITS p --template zzz
micro create DIGITS p --board mps2-an386 --option x
micro build missing
micro build text.txt
micro flash folder
micro run folder
size text.txt
farm up --kinds zzz
farm up --kinds aarch64 --virtual 100
device add -oProxyCommand=x
device add x --token-file missing
device add x --port 0
device add x --identity none
quantize DIGITS --calibration folder
quantize DIGITS --calibration empty.npz
validate DIGITS --dataset text.txt
tune DIGITS --trials 0
tune DIGITS --board mps2-an386 --builders 2
tune DIGITS --board mps2-an386 --baud 9600
tune DIGITS --board mps2-an386 --seconds 5
tune DIGITS --board mps2-an386 --transfer x
tune DIGITS --baud 9600
tune DIGITS --rpc-key rpi4
run ok.tar --timeout 5
tune DIGITS --transfer missing --database x
tune DIGITS --transfer missing --trials 4
tune DIGITS --transfer missing --core cortex-a53 --seconds 5
compare ok.tar
nonsense
run
"""


def cases():
    for command, rest in READ_A_MODEL.items():
        for name in (
            "missing.onnx",
            "empty.onnx",
            "cut.onnx",
            "folder",
            ".",
            "text.txt",
            "empty.tflite",
        ):
            yield f"{command} {name} {rest}".strip()
    for command, rest in READ_AN_ARTIFACT.items():
        for name in ("missing.tar", "empty.tar", "folder.tar", "text.txt"):
            yield f"{command} {name} {rest}".strip()
    for command, rest in CLIENTS.items():
        yield f"{command} {rest} --rpc-host 127.0.0.1 --rpc-port 1 --timeout 1"
        yield f"{command} {rest} --tracker 127.0.0.1:1 --rpc-key x"
    yield from OTHERS.strip().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("wrong")
    for name in ("empty.onnx", "empty.tflite", "empty.tar", "empty.npz", "empty.toml"):
        (made / name).touch()
    for name in ("folder", "folder.tar", "folder.npz", "out"):
        (made / name).mkdir()
    (made / "text.txt").write_text("a text\n")
    (made / "cut.onnx").write_bytes(DIGITS.read_bytes()[:200])
    import numpy as np

    np.savez(made / "ok.npz", image=np.zeros((2, 1, 8, 8), "float32"))
    slipway.compile(DIGITS, quiet=True).save(made / "ok.tar")
    return made


def names_in(folder):
    """Return what lies there, but for the measurements of `tune`, which a next run takes up."""
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".tuning.sqlite"))


@pytest.mark.parametrize("line", list(cases()))
def test_it_is_told(folder, monkeypatch, line):
    monkeypatch.chdir(folder)
    before = names_in(folder)
    words = [str(DIGITS) if word == "DIGITS" else word for word in line.split()]
    done = CliRunner().invoke(app, words)
    error = done.exception
    assert error is not None
    if isinstance(error, SystemExit):  # said by the parser, or by a server's own program
        assert done.exit_code in MEANINGS
        assert done.output.strip()
    else:
        assert isinstance(error, (SlipwayError, OSError, ModuleNotFoundError)), repr(error)
        assert code_of(error) != DEFECT
        text = describe(error)
        assert "\n\n" not in text
        for raw in ("Traceback", "[Errno", "KeyError(", ".build-"):
            assert raw not in text or line.startswith(("chat", "serve"))
    assert names_in(folder) == before  # nothing half made is left


def test_every_command_is_tried():
    commands = set()

    def walk(group, before=""):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, f"{before}{name} ")
            else:
                commands.add(before + name)

    walk(typer.main.get_command(app))
    tried = {next((c for c in commands if line.startswith(c + " ")), line) for line in cases()}
    harmless = {"runtime", "farm down", "farm status", "device list", "device remove"}
    assert commands - tried == harmless


def process(*words, cwd=None):
    command = [sys.executable, "-m", "slipway", *words]
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        command, capture_output=True, cwd=cwd, env=environment, timeout=240, check=False
    )


def test_a_failure_is_json_too(folder):
    done = process("run", "missing.tar", "--json", cwd=folder)
    assert done.returncode == 11
    found = json.loads(done.stdout)
    assert found == {"error": "missing.tar: No such file or directory", "exit_code": 11}
    assert b"slipway: error: missing.tar" in done.stderr
    assert process("run", "missing.tar", cwd=folder).stdout == b""


@pytest.mark.parametrize(
    "words", [("check", "FILE"), ("compile", "FILE", "-o", b"m\xff.tar"), ("fit", "FILE", "--board",
              "mps2-an386"), ("report", "FILE", "-o", b"r\xff.html"), ("check", "FILE", "--json")],
)  # fmt: skip
def test_a_name_that_is_not_utf8(tmp_path, words):
    name = b"digits\xfe.onnx"
    (tmp_path / os.fsdecode(name)).write_bytes(DIGITS.read_bytes())
    done = process(*[name if word == "FILE" else word for word in words], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = process("check", b"none\xff.onnx", cwd=tmp_path)
    assert done.returncode == 11
    assert rb"none\udcff.onnx: No such file" in done.stderr


def test_commands_that_an_error_gives_can_be_pasted():
    error = CliRunner().invoke(app, ["run", "my model.onnx"]).exception
    assert error is not None
    assert "slipway compile 'my model.onnx' -o 'my model.tar' && slipway run 'my model.tar'" in (
        describe(error)
    )
