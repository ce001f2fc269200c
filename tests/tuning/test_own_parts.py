"""Parts of a search that a script writes itself, by meta_schedule's names."""

import random
import time
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import relay
from slipway.errors import NotAvailableError, TuningError
from slipway.script import tir as T

TARGET = "llvm -num-cores 2"


@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, (12, 20), "float32")
        B = T.match_buffer(b, (20, 24), "float32")
        C = T.match_buffer(c, (12, 24), "float32")
        for i, j, k in T.grid(12, 24, 20):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(sch):
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block=block)
    i_0, i_1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j_0, j_1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i_0, j_0, k, i_1, j_1)


def tuned(folder, trials=6, **parts):
    return ms.tune_tir(
        Product, TARGET, folder, max_trials_global=trials, num_trials_per_iter=3,
        space=tiled, seed=1, **parts,
    )  # fmt: skip


@ms.derived_object
class Times(ms.runner.PyRunner):
    """Says that every library takes as long as `seconds` says, the first being the default."""

    def __init__(self, seconds=lambda number: 1e-3 / (number + 1)):
        self.seconds, self.inputs = seconds, []

    def run(self, runner_inputs):
        found = []
        for one in runner_inputs:
            assert Path(one.artifact_path).is_file()
            self.inputs.append(one)
            found.append(self.seconds(len(found)))
        return [Done(s) for s in found]


@ms.derived_object
class Done(ms.runner.PyRunnerFuture):
    def __init__(self, seconds):
        self.seconds = seconds

    def done(self):
        return True

    def result(self):
        if isinstance(self.seconds, str):
            return ms.runner.RunnerResult(None, self.seconds)
        return ms.runner.RunnerResult([self.seconds] * 3, None)


def test_a_script_compiles_and_measures_by_itself():
    (built,) = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(Product, TARGET)])
    assert built.error_msg is None
    info = ms.arg_info.ArgInfo.from_entry_func(Product)
    assert info[0] == ("float32", (12, 20))
    assert ms.arg_info.ArgInfo.from_json(info[1].as_json()) == info[1]
    runner = ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(2, 3, 0))
    (future,) = runner.run([ms.runner.RunnerInput(built.artifact_path, "llvm", info)])
    result = future.result()
    assert future.done()
    assert result.error_msg is None
    assert len(result.run_secs) == 3
    assert min(result.run_secs) > 0
    Path(built.artifact_path).unlink()
    Path(built.artifact_path).parent.rmdir()
    (lost,) = runner.run([ms.runner.RunnerInput(built.artifact_path, "llvm", info)])
    assert lost.result().run_secs is None
    assert "LocalRunner: An exception occurred" in lost.result().error_msg


def test_functions_of_a_script_compile_in_a_local_builder():
    def broken(mod, target, params):
        raise ValueError("no compiler today")

    def slow(mod, target, params):
        time.sleep(2)

    def lost(module):
        raise OSError("no disk today")

    def said(**parts):
        (result,) = ms.builder.LocalBuilder(**parts).build(
            [ms.builder.BuilderInput(Product, TARGET)]
        )
        assert result.artifact_path is None
        return result.error_msg

    assert "LocalBuilder: An exception occurred\nValueError: no compiler" in said(f_build=broken)
    assert "no disk today" in said(f_export=lost)
    assert said(f_build=slow, timeout_sec=0.2).startswith("LocalBuilder: Timeout")
    with pytest.raises(ValueError, match="no function 'wrong-name' is registered"):
        ms.builder.LocalBuilder(f_build="wrong-name")
    assert isinstance(ms.builder.create("local", max_workers=2), ms.builder.LocalBuilder)


def test_a_builder_of_a_script_compiles_what_is_searched(tmp_path):
    class Counting(ms.builder.PyBuilder):
        made = 0

        def build(self, build_inputs):
            self.made += len(build_inputs)
            return ms.builder.LocalBuilder().build(build_inputs)

    builder = Counting()
    database = tuned(tmp_path, builder=builder)
    assert builder.made >= len(database) > 3
    assert database.query_schedule(Product, TARGET) is not None

    class Short(ms.builder.PyBuilder):
        def build(self, build_inputs):
            return []

    with pytest.raises(TuningError, match=r"Short\.build returned 0 results for"):
        tuned(tmp_path / "short", builder=Short())


def test_a_runner_of_a_script_says_the_times_and_the_winner_is_right(tmp_path):
    runner = Times()
    database = tuned(tmp_path, runner=runner)
    record = database.query_tuning_record(Product, TARGET)
    assert record.run_secs[0] < 1e-3
    assert runner.inputs[0].device_type == "cpu"
    assert runner.inputs[0].args_info[2] == ("float32", (12, 24))
    assert not any(Path(one.artifact_path).exists() for one in runner.inputs)
    a, b = (np.random.default_rng(0).random(s, "float32") for s in ((12, 20), (20, 24)))
    c = tvm.nd.array(np.zeros((12, 24), "float32"))
    tvm.build(record.schedule().mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    ("said", "why"),
    [("the board is off", "the board is off"), (0.0, "took 0.0 to 0.0 seconds")],
)
def test_a_runner_without_times_ends_the_search_with_its_first_error(said, why, tmp_path):
    """Classic TVM ended such a search as if something had been found."""
    with pytest.raises(TuningError, match=f"could not be measured.*{why}"):
        tuned(tmp_path, runner=Times(lambda number: said))


def test_a_runner_with_times_alone_is_refused_for_models(tmp_path):
    x = relay.var("x", shape=(3, 40))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with pytest.raises(NotAvailableError, match="Times gives times alone"):
        ms.tune_relay(module, {}, TARGET, tmp_path, 4, runner=Times())


def test_callbacks_are_told_what_was_tried(tmp_path):
    @ms.derived_object
    class Telling(ms.measure_callback.PyMeasureCallback):
        tried = 0

        def apply(self, task_scheduler, task_id, measure_candidates, builder_results,
                  runner_results):  # fmt: skip
            assert task_id == 0
            assert len(measure_candidates) == len(builder_results) == len(runner_results)
            for candidate, result in zip(measure_candidates, runner_results, strict=True):
                assert candidate.sch.get_block("matmul")
                assert result.error_msg is None
                assert min(result.run_secs) > 0
            self.tried += len(measure_candidates)
            task_scheduler.terminate_task(task_id)

    callback = Telling()
    database = tuned(tmp_path, trials=9, measure_callbacks=[callback])
    assert callback.tried == 3  # the task ended after its first batch
    assert len(database) >= 3
    assert str(callback).startswith("meta_schedule.Telling(0x")

    @ms.derived_object
    class Failing(ms.measure_callback.PyMeasureCallback):
        def apply(self, *args):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tuned(tmp_path / "failing", measure_callbacks=Failing())


def test_callbacks_and_schedulers_are_told_of_a_models_kernels(tmp_path):
    x, w = relay.var("x", shape=(3, 40)), relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    seen = []

    @ms.derived_object
    class Telling(ms.measure_callback.PyMeasureCallback):
        def apply(self, task_scheduler, task_id, candidates, built, ran):
            seen.extend(c.candidate.strategy for c in candidates)
            assert all(c.sch is None for c in candidates)
            assert task_scheduler.tasks_[task_id].latency_ms

    ms.tune_relay(
        module, {}, TARGET, tmp_path, 6, max_trials_per_task=6, num_trials_per_iter=3,
        measure_callbacks=[Telling()], task_scheduler=ms.task_scheduler.RoundRobin(),
    )  # fmt: skip
    assert len(seen) >= 3


def test_a_cost_model_of_a_script_orders_candidates(tmp_path):
    @ms.derived_object
    class Model(ms.cost_model.PyCostModel):
        updates = predicted = 0

        def update(self, context, candidates, results):
            assert context.task_name == "main"
            self.updates += len(candidates)
            assert all(r.run_secs for r in results)

        def predict(self, context, candidates):
            self.predicted += len(candidates)
            return np.random.default_rng(0).random(len(candidates))

    model = Model()
    tuned(tmp_path, cost_model=model)
    assert model.updates >= 6
    assert model.predicted > 0

    class Short(Model):
        def predict(self, context, candidates):
            return [1.0]

    with pytest.raises(TuningError, match=r"Short\.predict returned 1 numbers for"):
        tuned(tmp_path / "short", cost_model=Short())


def test_a_mutator_of_a_script_changes_traces(tmp_path):
    @ms.derived_object
    class Whole(ms.mutator.PyMutator):
        calls = 0

        def apply(self, trace, rand_state):
            self.calls += 1
            return ms.mutator.MutateTileSize().apply(trace, rand_state)

    mutator = Whole()
    space = ms.space_generator.ScheduleFn(tiled, mutator_probs={mutator: 0.9})
    database = ms.tune_tir(
        Product, TARGET, tmp_path, max_trials_global=9, num_trials_per_iter=3, space=space
    )
    assert mutator.calls > 0
    assert database.query_schedule(Product, TARGET) is not None


def test_the_mutators_here_change_one_choice():
    sch = tvm.tir.Schedule(Product, seed=3)
    tiled(sch)
    for seed in range(20):
        changed = ms.mutator.MutateTileSize().apply(sch.trace, seed)
        other = tvm.tir.Schedule(Product)
        changed.apply_to_schedule(other)
        assert other.trace.as_json() != sch.trace.as_json()
        assert tvm.build(other.mod, target="llvm")
    assert ms.mutator.MutateUnroll().apply(sch.trace) is None


class Backwards(ms.task_scheduler.PyTaskScheduler):
    """The last task first; `order` says which had a batch."""

    def __init__(self):
        super().__init__()
        self.order = []

    def next_task_id(self):
        left = [i for i, task in enumerate(self._outer().tasks_) if not task.is_terminated]
        for number in left:
            self.touch_task(number)
            assert self.join_running_task(number) == []
        self.order.append(left[-1] if left else -1)
        return self.order[-1]


def contexts(count):
    return [
        ms.TuneContext(
            Product, target=TARGET, space_generator=tiled, task_name=f"task {n}",
            search_strategy=ms.search_strategy.ReplayTrace(), rand_state=n + 1,
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [Backwards, lambda: ms.task_scheduler.create("round-robin")])
def test_a_scheduler_chooses_among_tasks(kind, tmp_path):
    scheduler = kind()
    database = ms.database.JSONDatabase(work_dir=tmp_path)
    runner = Times(lambda number: random.Random(number).uniform(5, 30))
    scheduler.tune(
        contexts(2), [1.0, 1.0], max_trials_global=8, max_trials_per_task=4,
        num_trials_per_iter=2, builder="local", runner=runner, database=database,
        measure_callbacks=[], cost_model=None,
    )  # fmt: skip
    assert scheduler.remaining_tasks_ == 0
    assert len(database) >= 4
    scheduler.print_tuning_statistics()
    if isinstance(scheduler, Backwards):
        assert scheduler.order[0] == 1


def test_a_scheduler_that_names_no_task_that_is_left_is_told_so(tmp_path):
    class Stuck(ms.task_scheduler.PyTaskScheduler):
        def next_task_id(self):
            return 0

    class Far(ms.task_scheduler.PyTaskScheduler):
        def next_task_id(self):
            return 7

    for kind, why in ((Stuck, "a task that has ended"), (Far, "task 7 is none of 2")):
        with pytest.raises(TuningError, match=why):
            kind().tune(
                contexts(2), [1.0, 1.0], 8, 2, num_trials_per_iter=2, runner=Times(),
                database=ms.database.JSONDatabase(work_dir=tmp_path / why),
            )  # fmt: skip
    with pytest.raises(ValueError, match="next_task_id is not defined"):
        ms.task_scheduler.PyTaskScheduler().next_task_id()
    with pytest.raises(TuningError, match="needs database="):
        Stuck().tune(contexts(1), [1.0], 8, 2)
    with pytest.raises(ValueError, match="it is one of gradient, round-robin"):
        ms.task_scheduler.create("fastest")
