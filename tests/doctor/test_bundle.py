"""A bundle has what a report of a fault needs, and whoever opens it learns no secret."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app
from slipway.cli.bundle import command_words, files_of
from slipway.cli.exit_codes import OptionError
from slipway.doctor import bundle, machine
from slipway.doctor.finding import ok

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"
TOKEN = "correct-horse-battery"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that makes a bundle by the command line and returns its members."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPWAY_RPC_TOKEN", TOKEN)
    monkeypatch.setenv("UNRELATED", "untold")
    monkeypatch.setattr(machine, "examine_machine", lambda: iter([ok("python", f"3 {TOKEN}")]))

    def make(*words, code=0):
        done = CliRunner().invoke(app, ["bundle", *map(str, words)])
        assert done.exit_code == code, done.output
        with zipfile.ZipFile(tmp_path / "slipway-bundle.zip") as archive:
            return {
                name: archive.read(name).decode(errors="replace") for name in archive.namelist()
            }

    return make


def test_a_command_that_fails_is_run_again_and_told_without_secrets(made, tmp_path):
    (tmp_path / "model.onnx").write_bytes(DIGITS.read_bytes())
    found = made("--", "compile", "model.onnx", "--target", "cortex-m99", "-o", f"{TOKEN}.tar")
    assert list(found) == [
        "README.txt", "versions.json", "machine.json", "environment.txt", "command.txt",
        "output.txt", "files/0.json", "files/0.onnx",
    ]  # fmt: skip
    assert not [name for name, text in found.items() if TOKEN in text]
    assert "UNRELATED" not in found["environment.txt"]
    assert f"SLIPWAY_RPC_TOKEN=[removed: {len(TOKEN)} characters]" in found["environment.txt"]
    assert "slipway compile model.onnx --target cortex-m99" in found["README.txt"]
    assert "exit code 6" in found["command.txt"]
    assert "Traceback" in found["output.txt"]  # SLIPWAY_DEBUG is set for it
    assert "cortex-m99" in found["output.txt"]
    assert json.loads(found["versions.json"])["slipway"] == slipway.__version__
    assert json.loads(found["files/0.json"])["bytes"] == DIGITS.stat().st_size


def test_artifacts_arrays_and_logs_are_described(made, tmp_path):
    slipway.compile(DIGITS, quiet=True).save(tmp_path / "m.tar")
    np.savez(tmp_path / "in.npz", image=np.full((2, 3), 7.25, "float32"))
    (tmp_path / "server.log").write_text(f"{'x' * (3 << 20)}\nrefused the token {TOKEN}\n")
    found = made("--file", "m.tar", "--file", "in.npz", "--log", "server.log")
    described = json.loads(found["files/0.json"])
    assert described["metadata"]["target"]
    assert described["members"]["lib.so"] > 0
    assert json.loads(found["files/1.json"])["arrays"] == {"image": "float32 [2, 3]"}
    log = found["logs/0-server.log"]
    assert "bytes are left out" in log
    assert len(log) < 2 << 20
    assert log.endswith("refused the token [removed: SLIPWAY_RPC_TOKEN]\n")
    assert "command.txt" not in found


def test_a_damaged_file_is_told_and_is_no_failure(made, tmp_path):
    (tmp_path / "bad.tar").write_bytes(b"nothing")
    (tmp_path / "bad.onnx").write_bytes(b"\xff" * 40)
    found = made("--file", "bad.tar", "--file", "bad.onnx")
    assert "cannot be read" in found["files/0.json"]
    assert "it is no ONNX file" in json.loads(found["files/1.json"])["no copy without weights"]
    assert "files/1.onnx" not in found


def test_a_crash_and_an_endless_program_are_told():
    crash = "import os, signal; print('before', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"
    run = bundle.run_command([sys.executable, "-c", crash], None, lambda _: None)
    assert run.ending == "killed by SIGSEGV"
    assert run.output.startswith("before")
    assert "Segmentation fault" in run.output  # of faulthandler, with where it was
    shown = []
    forever = "import time; print('begun', flush=True); time.sleep(60)"
    run = bundle.run_command([sys.executable, "-c", forever], 0.5, shown.append)
    assert "ended after 0.5 s" in run.output
    assert "".join(shown) == "begun\n"


def test_files_are_those_that_the_command_names_but_no_secrets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "farm.txt", "ca.pem", "in.npz", "run.py"):
        (tmp_path / name).write_text("x")
    words = "slipway run m.onnx --token-file farm.txt --tls-ca ca.pem --inputs=in.npz run.py"
    words += " --token=farm.txt " + "y" * 5000
    assert files_of(words.split()) == [Path("m.onnx"), Path("in.npz")]


def test_the_words_are_a_command_or_a_program():
    assert command_words(["check", "m"], ["check"]) == ["slipway", "check", "m"]
    assert command_words(["slipway", "check"], ["check"]) == ["slipway", "check"]
    assert command_words([sys.executable, "x.py"], ["check"]) == [sys.executable, "x.py"]
    with pytest.raises(OptionError, match="chekc: neither a command of slipway nor a program"):
        command_words(["chekc", "m"], ["check"])


def test_wrong_options_are_told(made, tmp_path):
    with pytest.raises(OptionError, match="no such file"):
        CliRunner().invoke(app, ["bundle", "--log", "none.log"], catch_exceptions=False)
    with pytest.raises(OptionError, match="needs --device"):
        CliRunner().invoke(app, ["bundle", "--tracker", "lab:9190"], catch_exceptions=False)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_a_bundle_that_is_ended_ends_its_command(tmp_path, sent):
    script = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(99)"
    words = [sys.executable, "-m", "slipway", "bundle", "--", sys.executable, "-c", script]
    process = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(sent)
    assert process.wait(30) == -sent
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
