"""Searches for schedules: of te computations, of several, and of a model's kernels."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, relay, te
from slipway.auto_scheduler import search_task
from slipway.errors import TuningError


@auto_scheduler.register_workload("test/search/matmul")
def matmul(rows, inner, columns):
    a = te.placeholder((rows, inner), name="A")
    b = te.placeholder((inner, columns), name="B")
    k = te.reduce_axis((0, inner), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, c]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A task, its log, and the lines of the first search and of the one that went on."""
    log = tmp_path_factory.mktemp("search") / "logs" / "matmul.json"
    task = auto_scheduler.SearchTask(func=matmul, args=(24, 16, 32), target="llvm")
    options = auto_scheduler.TuningOptions(
        num_measure_trials=3, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0
    )
    task.tune(options)
    first = log.read_text().splitlines()
    model = auto_scheduler.XGBModel()
    model.update_from_file(log)
    policy = auto_scheduler.SketchPolicy(
        task, model, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)]
    )
    task.tune(options, search_policy=policy)
    return task, log, first, log.read_text().splitlines()[len(first) :]


def test_the_best_of_a_log_is_a_schedule(searched):
    task, log, _, _ = searched
    schedule, args = task.apply_best(log)
    run = tvm.build(schedule, args, "llvm")
    a, b = (np.random.default_rng(i).random(s).astype("float32")
            for i, s in enumerate([(24, 16), (16, 32)]))  # fmt: skip
    c = tvm.nd.array(np.zeros((24, 32), "float32"))
    run(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)
    assert "s[C" in task.print_best(log)


def test_what_a_log_knows_is_not_tried_again(searched):
    _, _, first, second = searched
    known, tried = ([json.loads(line) for line in lines] for lines in (first, second))
    assert len({json.dumps(line["candidate"]) for line in known}) == 3
    assert tried
    again = [line["candidate"] for line in tried]
    # The default takes part in every batch; what was faster meets it once more, for a winner was
    # so in two batches.
    others = [line for line in known[1:] if line["candidate"] in again]
    assert all(line["score"] < 1 for line in others), [line["score"] for line in others]


def test_the_log_is_one_of_classic_tvm(searched):
    task, log, first, _ = searched
    row = json.loads(first[0])
    assert row["i"][0][0] == task.workload_key == '["test/search/matmul", 24, 16, 32]'
    assert isinstance(row["i"][1][1][0][0], str)
    inputs, results = auto_scheduler.RecordReader(log).read_lines()
    assert len(inputs) == len(results)
    best, result = auto_scheduler.load_best_record(log, task.workload_key)
    assert result.verified
    assert [s[0] for s in best.state.transform_steps if s[0] == "SP"]
    assert auto_scheduler.load_best_record(log, "another") == (None, None)


def test_several_tasks_share_the_trials(tmp_path, capsys):
    tasks = [auto_scheduler.SearchTask(func=matmul, args=(n, 8, 8), target="llvm") for n in (4, 8)]
    log = tmp_path / "all.json"
    scheduler = auto_scheduler.TaskScheduler(
        tasks, [1, 2], strategy="round-robin",
        callbacks=[
            auto_scheduler.task_scheduler.PrintTableInfo(),
            auto_scheduler.task_scheduler.LogEstimatedLatency(tmp_path / "total.tsv"),
        ],
    )  # fmt: skip
    scheduler.tune(
        auto_scheduler.TuningOptions(4, measure_callbacks=[auto_scheduler.RecordToFile(log)]),
        search_policy="sketch.random",
    )
    assert scheduler.task_cts == [2, 2]
    assert scheduler.ct == 4
    assert scheduler.cur_score == pytest.approx(
        scheduler.best_costs[0] + 2 * scheduler.best_costs[1]
    )
    assert len((tmp_path / "total.tsv").read_text().splitlines()) == 2
    assert "Estimated total latency" in capsys.readouterr().out
    for task in tasks:
        task.apply_best(log)


def test_a_models_kernels_are_tasks(tmp_path):
    x = relay.var("x", shape=(1, 32), dtype="float32")
    w = relay.var("w", shape=(24, 32), dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    params = {"w": np.random.default_rng(0).random((24, 32)).astype("float32")}
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, "llvm")
    assert list(weights) == [1]
    assert "dense" in str(tasks[0].compute_dag)
    log = tmp_path / "model.json"
    tuner = auto_scheduler.TaskScheduler(tasks, weights, callbacks=[])
    tuner.tune(
        auto_scheduler.TuningOptions(2, measure_callbacks=[auto_scheduler.RecordToFile(log)])
    )
    assert json.loads(log.read_text().splitlines()[0])["op"].startswith("nn.")
    config = {"relay.backend.use_auto_scheduler": True}
    with (
        auto_scheduler.ApplyHistoryBest(log),
        tvm.transform.PassContext(opt_level=3, config=config),
    ):
        built = relay.build(mod, "llvm", params=params)
    run = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu()))
    value = np.random.default_rng(1).random((1, 32)).astype("float32")
    run.run(x=value)
    np.testing.assert_allclose(run.get_output(0).numpy(), value @ params["w"].T, rtol=1e-5)


def test_a_te_schedule_is_found_in_a_log(searched, caplog):
    task, log, _, _ = searched
    history = auto_scheduler.ApplyHistoryBest(log)
    with history:
        assert not caplog.records
    foreign = log.with_name("foreign.json")
    other = json.dumps('["d7b65649a4dd54be", 1, 1000]')  # as classic TVM calls a model's kernel
    foreign.write_text(log.read_text().replace(json.dumps(task.workload_key), other))
    with auto_scheduler.ApplyHistoryBest(foreign):
        assert "schedules of 1 computations that are registered nowhere" in caplog.text
    state = history.query("llvm", task.workload_key, dag=task.compute_dag)
    assert state.transform_steps
    assert history.query("llvm", "another") is None


def test_inputs_of_a_task_have_the_values_given(tmp_path):
    a = te.placeholder((4,), name="index", dtype="int32")
    table = te.placeholder((100,), name="table")
    c = te.compute((4,), lambda i: table[a[i]] * 2.0, name="C")
    value = tvm.nd.array(np.array([5, 99, 0, 7], "int32"))
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG([a, table, c]), target="llvm",
        task_inputs={"index": value},
    )  # fmt: skip
    assert task.task_input_names == ["index"]
    from slipway.tuning.runner import LocalRunner

    bench = task.bench(LocalRunner(), tmp_path, 1)
    assert bench.inputs[0].tolist() == [5, 99, 0, 7]
    with pytest.raises(TuningError, match="overwrite"):
        auto_scheduler.SearchTask(
            compute_dag=task.compute_dag, target="llvm", task_inputs={"index": value}
        )


def looked_up(name):
    a = te.placeholder((4,), dtype="int32", name=name)
    table = te.placeholder((8,), name="table")
    c = te.compute((4,), lambda i: table[a[i]], name="looked_up")
    return auto_scheduler.ComputeDAG([a, table, c])


def test_values_of_inputs_are_kept_in_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = tvm.nd.array(np.array([5, 1, 0, 7], "int32"))
    dag = looked_up("kept_index")
    auto_scheduler.SearchTask(
        compute_dag=dag, target="llvm", task_inputs={"kept_index": value},
        task_inputs_save_to_file=True,
    )  # fmt: skip
    monkeypatch.setattr(search_task, "TASK_INPUT_BUFFER_TABLE", {})  # as in another process
    task = auto_scheduler.SearchTask(compute_dag=dag, target="llvm", task_inputs=["kept_index"])
    (table,) = search_task.TASK_INPUT_BUFFER_TABLE.values()
    assert table["kept_index"].numpy().tolist() == [5, 1, 0, 7]
    assert task.task_input_names == ["kept_index"]
    with pytest.raises(TuningError, match=r"of the input 'other', and no file other\.npy"):
        auto_scheduler.SearchTask(compute_dag=dag, target="llvm", task_inputs=["other"])


REFUSED = {
    "an unknown workload": (
        lambda: auto_scheduler.SearchTask(func="test/search/matmull", args=(1,), target="llvm"),
        "test/search/matmul",
    ),
    "nothing": (lambda: auto_scheduler.SearchTask(target="llvm"), "needs func="),
    "an unknown policy": (
        lambda: auto_scheduler.TaskScheduler([]).tune(auto_scheduler.TuningOptions(1), "grid"),
        "sketch.random",
    ),
    "an unknown strategy": (lambda: auto_scheduler.TaskScheduler([], strategy="best"), "gradient"),
    "a workload twice": (
        lambda: auto_scheduler.register_workload("test/search/matmul", lambda: []), "override",
    ),
    "arguments that are no JSON": (
        lambda: auto_scheduler.make_workload_key(matmul, (object(),)), "not numbers",
    ),
    "a log that is not there": (
        lambda: list(auto_scheduler.load_records("nowhere/log.json")), "cannot be read",
    ),
    "a runner that is none": (lambda: auto_scheduler.TuningOptions(1, runner="pi"), "RPCRunner"),
    "a schedule of another shape": (
        lambda: auto_scheduler.ApplyHistoryBest(None, include_compatible=True), "not taken for",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("use", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_says_so(use, words):
    with pytest.raises(TuningError, match=words):
        use()


def test_a_log_without_the_task_says_what_to_do(tmp_path):
    (tmp_path / "log").write_text("")
    task = auto_scheduler.SearchTask(func=matmul, args=(3, 3, 3), target="llvm")
    with pytest.raises(TuningError, match="RecordToFile"):
        task.apply_best(tmp_path / "log")
    (tmp_path / "log").write_text('{"i": 3}\n')
    with pytest.raises(TuningError, match="line 1"):
        task.apply_best(tmp_path / "log")
