"""Sketch rules of a script's own: what they make is searched, and computes what it should."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, te
from slipway.auto_scheduler import PreloadCustomSketchRule as Rule
from slipway.auto_scheduler import _ffi_api
from slipway.auto_scheduler.loop_state import State
from slipway.errors import TuningError

ROWS, INNER, COLUMNS = 12, 10, 24


def product_dag():
    a = te.placeholder((ROWS, INNER), name="A")
    b = te.placeholder((INNER, COLUMNS), name="B")
    k = te.reduce_axis((0, INNER), name="k")
    c = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute(
        c.shape, lambda i, j: tvm.tir.max(c[i, j] - 1.0, tvm.tir.const(0.0, "float32")), name="D"
    )
    return auto_scheduler.ComputeDAG([a, b, d])


def task_of(target="llvm -mcpu=znver3"):
    return auto_scheduler.SearchTask(compute_dag=product_dag(), target=target)


def at(name, answer=Rule.APPLY_AND_SKIP_REST):
    def condition(policy, state, stage):
        state = State(state, policy.search_task.compute_dag)
        return answer if state.stages[stage].op.name == name else Rule.PASS

    return condition


def tiled_in_reader(policy, state, stage):
    """As the sparse rules of classic TVM: open tiles, computed in the tiles of the reader."""
    s = State(state, policy.search_task.compute_dag)
    consumers = _ffi_api.SearchPolicyUtilsGetConsumers(policy.search_task, s.state_object, stage)
    assert len(consumers) == 1
    number = int(consumers.items()[0][0])
    assert _ffi_api.SearchPolicyUtilsIsElementwiseMatch(policy.search_task, state, stage, number)
    c, d = s.stages[stage].op, s.stages[number].op
    i, j, k = s[c].iters
    m, n = s[d].iters
    i0, i1, i2 = s.split(c, i, [None, None])
    assert (i0.range, i2.length) == (None, None)
    m0, m1 = s.follow_split(d, m, len(s.transform_steps) - 1, 1)
    j0, j1 = s.split(c, j, [None])
    n0, n1 = s.follow_split(d, n, len(s.transform_steps) - 1, 1)
    s.reorder(c, [i0, j0, i1, k, i2, j1])
    s.reorder(d, [m0, n0, m1, n1])
    s.compute_at(c, d, n0)
    assert _ffi_api.SearchPolicyUtilsIsTiled(policy.search_task, s, stage)
    return [[s.state_object, stage - 1]]


def plain_or_split(policy, state, stage):
    s = State(state, policy.search_task.compute_dag)
    split = s.copy()
    op = split.stages[stage].op
    split.split(op, split[op].iters[0], [4])
    return [[s, stage - 1], [split, stage - 1]]


def with_a_cache(policy, state, stage):
    s = State(state, policy.search_task.compute_dag)
    s.cache_write(s.stages[stage].op, "local")
    return [s.state_object, stage - 1]  # a pair alone, as some classic rules return it


RULES = {
    "open tiles in the reader": [Rule(at("C"), tiled_in_reader, "mine")],
    "two states": [Rule(at("C"), plain_or_split, "mine")],
    "beside ours": [Rule(at("C", Rule.APPLY), plain_or_split, "mine")],
    "the stage that a product is computed in": [Rule(at("D"), plain_or_split, "mine")],
    "a stage more": [Rule(at("C", True), with_a_cache, "mine")],
    "two rules": [
        Rule(at("D"), lambda _, s, n: [[s, n - 1]], "d"),
        Rule(at("C"), tiled_in_reader, "c"),
    ],
}


def policy_of(task, *rules):
    return auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), init_search_callbacks=list(rules), verbose=0
    )


@pytest.mark.parametrize("name", RULES)
def test_what_rules_make_computes_the_same(name):
    task = task_of()
    policy_of(task, *RULES[name])
    rng = random.Random(name)
    x, y = np.random.default_rng(0).normal(size=(2, 24, 24)).astype("float32")
    x, y = x[:ROWS, :INNER], y[:INNER, :COLUMNS]
    kinds = task.space.defaults
    assert any("mine at" in kind or "c at" in kind for kind in kinds)
    for candidate in (*kinds.values(), task.space.sample(rng), task.space.sample(rng)):
        assert task.space.canonical(candidate) == candidate
        schedule, args = task.scheduled(candidate)
        result = tvm.nd.array(np.zeros((ROWS, COLUMNS), "float32"))
        tvm.build(schedule, args, target="llvm")(tvm.nd.array(x), tvm.nd.array(y), result)
        np.testing.assert_allclose(result.numpy(), np.maximum(x @ y - 1, 0), 1e-5, 1e-5)


def test_kinds_of_sketches():
    task = task_of()
    policy = policy_of(task, *RULES["beside ours"])
    assert list(task.space.values) == ["tiles; mine at C, 0", "tiles; mine at C, 1", "tiles"]
    assert len(policy.generate_sketches()) == 3
    policy_of(task)  # a policy without rules: the sketches that there are
    assert list(task.space.values) == ["tiles"]
    policy_of(task, *RULES["open tiles in the reader"])
    (knobs,) = task.space.values.values()
    assert {"C.i/0", "C.i/1", "C.j/0", "D/parallel", "D/vector"} <= set(knobs)
    lengths = {dict(c.knobs)["C.i/1"] for c in task.space.neighbours(task.space.default)}
    assert all(ROWS % n == 0 for n in lengths)


def test_a_search_with_a_rule_and_its_log(tmp_path):
    log, task = str(tmp_path / "log.json"), task_of("llvm")
    option = auto_scheduler.TuningOptions(
        8, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0
    )
    task.tune(option, policy_of(task, *RULES["open tiles in the reader"]))
    records = list(auto_scheduler.load_records(log))
    assert len(records) == 8
    assert all("mine at C" in inp.state.candidate.strategy for inp, _ in records)
    assert not any(None in step for inp, _ in records for step in inp.state.transform_steps)
    schedule, args = task_of("llvm").apply_best(log)  # another process has no rule
    assert tvm.build(schedule, args, target="llvm")
    known = auto_scheduler.PreloadMeasuredStates(log)
    again = policy_of(task, *RULES["open tiles in the reader"], known)
    assert len(again.tuner._log.known) == 8


def _returning(value):
    return [Rule(at("C"), lambda *_: value, "mine")]


def _other_state(policy, state, stage):
    return [[product_dag().get_init_state(), stage - 1]]


def _backwards(policy, state, stage):
    return [[state, stage]]


REFUSED = {
    "no state": (_returning([]), "'mine' applies to stage 2 and returned no state"),
    "no pairs": (_returning([5]), r"'mine' returned 5 for stage 2: it returns a list of \[state"),
    "an answer that is none": ([Rule(lambda *_: "yes", _backwards)], "returned 'yes': it is"),
    "the same stage for ever": ([Rule(at("C"), _backwards, "mine")], r"\(mine\) do not come to an"),
    "a state of the start": (
        [Rule(at("D"), plain_or_split), Rule(at("C"), _other_state, "mine")],
        "mine at C returned a state that is not the one",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_rule_that_goes_wrong_is_named(name):
    rules, message = REFUSED[name]
    task = task_of()
    with pytest.raises(TuningError, match=message):
        policy_of(task, *rules).generate_sketches()
        task.config_of(list(task.space.defaults.values())[-1])


def test_what_a_rule_raises_is_its_own():
    def broken(policy, state, stage):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        policy_of(task_of(), Rule(at("C"), broken)).generate_sketches()
    with pytest.raises(TuningError, match="takes two functions"):
        Rule(at("C"), None)
    with pytest.raises(TuningError, match="there is no stage 9: the state has 4"):
        _ffi_api.SearchPolicyUtilsGetConsumers(None, product_dag().init_state, 9)
