"""What a command cannot write, or read, is said before its work: nothing is compiled first."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli import console
from slipway.cli.app import app
from slipway.cli.exit_codes import FAILED, FILE, MODEL, USAGE, code_of
from slipway.cli.main import describe
from slipway.cli.outputs import need_output, need_output_folder

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"

LINES = """
11 compile DIGITS -o none/x.tar
11 compile DIGITS -o text.txt/x.tar
11 compile DIGITS -o x.wasm --params-file none/p
11 compile DIGITS --tuning-records missing
2 compile DIGITS -o x.wasm --params-file x.wasm
11 report DIGITS -o none/r.html
11 report missing.onnx
2 report own.onnx -o own.onnx
11 report DIGITS -i cut.npz
11 compare DIGITS --target llvm --target c -o none/c.html
2 compare ok.tar old.tar -o old.tar
11 profile DIGITS --trace none/t.json
11 profile DIGITS -i cut.npz
11 quantize DIGITS --calibration ok.npz -o none/q.onnx
11 quantize DIGITS --calibration ok.npz -o q.onnx --report none/e.json
2 quantize own.onnx --calibration ok.npz -o own.onnx
11 tune DIGITS -o none/r
11 tune DIGITS --report none/r.html
11 web-demo DIGITS -o text.txt
11 web-demo DIGITS -o text.txt/page
11 run ok.tar -o none/x.npz
11 run ok.tar --dump-tensors text.txt
11 run ok.tar -i cut.npz
11 fit DIGITS --board mps2-an386 --svg none/a.svg
11 micro create DIGITS text.txt/p
11 device-server --target aarch64-linux -o none/server
11 bisect DIGITS -o text.txt
11 chat missing.gguf --save text.txt
11 validate DIGITS --dataset cut.npz
11 validate DIGITS --dataset damaged.npz
11 validate DIGITS --dataset objects.npz
2 validate DIGITS --dataset ok.npz --reference none
11 validate DIGITS --dataset ok.npz --reference missing.onnx
2 validate DIGITS --dataset ok.npz --min-top1 0.5
11 quantize DIGITS --calibration damaged.npz -o q.onnx
2 compile DIGITS --executor aott
2 compile DIGITS --runtime crrt
2 compile DIGITS --precision int4
2 compile DIGITS -f mlff
2 run ok.tar --rpc-key pi
2 profile DIGITS --rpc-key pi
2 run ok.tar --rpc-host h --tracker h:1 --rpc-key pi
2 tune DIGITS --tracker h:1 --rpc-host h --rpc-key pi
2 tune DIGITS --baud 9600
2 tune DIGITS --board mps2-an386 --baud 9600
2 tune DIGITS --board mps2-an386 --trials 3
2 tune DIGITS --transfer x.sqlite --trials 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("outputs")
    (made / "text.txt").write_text("a text\n")
    (made / "own.onnx").write_bytes(DIGITS.read_bytes())
    np.savez(made / "ok.npz", image=np.zeros((2, 1, 8, 8), "float32"))
    content = (made / "ok.npz").read_bytes()
    (made / "cut.npz").write_bytes(content[:300])
    (made / "damaged.npz").write_bytes(content[:200] + b"\xff" + content[201:])
    np.savez(made / "objects.npz", image=np.array([{}], dtype=object))
    for name in ("ok.tar", "old.tar"):
        slipway.compile(DIGITS, quiet=True).save(made / name)
    return made


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_it_is_said_before_the_work(folder, monkeypatch, line):
    steps = []

    def no_step(title):
        steps.append(title)
        raise AssertionError(title)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(console, "step", no_step if "quantize" not in line else console.step)
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    code, *words = line.split()
    done = CliRunner().invoke(app, [str(DIGITS) if w == "DIGITS" else w for w in words])
    assert not steps
    assert code_of(done.exception) == int(code), repr(done.exception)
    assert int(code) in (FAILED, USAGE, MODEL, FILE)
    text = describe(done.exception)
    assert "\n" not in text
    assert "no .npz and no .npy file (it does not begin" not in text
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_what_can_be_written_passes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    need_output("-o", None)
    need_output("-o", Path("x.tar"), Path("model.onnx"))
    need_output("-o", Path("/dev/null"), Path("/dev/null/none"))
    need_output_folder("-o", Path("a/b/c"))
    need_output_folder("-o", tmp_path)


def test_a_folder_that_is_read_only_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"--output: this user cannot write in"):
        need_output("--output", tmp_path / "x.tar")
    with pytest.raises(PermissionError, match=r"cannot write in"):
        need_output_folder("--output", tmp_path / "new" / "page")


def test_outputs_are_written_under_the_name_that_is_given(folder, monkeypatch, tmp_path):
    """NumPy appends .npz to another name, and then the name that was printed was not there."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["run", "ok.tar", "-o", str(tmp_path / "result")])
    assert done.exit_code == 0, done.exception
    with np.load(tmp_path / "result") as stored:
        assert stored.files == ["output_0"]
