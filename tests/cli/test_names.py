"""Names of files, and those that a model file gives, are shown as they are and do nothing."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import slipway
from slipway.cli import console, main
from slipway.cli.app import app
from slipway.errors import LoweringError

# What renames a terminal's window, ends a line early, and colours what follows, in both spellings;
# and what rich would take for its own.
HOSTILE = "\x1b]0;mine\x07\n\x9b31m\x7f\u202e[red][/b]\\"
SHOWN = "\\x1b]0;mine\\x07\\n\\x9b31m\\x7f\\u202e[red][/b]\\"


def write_model(path, kind, name):
    given, answer = (
        helper.make_tensor_value_info(tensor, TensorProto.FLOAT, [1, 4])
        for tensor in (name, f"answer{HOSTILE}")
    )
    node = helper.make_node(kind, [given.name], [answer.name], name=f"node{HOSTILE}")
    graph = helper.make_graph([node], "graph", [given], [answer])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("names") / HOSTILE
    made.mkdir(parents=True)
    given = "given" + HOSTILE.replace("\n", "\x85\u2028")
    write_model(made / "m.onnx", "Relu", given)
    write_model(made / "unknown.onnx", f"Wrong{HOSTILE}", given)
    write_model(made / "lines.onnx", "Relu", "two\nlines")
    np.save(made / "x.npy", np.ones((1, 4), "float32"))
    slipway.compile(made / "m.onnx", quiet=True).save(made / "m.tar")
    return made


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("compile m.onnx -o made.tar", f"{SHOWN}/made.tar"),
        ("check m.onnx", f"node{SHOWN}"),
        ("check m.onnx --explain", f"node{SHOWN}"),
        ("check unknown.onnx", f"Wrong{SHOWN}"),
        ("report m.onnx -o made.html", f"{SHOWN}/made.html"),
        ("run m.tar", "x9b31m\\x7f\\u202e[red][/b]\\\\' is not given: filled"),
        ("run m.tar --dump-tensors tensors", f"{SHOWN}/tensors"),
    ],
)
def test_what_is_printed_has_no_control_characters(folder, monkeypatch, words, named):
    monkeypatch.setattr(console.out, "width", 1000)  # the names are long: no cell is folded
    words = [str(folder / w) if "." in w or w == "tensors" else w for w in words.split()]
    done = CliRunner().invoke(app, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    text = done.stdout + done.stderr
    assert named in text.replace("\n", "")
    assert not {c for c in text.replace("\n", "") if not c.isprintable()}


@pytest.mark.parametrize("as_json", [False, True])
def test_nor_has_what_an_error_says(capsys, monkeypatch, as_json):
    monkeypatch.setattr("sys.argv", ["slipway", "run", *["--json"][:as_json]])
    with pytest.raises(SystemExit):
        main.fail(f"a{HOSTILE}: two\n\tlines")
    told = capsys.readouterr()
    kept = SHOWN.replace("\\n", "\n")
    assert told.err == f"slipway: error: a{kept}: two\n\tlines\n"
    if as_json:
        assert told.out.isascii()
        assert json.loads(told.out)["error"] == f"a{HOSTILE}: two\n\tlines"


def test_an_input_whose_name_is_no_line_is_refused(folder):
    with pytest.raises(LoweringError, match=r"cannot be called 'two\\nlines'.*Give it a name"):
        slipway.compile(folder / "lines.onnx", quiet=True)
