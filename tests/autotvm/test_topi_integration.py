"""Templates in two functions, contexts of a script's own, tuners of a script's own."""

import numpy as np
import pytest

import slipway as tvm
from slipway import autotvm, te, topi
from slipway.errors import TuningError

OPTION = autotvm.measure_option("local", autotvm.LocalRunner(number=1))


@autotvm.register_topi_compute("test_rows.cpu")
def rows(cfg, data, scale, dtype):
    cfg.define_split("tile", cfg.axis(data.shape[1]), num_outputs=2)
    cfg.define_knob("lanes", [False, True])
    return te.compute(
        data.shape, lambda i, j: data[i, j].astype(dtype) * scale, name="rows", tag="test_rows"
    )


@autotvm.register_topi_schedule("test_rows.cpu")
def schedule_rows(cfg, outs):
    s = te.create_schedule([t.op for t in outs])

    def each(op):
        if op.tag == "test_rows":
            _, inner = cfg["tile"].apply(s, op.output(0), s[op].op.axis[1])
            if cfg["lanes"].val:
                s[op].vectorize(inner)

    topi.utils.traverse_inline(s, outs[0].op, each)
    return s


def data():
    return te.placeholder((6, 24), name="data")


def test_its_task_is_tuned_and_both_functions_use_the_best(tmp_path):
    log = tmp_path / "log"
    task = autotvm.task.create("test_rows.cpu", args=(data(), 3.0, "float32"), target="llvm")
    assert task.args == (("TENSOR", (6, 24), "float32"), 3.0, "float32")
    assert len(task.config_space) == 16
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(8, OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
        x = data()
        out = topi.add(rows(x, 3.0, "float32"), 1.0)
        workload = autotvm.task.get_workload([out])
        assert workload == task.workload
        assert autotvm.DispatchContext.current.query(None, workload) == tuner.best_config
        func = tvm.build(schedule_rows([out]), [x, out])
    values, found = np.random.default_rng(0).random((6, 24), "float32"), tvm.nd.empty((6, 24))
    func(tvm.nd.array(values), found)
    np.testing.assert_allclose(found.numpy(), values * 3 + 1, rtol=1e-6)


def test_a_log_knows_it_by_its_arguments(tmp_path):
    log = tmp_path / "log"
    args = (("TENSOR", (6, 24), "float32"), 3.0, "float32")
    autotvm.tuner.RandomTuner(autotvm.task.create("test_rows.cpu", args, "llvm")).tune(
        4, OPTION, callbacks=[autotvm.callback.log_to_file(log)]
    )
    again = autotvm.tuner.XGBTuner(autotvm.task.create("test_rows.cpu", (data(), *args[1:]),
                                                       "llvm"))  # fmt: skip
    again.load_history(autotvm.record.load_from_file(log))
    seen = []
    again.tune(20, OPTION, callbacks=[lambda _, i, r: seen.extend(i)])
    known = {i.config.index for i, _ in autotvm.record.load_from_file(log)}
    fresh = {i.config.index for i in seen} - known
    assert len(fresh) + len(known) == 16


def test_what_two_functions_cannot_be(caplog):
    with pytest.raises(TuningError, match=r"register_topi_compute\('test_rows.cpu'\)"):
        schedule_rows([topi.add(data(), 1.0)])
    with pytest.raises(TypeError, match="by position"):
        rows(data(), 3.0, dtype="float32")
    assert autotvm.task.get_workload(topi.add(data(), 1.0)) is None
    autotvm.GLOBAL_SCOPE.silent = True
    try:
        rows(data(), 3.0, "float32")
    finally:
        autotvm.env.reset_global_scope(autotvm.env.AutotvmGlobalScope())
    assert not autotvm.GLOBAL_SCOPE.silent
    assert not caplog.text


def test_a_context_of_a_scripts_own_chooses():
    class Mine(autotvm.DispatchContext):
        def _query_inside(self, target, workload):
            return config if workload[0] == "test_rows.cpu" else None

    task = autotvm.task.create("test_rows.cpu", args=(data(), 3.0, "float32"), target="llvm")
    config = task.config_space.get(5)
    with Mine(), tvm.target.Target("llvm"):
        rows(data(), 3.0, "float32")
        assert autotvm.task.ApplyHistoryBest.current.query("llvm", task.workload) == config


def test_a_tuner_of_a_scripts_own():
    class Backwards(autotvm.tuner.Tuner):
        def __init__(self, task):
            super().__init__(task)
            self.left, self.told = list(range(len(task.config_space)))[:5], []

        def has_next(self):
            return bool(self.left)

        def next_batch(self, batch_size):
            return [self.task.config_space.get(self.left.pop()) for _ in self.left[:batch_size]]

        def update(self, inputs, results):
            self.told += [
                (i.config.index, r.error_no) for i, r in zip(inputs, results, strict=True)
            ]

    task = autotvm.task.create("test_rows.cpu", args=(data(), 3.0, "float32"), target="llvm")
    tuner = Backwards(task)
    tuner.tune(100, OPTION)
    assert sorted(index for index, _ in tuner.told) == [0, 1, 2, 3, 4]
    assert tuner.best_config is not None
    tuner.reset()
    assert tuner.best_config is None

    class Foreign(autotvm.tuner.Tuner):
        def next_batch(self, batch_size):
            other = autotvm.ConfigSpace()
            other.define_knob("nothing", [1])
            return [other.get(0)]

    with pytest.raises(TuningError, match=r"Foreign.next_batch returned .*nothing"):
        Foreign(task).tune(4, OPTION)


def test_a_descent_ends_where_no_step_is_better():
    task = autotvm.task.create("test_rows.cpu", args=(data(), 3.0, "float32"), target="llvm")
    seen = []
    tuner = autotvm.tuner.DropletTuner(task)
    tuner.tune(100, OPTION, callbacks=[lambda _, i, r: seen.extend(i)])
    assert 3 <= len(seen) <= len(task.config_space)
    assert tuner.best_flops > 0
