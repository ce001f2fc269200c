"""What one core's trials say about another: which choices are taken, and which are left."""

import json
import random

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.choices import key_of
from slipway.target import Target
from slipway.target.host import host_cpu
from slipway.tuning import transfer_measured
from slipway.tuning.database import Database
from slipway.tuning.layout_search import LayoutSearch
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.measure import Measured
from slipway.tuning.runner import LocalRunner
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks
from slipway.tuning.transfer import Elsewhere, alike, foretold, records_foretold, transfer

SMALL = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53")
LARGE = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


@pytest.fixture(scope="module")
def model():
    x, w = relay.var("x", shape=(21, 96)), relay.var("w", shape=(80, 96))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return module, {"w": np.ones((80, 96), "float32")}


def dense_of(model, target):
    return next(t for t in extract_tasks(model[0], target, model[1]) if "dense" in t.op)


def test_the_fastest_there_that_is_legal_here_is_taken(model, tmp_path):
    there, here = dense_of(model, SMALL), dense_of(model, LARGE)
    assert there.key != here.key
    database = Database(tmp_path / "t.sqlite")
    legal = [c for c in there.space.neighbours(there.space.default)][:2]
    strange = there.space.with_values(legal[0], rows=77)
    database.add(there, "a", [Measured(legal[0], [0.5], 0.5)], verified=legal[0])
    database.add(there, "a", [Measured(legal[1], [0.1], 0.1)])  # fastest, but never verified
    database.add(there, "a", [Measured(strange, [0.1], 0.1)], verified=strange)
    found = foretold(here, database)
    assert found.candidate == legal[0]
    assert 0.25 <= found.score <= 0.97
    assert found.from_target == str(SMALL)
    assert foretold(there, database) is None  # its own trials foretell nothing: they are known


def test_what_is_not_clearly_faster_is_left(model, tmp_path):
    there, here = dense_of(model, SMALL), dense_of(model, LARGE)
    database = Database(tmp_path / "t.sqlite")
    default = there.space.default
    database.add(there, "a", [Measured(default, [1.0], 1.0)], verified=default)
    assert foretold(here, database) is None
    assert records_foretold(model[0], LARGE, model[1], database) == []


@pytest.mark.parametrize(("score", "taken"), [(0.86, False), (0.7, True)])
def test_layouts_of_which_no_model_speaks_have_to_be_clearer(score, taken, model, tmp_path):
    there, here = (extract_layouts(model[0], t, model[1])[0] for t in (SMALL, LARGE))
    database = Database(tmp_path / "t.sqlite")
    other = candidate_of("panels", {"units": 8})
    database.add(there, "a", [Measured(other, [score], score)], verified=other)
    assert (foretold(here, database) is not None) is taken


def test_records_are_of_the_new_target_and_compile(model, tmp_path):
    there = dense_of(model, SMALL)
    database = Database(tmp_path / "t.sqlite")
    better = next(iter(there.space.neighbours(there.space.default)))
    database.add(there, "a", [Measured(better, [0.4], 0.4)], verified=better)
    records = records_foretold(model[0], LARGE, model[1], database)
    assert [r["target"] for r in records] == [str(LARGE)]
    assert records[0]["strategy"] == better.strategy
    path = tmp_path / "m.records"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    sources = []
    for config in ({}, {"schedules.records": str(path)}):
        with tvm.transform.PassContext(opt_level=3, config=config):
            sources.append(relay.build(model[0], LARGE, params=model[1]).get_source("ll"))
    assert sources[0] != sources[1]


X86 = Target("llvm -mcpu=haswell")
OTHER_X86 = Target("llvm -mcpu=haswell -l1-cache-bytes=16384")


class Judge:
    """A bench in which `fast` takes half of the default's time, and everything else twice."""

    rounds = 3

    def __init__(self, task, fast):
        self.task, self.fast, self.runner = task, fast, LocalRunner()

    def measure(self, candidates, rounds=0, together=False):
        default = self.task.space.default
        found = dict.fromkeys([default, *candidates], 2.0) | {default: 1.0, self.fast: 0.5}
        return [Measured(c, [s] * 3, s) for c, s in found.items() if c in [default, *candidates]]

    def verify(self, candidate):
        return ""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def test_a_device_that_is_there_has_the_last_word(model, tmp_path, monkeypatch):
    there, here = dense_of(model, SMALL), dense_of(model, LARGE)
    database, into = Database(tmp_path / "t.sqlite"), Database(tmp_path / "i.sqlite")
    liar, right = [c for c in there.space.neighbours(there.space.default)
                   if all_legal(here.space, c)][:2]  # fmt: skip
    database.add(there, "a", [Measured(liar, [0.1], 0.1)], verified=liar)
    database.add(there, "a", [Measured(right, [0.6], 0.6)], verified=right)
    judge = Judge(here, right)
    monkeypatch.setattr(transfer_measured, "kernel_bench", lambda *args, **more: judge)
    monkeypatch.setattr(transfer_measured, "is_timed_whole", lambda module: False)
    monkeypatch.setattr(transfer_measured, "check_model", lambda *args: None)
    done = transfer_measured.transfer_measured(
        model[0], LARGE, model[1], database, into, LocalRunner()
    )
    assert [choice.candidate for choice in done.tried] == [liar, right]
    assert into.best(here).candidate == right
    assert not into.best(here, "foretold")


def all_legal(space, candidate):
    return all(v in space.values[candidate.strategy][k] for k, v in candidate.knobs)


@pytest.mark.skipif(
    not {"+avx2", "+fma"} <= set(host_cpu()[1]), reason="this processor has no AVX2"
)
def test_what_is_slower_here_is_not_taken(model, tmp_path):
    """A choice that is said to be ten times as fast as the default, and is much slower."""
    there, here = dense_of(model, X86), dense_of(model, OTHER_X86)
    database, into = Database(tmp_path / "t.sqlite"), Database(tmp_path / "i.sqlite")
    rng = random.Random(1)
    legal = {c for c in (there.space.sample(rng) for _ in range(200)) if all_legal(here.space, c)}
    slow = max(legal, key=lambda c: here.space.predicted(c) or 0.0)
    database.add(there, "a", [Measured(slow, [0.1], 0.1)], verified=slow)
    assert foretold(here, database).candidate == slow
    with tvm.transform.PassContext(opt_level=3):
        done = transfer_measured.transfer_measured(
            model[0], OTHER_X86, model[1], database, into, LocalRunner()
        )
    assert [choice.candidate for choice in done.tried] == [slow]
    assert into.records() == []
    assert done.whole is None
    assert len(into) >= 1  # the trial is kept


AVX2, AVX512 = Target("llvm -mcpu=znver3"), Target("llvm -mcpu=znver4")


def layer(kernel, channels, filters, side=27):
    data, weight = (1, channels, side, side), (filters, channels, kernel, kernel)
    x, w = relay.var("x", shape=data), relay.var("w", shape=weight)
    conv = relay.nn.conv2d(x, w, padding=(kernel // 2,) * 2, kernel_size=(kernel, kernel))
    module = tvm.IRModule.from_expr(relay.Function([x, w], conv))
    return module, {"w": np.ones(weight, "float32")}


def layouts_of(model, *targets):
    return [extract_layouts(model[0], t, model[1])[0] for t in targets]


def blocked(read, written):
    return candidate_of("blocked", {"read": read, "written": written})


def test_a_layout_says_what_the_default_is():
    for kernel, channels, filters in ((5, 32, 32), (5, 3, 64)):
        there, here = layouts_of(layer(kernel, channels, filters), AVX2, AVX512)
        assert there.decided == blocked(min(8, 32 if channels == 32 else 1), 8)
        assert here.decided == blocked(16 if channels == 32 else 1, 16)
    few, _ = layouts_of(layer(3, 20, 6), AVX2, AVX512)
    assert few.decided.strategy in few.space.values
    forced = {"layout:nn.conv2d": {"strategy": "plain"}}
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": forced}):
        (told,) = layouts_of(layer(5, 32, 32), AVX2)
    assert told.decided is None


def test_a_layout_is_one_of_as_many_channels_where_blocks_may_be_so_wide():
    there, here = layouts_of(layer(5, 32, 32), AVX2, AVX512)
    assert alike(blocked(16, 16), there) == blocked(8, 8)
    assert alike(blocked(4, 16), there) == blocked(4, 8)
    assert alike(blocked(1, 8), there) == blocked(1, 8)
    assert alike(blocked(1, 4), here) == blocked(1, 4)
    assert alike(candidate_of("plain", {}), there) == candidate_of("plain", {})
    assert alike(candidate_of("panels", {"units": 64}), there) is None


def kept(database, task, scores):
    for candidate, score in scores.items():
        verified = candidate if score < 1 else None
        database.add(task, "a", [Measured(candidate, [score], score)], verified=verified)


def test_what_is_the_default_there_and_faster_than_what_is_here_is_taken(tmp_path):
    """The other machine's default is no record, and says most where this one's is another."""
    model = layer(5, 21, 33)
    there, here = layouts_of(model, AVX2, AVX512)
    there.decided, here.decided = candidate_of("plain", {}), blocked(1, 16)
    there.plain_part = here.plain_part = None
    for beside, taken in ((1.3, True), (1.02, False), (None, False)):
        database = Database(tmp_path / f"{beside}.sqlite")
        kept(
            database,
            there,
            {blocked(8, 8): 1.5} | ({} if beside is None else {blocked(1, 8): beside}),
        )
        elsewhere = Elsewhere(*model, database)
        elsewhere._known[str(AVX2)] = {key_of(there.problem)[:-1]: there}
        found = elsewhere.foretold(here)
        assert [f.candidate for f in found] == ([candidate_of("plain", {})] if taken else [])
        if taken:
            assert found[0].score == pytest.approx(1 / 1.3)
            assert found[0].from_target == str(AVX2)


@pytest.mark.parametrize(
    ("here_plain", "there_plain", "measured", "guess"),
    [
        (0.71, 0.81, 0.752, None),  # plain data gains more here than there: blocks do not pay
        (0.81, 0.71, 0.752, 0.66),
        (0.9, 0.2, 0.752, 0.376),  # twice is the most that predictions are trusted
        (None, 0.71, 0.752, 0.752),
    ],
)
def test_what_the_layout_passes_predict_corrects_what_was_measured(
    here_plain, there_plain, measured, guess, tmp_path
):
    model = layer(5, 21, 33)
    there, here = layouts_of(model, AVX2, AVX512)
    there.decided = here.decided = candidate_of("plain", {})
    there.plain_part, here.plain_part = there_plain, here_plain
    database = Database(tmp_path / "t.sqlite")
    kept(database, there, {blocked(1, 8): measured})
    elsewhere = Elsewhere(*model, database)
    elsewhere._known[str(AVX2)] = {key_of(there.problem)[:-1]: there}
    found = [f.score for f in elsewhere.foretold(here) if f.candidate.strategy == "blocked"]
    assert found == ([] if guess is None else pytest.approx([guess] * len(found), abs=0.005))
    assert bool(found) == (guess is not None)


def test_the_layout_pass_says_how_it_compared_plain_data_with_blocks():
    compared = layouts_of(layer(5, 21, 33), AVX2, AVX512)
    assert all(0.3 < task.plain_part < 1.5 for task in compared)
    (sure,) = layouts_of(layer(3, 64, 64), AVX2)  # Winograd's algorithm: nothing to compare
    assert sure.plain_part is None


def test_a_noisy_trial_of_the_default_there_speaks_for_no_other(tmp_path):
    """The default takes its own time, whatever a trial of an equal layout beside it said."""
    model = layer(5, 21, 33)
    there, here = layouts_of(model, AVX2, AVX512)
    there.decided, here.decided = candidate_of("plain", {}), candidate_of("plain", {})
    database = Database(tmp_path / "t.sqlite")
    kept(database, there, {there.decided: 3.3, blocked(1, 8): 1.8})
    elsewhere = Elsewhere(*model, database)
    elsewhere._known[str(AVX2)] = {key_of(there.problem)[:-1]: there}
    assert elsewhere.foretold(here) == []


def test_a_winner_there_is_held_against_the_default_here(tmp_path):
    model = layer(5, 32, 32)
    there, here = layouts_of(model, AVX2, AVX512)
    database, into = Database(tmp_path / "t.sqlite"), Database(tmp_path / "i.sqlite")
    kept(database, there, {blocked(1, 8): 0.7, blocked(4, 8): 0.95, blocked(8, 4): 1.4})
    found = [f.candidate for f in Elsewhere(*model, database).foretold(here)]
    assert found == [blocked(1, 16), blocked(1, 8)]  # 16 are what the default takes
    taken = transfer(model[0], AVX512, model[1], database, into)
    assert [c.candidate for c in taken] == found[:1]
    assert into.best(here).candidate == found[0]


def test_a_trial_beside_a_winner_is_kept_beside_the_default(tmp_path):
    """Later layouts are timed beside the best so far, and their scores are over the default."""
    (task,) = layouts_of(layer(5, 32, 32), AVX2)
    database = Database(tmp_path / "t.sqlite")
    kept_score, later = 0.5, blocked(4, 8)
    database.add(
        task, "local", [Measured(blocked(1, 8), [1.0], kept_score)], verified=blocked(1, 8)
    )

    class Bench:
        runner = LocalRunner()

        def build(self, choices):
            return tmp_path / "-".join(str(c) for _, c in choices)

        def times(self, paths, rounds):
            return {c: [3.0 if c == later else 2.0] * rounds for c in paths}

    search = LayoutSearch([task], database, Bench())
    search.attempt(task, [later])
    assert database.measured(task)[later] == pytest.approx(0.75)
