"""What scripts do beside a search: they build, measure, predict, and steer it by own parts."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, relay, te, topi
from slipway.auto_scheduler import workload_registry
from slipway.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key
from slipway.errors import TuningError


@auto_scheduler.register_workload("test/own_parts/looked_up")
def looked_up(rows, columns):
    a = te.placeholder((rows, columns), name="A")
    index = te.placeholder((columns,), name="own_parts_index", dtype="int32")
    k = te.reduce_axis((0, columns), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, index[k]], axis=k), name="B")
    return [a, index, b]


@pytest.fixture(scope="module")
def task():
    index = tvm.nd.array(np.arange(48, dtype="int32")[::-1].copy())
    return auto_scheduler.SearchTask(
        func=looked_up, args=(9, 48), target="llvm", task_inputs={"own_parts_index": index},
        task_inputs_overwrite=True,
    )  # fmt: skip


def test_a_script_builds_and_measures_by_itself(task):
    states = auto_scheduler.SketchPolicy(task).sample_initial_population(2)
    inputs = [auto_scheduler.MeasureInput(task, s) for s in (task.compute_dag.init_state, *states)]
    libraries = auto_scheduler.LocalBuilder().build(inputs)
    assert [one.error_no for one in libraries] == [0, 0, 0]
    assert all(Path(one.filename).is_file() for one in libraries)
    for runner in (
        auto_scheduler.LocalRunner(repeat=2, enable_cpu_cache_flush=True),
        auto_scheduler.LocalRPCMeasureContext(repeat=2).runner,
    ):
        results = runner.run(inputs, libraries)
        assert [(one.error_no, len(one.costs)) for one in results] == [(0, 2)] * 3
        assert results[0].verified
    assert str(results[0]).startswith("MeasureResult(cost:[")
    assert np.mean([cost.value for cost in results[0].costs]) > 0  # as classic scripts read them


def test_a_wrong_library_has_no_times(task):
    first = auto_scheduler.MeasureInput(task, task.compute_dag.init_state)
    (library,) = auto_scheduler.LocalBuilder().build([first])
    a, index, _ = task.compute_dag.tensors
    wrong = te.compute((9,), lambda i: a[i, index[0]], name="B")
    tvm.build(te.create_schedule(wrong.op), [a, index, wrong], "llvm").export_library(
        library.filename
    )
    (result,) = auto_scheduler.LocalRunner().run([first], [library])
    assert result.error_no == auto_scheduler.measure.MeasureErrorNo.WRONG_ANSWER
    assert result.costs == []


def test_kernels_of_models_are_built_and_measured():
    x = relay.var("x", shape=(1, 20), dtype="float32")
    w = relay.var("w", shape=(12, 20), dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    (kernel,), _ = auto_scheduler.extract_tasks(mod, {"w": np.ones((12, 20), "float32")}, "llvm")
    state = kernel.config_of(kernel.space.default)
    inputs = [auto_scheduler.MeasureInput(kernel, state)]
    (result,) = auto_scheduler.LocalRunner().run(
        inputs, auto_scheduler.LocalBuilder().build(inputs)
    )
    assert result.error_no == 0


def test_hardware_is_the_targets_where_nothing_else_is_said():
    cpu = auto_scheduler.HardwareParams(target="llvm -mcpu=znver4 -num-cores 6")
    assert (cpu.num_cores, cpu.vector_unit_bytes, cpu.cache_line_bytes) == (6, 64, 64)
    gpu = auto_scheduler.HardwareParams(
        cache_line_bytes=128, target=tvm.target.Target("cuda"), target_host="llvm"
    )
    assert (gpu.cache_line_bytes, gpu.warp_size, gpu.max_threads_per_block) == (128, 32, 1024)
    assert auto_scheduler.HardwareParams(4, 32).num_cores == 4
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    with pytest.raises(TuningError, match="num_cores is '8'"):
        auto_scheduler.HardwareParams("8")


def test_models_say_what_they_expect(task):
    policy = auto_scheduler.SketchPolicy(task)
    states = policy.sample_initial_population(40)
    inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
    # As if a candidate were the faster the shorter its list of steps is.
    results = [
        auto_scheduler.MeasureResult([1e-4 * len(s.transform_steps)], 0, "", 0.1, 0.0)
        for s in states
    ]
    model = auto_scheduler.XGBModel()
    model.update(inputs, results)
    expected = model.predict(task, states)
    assert len(expected) == 40
    assert all(0 < one <= 1 for one in expected)
    lengths = np.array([len(s.transform_steps) for s in states])
    if len(set(lengths)) > 1:
        assert np.corrcoef(expected, lengths)[0, 1] < 0
    assert model.predict(task, [task.compute_dag.init_state]) == [0.0]
    assert len(auto_scheduler.RandomModel().predict(task, states)) == 40


def test_a_model_of_a_scripts_own_orders_candidates(task):
    class Shortest(auto_scheduler.cost_model.PythonBasedModel):
        predicted = told = 0

        def update(self, inputs, results):
            self.told += len(inputs)

        def predict(self, search_task, states):
            self.predicted += len(states)
            return [-len(state.transform_steps) for state in states]

    model = Shortest()
    policy = auto_scheduler.SketchPolicy(task, model)
    policy.run(auto_scheduler.TuningOptions(3, verbose=0))
    assert model.predicted >= 3
    assert model.told >= 3

    class Short(Shortest):
        def predict(self, search_task, states):
            return [0.0]

    with pytest.raises(TuningError, match=r"Short\.predict returned 1 numbers for"):
        auto_scheduler.SketchPolicy(task, Short()).run(auto_scheduler.TuningOptions(3, verbose=0))


@auto_scheduler.register_workload("test/own_parts/plus")
def plus(n):
    a = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    return [a, te.compute((n, n), lambda i, j: te.sum(a[i, k] + a[k, j], axis=k), name="B")]


def test_trials_go_where_the_objective_gains():
    tasks = [auto_scheduler.SearchTask(func=plus, args=(n,), target="llvm") for n in (12, 24)]

    class Told(auto_scheduler.task_scheduler.TaskSchedulerCallback):
        before, after = [], []

        def pre_tune(self, task_scheduler, task_id):
            self.before.append(task_id)

        def post_tune(self, task_scheduler, task_id):
            self.after.append(task_id)

    told = Told()
    scheduler = auto_scheduler.TaskScheduler(
        tasks, objective_func=lambda costs: costs[0], callbacks=[told]
    )
    scheduler.tune(auto_scheduler.TuningOptions(6, num_measures_per_round=1))
    assert scheduler.task_cts == [5, 1]
    assert told.before == told.after == [0, 1, 0, 0, 0, 0]
    assert scheduler.cur_score == scheduler.best_costs[0]


def test_workloads_are_called_as_where_they_are_defined():
    def one():
        @auto_scheduler.register_workload
        def inner():
            return plus(4)

        return inner

    def other():
        @auto_scheduler.register_workload
        def inner():
            return plus(5)

        return inner

    keys = [auto_scheduler.make_workload_key(made(), ()) for made in (one, other)]
    assert all(json.loads(key)[0].endswith("<locals>.inner") for key in keys)
    assert len(set(keys)) == 2
    assert auto_scheduler.utils.get_func_name(plus) == "plus"


def test_a_workload_goes_to_another_process():
    data = workload_registry.serialize_workload_registry_entry('["test/own_parts/plus", 4]')
    workload_registry.WORKLOAD_FUNC_REGISTRY.pop("test/own_parts/plus")
    workload_registry.deserialize_workload_registry_entry(data)
    assert len(workload_registry.workload_key_to_tensors('["test/own_parts/plus", 4]')) == 2
    with pytest.raises(TuningError, match="no workload of the key"):
        workload_registry.serialize_workload_registry_entry('["test/own_parts/minus", 4]')


def distance(one, other):
    return calc_workload_dis_factor(decode_workload_key(one), decode_workload_key(other))


def test_how_often_a_workload_fits_into_another():
    wanted = '["f", [8, 3, 32], [2, 0], "float32"]'
    assert decode_workload_key(wanted) == ("f", (8, 3, 32, 2, 0, "float32"))
    assert decode_workload_key("no json") == ("no json", None)
    assert distance(wanted, wanted) == 1
    assert distance(wanted, '["f", [2, 3, 16], [1, 0], "float32"]') == 16
    for other in (
        '["f", [3, 3, 32], [2, 0], "float32"]', '["f", [8, 3, 32], [2, 1], "float32"]',
        '["f", [8, 3, 32], [2, 0], "int8"]', '["g", [8, 3, 32], [2, 0], "float32"]',
        '["f", [8, 3], [2, 0], "float32"]', '["f", [0, 3, 32], [2, 0], "float32"]',
    ):  # fmt: skip
        assert distance(wanted, other) == float("inf")


def test_a_copied_state_knows_operations_that_copies_replaced():
    a = te.placeholder((8, 8), name="A")
    b = topi.nn.relu(a)
    c = topi.nn.softmax(b)
    dag = auto_scheduler.ComputeDAG([a, c])
    state = dag.get_init_state()
    written = state.cache_write(c, "global")
    state.cache_read(b, "global", [state.stages[2].op])
    bounded = dag.infer_bound_from_state(state)
    assert bounded[written].op.name == state[written].op.name
    assert len(bounded[c].iters) == len(state[c].iters) == 2


def test_copies_of_one_tensor_have_names_of_their_own():
    a = te.placeholder((4, 4), name="A")
    b, c = (te.compute((4, 4), lambda i, j, n=n: a[i, j] + n, name=f"B{n}") for n in (1.0, 2.0))
    s = te.create_schedule([b.op, c.op])
    names = [s.cache_read(a, "local", [reader]).op.name for reader in (b, c)]
    assert names == ["A.local", "A.d.local"]


def test_what_classic_scripts_name_beside(tmp_path):
    """One schedule without a search, the model in a file, children of states, layouts."""
    log, file = tmp_path / "log.json", tmp_path / "model"
    task = auto_scheduler.SearchTask(
        func=named_sum, args=(24, 36), target="llvm",
        layout_rewrite_option=auto_scheduler.LayoutRewriteOption.NO_REWRITE,
    )  # fmt: skip
    kinds = auto_scheduler.LayoutRewriteOption
    assert kinds.get_target_default(task.target) == kinds.INSERT_TRANSFORM_STAGE
    assert kinds.get_target_default(task.target, True) == kinds.REWRITE_FOR_PRE_TRANSFORMED
    assert kinds.get_target_default(tvm.target.Target("opencl")) == kinds.NO_REWRITE
    options = auto_scheduler.TuningOptions(
        num_measure_trials=20, measure_callbacks=[auto_scheduler.RecordToFile(str(log))], verbose=0
    )
    task.tune(options, search_policy=auto_scheduler.EmptyPolicy(task))
    ((_, result),) = auto_scheduler.load_records(log)
    assert result.verified
    model = auto_scheduler.XGBModel()
    model.update_from_file(log)
    model.save(file)
    policy = auto_scheduler.SketchPolicy(task, auto_scheduler.XGBModel(model_file=str(file)))
    assert len(policy.model.records) == 1
    merged = tmp_path / "merged.json"
    auto_scheduler.save_records(merged, *zip(*auto_scheduler.load_records(log), strict=True))
    assert json.loads(merged.read_text()) == json.loads(log.read_text())
    first = policy.sample_initial_population(8)
    states = policy.evolutionary_search(first, 5)
    assert len(states) == 5
    for state in states:
        tvm.lower(*task.compute_dag.apply_steps_from_state(state))
    assert not auto_scheduler.is_auto_scheduler_enabled()
    with tvm.transform.PassContext(config={"relay.backend.use_auto_scheduler": True}):
        assert auto_scheduler.is_auto_scheduler_enabled()


@auto_scheduler.register_workload
def named_sum(n, m):
    a = te.placeholder((n, m), name="a")
    k = te.reduce_axis((0, m), name="k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="out")]


def test_a_line_that_was_cut_costs_itself_only(tmp_path, caplog):
    log, best = tmp_path / "log.json", tmp_path / "best.json"
    task = auto_scheduler.SearchTask(func=named_sum, args=(24, 36), target="llvm")
    options = auto_scheduler.TuningOptions(
        num_measure_trials=1, measure_callbacks=[auto_scheduler.RecordToFile(str(log))], verbose=0
    )
    task.tune(options)
    whole = log.read_text()
    log.write_text(whole + whole[:50] + "\n" + '{"op": "nn.dense", "attrs"')
    auto_scheduler.save_records(log, *zip(*auto_scheduler.load_records(log), strict=True))
    assert len(log.read_text().splitlines()) == 4
    assert len(list(auto_scheduler.load_records(log))) == 2
    assert f"{log}, line 3 ends too early" in caplog.text
    auto_scheduler.distill_record_file(log, best)
    tvm.lower(*task.apply_best(best))
    with auto_scheduler.ApplyHistoryBest(log) as history:
        assert history.query("llvm", task.workload_key) is not None


def test_states_of_a_log_have_their_bounds(task, tmp_path):
    """`inputs[0].state` of a RecordReader is what `infer_bound_from_state` takes."""
    log = tmp_path / "t.json"
    state = auto_scheduler.SketchPolicy(task).sample_initial_population(1)[0]
    given = auto_scheduler.MeasureInput(task, state)
    result = auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1)
    auto_scheduler.save_records(str(log), [given], [result])
    inputs, results = auto_scheduler.RecordReader(str(log)).read_lines()
    assert results[0].costs[0].value == 0.1
    dag = task.compute_dag
    found, known = (dag.infer_bound_from_state(s) for s in (inputs[0].state, state))
    assert str(found) == str(known)
    assert str(found) != str(dag.get_init_state())
