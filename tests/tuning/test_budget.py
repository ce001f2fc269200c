"""A search that is given seconds keeps to them within a candidate, and says what it left."""

import math
from types import SimpleNamespace

import pytest

from slipway.tuning import search as search_module
from slipway.tuning.database import Database
from slipway.tuning.drift import DriftWatch
from slipway.tuning.layout_search import LayoutSearch
from slipway.tuning.layouts import AS_IT_IS
from slipway.tuning.measure import Measured
from slipway.tuning.search import Deadline, TaskSearch
from slipway.tuning.space import Candidate, Choices
from slipway.tuning.tune import Budget, share_trials


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on when the test says so; that of the day jumps meanwhile."""
    at = SimpleNamespace(now=100.0)
    monkeypatch.setattr(search_module.time, "monotonic", lambda: at.now)
    monkeypatch.setattr(search_module.time, "time", lambda: -1e9 * at.now)
    return at


class SlowSearch(TaskSearch):
    """Tries candidates that take seconds each, all failures but the default."""

    def __init__(self, name, each, clock):
        self.task = SimpleNamespace(key=name, op="nn.dense", weight=1.0, name=name)
        self.each, self.clock, self.sizes = each, clock, []
        self.scores, self.errors, self.best_score, self.best = {}, {}, 1.0, None
        self.default_seconds, self.fruitless, self.watch = 1.0, 0, DriftWatch(None)
        self.bench = SlowSearch.Bench()

    class Bench:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def step(self, size):
        self.sizes.append(size)
        self.clock.now += self.each * size
        for n in range(size):
            self.scores[len(self.scores), n] = 1.0
        return size


@pytest.mark.parametrize(("seconds", "each"), [(20.0, 3.0), (7.0, 3.0), (2.0, 3.0), (100.0, 0.5)])
def test_batches_are_as_large_as_the_seconds_allow(clock, seconds, each):
    searches = [SlowSearch(name, each, clock) for name in ("a", "b", "c")]
    begun = clock.now
    left = share_trials(searches, Budget(64, seconds=seconds, batch=8))
    took = clock.now - begun
    # Nothing is known before the first batch, which is of two.
    assert took <= max(seconds, 2 * each)
    assert {task.name for task in left} <= {"a", "b", "c"}
    assert bool(left) == (took + each > seconds)
    assert searches[0].sizes[0] == 2


def test_without_seconds_nothing_is_left(clock):
    searches = [SlowSearch(name, 1e6, clock) for name in ("a", "b")]
    assert share_trials(searches, Budget(16, batch=8)) == []
    assert [s.sizes for s in searches] == [[8, 8], [8, 8]]


def test_how_many_fit(clock):
    deadline = Deadline(10.0)
    assert [deadline.fitting(8, each) for each in (0.0, 1.0, 4.0, 11.0)] == [2, 8, 2, 0]
    clock.now += 9.5
    assert (deadline.fitting(8, 0.1), deadline.fitting(1, 1.0), deadline.is_over) == (5, 0, False)
    clock.now += 1.0
    assert (deadline.fitting(8, 0.0), deadline.is_over) == (0, True)
    assert (Deadline().left, Deadline().fitting(8, 9e9)) == (math.inf, 8)


def test_models_that_there_is_no_time_for_are_not_compiled(clock, tmp_path):
    names = [AS_IT_IS, "plain", "blocked", "panels", "winograd"]
    every = [Candidate(name, ()) for name in names]

    class Layouts:
        key, weight = "t", 1.0
        space = Choices({name: {} for name in names}, dict(zip(names, every, strict=True)))

        def candidates(self):
            return iter(every[1:])

    task = Layouts()

    class SlowModel:
        runner = SimpleNamespace(device="here")

        def build(self, choices):
            clock.now += 5.0
            (chosen,) = choices
            return tmp_path / chosen[1].strategy

        def times(self, paths, rounds):
            return {c: [1.0] * rounds for c in paths}

    database = Database(tmp_path / "t.sqlite")
    database.add = lambda *_: None  # the task is no kernel of a model
    search = LayoutSearch([task], database, SlowModel())
    search.deadline = Deadline(17.0)
    assert search.step(task) == 2  # and the model as it was
    assert clock.now == 115.0
    assert search.tried["t"] == set(every[1:3])
    assert search.step(task) == 0
    assert not search.is_finished(task) or search.is_done(task)


def test_no_duel_begins_when_the_time_is_over(clock):
    class Duelling(TaskSearch):
        def __init__(self):
            self.deadline, self.best = Deadline(1.0), Candidate("old", ())
            self.best_score = 1.0

            def measured(candidates, *_, **__):
                clock.now += 2.0
                return [Measured(c, [1.0 + n] * 2, 0.5 + n) for n, c in enumerate(candidates)]

            self.bench = SimpleNamespace(measure=measured, rounds=2)

    assert Duelling()._won(Candidate("new", ())) is None  # the second of them
    search = Duelling()
    search.deadline = Deadline(5.0)
    assert search._won(Candidate("new", ())).score == 0.5


def test_what_was_faster_and_no_winner_is_tried_once_more(tmp_path):
    """As a run that was ended, or killed, between a trial and its duels leaves it."""

    class Log:
        def trials(self, task, device):
            scores = {"slow": 1.5, "fast": 0.7, "faster": 0.6, "fastest": 0.5}
            return [SimpleNamespace(candidate=Candidate(n, ()), score=s) for n, s in scores.items()]

        def best(self, task, device=None):
            return SimpleNamespace(candidate=Candidate("fastest", ()), score=0.5)

    class Again(TaskSearch):
        def _proposals(self, size):
            return [Candidate(f"new {n}", ()) for n in range(size)]

        def attempt(self, batch):
            self.batch = [c.strategy for c in batch]

    names = ["default", "slow", "fast", "faster", "fastest"]
    space = Choices({n: {} for n in names}, {n: Candidate(n, ()) for n in names})
    bench = SimpleNamespace(runner=SimpleNamespace(device="here"))
    log, task = Log(), SimpleNamespace(key="t", space=space)
    search = Again(task, log, bench)
    search.step(3)
    assert search.batch == ["new 0", "new 1", "new 2"]  # the best is settled
    log.best = lambda *_: None
    search = Again(task, log, bench)
    search.step(3)
    assert search.batch == ["fastest", "faster", "new 0"]
    search.step(2)
    assert search.batch == ["new 0", "new 1"]
