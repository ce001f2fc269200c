"""What a stranger gives by mistake gets one paragraph that says what it is, and what to do."""

from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app
from slipway.cli.main import describe

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("strange")
    for name in ("bad.tflite", "bad.npz", "bad.npy"):
        (made / name).write_text("a text\n")
    for name in ("saved", "bert", "net.mlpackage"):
        (made / name).mkdir()
    (made / "saved" / "saved_model.pb").touch()
    (made / "bert" / "config.json").write_text("{}")
    for name in ("model.pth", "model.keras", "model.pkl", "model.gguf", "model.pte", "model.ort"):
        (made / name).write_bytes(b"PK\3\4")
    (made / "folder.onnx").mkdir()
    slipway.compile(DIGITS, quiet=True).save(made / "ok.tar")
    return made


@pytest.mark.parametrize(
    ("words", "told", "untold"),
    [
        ("compile bad.tflite", "bad.tflite: this is no TFLite file", ""),
        ("compile folder.onnx", "folder.onnx: Is a directory", ""),
        ("run ok.tar --inputs bad.npz", "no .npz file", "pickle"),
        ("compile DIGITS --bind image=@bad.npy", "no .npy file", "pickle"),
        ("quantize DIGITS --calibration bad.npz", "no .npz or .npy file", "pickle"),
        ("validate DIGITS --dataset bad.npz", "no .npz and no .npy file", "pickle"),
        ("run ok.tar --rpc-host 127.0.0.1 --rpc-port 99999", "99999 is no port", "running there"),
        ("run ok.tar --rpc-host no.such.host.invalid", "slip of the pen", "running there"),
        ("fit DIGITS --board nucleo_l4r5zj", "Did you mean 'nucleo-l4r5zi'", ""),
        ("compile model.pth", "torch.export.save(torch.export.export(", "Did you mean"),
        ("check model.pth", "Name it with --model-format", "Did you mean"),
        ("compile model.keras", "relay.frontend.from_keras(", "--model-format"),
        ("report model.pkl", "skl2onnx.to_onnx(", "--model-format"),
        ("compile model.gguf", "`slipway chat`", "--model-format"),
        ("compile model.pte", "ExecuTorch's program, lowered already", "Did you mean"),
        ("check model.ort", "ONNX Runtime's, made from a model in another file", "--model-format"),
        ("compile saved", "tf.lite.TFLiteConverter.from_saved_model(", "Is a directory"),
        ("check bert", "optimum-cli export onnx", "--model-format"),
        ("report net.mlpackage", "it is Core ML's", "Is a directory"),
        ("run model.pth", "run takes what was compiled of it", "ELF"),
        ("compile DIGITS --dim foo=3", "--dim: the model has no dimension 'foo'", ""),
        ("compile DIGITS --state a=b", "--state: the model has no input 'a'", ""),
        ("compile DIGITS -f taz", "--output-format taz: not one of mlf, tar", "--output "),
        ("micro build folder.onnx", "`slipway micro create` makes a project", ""),
    ],
)
def test_it_is_named(folder, monkeypatch, words, told, untold):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [str(DIGITS) if w == "DIGITS" else w for w in words.split()])
    assert done.exit_code != 0
    text = describe(done.exception)
    assert told in text
    assert not untold or untold not in text
    assert "\n\n" not in text


def test_what_a_system_says_is_told_without_its_number(tmp_path):
    from slipway.errors import ModelError, reason_of
    from slipway.llm import Source

    with pytest.raises(OSError) as raised:
        (tmp_path / "none").read_text()
    assert reason_of(raised.value) == "No such file or directory"
    with pytest.raises(ModelError, match=r"no model of transformers.*such a folder, or a \.gguf"):
        Source.read(tmp_path)
