"""What TVM 0.9 and 0.10 say otherwise than later ones, in the words of meta_schedule."""

import importlib

import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway.errors import TuningError
from slipway.script import tir as T

LLVM = "llvm -num-cores 2"


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [12, 20], "float32")
    B = T.match_buffer(b, [20, 24], "float32")
    C = T.match_buffer(c, [12, 24], "float32")
    for i, j, k in T.grid(12, 24, 20):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def space(sch):
    i, j, k = sch.get_loops(sch.get_block("product"))
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i0, j0, k, i1, j1)


def context(strategy, **more):
    return ms.TuneContext(
        product, target=LLVM, space_generator=ms.space_generator.ScheduleFn(space),
        search_strategy=strategy, task_name="product", rand_state=5, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    "strategy",
    [
        ms.search_strategy.ReplayTrace(7, 20),
        ms.search_strategy.ReplayFunc(num_trials_per_iter=7, max_trials_per_task=20),
        ms.search_strategy.EvolutionarySearch(num_trials_per_iter=7, max_trials_per_task=20),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_a_strategy_is_told_how_many_trials_there_are(strategy):
    task = context(strategy)
    task.search_strategy.pre_tuning(task.generate_design_space())
    batches = []
    while (candidates := task.search_strategy.generate_measure_candidates()) is not None:
        batches.append(len(candidates))
        results = [ms.runner.RunnerResult([0.1], None) for _ in candidates]
        task.search_strategy.notify_runner_results(candidates, results)
    task.search_strategy.post_tuning()
    assert batches == [7, 7, 6]
    again = strategy.clone()
    assert (again.num_trials_per_iter, again.max_trials_per_task) == (7, 20)


def test_designs_alone_are_no_number_of_trials():
    task = context(ms.search_strategy.ReplayTrace(50))
    assert task.search_strategy.max_fail_count == 50
    with pytest.raises(TuningError, match="says how many trials"):
        task.search_strategy.pre_tuning(task.generate_design_space())


def test_a_scheduler_is_given_the_search_when_it_is_made():
    database = ms.database.MemoryDatabase()
    scheduler = ms.task_scheduler.RoundRobin(
        [context(ms.search_strategy.ReplayTrace(3, 5))], [1.0], builder=ms.builder.LocalBuilder(),
        runner=ms.runner.LocalRunner(), database=database, max_trials=5,
    )  # fmt: skip
    scheduler.tune()
    assert len(database) >= 5
    assert database.query_schedule(tvm.IRModule({"main": product}), LLVM) is not None
    with pytest.raises(TypeError, match="GradientBased takes no 'max_trial'"):
        ms.task_scheduler.GradientBased([], [], max_trial=1)
    with pytest.raises(TuningError, match="how many trials there are"):
        ms.task_scheduler.RoundRobin([context("replay-trace")], database=database).tune()


def test_what_a_search_takes_where_nothing_is_said():
    config = ms.default_config
    rules = config.schedule_rules(None, tvm.target.Target(LLVM))
    assert [type(r) for r in rules] == [type(r) for r in config._DefaultLLVM.schedule_rules()]
    gpu = config.schedule_rules(None, "cuda")
    assert any(type(r).__name__ == "AutoBind" for r in gpu)
    names = [type(p).__name__ for p in config.postproc(None, "cuda")]
    assert names[0] == "DisallowDynamicLoop"
    assert names[-1] == "VerifyGPUCode"
    assert sum(config.mutator_probs(None, LLVM).values()) == pytest.approx(1, abs=0.03)
    assert config.schedule_rules(lambda: rules[:1], LLVM) == rules[:1]
    with pytest.raises(TuningError, match="sch_rules is None or a function"):
        config.schedule_rules(rules, LLVM)
    assert isinstance(config.builder(None), ms.builder.LocalBuilder)
    assert isinstance(config.runner(None), ms.runner.LocalRunner)
    assert isinstance(config.cost_model(None), ms.cost_model.CostModel)
    assert config.mod(product)["main"].attrs["global_symbol"] == "main"
    made = config.space_generator(lambda: ms.space_generator.PostOrderApply(sch_rules=rules))
    task = ms.TuneContext(product, target=LLVM, space_generator=made)
    assert task.generate_design_space()


def test_a_context_may_name_what_is_the_targets():
    task = ms.TuneContext(
        product, target=LLVM, space_generator=ms.space_generator.PostOrderApply(),
        sch_rules="default", postprocs="default", mutator_probs="default",
    )  # fmt: skip
    assert task.generate_design_space()
    with pytest.raises(TuningError, match="sch_rules='mine' is none of default, from-target"):
        ms.TuneContext(product, target=LLVM, sch_rules="mine")


def test_a_runners_configuration_connects():
    with tvm.rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        config = ms.runner.RPCConfig("127.0.0.1", tracker.port, "older-words")
        assert config.count_num_servers(allow_missing=True) == 0
        with pytest.raises(TuningError, match="knows no device 'older-words'; it has: none"):
            config.count_num_servers()
        server = tvm.rpc.Server(
            "127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="older-words",
            silent=True,
        )  # fmt: skip
        try:
            with config.connect_server() as session:
                assert session.cpu(0).exist
            assert config.connect_tracker().summary()["queue_info"]
            assert config.count_num_servers() == 1
        finally:
            server.terminate()


def test_a_runner_calls_its_initializer():
    called = []
    ms.runner.LocalRunner(initializer=lambda: called.append("here"), alloc_repeat=2)
    ms.runner.RPCRunner(initializer=lambda: called.append("there"), cooldown_sec=0.5)
    assert called == ["here", "there"]


def test_a_task_of_a_model_is_read_by_the_classic_words():
    x, w = tvm.relay.var("x", shape=(3, 40)), tvm.relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(tvm.relay.Function([x, w], tvm.relay.nn.dense(x, w)))
    (task,) = ms.relay_integration.extract_tasks(module, LLVM, {})
    (function,) = task.mod.functions.values()
    assert tuple(function.body.checked_type.shape) == (3, 24)
    assert task.dispatched == [task.mod]
    assert "dense" in task.task_name
    scheduler = ms.task_scheduler.RoundRobin()
    assert scheduler.tasks is scheduler.tasks_


def test_parts_by_their_names(tmp_path, monkeypatch):
    """Those of TVM 0.12: a runner of a tracker that the environment names, no cost model."""
    key = "TVM_TRACKER_HOST"
    monkeypatch.delenv(key, raising=False)
    with pytest.raises(TuningError, match=key):
        ms.tune_tir(product, "llvm", tmp_path, 2, runner="rpc")
    found = ms.tune_tir(product, "llvm", tmp_path / "m", 2, cost_model="none", database="memory")
    assert isinstance(found, ms.database.MemoryDatabase)
    assert len(found) >= 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "path",
    [
        "autotvm.tuner.callback.log_to_file", "autotvm.tuner.droplet_turner.DropletTuner",
        "autotvm.task.space.VirtualAxis", "autotvm.task.dispatcher.DispatchContext",
        "meta_schedule.cost_model.xgb_model.XGBModel",
        "meta_schedule.database.ordered_union_database.OrderedUnionDatabase",
        "meta_schedule.feature_extractor.per_store_feature.PerStoreFeature",
        "meta_schedule.measure_callback.add_to_database.AddToDatabase",
        "meta_schedule.mutator.mutate_parallel.MutateParallel",
        "meta_schedule.postproc.rewrite_layout.RewriteLayout",
        "meta_schedule.schedule_rule.schedule_rule.PyScheduleRule",
        "meta_schedule.search_strategy.replay_trace.ReplayTrace",
        "meta_schedule.space_generator.post_order_apply.PostOrderApply",
        "meta_schedule.task_scheduler.round_robin.RoundRobin",
    ],
)  # fmt: skip
def test_modules_as_classic_tvm_divides_them(path):
    module, _, name = f"slipway.{path}".rpartition(".")
    found = getattr(importlib.import_module(module), name)
    package = importlib.import_module(module.rpartition(".")[0])
    assert found is getattr(package, name)


def test_loggers_of_a_working_folder(tmp_path):
    loggers = ms.logging.get_loggers_from_work_dir(tmp_path, ["dense", "conv"])
    loggers[1].warning("seen")
    (file,) = (tmp_path / "logs").glob("*conv*")
    assert "seen" in file.read_text()
    assert ms.logging.get_logger("x").name == "slipway.tuning.x"


def test_files_of_classic_databases_are_not_taken_for_ours(tmp_path, caplog):
    workloads, records = tmp_path / "database_workload.json", tmp_path / "records.json"
    workloads.write_text('["8231", "eyJyb290IjogMX0="]\n')
    records.write_text("")
    ms.database.JSONDatabase(str(workloads), str(records))
    assert f"{workloads} is not read" in caplog.text


def test_a_working_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TuningError, match=r"file/below/tuning.sqlite cannot be made: Not a dir"):
        ms.tune_tir(product, "llvm", tmp_path / "file" / "below", 2)


def test_what_a_search_may_cost_before_0_9(tmp_path):
    """Not one TuneConfig but a class for each strategy; `num_trials_total` is of a task."""
    config = ms.ReplayTraceConfig(num_trials_per_iter=2, num_trials_total=3)
    assert (config.strategy, config.num_trials_per_iter) == ("replay_trace", 2)
    assert config.max_trials_per_task == 3
    sch = ms.tune_tir(
        mod=product, target="llvm", config=config, work_dir=tmp_path / "w", task_name="simple"
    )
    assert callable(tvm.build(sch.mod, "llvm"))
    evolved = ms.EvolutionarySearchConfig(8, population_size=64, max_trials_global=9)
    assert (evolved.max_trials_per_task, evolved.max_trials_global) == (64, 9)
    assert ms.ReplayFuncConfig().budget().batch == 16
    with pytest.raises(TypeError, match="takes no 'population_sizes'"):
        ms.EvolutionarySearchConfig(8, population_sizes=64)
