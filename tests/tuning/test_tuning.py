"""The search over strategies and knobs: what it tries, what may win, what it survives."""

import json
import math
import random
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import relay
from slipway.errors import RPCTimeoutError, ScheduleError, TuningError
from slipway.transform.context import PassContext
from slipway.tuning import search
from slipway.tuning.build import kernel_job
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured, is_faster, kernel_bench
from slipway.tuning.model import ScoreModel
from slipway.tuning.runner import LocalRunner, TrackerRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.session import MeasuringSession
from slipway.tuning.space import Candidate
from slipway.tuning.task import extract_tasks
from slipway.tuning.tune import Budget, tune_tasks


def dense(rows=3, inner=40, units=24):
    x = relay.var("x", shape=(rows, inner))
    w = relay.var("w", shape=(units, inner))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))


@pytest.fixture(scope="module")
def task():
    tasks = extract_tasks(dense(), "llvm")
    return next(t for t in tasks if "dense" in t.op)


class FakeBench:
    """Scores candidates by a function instead of a device; `wrong` compute something else."""

    rounds = 3

    def __init__(self, task, score, wrong=(), fails=None):
        self.task, self.score, self.wrong, self.fails = task, score, set(wrong), fails
        self.runner = LocalRunner()
        self.measured = []

    def measure(self, candidates, rounds=0, together=False):
        del together
        found = []
        for c in [self.task.space.default, *candidates]:
            self.measured.append(c)
            if self.fails is not None and self.fails(c):
                found.append(Measured(c, kind="run", error="RPCError: it died"))
            else:
                seconds = self.score(c)
                score = seconds / self.score(self.task.space.default)
                found.append(Measured(c, [seconds * f for f in (1.0, 1.001, 0.999)], score))
        return list({m.candidate: m for m in found}.values())

    def verify(self, candidate):
        return "output 0 is off by 1" if candidate in self.wrong else ""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def by_number(candidate):
    """A score in which one knob matters, and small is good."""
    return 0.5 + 0.02 * sum(math.log2(v + 1) for _, v in candidate.knobs if isinstance(v, int))


def searched(task, tmp_path, bench, batches=6):
    database = Database(tmp_path / "t.sqlite")
    found = TaskSearch(task, database, bench)
    for _ in range(batches):
        found.step(8)
    return found, database


def test_what_a_newer_version_wrote_is_left_aside(task, tmp_path):
    """Its strategies, knobs and columns are not known here: the search has to win with its own."""
    database, path = Database(tmp_path / "t.sqlite"), tmp_path / "t.sqlite"
    default = task.space.default
    newer = [
        Candidate("dense.of_2030", (("qubits", 4),)),
        Candidate(default.strategy, (*default.knobs, ("qubits", 4))),
    ]
    for candidate in newer:
        database.add(task, "local", [Measured(candidate, [1e-6], 0.1)], verified=candidate)
    database.add(task, "local", [Measured(newer[0], [1e-6], 0.1)])
    with closing(sqlite3.connect(path)) as other:
        for table in ("task", "trial", "loops"):
            other.execute(f"alter table {table} add column humidity real")
        other.commit()
    search = TaskSearch(task, database, FakeBench(task, lambda c: 1.0))
    assert (search.best, search.best_score, search.trials) == (default, 1.0, 0)
    assert search.step(4) == 4
    assert len(database) >= 7


def test_a_space_holds_the_default_and_its_neighbours_are_legal(task):
    space = task.space
    assert len(space) > 4
    entry = space.strategies[space.default.strategy]
    rng = random.Random(0)
    for candidate in [*space.neighbours(space.default), *(space.sample(rng) for _ in range(20))]:
        legal = space.values[candidate.strategy]
        assert all(v in legal[n] for n, v in candidate.knobs if n in legal)
    assert entry.knobs_for(task.problem) is not None
    one = next(iter(space.neighbours(space.default)))
    assert sum(a != b for a, b in zip(one.knobs, space.default.knobs, strict=True)) == 1


def test_every_candidate_computes_the_same(task, tmp_path):
    """On the device, against the operators' NumPy definitions."""
    rng = random.Random(1)
    with kernel_bench(task, LocalRunner(), tmp_path) as bench:
        for candidate in {task.space.sample(rng) for _ in range(4)}:
            assert bench.verify(candidate) == ""


def test_a_batch_is_one_library_and_scores_are_beside_the_default(task, tmp_path):
    default = task.space.default
    others = list(task.space.neighbours(default))[:2]
    built = kernel_job(task, [default, *others]).run(tmp_path / "c.tar")
    assert len(set(built.functions.values())) == 3 - len(built.errors)
    with kernel_bench(task, LocalRunner(), tmp_path, rounds=3) as bench:
        found = {m.candidate: m for m in bench.measure(others)}
    assert found[default].score == 1.0
    assert all(len(m.seconds) == 3 and m.score > 0 for m in found.values() if not m.kind)


def test_the_best_is_found_and_can_be_applied(task, tmp_path):
    found, database = searched(task, tmp_path, FakeBench(task, by_number))
    assert by_number(found.best) < by_number(task.space.default)
    best = database.best(task)
    assert best.verified
    assert best.candidate == found.best
    (record,) = database.records()
    assert record["strategy"] == best.candidate.strategy
    x, w = (
        np.random.default_rng(i).random(s, "float32") for i, s in enumerate([(3, 40), (24, 40)])
    )
    results = []
    for config in ({}, {"relay.backend.use_meta_schedule": False}):
        with database, tvm.transform.PassContext(opt_level=3, config=config):
            lib = relay.build(dense(), "llvm")
        model = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
        model.set_input(x=x, w=w)
        model.run()
        results.append((model.get_output(0).numpy(), lib.get_source("ll")))
    for got, _ in results:
        np.testing.assert_allclose(got, np.maximum(x @ w.T, 0), rtol=1e-5)
    assert results[0][1] != results[1][1]  # the record took effect, and False takes it away


def test_what_computes_something_else_cannot_win(task, tmp_path):
    probe = searched(task, tmp_path / "a", FakeBench(task, by_number))[0]
    bench = FakeBench(task, by_number, wrong=[probe.best])
    found, database = searched(task, tmp_path / "b", bench)
    assert found.best != probe.best
    assert found.errors["wrong"] >= 1
    assert all(
        t.kind == "wrong"
        for t in database.trials(task, "local")
        if t.candidate == probe.best and t.score == float("inf")
    )


def test_an_unmeasured_best_cannot_exist(task, tmp_path):
    database = Database(tmp_path / "t.sqlite")
    default = task.space.default
    database.add(task, "local", [Measured(default, [1.0], 0.5)])  # measured, never verified
    database.add(task, "local", [Measured(default, kind="run", error="it died")])
    assert database.best(task) is None
    assert database.records() == []


def test_a_search_goes_on_where_it_was(task, tmp_path):
    first, database = searched(task, tmp_path, FakeBench(task, by_number), batches=2)
    database.close()
    bench = FakeBench(task, by_number)
    again = TaskSearch(task, Database(tmp_path / "t.sqlite"), bench)
    assert again.best == first.best
    assert again.trials == first.trials
    again.step(8)
    assert not set(bench.measured[1:9]) & set(first.scores)  # behind the default, before duels


def test_noise_is_no_progress():
    base = Measured(Candidate("a", ()), [1.0, 1.1, 0.9, 1.05])
    noisy = Measured(Candidate("b", ()), [0.9, 1.2, 0.95, 1.06])
    better = Measured(Candidate("c", ()), [0.9, 0.99, 0.8, 0.94])
    assert not is_faster(noisy, base)
    assert not is_faster(base, base)
    assert is_faster(better, base)


def test_a_device_that_only_fails_ends_the_search(task, tmp_path):
    bench = FakeBench(task, by_number, fails=lambda c: c != task.space.default)
    with pytest.raises(TuningError, match=r"16 trials .* failed one after the other; .*it died"):
        searched(task, tmp_path, bench)
    kept = Database(tmp_path / "t.sqlite").trials(task, "local")
    assert sum(t.kind == "run" for t in kept) >= search.SAME_ERRORS


class Dying:
    """A runner whose device dies when a library holds the bad candidate."""

    device, is_cold = "dying", False

    def __init__(self, bad):
        self.bad = bad
        self.sessions = 0

    def open(self):
        self.sessions += 1
        return LocalRunner().open()

    def open_more(self, most, held):
        return []


def test_the_candidate_that_kills_the_device_is_told_apart(task, tmp_path, monkeypatch):
    good, bad, other = list(task.space.neighbours(task.space.default))[:3]
    times = MeasuringSession.times

    def deadly(self, functions, rounds):
        if bad in functions:
            raise RPCTimeoutError("the device is gone")
        return times(self, functions, rounds)

    monkeypatch.setattr(MeasuringSession, "times", deadly)
    with kernel_bench(task, Dying(bad), tmp_path, rounds=1) as bench:
        found = {m.candidate: m for m in bench.measure([good, bad, other])}
    assert found[bad].kind == "run"
    assert "is gone" in found[bad].error
    assert found[good].kind == found[other].kind == ""


def test_the_default_is_known_where_every_candidate_kills_the_device(task, tmp_path, monkeypatch):
    """They are at fault, and what they are held against has its times."""
    one, other = list(task.space.neighbours(task.space.default))[:2]
    times = MeasuringSession.times

    def deadly(self, functions, rounds):
        if {one, other} & set(functions):
            raise RPCTimeoutError("the device is gone")
        return times(self, functions, rounds)

    monkeypatch.setattr(MeasuringSession, "times", deadly)
    with kernel_bench(task, Dying(one), tmp_path, rounds=1) as bench:
        found = {m.candidate: m for m in bench.measure([one, other])}
    assert found[one].kind == found[other].kind == "run"
    assert found[task.space.default].seconds
    assert found[task.space.default].score == 1.0


def test_candidates_are_shared_among_the_devices_that_are_free(task, tmp_path, monkeypatch):
    """Each device has a baseline of its own; what one of them was lost with is tried again."""
    candidates = list(task.space.neighbours(task.space.default))[:4]
    shares = []
    times = MeasuringSession.times

    def noted(self, functions, rounds):
        shares.append((self, list(functions)))
        if len(shares) == 3:
            raise RPCTimeoutError("the device is gone")
        return times(self, functions, rounds)

    monkeypatch.setattr(MeasuringSession, "times", noted)
    with (
        tvm.rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        tvm.rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="board"),
        tvm.rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="board"),
    ):
        with tvm.rpc.connect_tracker("127.0.0.1", tracker.port) as known:
            while known.summary()["queue_info"].get("board", {"free": 0})["free"] < 2:
                time.sleep(0.02)
        runner = TrackerRunner("127.0.0.1", tracker.port, "board")
        one = TrackerRunner("127.0.0.1", tracker.port, "board", max_devices=1)
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            first = bench.measure(candidates)
            assert len({session for session, _ in shares}) == 2
            assert all(found[0] == task.space.default for _, found in shares)
            assert {m.candidate for m in first} == {task.space.default, *candidates}
            second = bench.measure(candidates[:2])  # one of the two devices is lost
            assert {m.candidate for m in second} == {task.space.default, *candidates[:2]}
            assert not [m.error for m in second if m.kind]
            assert len(shares) == 5
            shares.clear()
            bench.measure(candidates[:2], together=True)
            assert len(shares) == 1
        with kernel_bench(task, one, tmp_path, rounds=1) as bench:
            shares.clear()
            bench.measure(candidates[:2])
            assert len(shares) == 1


def test_no_device_is_one_clear_error(task, tmp_path):
    class Nobody:
        device = "nobody"

        def open(self):
            raise RPCTimeoutError("nobody answers")

    with pytest.raises(TuningError, match="nobody"):
        tune_tasks([task], Nobody(), Database(tmp_path / "t.sqlite"), Budget(per_task=2))


def test_a_damaged_database_is_said(tmp_path):
    (tmp_path / "t.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(TuningError, match="no database of trials"):
        Database(tmp_path / "t.sqlite")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [("trial", "candidate", "[1, 2]"), ("trial", "candidate", "x"), ("trial", "score", "x"),
     ("trial", "candidate", "[" * 2000), ("task", "inputs", '{"a": 1}'),
     ("task", "inputs", b"\xff"),
     ("task", "op", b"\xff\x00"), ("trial", "seconds", None), ("task", "inputs", "[3]")],
)  # fmt: skip
def test_a_changed_value_of_a_database_is_said(task, tmp_path, table, column, value):
    path = tmp_path / "trials.db"
    with closing(Database(path)) as database:
        best = task.space.default
        database.add(task, "here", [Measured(best, [0.1], 0.5)], verified=best)
        assert database.best(task).score == 0.5
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"update {table} set {column} = ?", (value,))
        with pytest.raises(TuningError, match="is damaged, or another program"):
            _ = database.records(), database.best(task), database.trials(task, "here")


def test_a_file_of_records_that_is_no_text_is_said(tmp_path):
    path = tmp_path / "records"
    for content in (b"\xff\xfe", b'{"op": [], "attrs": "", "inputs": [], "target": "llvm"}'):
        path.write_bytes(content)
        with (
            PassContext(opt_level=3, config={"schedules.records": str(path)}),
            pytest.raises(ScheduleError, match="records"),
        ):
            relay.build(dense(), "llvm")


def test_trials_go_where_the_time_is(tmp_path):
    """The larger of two kernels gets more of them."""
    x = relay.var("x", shape=(64, 64))
    y = relay.nn.dense(
        relay.nn.dense(x, relay.var("v", shape=(256, 64))), relay.var("w", shape=(8, 256))
    )
    tasks = [t for t in extract_tasks(tvm.IRModule.from_expr(y), "llvm") if "dense" in t.op]
    big = max(tasks, key=lambda t: t.flops)
    seen = []
    small = {t.key: (1.0 if t is big else 1e-3) for t in tasks}
    factory = {t.key: FakeBench(t, lambda c, t=t: small[t.key] * by_number(c)) for t in tasks}
    import slipway.tuning.tune as module

    original = module.kernel_bench
    module.kernel_bench = lambda task, *_, builder: factory[task.key]
    try:
        tune_tasks(
            tasks, LocalRunner(), Database(tmp_path / "t.sqlite"), Budget(40, in_all=48),
            lambda p: seen.append(p.task),
        )  # fmt: skip
    finally:
        module.kernel_bench = original
    assert sum(t is big for t in seen) > len(seen) / 2


def test_the_model_learns_what_the_cost_model_does_not_know(task):
    model = ScoreModel(task.space)
    rng = random.Random(3)
    seen = {task.space.sample(rng) for _ in range(40)}
    model.learn((c, by_number(c)) for c in seen)
    fresh = [c for c in (task.space.sample(rng) for _ in range(60)) if c not in seen]
    ranked = model.ranked(fresh)
    half = len(ranked) // 2
    assert np.mean([by_number(c) for c in ranked[:half]]) < np.mean(
        [by_number(c) for c in ranked[half:]]
    )


def test_meta_schedule_over_a_tracker(tmp_path, monkeypatch):
    """Seed 001's block: TuneConfig, RPCRunner, work_dir.  The tracker is told how it stands."""
    told = []

    def connect(*address, purpose):
        told.append(purpose)
        return tvm.rpc.connect_tracker(*address, purpose=purpose)

    monkeypatch.setattr("slipway.tuning.runner.connect_tracker", connect)
    tracker = tvm.rpc.Tracker("127.0.0.1", 0)
    server = tvm.rpc.Server("127.0.0.1", 0, key="board", tracker_addr=("127.0.0.1", tracker.port))
    try:
        runner = ms.runner.RPCRunner(
            rpc_config=ms.runner.RPCConfig(
                tracker_host="127.0.0.1", tracker_port=tracker.port, tracker_key="board",
                session_timeout_sec=60,
            ),
            max_workers=1,
        )  # fmt: skip
        database = ms.tune_tvm(
            mod=dense(2, 16, 16), target="llvm",
            config=ms.TuneConfig(
                strategy="evolutionary", num_trials_per_iter=4, max_trials_per_task=4
            ),
            runner=runner, work_dir=tmp_path / "tune",
        )  # fmt: skip
    finally:
        server.terminate()
        tracker.terminate()
    assert len(database) >= 4
    rows = sqlite3.connect(tmp_path / "tune" / "tuning.sqlite").execute("select device from trial")
    assert {row[0] for row in rows} == {"board"}
    kernels = [text for text in told if "dense" in text and " of 1: " in text]
    assert kernels[0].endswith(", 1 of 1: 0 trials, 1.00 of the default's time")
    with (
        database,
        tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_meta_schedule": True}),
    ):
        relay.build(dense(2, 16, 16), "llvm")
    assert isinstance(database.get_all_tuning_records(), list)


def test_records_of_another_problem_change_nothing(tmp_path):
    record = {
        "op": "nn.dense", "attrs": "None", "inputs": [], "target": "llvm", "strategy": "x",
        "knobs": {},
    }  # fmt: skip
    (tmp_path / "r").write_text(json.dumps(record) + "\n")
    with tvm.transform.PassContext(opt_level=3, config={"schedules.records": str(tmp_path / "r")}):
        relay.build(dense(), "llvm")
    with (
        pytest.raises(ScheduleError, match="cannot be read"),
        tvm.transform.PassContext(opt_level=3, config={"schedules.records": str(tmp_path / "no")}),
    ):
        relay.build(dense(), "llvm")


def test_what_wins_one_duel_by_luck_is_not_the_best(task, tmp_path):
    """Half as slow in the batch and in the first duel, and never again."""
    space = task.space
    lucky = next(iter(space.neighbours(space.default)))
    left = [2]

    def score(candidate):
        if candidate == lucky and left[0] > 0:
            left[0] -= 1
            return 0.5
        return 1.0

    database = Database(tmp_path / "t.sqlite")
    found = TaskSearch(task, database, FakeBench(task, score))
    found._proposals = lambda size: [lucky]
    found.step(1)
    assert left == [0]
    assert found.best == space.default
    assert database.best(task) is None


def test_what_was_beaten_is_not_the_best_again(task, tmp_path):
    """The first winner's duels flatter it; what beats it later is slower than they said."""
    space = task.space
    flattered, better = list(space.neighbours(space.default))[:2]
    measured = []

    def score(candidate):
        if candidate == flattered:
            measured.append(candidate)
            return 0.5 if len(measured) <= 3 else 0.9  # the batch and two duels
        return 0.8 if candidate == better else 1.0

    database = Database(tmp_path / "t.sqlite")
    found = TaskSearch(task, database, FakeBench(task, score))
    found._proposals = lambda size: [flattered]
    found.step(1)
    assert (found.best, found.best_score) == (flattered, 0.5)

    def late(candidate):
        return {flattered: 0.9, better: 0.8}.get(candidate, 1.0)

    # In its own batch it looks as good as the best; the duels tell.
    lucky = [0.49]
    found.bench = FakeBench(task, lambda c: lucky.pop() if c == better and lucky else late(c))
    found._proposals = lambda size: [better]
    found.step(1)
    assert found.best == better
    assert database.best(task).candidate == better
    assert TaskSearch(task, database, FakeBench(task, late)).best == better


def test_what_has_the_loops_of_another_is_not_measured(tmp_path):
    """Of a copy of few elements most knobs change nothing: equal code would win by its place."""
    x = relay.var("x", shape=(1, 12, 5, 5))
    cut = relay.strided_slice(x, begin=[0, 1, 0, 0], end=[1, 11, 5, 5])
    module = tvm.IRModule.from_expr(relay.Function([x], cut))
    (task,) = extract_tasks(module, "llvm -mcpu=znver4")
    assert len(task.space) > 100
    database, measured = Database(tmp_path / "t.sqlite"), []
    with kernel_bench(task, LocalRunner(), tmp_path, rounds=1) as bench:
        search = TaskSearch(task, database, bench)
        measure = bench.measure
        bench.measure = lambda batch, *a, **k: measured.extend(batch) or measure(batch, *a, **k)
        made = [search.step(8) for _ in range(4)]
        kinds = {bench.loops(c) for c in measured}
    assert len(kinds) == len(set(measured)) < 8
    assert 0 < sum(made) < 8
    assert made[-1] == 0
    assert search.default_seconds > 0
