"""Templates and kernels tuned in classic TVM's words."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import autotvm, relay, rpc, te
from slipway.errors import CodegenError, TuningError
from slipway.tuning import build as tuning_build
from slipway.tuning.session import MeasuringSession


@autotvm.template("test/matmul")
def matmul(n, inner, m, dtype):
    a = te.placeholder((n, inner), name="A", dtype=dtype)
    b = te.placeholder((inner, m), name="B", dtype=dtype)
    k = te.reduce_axis((0, inner), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    (k,) = s[c].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_knob("vectorize", [False, True])
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, k, yi, xi)
    if cfg["vectorize"].val:
        s[c].vectorize(xi)
    return s, [a, b, c]


OPTION = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=2))
SIZES = (24, 16, 32, "float32")


@pytest.mark.parametrize("name", ["XGBTuner", "GATuner", "RandomTuner", "GridSearchTuner"])
def test_a_template_is_tuned_and_the_best_of_its_log_is_used(name, tmp_path):
    """The tutorial of a blocked matrix product."""
    log = tmp_path / "matmul.log"
    task = autotvm.task.create("test/matmul", args=SIZES, target="llvm")
    assert len(task.config_space) == 8 * 6 * 2
    assert task.flop == 2 * 24 * 16 * 32
    assert task.config_space.get(1)["tile_y"].size == [-1, 2]
    seen = []
    tuner = getattr(autotvm.tuner, name)(task)
    tuner.tune(
        n_trial=10,
        measure_option=OPTION,
        callbacks=[
            autotvm.callback.log_to_file(str(log)),
            autotvm.callback.progress_bar(10, prefix="[Task]"),
            lambda _, inputs, results: seen.extend(zip(inputs, results, strict=True)),
        ],
    )
    assert len(seen) == len(log.read_text().splitlines()) == 10
    assert len({i.config.index for i, _ in seen}) == 10
    assert tuner.best_flops > 0
    with autotvm.apply_history_best(str(log)) as history:
        best = history.query(task.target, task.workload)
        with tvm.target.Target("llvm"):
            s, args = matmul(*SIZES)
            func = tvm.build(s, args)
    assert best == tuner.best_config
    wanted = tvm.lower(*task.instantiate(best), simple_mode=True)
    assert str(tvm.lower(s, args, simple_mode=True)) == str(wanted)
    a, b = (
        np.random.default_rng(i).random(sh, "float32") for i, sh in ((0, (24, 16)), (1, (16, 32)))
    )
    c = tvm.nd.empty((24, 32))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_a_template_alone_uses_the_first_configuration(caplog):
    with tvm.target.Target("llvm"):
        s, args = matmul(*SIZES)
    assert "the first of its space" in caplog.text
    first = autotvm.task.create("test/matmul", SIZES, "llvm").config_space.get(0)
    task = autotvm.task.create("test/matmul", SIZES, "llvm")
    assert str(tvm.lower(s, args)) == str(tvm.lower(*task.instantiate(first)))


def test_kernels_of_a_model_are_tuned_and_the_log_is_used(tmp_path):
    x, w = relay.var("x", shape=(64, 96)), relay.var("w", shape=(80, 96))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    dense = relay.op.get("nn.dense")
    assert not autotvm.task.extract_from_program(mod["main"], target="llvm", ops=["nn.conv2d"])
    (task,) = autotvm.task.extract_from_program(mod["main"], target="llvm", params={}, ops=(dense,))
    log, best = tmp_path / "all.log", tmp_path / "best.log"
    tuner = autotvm.tuner.XGBTuner(task, loss_type="rank")
    trials = min(6, len(task.config_space))
    tuner.tune(
        n_trial=trials, early_stopping=100, measure_option=OPTION,
        callbacks=[autotvm.callback.log_to_file(log)],
    )  # fmt: skip
    assert len(list(autotvm.record.load_from_file(log))) == trials
    # A line as another machine would have found it: another tile than the default's.
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    other = next(r for r in lines if r["result"][1] == 0 and r["score"] != 1.0)
    log.write_text(json.dumps({**other, "score": 0.5, "verified": True}) + "\n")
    autotvm.record.pick_best(log, best)
    sources = []
    for chosen in (best, None):
        with (
            autotvm.apply_history_best(chosen and str(chosen)),
            tvm.transform.PassContext(opt_level=3),
        ):
            sources.append(relay.build(mod, target="llvm").get_source("ll"))
    assert sources[0] != sources[1]


def test_what_was_tried_is_not_tried_again(tmp_path, monkeypatch):
    """All take as long, so that none is faster by chance and still has to meet the best."""
    monkeypatch.setattr(
        MeasuringSession, "times", lambda _, found, n: {c: [1.0] * n for c in found}
    )
    log = tmp_path / "log"
    for _ in range(2):
        task = autotvm.task.create("test/matmul", (4, 2, 2, "float32"), "llvm")
        tuner = autotvm.tuner.GridSearchTuner(task)
        if log.exists():
            tuner.load_history(autotvm.record.load_from_file(log))
        tuner.tune(6, OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    assert [i.config.index for i, _ in autotvm.record.load_from_file(log)] == list(range(12))


def test_devices_of_a_tracker_measure():
    with (
        rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="board"),
    ):
        runner = autotvm.RPCRunner("board", host="127.0.0.1", port=tracker.port, number=5)
        tuner = autotvm.tuner.GATuner(autotvm.task.create("test/matmul", SIZES, "llvm"))
        seen = []
        tuner.tune(
            4,
            autotvm.measure_option(autotvm.LocalBuilder(), runner),
            callbacks=[lambda _, i, r: seen.extend(r)],
        )
    assert [r.error_no for r in seen] == [0] * 4


def test_a_classic_log_is_read(tmp_path):
    """Its lines say nothing of a score: the smallest mean time is the best."""
    log = tmp_path / "log"
    rows = [
        {"input": ["llvm -keys=cpu", "test/matmul", list(SIZES), {}],
         "config": {"index": i, "code_hash": None, "entity": [
             ["tile_y", "sp", [-1, size]], ["tile_x", "sp", [-1, 4]], ["vectorize", "ot", True]]},
         "result": [[cost], 0, 1.0, 2.0], "version": 0.2, "tvm_version": "0.9"}
        for i, (size, cost) in enumerate([(1, 0.3), (8, 0.1), (4, 0.2)])
    ]  # fmt: skip
    log.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
        s, args = matmul(*SIZES)
    task = autotvm.task.create("test/matmul", SIZES, "llvm")
    history = autotvm.ApplyHistoryBest(log)
    config = history.query("llvm", task.workload)
    assert config["tile_y"].size == [-1, 8]
    for table, key in ((history.best_by_targetkey, "cpu"), (history.best_by_model, "unknown")):
        (inp, result) = table[key, task.workload]
        assert (inp.config, result.costs) == (config, (0.1,))
    assert str(tvm.lower(s, args)) == str(tvm.lower(*task.instantiate(config)))


def test_a_wrong_configuration_cannot_win(tmp_path):
    """Knob 1 computes something else, and faster."""

    @autotvm.template("test/wrong")
    def wrong(n):
        cfg = autotvm.get_config()
        a = te.placeholder((n,), name="A")
        cfg.define_knob("wrong", [0, 1])
        k = te.reduce_axis((0, 500), name="k")
        if cfg["wrong"].val:
            c = te.compute((n,), lambda i: a[i], name="C")
        else:
            c = te.compute((n,), lambda i: te.sum(te.sin(a[i] + k), axis=k), name="C")
        return te.create_schedule(c.op), [a, c]

    seen = []
    tuner = autotvm.tuner.GridSearchTuner(autotvm.task.create("test/wrong", (256,), "llvm"))
    tuner.tune(2, OPTION, callbacks=[lambda _, i, r: seen.extend(r)])
    assert [r.error_no for r in seen] == [0, autotvm.MeasureErrorNo.WRONG_ANSWER]
    assert tuner.best_config.index == 0


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: autotvm.task.create("test/matmull", (), "llvm"), "Did you mean 'test/matmul'"),
        (lambda: autotvm.measure_option(runner=3), "LocalRunner"),
        (lambda: autotvm.apply_history_best("no-such-log"), "cannot be read"),
        (
            lambda: autotvm.task.create("test/matmul", SIZES, "llvm").config_space["tile_z"],
            "Did you mean 'tile_",
        ),
    ],
)
def test_what_cannot_be_done_says_so(use, words):
    with pytest.raises(TuningError, match=words):
        use()


def test_a_log_of_kernels_from_elsewhere_says_that_it_changes_nothing(tmp_path, caplog):
    """And a history may be several logs, by path or open."""
    line = {
        "input": ["llvm -keys=cpu", "conv2d_NCHWc.x86",
                  [["TENSOR", [1, 3, 8, 8], "float32"], ["TENSOR", [4, 3, 3, 3], "float32"],
                   [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}],
        "config": {"index": 0, "code_hash": None, "entity": [["tile_ic", "sp", [-1, 1]]]},
        "result": [[0.0065], 0, 1.16, 1698322629.8], "version": 0.2, "tvm_version": "0.15.dev0",
    }  # fmt: skip
    log = tmp_path / "classic.log"
    log.write_text(json.dumps(line) + "\n")

    class OtherPath:
        """Not pathlib's: py.path and what tests of classic TVM give."""

        def __fspath__(self):
            return str(log)

    with log.open() as file, autotvm.apply_history_best([str(log), file, log, OtherPath()]):
        pass
    assert [r.message.partition(":")[0] for r in caplog.records] == [
        "the log has trials of conv2d_NCHWc.x86"
    ]


def test_a_line_that_is_no_trial_is_named(tmp_path):
    (tmp_path / "log").write_text("\n{}\n")
    with pytest.raises(TuningError, match="line 2: this is no trial"):
        autotvm.apply_history_best(tmp_path / "log")


def test_a_time_beyond_all_numbers_is_no_trial():
    task = autotvm.task.create("test/matmul", args=SIZES, target="llvm")
    trial = autotvm.MeasureInput(task.target, task, task.config_space.get(0))
    row = json.loads(autotvm.record.encode(trial, autotvm.MeasureResult((1.0,), 0, 1.0, 2.0)))
    row["result"][0] = [10**400]
    with pytest.raises(TuningError, match=r"this is no trial of .* \(OverflowError"):
        autotvm.record.decode(json.dumps(row))


def test_candidates_are_compiled_together_and_alone_only_to_find_one_that_is_refused(
    tmp_path, monkeypatch
):
    task = autotvm.task.create("test/matmul", args=SIZES, target="llvm")
    candidates = [task.config_space.candidate(index) for index in (0, 5, 11)]
    compile_loops, sizes = tuning_build.build, []

    def counted(module, target=None):
        sizes.append(len(module.functions))
        return compile_loops(module, target=target)

    def refusing(module, target=None):
        if "candidate_1" in [name for name, _ in module.items()]:
            raise CodegenError("too large")
        return counted(module, target)

    monkeypatch.setattr(tuning_build, "build", counted)
    built = task.job(candidates).run(tmp_path / "all.so")
    assert sizes == [3]
    assert set(built.functions) == set(candidates)
    sizes.clear()
    monkeypatch.setattr(tuning_build, "build", refusing)
    built = task.job(candidates).run(tmp_path / "some.so")
    assert sizes == [1, 1, 2]
    assert built.errors == {candidates[1]: "CodegenError: too large"}
    assert set(built.functions) == {candidates[0], candidates[2]}
    assert built.path == tmp_path / "some.so"


def test_a_template_is_called_as_its_function_and_given_as_it():
    """As scripts of TVM 0.6 have it: no name, and the function itself for the task."""

    @autotvm.template
    def scaled_rows(n):
        a = te.placeholder((n, 8), name="a")
        b = te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="b")
        s = te.create_schedule(b.op)
        autotvm.get_config().define_split("tile", b.op.axis[1], num_outputs=2)
        return s, [a, b]

    by_function = autotvm.task.create(scaled_rows, args=(4,), target="llvm")
    by_name = autotvm.task.create("scaled_rows", args=(4,), target="llvm")
    assert by_function.name == by_name.name == "scaled_rows"
    assert len(by_function.config_space) == len(by_name.config_space) == 4


def test_the_best_of_a_graph_are_written_and_applied(tmp_path):
    """The lines of the classic tutorial for a network on x86, the graph tuner's among them."""
    from slipway.autotvm.graph_tuner import DPTuner, PBQPTuner

    data = relay.var("data", shape=(1, 8, 10, 10))
    kernel = relay.var("kernel", shape=(24, 8, 3, 3))
    body = relay.nn.relu(relay.nn.conv2d(data, kernel, padding=(1, 1), channels=24,
                                         kernel_size=(3, 3)))  # fmt: skip
    mod = tvm.IRModule.from_expr(relay.Function([data, kernel], body))
    params = {"kernel": np.random.default_rng(0).normal(size=(24, 8, 3, 3)).astype("float32")}
    conv = relay.op.get("nn.conv2d")
    log, chosen = tmp_path / "conv.log", tmp_path / "graph.log"
    tasks = autotvm.task.extract_from_program(
        mod["main"], target="llvm", params=params, ops=(conv,)
    )
    for task in tasks:
        autotvm.tuner.RandomTuner(task).tune(
            3, OPTION, callbacks=[autotvm.callback.log_to_file(log)]
        )
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    other = next(r for r in lines if r["result"][1] == 0 and r["score"] != 1.0)
    log.write_text(json.dumps({**other, "score": 0.5, "verified": True}) + "\n")
    found = []
    for kind in (DPTuner, PBQPTuner):
        tuner = kind(mod["main"], {"data": (1, 8, 10, 10)}, str(log), [conv], "llvm")
        tuner.benchmark_layout_transform(min_exec_num=10)
        with pytest.raises(TuningError, match="run"):
            tuner.write_opt_sch2record_file(chosen)
        tuner.run()
        tuner.write_opt_sch2record_file(chosen)
        found.append(chosen.read_text())
    assert found[0] == found[1]
    sources = []
    for context in (autotvm.apply_graph_best(str(chosen)), autotvm.apply_history_best(None)):
        with context, tvm.transform.PassContext(opt_level=3):
            sources.append(relay.build(mod, target="llvm", params=params).get_source("ll"))
    assert sources[0] != sources[1]
    elsewhere = DPTuner(mod["main"], {"data": (1, 8, 10, 10)}, str(log), [conv], "llvm -mcpu=atom")
    with pytest.raises(TuningError, match=r"no good record of nn\.conv2d"):
        elsewhere.run()
    with pytest.raises(TuningError, match="no input 'image'"):
        DPTuner(mod["main"], {"image": (1,)}, str(log), [conv], "llvm")


def test_a_kernel_that_moves_elements_has_a_speed_too():
    """One operation an element: the best of such a task is told from none."""
    data = relay.var("data", shape=(1, 64, 14, 14))
    weight = relay.var("weight", shape=(64, 64, 3, 3))
    module = tvm.IRModule.from_expr(relay.nn.conv2d(data, weight, padding=(1, 1)))
    tasks = autotvm.task.extract_from_program(module["main"], {}, "llvm")
    assert any("layout_transform" in str(task) for task in tasks)
    assert all(task.flop > 0 for task in tasks)


def test_a_kernel_that_joins_tensors_is_a_task_of_all_of_them():
    """The operand of a concatenation is a tuple."""
    x, y = (relay.var(name, shape=(1, 5, 6 + i, 7)) for i, name in enumerate("xy"))
    module = tvm.IRModule.from_expr(relay.concatenate([x, y], axis=2))
    (task,) = autotvm.task.extract_from_program(module["main"], {}, "llvm")
    assert task.args == (
        ("TENSOR", (1, 5, 6, 7), "float32"), ("TENSOR", (1, 5, 7, 7), "float32"),
    )  # fmt: skip
    assert task.flop > 0


def test_an_empty_log_has_no_configuration_of_a_template():
    """A template's arguments are numbers, which are no tensors' shapes."""
    task = autotvm.task.create("test/matmul", args=SIZES, target="llvm")
    assert autotvm.apply_history_best(None).query(task.target, task.workload) is None


@autotvm.template("test/raises")
def raises_from(n, minimum):
    """Raise for every part of `minimum` or more."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_split("part", s[b].op.axis[0], num_outputs=2)
    if cfg["part"].size[1] >= minimum:
        raise IndexError(f"no part of {cfg['part'].size[1]}")
    cfg["part"].apply(s, b, s[b].op.axis[0])
    return s, [a, b]


def test_an_error_of_a_template_is_that_of_one_trial():
    task = autotvm.task.create("test/raises", args=(64, 4), target="llvm")
    results = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(7, OPTION, callbacks=[lambda _, inputs, found: results.extend(found)])
    failed = [r.costs[0] for r in results if r.error_no]
    assert failed == [f"IndexError: no part of {n}" for n in (4, 8, 16, 32, 64)]
    assert len(results) == 7


def test_a_template_that_raises_again_and_again_ends_the_search_with_the_first_error():
    task = autotvm.task.create("test/raises", args=(3 * 5 * 7 * 11 * 13, 2), target="llvm")
    tuner = autotvm.tuner.GridSearchTuner(task)
    with pytest.raises(TuningError, match=r"16 trials.*the first: IndexError: no part of 3"):
        tuner.tune(31, OPTION)


def test_one_configuration_is_applied_to_every_template():
    task = autotvm.task.create("test/matmul", args=SIZES, target="llvm")
    texts = []
    for config in (task.config_space.get(1), task.config_space.get(0)):
        with autotvm.task.ApplyConfig(config) as applied, tvm.target.Target("llvm"):
            assert applied.query(task.target, task.workload) is config
            texts.append(str(tvm.lower(*matmul(*SIZES), simple_mode=True)))
    assert texts[0] != texts[1]
    s, args = task.instantiate(task.config_space.get(1))
    assert texts[0] == str(tvm.lower(s, args, simple_mode=True))


def test_how_to_measure_is_a_dictionary_too():
    """As the classic function returns one, which scripts change."""
    tuner = autotvm.tuner.RandomTuner(autotvm.task.create("test/matmul", SIZES, "llvm"))
    tuner.tune(2, {"builder": OPTION["builder"], "runner": OPTION["runner"]})
    assert tuner.best_flops > 0
