"""Pain 4: every candidate of a search fails, and the run ends "successfully"."""

import sqlite3

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import code_of
from slipway.errors import RPCError, TuningError
from slipway.tuning import layout_search, search
from slipway.tuning.database import Database
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.session import MeasuringSession

PAGE = ("--report", "search.html")


@pytest.fixture
def model(tmp_path):
    weight = numpy_helper.from_array(np.ones((48, 40), "float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (5, 48))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (5, 40))],
        [weight],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 10
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("trials", [2, 200])
def test_it_stops_with_the_first_error_in_full_and_no_best(model, monkeypatch, trials):
    monkeypatch.chdir(model.parent)
    monkeypatch.setattr(search, "SAME_ERRORS", 3)  # 16 otherwise, as for layouts, tried first
    assert layout_search.SAME_ERRORS == 16
    told = iter(["the fan stopped, and with it the board"])

    def broken(self, *what):
        raise RPCError(next(told, "it is still hot"))

    def no_layout(self, *what):
        raise RPCError("no layout can be measured either")

    monkeypatch.setattr(MeasuringSession, "times", broken)
    monkeypatch.setattr(ModelBench, "times", no_layout)
    done = CliRunner().invoke(app, ["tune", "m.onnx", "--trials", str(trials), *PAGE])
    assert isinstance(done.exception, TuningError)
    assert code_of(done.exception) != 0
    assert "the fan stopped, and with it the board" in str(done.exception)
    page = (model.parent / "search.html").read_text()
    assert "failed (run)" in page
    assert "nothing was faster than the default" in page
    database = Database(model.parent / "m.tuning.sqlite")
    assert len(database) < 16  # it did not go on for the rest of the night
    assert database.records() == []
    with sqlite3.connect(model.parent / "m.tuning.sqlite") as kept:
        tables = [row[0] for row in kept.execute("select name from sqlite_master")]
    assert tables
    records = model.parent / "m.records"
    assert not records.exists() or not records.read_text().strip()


def test_a_device_that_is_not_there_is_no_search(model, monkeypatch):
    monkeypatch.chdir(model.parent)
    done = CliRunner().invoke(
        app, ["tune", "m.onnx", "--rpc-host", "127.0.0.1", "--rpc-port", "1", "--trials", "2"]
    )
    assert done.exception is not None
    assert code_of(done.exception) != 0
    assert "127.0.0.1:1" in str(done.exception)
