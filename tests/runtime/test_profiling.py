"""The report of a profiled model: its table, CSV and JSON."""

import csv
import io
import json

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib.debugger import debug_executor
from slipway.errors import ArgumentValueError, ExecutionError
from slipway.runtime.profiling import Duration, Report

ROWS = [("a", "f", 3e-6), ("b", "g", 1e-6), ("c", "f", 4e-6)]


@pytest.fixture
def report():
    return Report.of_rows(ROWS, "cpu(0)", "Graph")


def test_a_table_joins_calls_of_one_name(report):
    lines = [line.split() for line in report.table().splitlines()]
    assert lines[0][0] == "Name"
    at = lines[0].index("Layer")  # the names of columns hold spaces, their values none
    assert [line[0] for line in lines[1:5]] == ["f", "g", "----------", "Sum"]
    assert at == 1
    assert "7.00" in lines[1]  # both calls of f, before g
    assert "8.00" in lines[4]
    assert "100.00" in lines[4]
    assert lines[5][0] == "Total"
    assert ["Executor:", "Graph"] in lines
    single = report.table(sort=False, aggregate=False, col_sums=False).splitlines()
    assert [line.split()[0] for line in single[1:4]] == ["f", "g", "f"]
    assert "Sum" not in "\n".join(single)
    assert str(report) == report.table()


def test_csv_has_a_line_for_each_call(report):
    read = list(csv.DictReader(io.StringIO(report.csv())))
    assert [(r["Name"], float(r["Duration (us)"])) for r in read] == [
        ("f", pytest.approx(3)), ("g", pytest.approx(1)), ("f", pytest.approx(4)),
    ]  # fmt: skip
    assert sum(float(r["Percent"]) for r in read) == pytest.approx(100)


def test_json_is_read_again(report):
    read = Report.from_json(report.json())
    assert read.calls == report.calls
    assert read.device_metrics == report.device_metrics
    assert read.configuration == {"Executor": "Graph"}
    assert isinstance(read.calls[0]["Duration (us)"], Duration)
    written = json.loads(report.json())
    assert written["calls"][1]["Count"] == {"count": 1}
    assert written["calls"][1]["Name"] == {"string": "g"}
    older = {"calls": [{"Name": "g"}], "device_metrics": {}, "configuration": {"Executor": "VM"}}
    assert Report.from_json(json.dumps(older)).calls == [{"Name": "g"}]
    for text in ("[]", "{", '{"calls": [{"a": {"miles": 1}}], "device_metrics": {}}'):
        with pytest.raises(ArgumentValueError, match="no report's JSON"):
            Report.from_json(text)


def test_a_model_is_profiled():
    x = relay.var("x", shape=(4, 8))
    body = relay.nn.softmax(relay.nn.dense(x, relay.const(np.eye(8, dtype="float32"))))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    model = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(0))
    given = np.ones((4, 8), "float32")
    report = model.profile(x=given)
    assert "softmax" in str(report)
    assert all(call["Duration (us)"].microseconds > 0 for call in report.calls)
    assert [layer for layer, _, _ in report] == [call["Layer"] for call in report.calls]
    assert len(model.profile(2, 1, x=given)) == len(report)
    np.testing.assert_allclose(model.get_output(0).numpy(), np.full((4, 8), 1 / 8), rtol=1e-6)
    with pytest.raises(ExecutionError, match="no collectors"):
        model.profile(["PAPI_FP_OPS"], x=given)
    model.exit()
