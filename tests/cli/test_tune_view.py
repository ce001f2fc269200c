"""What a search shows: a moving table in a terminal, a line a batch elsewhere."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from slipway.cli import console, tune_view
from slipway.cli.tune import print_report
from slipway.cli.tune_view import TuneView, errors_text
from slipway.tuning.layout_search import LayoutProgress
from slipway.tuning.tune import Progress


def progress(number, score=0.5, errors=None):
    task = SimpleNamespace(op="nn.dense", name="k", layers=(f"layer{number}",), flops=2e6)
    return Progress(task, number, 16, score, 1e-3, errors or {}, False, "dense.tile(rows=4)")


def shown(monkeypatch, is_terminal):
    text = io.StringIO()
    monkeypatch.setattr(
        console, "err", Console(file=text, force_terminal=is_terminal, width=120, highlight=False)
    )
    return text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_each_task_best_rate_trials_and_errors(monkeypatch, is_terminal):
    text = shown(monkeypatch, is_terminal)
    with TuneView(60) as view:
        view.begin([1, 2, 3])
        view.layout(LayoutProgress("layout of nn.conv2d", 0, 6, 0.9, 1e-3))
        view.kernel(progress(0))
        view.kernel(progress(1, 0.25, {"run": 2, "wrong": 1}))
    said = text.getvalue()
    assert "16" in said
    if is_terminal:
        for word in ("layer1", "dense.tile(rows=4)", "0.25", "8", "2 run, 1 wrong", "left",
                     "kernels: 2 of 3 begun", "model at 0.90"):  # fmt: skip
            assert word in said
    else:
        assert "nn.dense 2/3: 16 trials, 0.25 of the default's time" in said
        assert "6 trials, the model takes 0.90" in said
    assert list(view.rows) == [0, 1]


def test_a_long_model_shows_what_was_searched_last(monkeypatch):
    shown(monkeypatch, True)
    view = TuneView()
    view.rows = {n: progress(n) for n in range(tune_view.SHOWN + 5)}
    assert view.table().row_count == tune_view.SHOWN


def test_errors_are_by_class():
    assert errors_text({"wrong": 1, "build": 3, "run": 0}) == "3 build, 1 wrong"


def test_a_task_that_was_not_measured_this_time_has_no_time(capsys):
    """All of its candidates are in the database: 0 ns would be a time."""
    line = {
        "layer": "a", "operator": "nn.dense", "calls": 1, "default_seconds": 0.0, "score": 1.0,
        "trials": 5, "errors": {},
    }  # fmt: skip
    print_report([line, {**line, "layer": "b", "default_seconds": 2e-6}])
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["a", "nn.dense", "1", "-", "1.00", "5", "0"] in rows
    assert ["b", "nn.dense", "1", "2", "µs", "1.00", "5", "0"] in rows
