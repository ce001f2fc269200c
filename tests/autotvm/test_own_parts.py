"""Builders and runners by themselves, those of a script's own, and a database of results."""

import time
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import autotvm, relay, te
from slipway.autotvm import database
from slipway.autotvm.measure import BuildResult, Runner, create_measure_batch
from slipway.errors import TuningError


@autotvm.template("test/own_parts/scaled")
def scaled(rows, columns):
    a = te.placeholder((rows, columns), name="A")
    index = te.placeholder((columns,), name="index", dtype="int32")
    b = te.compute((rows, columns), lambda i, j: a[i, index[j]] * 2.0 + 1.0, name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", b.op.axis[1], num_outputs=2)
    outer, inner = cfg["tile"].apply(s, b, b.op.axis[1])
    s[b].reorder(outer, b.op.axis[0], inner)
    return s, [a, index, b]


@pytest.fixture
def task():
    return autotvm.task.create("test/own_parts/scaled", args=(6, 24), target="llvm")


def inputs_of(task, *indices):
    return [autotvm.MeasureInput(task.target, task, task.config_space.get(i)) for i in indices]


def test_a_script_builds_and_measures_by_itself(task):
    inputs = inputs_of(task, 0, 3)
    libraries = autotvm.LocalBuilder().build(inputs)
    assert [one.error for one in libraries] == [None, None]
    assert all(Path(one.filename).is_file() for one in libraries)
    results = autotvm.LocalRunner(repeat=2).run(inputs, libraries)
    assert [(r.error_no, len(r.costs)) for r in results] == [(0, 2), (0, 2)]
    assert all(cost > 0 for r in results for cost in r.costs)


def test_a_batch_is_built_measured_and_cleared_away(task):
    option = autotvm.measure_option(
        builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(repeat=1)
    )
    assert option["runner"] is option.runner
    (result,) = create_measure_batch(task, option)(inputs_of(task, 1))
    assert result.error_no == autotvm.MeasureErrorNo.NO_ERROR


def test_what_computes_something_else_has_no_times(task):
    (first,) = inputs_of(task, 0)
    (right,) = autotvm.LocalBuilder().build([first])
    a = te.placeholder((6, 24), name="A")
    index = te.placeholder((24,), name="index", dtype="int32")
    b = te.compute((6, 24), lambda i, j: a[i, index[j]] * 2.0, name="B")
    tvm.build(te.create_schedule(b.op), [a, index, b], "llvm").export_library(right.filename)
    (result,) = autotvm.LocalRunner(repeat=1).run([first], [right])
    assert result.error_no == autotvm.MeasureErrorNo.WRONG_ANSWER
    assert "output 0 is off by" in result.costs[0]


def test_a_library_that_was_not_built_is_told(task):
    (first,) = inputs_of(task, 0)
    (late,) = autotvm.LocalBuilder(timeout=0.0).build([first])
    assert late.error_no == autotvm.MeasureErrorNo.BUILD_TIMEOUT
    (result,) = autotvm.LocalRunner().run([first], [late])
    assert result.error_no == autotvm.MeasureErrorNo.BUILD_TIMEOUT
    assert "longer than 0.0 seconds" in result.costs[0]


def test_kernels_of_models_are_built_and_measured(tmp_path):
    x = relay.var("x", shape=(1, 20), dtype="float32")
    w = relay.var("w", shape=(12, 20), dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    params = {"w": np.ones((12, 20), "float32")}
    (kernel,) = autotvm.task.extract_from_program(mod["main"], params, "llvm -mcpu=znver4")
    (first,) = [autotvm.MeasureInput(kernel.target, kernel, kernel.space.default)]
    (library,) = autotvm.LocalBuilder().build([first])
    assert library.error is None
    kernel = autotvm.task.extract_from_program(mod["main"], params, "llvm")[0]
    option = autotvm.measure_option("local", autotvm.LocalRunner(repeat=1))
    (result,) = create_measure_batch(kernel, option)(
        [autotvm.MeasureInput(kernel.target, kernel, kernel.space.default)]
    )
    assert result.error_no == 0


def test_inputs_have_the_values_given(task):
    runner = autotvm.LocalRunner(repeat=1)
    runner.ref_input = [
        np.ones((6, 24), "float32"), tvm.nd.array(np.full(24, 23, "int32")),
        np.zeros((6, 24), "float32"),
    ]  # fmt: skip
    option = autotvm.measure_option("local", runner)
    bench = option.bench(task, Path())
    assert bench.inputs[1].tolist() == [23] * 24
    (result,) = create_measure_batch(task, option)(inputs_of(task, 2))
    assert result.error_no == 0
    runner.ref_input = [np.ones((6, 24), "float32")]
    with pytest.raises(TuningError, match=r"1 arrays, and .* takes 2 inputs"):
        option.bench(task, Path())
    runner.ref_input = [np.ones((6, 23), "float32"), np.zeros(24, "int32")]
    with pytest.raises(TuningError, match=r"array 0 is of the shape \(6, 23\)"):
        option.bench(task, Path())


class CountingRunner(Runner):
    """One that says that a candidate with a long inner loop is fast."""

    def __init__(self):
        super().__init__(timeout=1, n_parallel=1)
        self.batches, self.libraries = [], []

    def run(self, measure_inputs, build_results):
        assert all(one.error is None for one in build_results)
        self.libraries += [one.filename for one in build_results]
        self.batches.append([inp.config["tile"].size[-1] for inp in measure_inputs])
        return [
            autotvm.MeasureResult((1.0 / inp.config["tile"].size[-1],) * 9, 0, 0.1, time.time())
            for inp in measure_inputs
        ]


@pytest.mark.parametrize("kind", ["RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner"])
def test_a_runner_of_a_scripts_own_gives_the_times(task, kind):
    runner = CountingRunner()
    tuner = getattr(autotvm.tuner, kind)(task)
    tuner.tune(8, autotvm.measure_option(autotvm.LocalBuilder(), runner))
    assert runner.task is task
    assert tuner.best_config["tile"].size[-1] == 24
    assert tuner.best_flops > 1
    assert not any(Path(file).exists() for file in runner.libraries)


def test_what_a_runner_says_is_looked_at(task, caplog):
    class Broken(CountingRunner):
        def run(self, measure_inputs, build_results):
            return super().run(measure_inputs, build_results)[:-1]

    with pytest.raises(TuningError, match=r"Broken\.run returned"):
        autotvm.tuner.RandomTuner(task).tune(2, autotvm.measure_option(runner=Broken()))

    class Endless(CountingRunner):
        def run(self, measure_inputs, build_results):
            found = super().run(measure_inputs, build_results)
            return [r._replace(costs=(float("nan"),)) for r in found]

    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(2, autotvm.measure_option(runner=Endless()))
    assert tuner.best_config is None
    assert "no candidate of 2 could be held against the default choice" in caplog.text
    assert "the runner says that a run took nan to nan seconds" in caplog.text

    class Empty(Runner):
        pass

    with pytest.raises(TuningError, match=r"Empty has no run\("):
        autotvm.tuner.RandomTuner(task).tune(2, autotvm.measure_option(runner=Empty()))
    with pytest.raises(TuningError, match=r"derives from autotvm\.measure\.Runner"):
        autotvm.measure_option(runner=object())


def test_a_builder_of_a_scripts_own_compiles(task):
    class Maker(autotvm.measure.Builder):
        built = 0

        def build(self, measure_inputs):
            self.built += len(measure_inputs)
            found = autotvm.LocalBuilder().build(measure_inputs)
            return [BuildResult(*one) for one in found]

    maker = Maker()
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(3, autotvm.measure_option(maker, autotvm.LocalRunner(repeat=1)))
    assert maker.built >= 3


@pytest.mark.parametrize("kind", ["RandomTuner", "GridSearchTuner"])
def test_a_range_of_the_space_is_searched(task, kind):
    tried = []
    tuner = getattr(autotvm.tuner, kind)(task, range_idx=(2, 5))
    tuner.tune(
        8, autotvm.measure_option(runner=CountingRunner()),
        callbacks=[lambda _, inputs, results: tried.extend(i.config.index for i in inputs)],
    )  # fmt: skip
    assert sorted(set(tried) - {task.config_space.index_of(task.space.default)}) == [2, 3, 4, 5]
    with pytest.raises(TuningError, match="is not inside of the 8 candidates"):
        getattr(autotvm.tuner, kind)(task, range_idx=(2, 8))


def test_results_are_found_by_what_was_measured(task):
    known, other, unknown = inputs_of(task, 0, 1, 2)
    early = autotvm.MeasureResult((0.5,), 0, 0.1, 1.0)
    late = autotvm.MeasureResult((0.4,), 0, 0.1, 2.0)
    failed = autotvm.MeasureResult(("it broke",), 4, 0.1, 3.0)
    db = database.DummyDatabase()
    db.save(known, early)
    db.save(known, late, extend=True)
    db.save(other, failed)
    assert db.load(known) == late
    assert db.load(known, get_all=True) == [early, late]
    assert db.load(unknown) is None
    assert [i.config.index for i, _ in db.filter(lambda _, rs: len(rs) == 2)] == [0]
    results, left = database.filter_inputs(db, [known, other, unknown], retry=True)
    assert results == [late, None, None]
    assert left == [other, unknown]
    db.save(known, early)
    assert db.load(known, get_all=True) == [early]
    db.flush()
    assert db.load(known) is None
