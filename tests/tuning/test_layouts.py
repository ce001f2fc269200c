"""The search over layouts: what is tried, what may stay, what a database keeps."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import RPCError, ScheduleError
from slipway.relay.interpret import interpret
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning import layout_search
from slipway.tuning.database import Database
from slipway.tuning.layout_search import LayoutSearch, tune_layouts
from slipway.tuning.layouts import AS_IT_IS, extract_layouts
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import LocalRunner

TARGET = Target("llvm")


def model(channels=10, filters=14, width=21):
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, channels, 9, width))
    one = relay.const(rng.standard_normal((filters, channels, 3, 3)).astype("float32"))
    two = relay.const(rng.standard_normal((filters, filters, 3, 3)).astype("float32"))
    body = relay.nn.relu(relay.nn.conv2d(x, one, padding=1))
    for _ in range(2):
        body = relay.nn.relu(relay.nn.conv2d(body, two, padding=1))
    return tvm.IRModule.from_expr(relay.Function([x], body))


@pytest.fixture
def tasks():
    with PassContext(opt_level=3):
        return extract_layouts(model(), TARGET)


class FakeModel:
    """Times models by what was chosen for the task of weight 2 instead of on a device."""

    def __init__(self, seconds, wrong=(), refused=(), fatal=(), later=None):
        self.seconds, self.wrong, self.refused, self.fatal = seconds, wrong, refused, fatal
        self.later = later  # seconds from the second measurement on
        self.runner = LocalRunner()
        self.built, self.batches = {}, 0

    def build(self, choices):
        (candidate,) = [c for t, c in choices if t.weight == 2]
        if candidate.strategy in self.refused:
            raise ScheduleError("it does not fit")
        path = Path(f"{len(self.built)}.tar")
        self.built[path] = candidate
        return path

    def times(self, paths, rounds):
        self.batches += 1
        if any(self.built[p].strategy in self.fatal for p in paths.values()):
            raise RPCError("it died")
        seconds = self.later if self.later is not None and self.batches > 1 else self.seconds
        return {c: [seconds(self.built[p])] * rounds for c, p in paths.items()}

    def verify(self, path):
        return "output 0 is off by 1" if self.built[path].strategy in self.wrong else ""


def plain_is_fast(candidate):
    return 0.5 if candidate.strategy == "plain" else 1.0


def searched(tasks, tmp_path, bench):
    database = Database(tmp_path / "t.sqlite")
    search = LayoutSearch(tasks, database, bench)
    (task,) = [t for t in tasks if t.weight == 2]
    while search.step(task) and not search.is_done(task):
        pass
    return search, database, task


def test_equal_layers_are_one_task_and_candidates_are_all(tasks):
    assert sorted(t.weight for t in tasks) == [1, 2]
    for task in tasks:
        every = list(task.candidates())
        assert len(every) == len(set(every)) == len(task.space) - 1
        assert task.space.default.strategy == AS_IT_IS
        assert {c.strategy for c in every[:6]} >= {"plain", "blocked"}


def test_the_faster_stays_and_is_a_record(tasks, tmp_path):
    search, database, task = searched(tasks, tmp_path, FakeModel(plain_is_fast))
    assert search.chosen[task.key].strategy == "plain"
    assert search.score == pytest.approx(0.5)
    (record,) = database.records()
    assert (record["op"], record["strategy"]) == ("layout:nn.conv2d", "plain")


def test_what_is_fast_once_alone_does_not_stay(tasks, tmp_path):
    bench = FakeModel(plain_is_fast, later=lambda c: 1.0)
    search, database, task = searched(tasks, tmp_path, bench)
    assert search.chosen[task.key].strategy == AS_IT_IS
    assert database.records() == []


def test_what_computes_something_else_does_not_stay(tasks, tmp_path):
    search, database, task = searched(tasks, tmp_path, FakeModel(plain_is_fast, wrong=["plain"]))
    assert search.chosen[task.key].strategy == AS_IT_IS
    assert "wrong" in {trial.kind for trial in database.trials(task, "local")}
    assert database.best(task) is None


def test_what_is_refused_or_kills_the_device_is_its_own_error(tasks, tmp_path):
    bench = FakeModel(plain_is_fast, refused=["winograd"], fatal=["blocked"])
    search, database, task = searched(tasks, tmp_path, bench)
    assert search.chosen[task.key].strategy == "plain"
    kinds = {t.candidate.strategy: t.kind for t in database.trials(task, "local") if t.kind}
    assert set(kinds.items()) <= {("winograd", "build"), ("blocked", "run")}


def test_a_search_goes_on_where_it_was(tasks, tmp_path):
    _, database, task = searched(tasks, tmp_path, FakeModel(plain_is_fast))
    known = len(database)
    again = LayoutSearch(tasks, database, FakeModel(plain_is_fast))
    assert again.chosen[task.key].strategy == "plain"
    assert again.tried[task.key] == {t.candidate for t in database.trials(task, "local")}
    again.step(task)
    assert len(database) > known


@pytest.mark.parametrize(("in_all", "made"), [(3, [3]), (5, [4, 1]), (0, [4, 4])])
def test_layouts_take_no_more_trials_than_all_may(tmp_path, monkeypatch, in_all, made):
    """Each is a whole model: with a limit for each alone, a deep model takes many of them."""

    @contextmanager
    def bench(*_):
        yield FakeModel(lambda candidate: 1.0)

    monkeypatch.setattr(layout_search, "ModelBench", bench)
    seen = []
    with PassContext(opt_level=3):
        tune_layouts(
            model(), TARGET, None, LocalRunner(), Database(tmp_path / "t.sqlite"),
            per_task=4, in_all=in_all, watcher=lambda progress: seen.append(progress.trials),
        )  # fmt: skip
    assert seen == made


def test_a_model_is_searched_here(tmp_path):
    module, x = model(), np.random.default_rng(3).standard_normal((1, 10, 9, 21)).astype("float32")
    database = Database(tmp_path / "t.sqlite")
    seen = []
    with PassContext(opt_level=3):
        score = tune_layouts(
            module, TARGET, None, LocalRunner(), database, in_all=6, watcher=seen.append
        )
    assert score <= 1.0
    assert {p.task.problem.op for p in seen} == {"layout:nn.conv2d"}
    assert len(database) >= 6
    with database, PassContext(opt_level=3):
        relay.build(module, TARGET).export_library(str(tmp_path / "m.tar"))
    run = tvm.contrib.graph_executor.GraphModule(
        tvm.runtime.load_module(tmp_path / "m.tar")["default"](tvm.cpu(0))
    )
    run.set_input("x", x)
    run.run()
    np.testing.assert_allclose(
        run.get_output(0).numpy(), interpret(module, x), rtol=1e-3, atol=1e-2
    )


def test_inputs_that_are_no_parameters_get_values(tmp_path):
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(5, 8))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    params = {"w": np.ones((5, 8), "float32")}
    with ModelBench(module, TARGET, params, SimpleNamespace(), tmp_path) as bench:
        assert list(bench.inputs) == ["x"]


def test_two_searches_share_one_file(tasks, tmp_path):
    """Each sees what the other has found, and nothing is lost."""
    one, other = Database(tmp_path / "t.sqlite"), Database(tmp_path / "t.sqlite")
    (task,) = [t for t in tasks if t.weight == 2]
    LayoutSearch(tasks, one, FakeModel(plain_is_fast)).step(task, 2)
    again = LayoutSearch(tasks, other, FakeModel(plain_is_fast))
    assert again.chosen[task.key].strategy == "plain"
    again.step(task, 2)
    assert len(one) == len(other) == len({t.candidate for t in one.trials(task, "local")}) + 1
