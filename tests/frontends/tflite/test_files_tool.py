"""`python -m benchmarks tflite_files`: the table of a folder of models."""

import json
import sys

import pytest
from benchmarks import tflite_files
from builder import Node, T, model, program

pytest.importorskip("ai_edge_litert")
OPTIONS = "AddOptions"  # of the operator ADD


def q8(*shape):
    return T(shape, "int8", 0.05, 3)


@pytest.fixture
def folder(tmp_path):
    """Two models that are equal, one that is refused, one that is none."""
    add = model("ADD", [q8(2, 3), q8(2, 3)], [q8(2, 3)], OPTIONS)
    (tmp_path / "add.tflite").write_bytes(add)
    (tmp_path / "inner").mkdir()
    real = model("ADD", [T((2, 3)), T((2, 3))], [T((2, 3))], OPTIONS)
    (tmp_path / "inner" / "real.tflite").write_bytes(real)
    x, y = q8(1, 4), q8(1, 4)
    other = program(([Node("ethos-u", [x], [y], custom_options=b"\0")], [x], [y]))
    (tmp_path / "npu.tflite").write_bytes(other)
    (tmp_path / "none.tflite").write_bytes(b"nothing")
    return tmp_path


def test_every_file_gets_a_line(folder, monkeypatch, capsys):
    table = folder / "table.json"
    monkeypatch.setattr(sys, "argv", ["tflite_files", str(folder), "--json", str(table)])
    assert tflite_files.main() == 1
    lines = {line["file"]: line for line in json.loads(table.read_text())}
    verdicts = {name: line["verdict"] for name, line in lines.items()}
    assert verdicts == {
        "add.tflite": "equal", "inner/real.tflite": "equal",
        "none.tflite": "refused", "npu.tflite": "refused",
    }  # fmt: skip
    assert "Ethos-U" in lines["npu.tflite"]["detail"]
    assert "4 files: 2 equal, 2 refused" in capsys.readouterr().out


def test_a_difference_is_a_difference():
    import numpy as np

    one = np.array([1, 2], np.int8)
    assert tflite_files.distance(one, one + np.int8(1)) == 1
    assert tflite_files.distance(one, one[:1]) == float("inf")
    real = np.array([1.0, 200.0], np.float32)
    assert tflite_files.distance(real, real + np.float32(0.02)) == pytest.approx(1e-4, rel=1e-2)
    unknown = np.array([np.nan, 200.0], np.float32)
    assert tflite_files.distance(unknown, real) == float("inf")
    assert tflite_files.distance(unknown, unknown) == 0


def test_a_folder_without_models_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tflite_files", str(tmp_path)])
    assert tflite_files.main() == 2
    assert "no .tflite file" in capsys.readouterr().out
