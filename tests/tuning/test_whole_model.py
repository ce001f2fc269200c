"""A model that is slower with what its parts' searches found: the choice at fault is set aside."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import RPCError, TuningError
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning import whole_model
from slipway.tuning.database import Database
from slipway.tuning.layouts import LayoutTask, extract_layouts
from slipway.tuning.measure import Measured
from slipway.tuning.runner import LocalRunner
from slipway.tuning.task import extract_tasks
from slipway.tuning.tune import Budget, tune_model
from slipway.tuning.whole_model import check_model

TARGET = Target("llvm -mcpu=skylake-avx512")
SLOW, FAST = 1.3, 0.7


def model(filters=(8, 12, 20, 28)):
    rng = np.random.default_rng(0)
    body = x = relay.var("x", shape=(1, 3, 14, 14))
    channels = 3
    for number in filters:
        weight = rng.standard_normal((number, channels, 3, 3)).astype("float32")
        body = relay.nn.relu(relay.nn.conv2d(body, relay.const(weight), padding=1))
        channels = number
    return tvm.IRModule.from_expr(relay.Function([x], body))


@pytest.fixture(scope="module")
def tasks():
    with PassContext(opt_level=3):
        return [*extract_layouts(model(), TARGET), *extract_tasks(model(), TARGET)]


class FakeBench:
    """A model whose time is the product of what its choices do; `factors` are by task key."""

    factors: ClassVar[dict[str, float]] = {}
    together: ClassVar[tuple[frozenset[str], float]] = (frozenset(), 1.0)
    spoilers: ClassVar[frozenset[str]] = frozenset()  # keys of choices with which it is wrong
    fails = False
    exact = False

    def __init__(self, module, target, params, runner, folder):
        self.runner, self.built = runner, {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def build(self, choices):
        path = Path(f"{len(self.built)}.tar")
        self.built[path] = {task.key for task, _ in choices}
        return path

    def times(self, paths, rounds):
        if self.fails:
            raise RPCError("the board is gone")
        rounds = 1 if self.exact else rounds
        return {c: [self.seconds(self.built[p])] * rounds for c, p in paths.items()}

    def difference(self, path, beside):
        is_wrong = bool(self.built[path] & self.spoilers) and not self.built[beside] & self.spoilers
        return "output 0 is off by inf at [0, 1]: nan" if is_wrong else ""

    def seconds(self, keys):
        made = 1.0
        for key in keys:
            made *= self.factors.get(key, 1.0)
        pair, factor = self.together
        return made * (factor if pair and pair <= keys else 1.0)


def with_winners(tasks, tmp_path):
    """Return a database in which each task has a winner."""
    database = Database(tmp_path / "trials.sqlite")
    for task in tasks:
        candidates = (
            task.candidates() if isinstance(task, LayoutTask) else task.space.neighbours(
                task.space.default
            )
        )  # fmt: skip
        won = next(iter(candidates))
        database.add(task, "local", [Measured(won, [0.5], 0.5)], verified=won)
    return database


def checked(tasks, tmp_path, monkeypatch, factors, together=(frozenset(), 1.0)):
    monkeypatch.setattr(whole_model, "ModelBench", FakeBench)
    monkeypatch.setattr(FakeBench, "factors", factors)
    monkeypatch.setattr(FakeBench, "together", together)
    database = with_winners(tasks, tmp_path)
    found = check_model(model(), TARGET, None, LocalRunner(), database, tasks)
    return found, database


@pytest.mark.parametrize("slow", [(), (0,), (-1,), (1, -2), (0, 1, 2, 3, -1)])
def test_what_slows_the_model_down_no_longer_counts(tasks, slow, tmp_path, monkeypatch):
    at_fault = {tasks[number].key for number in slow}
    factors = {task.key: SLOW if task.key in at_fault else 0.99 for task in tasks}
    found, database = checked(tasks, tmp_path, monkeypatch, factors)
    # A choice that is slow beside fast ones is found where their sum is slow; so the model is not.
    assert {task.key for task in found.set_aside} <= at_fault
    assert found.score <= 1.0
    for task in tasks:
        aside = task in list(found.set_aside)
        assert (database.best(task) is None) == aside
        assert (database.best(task, "local") is None) == aside
    assert len(database.records()) == len(tasks) - len(found.set_aside)
    if slow == (0, 1, 2, 3, -1):
        assert len(found.set_aside) >= 3


@pytest.mark.parametrize("numbers", [(0,), (-1,), (2, -2)])
def test_a_winner_with_which_the_model_is_wrong_no_longer_counts(
    tasks, numbers, tmp_path, monkeypatch
):
    """It was verified when it won, and gives NaN since: that it is fast saves it not."""
    at_fault = [tasks[number] for number in numbers]
    monkeypatch.setattr(FakeBench, "spoilers", frozenset(task.key for task in at_fault))
    factors = {task.key: 0.5 if task in at_fault else 0.99 for task in tasks}
    found, database = checked(tasks, tmp_path, monkeypatch, factors)
    assert {t.key for t in found.set_aside} == {t.key for t in found.wrong}
    assert {t.key for t in found.wrong} == {t.key for t in at_fault}
    for task in tasks:
        assert (database.best(task, "local") is None) == (task in at_fault)
    error = database.trials(at_fault[0], "local")[-1].error
    assert error == "the model is wrong with this choice: output 0 is off by inf at [0, 1]: nan"


class NanOnRerun(LocalRunner):
    """This machine, on which a model that was compiled with choices gives NaN."""

    def open(self):
        session = super().open()
        load = session.load_module

        def loaded(name):
            library = load(name)
            if "model_1" in name or not name.startswith("model_"):
                return library

            class Spoiled:
                def __getitem__(self, of):
                    make = library[of]

                    def made(*devices):
                        module = make(*devices)
                        return SpoiledModule(module)

                    return made

            return Spoiled()

        session.load_module = loaded
        return session


class SpoiledModule:
    """A model's functions, of which the one that reads outputs gives NaN."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        return getattr(self._module, name)

    def __getitem__(self, name):
        function = self._module[name]
        if name != "get_output":
            return function

        def spoiled(*arguments):
            array = function(*arguments)
            array.copyfrom(np.full(array.shape, np.nan, "float32"))
            return array

        return spoiled


def test_a_device_that_gives_nan_as_a_verified_winner_runs_again(tasks, tmp_path):
    database = with_winners(tasks[-1:], tmp_path)
    target = Target("llvm")
    with PassContext(opt_level=3):
        own = extract_tasks(model(), target)[-1:]
        database = with_winners(own, tmp_path / "own")
        found = check_model(model(), target, None, NanOnRerun(), database, own)
    assert [task.key for task in found.wrong] == [task.key for task in own]
    assert database.best(own[0], "local") is None
    assert database.records() == []


def test_one_slow_choice_is_found_among_all(tasks, tmp_path, monkeypatch):
    at_fault = tasks[-1]
    found, database = checked(tasks, tmp_path, monkeypatch, {at_fault.key: SLOW})
    assert [task.key for task in found.set_aside] == [at_fault.key]
    (row,) = [t for t in database.trials(at_fault, "local") if t.kind]
    assert row.kind == "model"
    assert "1.3 of its time" in row.error
    assert found.score == pytest.approx(1.0)


@pytest.mark.parametrize("exact", [False, True])
def test_choices_that_cost_a_little_each_do_not_add_up(tasks, exact, tmp_path, monkeypatch):
    """Less than a hundredth is no difference by a clock with noise; eight of them are one."""
    monkeypatch.setattr(FakeBench, "exact", exact)
    factors = {task.key: 1.004 for task in tasks[1:]} | {tasks[0].key: 0.997}
    found, database = checked(tasks, tmp_path, monkeypatch, factors)
    assert found.score <= 1.0
    # Each can be told by an exact clock; by another one all go.
    assert [t.key for t in tasks if database.best(t)] == ([tasks[0].key] if exact else [])


def test_two_that_are_slow_only_together_lose_one(tasks, tmp_path, monkeypatch):
    kernels = [task for task in tasks if not isinstance(task, LayoutTask)]
    pair = frozenset({kernels[0].key, kernels[-1].key})
    found, _ = checked(tasks, tmp_path, monkeypatch, {}, (pair, SLOW))
    assert len(found.set_aside) == 1
    assert found.set_aside[0].key in pair


def test_a_gain_is_told_and_nothing_lost(tasks, tmp_path, monkeypatch):
    found, database = checked(tasks, tmp_path, monkeypatch, {tasks[0].key: FAST})
    assert found.set_aside == ()
    assert (found.seconds, found.score) == (1.0, pytest.approx(FAST))
    assert len(database.records()) == len(tasks)


def test_a_choice_that_wins_anew_counts_again(tasks, tmp_path, monkeypatch):
    found, database = checked(tasks, tmp_path, monkeypatch, {tasks[-1].key: SLOW})
    (task,) = found.set_aside
    won = next(iter(task.space.neighbours(task.space.default)))
    database.add(task, "local", [Measured(won, [0.4], 0.4)], verified=won)
    assert database.best(task).candidate == won


def test_a_device_that_is_lost_is_an_error_and_keeps_the_records(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeBench, "fails", True)
    with pytest.raises(TuningError, match="local was lost as the model was timed: the board is"):
        checked(tasks, tmp_path, monkeypatch, {})
    assert len(Database(tmp_path / "trials.sqlite").records()) == len(tasks)


def test_a_search_ends_with_the_model(tmp_path):
    database, seen = Database(tmp_path / "trials.sqlite"), []
    with PassContext(opt_level=3):
        tune_model(
            model((5,)), Target("llvm"), None, LocalRunner(), database, Budget(6),
            checked=seen.append,
        )  # fmt: skip
    if not database.records():  # nothing was faster than the default, or all were set aside
        assert all(whole.set_aside for whole in seen)
        return
    (whole,) = seen
    assert 0 < whole.score < 1.2
    assert whole.seconds > 0
