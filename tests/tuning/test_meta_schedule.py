"""Searches in the words of classic TVM's meta_schedule."""

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import relay
from slipway.tuning.search import FINALISTS


def model():
    x, w = relay.var("x", shape=(3, 20)), relay.var("w", shape=(12, 20))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(relay.nn.dense(x, w))))


def test_a_search_is_profiled_and_its_model_compiled_for_either_executor(tmp_path):
    """The script of a published project: every part by the name that it has in classic TVM."""
    params = {"w": np.full((12, 20), 0.25, "float32")}
    with ms.Profiler() as profiler:
        assert ms.Profiler.current() is profiler
        database = ms.relay_integration.tune_relay(
            mod=model(), params=params, target="llvm", work_dir=str(tmp_path),
            strategy="evolutionary", num_trials_per_iter=4, max_trials_per_task=4,
            max_trials_global=4, builder="local", runner="local", database="json",
            cost_model="xgb", measure_callbacks="default", task_scheduler="gradient",
            space="post-order-apply", num_tuning_cores="logical", opt_level=3,
        )  # fmt: skip
        config = {"relay.backend.use_meta_schedule": True, "relay.backend.tir_converter": "default"}
        lib = ms.relay_integration.compile_relay(
            database, model(), "llvm", params, pass_config=config
        )
        executable = ms.relay_integration.compile_relay(
            database, model(), "llvm", params, backend="vm", pass_config=config
        )
    assert ms.Profiler.current() is None
    seconds = profiler.get()
    parts = ("LayoutSearch", "KernelSearch", "PostTuningCompilation")
    assert sum(seconds[part] for part in parts) <= seconds["Total"]
    assert profiler.table().splitlines()[2].split("|")[1].strip() == "Total"
    graph = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    data = np.linspace(-1, 1, 60).astype("float32").reshape(3, 20)
    graph.set_input("x", data)
    graph.run()
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    wanted = np.tanh(data @ params["w"].T)
    np.testing.assert_allclose(graph.get_output(0).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(machine.run(data).numpy(), wanted, rtol=1e-5)


def test_passes_are_disabled_for_the_search_too(tmp_path):
    seen = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with_all = len(ms.extract_tasks(model(), "llvm", instruments=[Names()]))
    assert with_all == 1
    assert "FuseOps" in seen
    seen.clear()
    ms.extract_tasks(model(), "llvm", instruments=[Names()], disabled_pass=["FuseOps"])
    assert "FuseOps" not in seen


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cost_model": "mine"}, "cost_model 'mine': it is one of xgb, mlp, random"),
        ({"strategy": "greedy"}, "strategy 'greedy'"),
        ({"database": "redis"}, "database 'redis': it is one of json"),
    ],
)
def test_a_part_by_an_unknown_name_is_refused(given, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        ms.tune_relay(model(), {}, "llvm", tmp_path, 4, **given)


def test_a_core_may_run_several_threads():
    assert 1 <= ms.utils.cpu_count(logical=False) <= ms.utils.cpu_count(logical=True)


def test_the_total_is_known_when_the_block_has_ended():
    with ms.Profiler() as profiler, pytest.raises(ValueError, match="block ends"):
        profiler.table()


def test_extracted_tasks_are_searched_by_themselves(tmp_path):
    """The parts of tune_relay one by one, as published scripts have them."""
    folder, params = tmp_path / "work", {"w": np.full((12, 20), 0.25, "float32")}
    extracted = ms.relay_integration.extract_tasks(model(), "llvm", params)
    tasks, weights = ms.relay_integration.extracted_tasks_to_tune_contexts(
        extracted, folder, strategy="evolutionary"
    )
    assert folder.is_dir()
    assert [task.task_name for task in tasks] == [task.name for task in extracted]
    evaluator = ms.runner.config.EvaluatorConfig(number=1, repeat=10)
    database = ms.tune.tune_tasks(
        tasks=tasks, task_weights=weights, work_dir=folder, max_trials_global=4,
        num_trials_per_iter=4, builder=ms.builder.LocalBuilder(),
        runner=ms.runner.LocalRunner(evaluator_config=evaluator),
    )  # fmt: skip
    # Four trials; what is faster than the default by noise fights it in a duel, a record more.
    assert 4 <= len(database) <= 4 + FINALISTS
    paths = folder / "database_workload.json", folder / "database_tuning_record.json"
    again = ms.database.JSONDatabase(*paths, allow_missing=False)
    assert ms.relay_integration.compile_relay(again, model(), "llvm", params)
    with pytest.raises(ValueError, match="2 task_weights"):
        ms.tune.tune_tasks(tasks=tasks, task_weights=[1, 2], work_dir=folder, max_trials_global=4)
    with pytest.raises(ValueError, match="allow_missing"):
        ms.database.JSONDatabase(work_dir=tmp_path, allow_missing=False)
