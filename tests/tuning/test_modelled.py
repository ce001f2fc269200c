"""Tuning without a device: on a modelled core, whose times have no noise, and in node."""

import shutil

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.cli.exit_codes import OptionError
from slipway.cli.tune import runner_of
from slipway.errors import ToolchainError
from slipway.tuning import runner
from slipway.tuning.database import Database
from slipway.tuning.measure import kernel_bench
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import ModelledRunner, NodeRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks

CORE = ModelledRunner("cortex-a53")
needs_emulator = pytest.mark.skipif(
    shutil.which("qemu-aarch64") is None, reason="qemu-aarch64 (apt install qemu-user) is missing"
)


@pytest.fixture(scope="module")
def task():
    x, w = relay.var("x", shape=(5, 48)), relay.var("w", shape=(56, 48))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return next(t for t in extract_tasks(module, CORE.target) if "dense" in t.op)


@needs_emulator
def test_a_search_finds_the_same_twice_and_its_winner_is_right(task, tmp_path):
    found = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        database = Database(tmp_path / str(number) / "t.sqlite")
        with kernel_bench(task, CORE, tmp_path / str(number)) as bench:
            search = TaskSearch(task, database, bench)
            search.step(4)
            assert bench.verify(search.best) == ""
        trials = database.trials(task, CORE.device)
        assert all(len(t.seconds) == 1 for t in trials if not t.kind)
        found.append((search.best, {t.candidate: t.score for t in trials}))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], rel=0.01)


@needs_emulator
def test_a_longer_loop_takes_longer_and_another_core_another_time(task, tmp_path):
    def seconds(runner, rows):
        x, w = relay.var("x", shape=(rows, 64)), relay.var("w", shape=(64, 64))
        module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
        one = next(t for t in extract_tasks(module, runner.target) if "dense" in t.op)
        with kernel_bench(one, runner, tmp_path) as bench:
            (default,) = bench.measure([])
        return default.seconds[0]

    short, long = seconds(CORE, 8), seconds(CORE, 64)
    assert 5 < long / short < 10
    assert seconds(ModelledRunner("cortex-a76"), 64) < long / 3


@pytest.mark.skipif(shutil.which("node") is None, reason="node (apt install nodejs) is missing")
def test_webassembly_is_measured_in_node(tmp_path):
    node = NodeRunner()
    x, w = relay.var("x", shape=(5, 48)), relay.var("w", shape=(56, 48))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    task = next(t for t in extract_tasks(module, node.target) if "dense" in t.op)
    others = list(task.space.neighbours(task.space.default))[:2]
    with kernel_bench(task, node, tmp_path, rounds=3) as bench:
        measured = {m.candidate: m for m in bench.measure(others)}
        assert bench.verify(others[0]) == ""
    assert set(measured) == {task.space.default, *others}
    assert all(len(m.seconds) >= 2 and m.score > 0 for m in measured.values())
    assert runner_of(None, 9090, "", None, None, "node") == node


def test_node_runs_its_optimised_code_from_the_first_run_on(monkeypatch):
    """The first compiler's, several times as slow, would be told for a candidate's time."""
    commands = []

    class Begun(Exception):
        pass

    def begun(command, **_):
        commands.append(command)
        raise Begun

    monkeypatch.setattr(runner, "PopenSession", begun)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(Begun):
        NodeRunner().open()
    assert commands[0][:2] == ["/usr/bin/node", "--no-liftoff"]


def test_a_core_is_asked_for_alone_and_by_a_known_name():
    assert runner_of(None, 9090, "", None, None, "cortex-a72") == ModelledRunner("cortex-a72")
    with pytest.raises(OptionError, match="--core is a model here"):
        runner_of("pi.local", 9090, "", None, None, "cortex-a72")
    with pytest.raises(ToolchainError, match=r"no model of a core 'a72'.*cortex-a72"):
        runner_of(None, 9090, "", None, None, "a72")


@pytest.mark.skipif(shutil.which("node") is None, reason="node (apt install nodejs) is missing")
def test_a_whole_model_is_timed_in_node(tmp_path):
    """Layouts and the last word need it: a .wasm file is read by node, not here."""
    x, w = relay.var("x", shape=(5, 48)), relay.const(np.ones((16, 48), "float32"))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, w)))
    target = tvm.target.Target(NodeRunner().target)
    prepared = relay.transform.InferType()(module)
    with ModelBench(prepared, target, {}, NodeRunner(), tmp_path) as bench:
        path = bench.build([])
        (times,) = bench.times({candidate_of("plain", {}): path}, 2).values()
        assert bench.verify(path) == ""
    assert len(times) >= 2
    assert min(times) > 0
