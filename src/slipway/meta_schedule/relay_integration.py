"""`tune_tvm` and `tune_relay` (classic): search a model, get a database."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.backends.backend import compile_target
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.relay_build import build
from slipway.compiler.vm import compile as compile_vm
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.ir.function import IRModule
from slipway.meta_schedule.builder import Builder, LocalBuilder
from slipway.meta_schedule.database import Database, kept_in
from slipway.meta_schedule.profiler import Profiler
from slipway.meta_schedule.runner import LocalRunner, gives_times_alone
from slipway.meta_schedule.runner import create as made_runner
from slipway.meta_schedule.searches import SearchParts, engine_builder
from slipway.meta_schedule.task_scheduler import TaskScheduler
from slipway.relay.backend import Executor, Runtime
from slipway.relay.expr import Function
from slipway.runtime.vm import Executable
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.instruments import PassInstrument
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.runner import Runner
from slipway.tuning.task import TuningTask
from slipway.tuning.task import extract_tasks as tasks_of
from slipway.tuning.tune import Budget, Progress, tune_model

STRATEGIES = ("evolutionary", "replay-trace", "replay-func")
# Words of classic TVM for parts of its search -> those that stand for what is done here.
_PARTS = {
    "builder": ("local",),
    "runner": ("local", "rpc"),
    "database": ("json", "memory"),
    "cost_model": ("xgb", "mlp", "random", "none"),
    "measure_callbacks": ("default",),
    "task_scheduler": ("gradient", "round-robin"),
    "space": ("post-order-apply",),
    "module_equality": ("structural", "ignore-ndarray", "anchor-block"),
    "num_tuning_cores": ("physical", "logical"),
    "strategy": STRATEGIES,
}
_log = logging.getLogger("slipway.tuning")


@dataclass(frozen=True)
class TuneConfig:
    """What a search may cost.

    `max_trials_global` None: as many as the tasks need; `strategy` is one of classic TVM's names,
    which all mean the one search there is.
    """

    strategy: object = "evolutionary"
    num_trials_per_iter: int = 32
    max_trials_per_task: int = 64
    max_trials_global: int | None = None

    def budget(self) -> Budget:
        """Return it as the engine's budget; a batch is small enough for one upload."""
        expect_known(strategy=str_of(self.strategy))
        return Budget(
            self.max_trials_per_task,
            self.max_trials_global or 0,
            batch=max(1, min(self.num_trials_per_iter, 16)),
        )


def extract_tasks(
    mod: IRModule | Function,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    module_equality: str = "structural",
    disabled_pass: Iterable[str] | None = None,
    instruments: Iterable[PassInstrument] | None = None,
) -> list[TuningTask]:
    """Return the kernels of a model that can be computed in several ways."""
    expect_known(module_equality=module_equality)
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    context = _context(opt_level, pass_config, disabled_pass, instruments)
    with Profiler.timeit("TaskExtraction"), context:
        return tasks_of(module, compile_target(target), params)


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[TuningTask],
    work_dir: str | Path,
    space: str = "post-order-apply",
    strategy: str = "evolutionary",
    num_tuning_cores: str | int = "physical",
    seed: int | None = None,
) -> tuple[list[TuningTask], list[float]]:
    """Return tasks and their weights, for `tune.tune_tasks`.

    What else is given names parts of classic TVM's search, which stand for the one that there is;
    `work_dir` is made, and nothing is written to it yet.  `seed` changes nothing: a search begins
    alike each time.
    """
    del seed
    expect_known(space=space, strategy=strategy, num_tuning_cores=num_tuning_cores)
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    return list(extracted_tasks), [float(task.weight) for task in extracted_tasks]


def tune_tvm(
    mod: IRModule | Function,
    target: Target | str,
    config: TuneConfig | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    work_dir: str | Path,
    runner: Runner | None = None,
    builder: Builder | EngineBuilder | None = None,
    database: Database | None = None,
    seed: int | None = None,
) -> Any:
    """Search the layouts and kernels of a model and return the database of all trials.

    A search that was ended, by Ctrl-C too, goes on where it was when it is called again with the
    same `work_dir`.  `builder` may be one of `tuning.build_cluster.builder_of`, on Dask say.
    Raises TuningError when the device gives no results.
    """
    return _searched(
        mod, target, config, params, work_dir, runner, builder, database, seed,
        PassContext(opt_level=3),
    )  # fmt: skip


def tune_relay(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
    work_dir: str | Path = "",
    max_trials_global: int = 2000,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | EngineBuilder | str | None = None,
    runner: Runner | str | None = None,
    database: Database | str | None = None,
    cost_model: object = "xgb",
    measure_callbacks: object = "default",
    task_scheduler: object = "gradient",
    space: str = "post-order-apply",
    strategy: str = "evolutionary",
    seed: int | None = None,
    module_equality: str = "structural",
    num_tuning_cores: str | int = "physical",
    opt_level: int = 3,
    disabled_pass: Iterable[str] | None = None,
    instruments: Iterable[PassInstrument] | None = None,
) -> Any:
    """The same as `tune_tvm` with the limits as arguments.

    A part of classic TVM's search that is given by its name stands for the one that there is; a
    task scheduler, callbacks and a builder of a script's own are called for the kernels.  A number
    of `num_tuning_cores` is that of the processes that compile.
    """
    expect_known(
        builder=builder, runner=runner, database=database, cost_model=cost_model,
        measure_callbacks=measure_callbacks, task_scheduler=task_scheduler, space=space,
        module_equality=module_equality, num_tuning_cores=num_tuning_cores,
    )  # fmt: skip
    config = TuneConfig(
        strategy=strategy,
        num_trials_per_iter=num_trials_per_iter,
        max_trials_per_task=max_trials_per_task or TuneConfig.max_trials_per_task,
        max_trials_global=max_trials_global,
    )
    if gives_times_alone(runner):
        raise NotAvailableError(
            f"{type(runner).__name__} gives times alone, and whole models are compared here, too: "
            "tune_tir and tune_tasks take a PyRunner; for a model give a runner with open(), which "
            "returns an RPCSession"
        )
    builders = None if isinstance(builder, str) else builder
    if builders is None and isinstance(num_tuning_cores, int):
        builders = LocalBuilder(num_tuning_cores)
    return _searched(
        mod, target, config, params, work_dir,
        made_runner(runner) if isinstance(runner, str) else runner,  # type: ignore[arg-type]
        builders, database, seed,
        _context(opt_level, None, disabled_pass, instruments),
        SearchParts(
            cost_model=cost_model, measure_callbacks=measure_callbacks,
            scheduler=TaskScheduler.create(task_scheduler),
        ),
    )  # fmt: skip


def compile_relay(
    database: Database,
    mod: IRModule | Function,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    opt_level: int = 3,
    *,
    backend: str = "graph",
    pass_config: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    disabled_pass: Iterable[str] | None = None,
    runtime: Runtime | None = None,
    instruments: Iterable[PassInstrument] | None = None,
) -> ModelFactory | Executable:
    """Compile a model with the best choices of a database; `backend` is "graph" or "vm"."""
    chosen = compile_target(target)
    context = _context(opt_level, pass_config, disabled_pass, instruments)
    with Profiler.timeit("PostTuningCompilation"), database, context:
        if backend == "graph":
            return build(mod, chosen, params=params, executor=executor, runtime=runtime)
        if backend != "vm":
            raise ArgumentValueError(f"backend {backend!r}: it is 'graph' or 'vm'")
        if executor is not None or runtime is not None:
            raise ArgumentValueError("the virtual machine has no executor and no runtime to choose")
        return compile_vm(mod, chosen, params=params)


def is_meta_schedule_enabled() -> bool:
    """Return whether the present PassContext asks for what was found."""
    return bool(PassContext.current().config.get("relay.backend.use_meta_schedule", False))


def _searched(
    mod: IRModule | Function,
    target: Target | str,
    config: TuneConfig | None,
    params: Mapping[str, Any] | None,
    work_dir: str | Path,
    runner: Runner | None,
    builder: Builder | EngineBuilder | None,
    database: Database | str | None,
    seed: int | None,
    context: PassContext,
    parts: SearchParts | None = None,
) -> Any:
    """Search in a PassContext, as `tune_tvm` says."""
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    builders = engine_builder(builder)
    limit = (config or TuneConfig()).budget()
    with context, kept_in(database, work_dir) as found, ExitStack() as stages:
        stages.enter_context(Profiler.timeit("LayoutSearch"))

        def kernels_begin(_: list[TuningTask]) -> None:
            stages.close()
            stages.enter_context(Profiler.timeit("KernelSearch"))

        tune_model(
            module, compile_target(target), params, runner or LocalRunner(), found, limit, tell,
            begun=kernels_begin, seed=seed or 0, builder=builders,
            prepare=lambda searches: parts.sharing(searches, found) if parts else None,
        )  # fmt: skip
    return found if database is None or isinstance(database, str) else database


def _context(
    opt_level: int,
    config: Mapping[str, Any] | None,
    disabled_pass: Iterable[str] | None,
    instruments: Iterable[PassInstrument] | None,
) -> PassContext:
    return PassContext(
        opt_level=opt_level,
        config=dict(config or {}),
        disabled_pass=list(disabled_pass or ()),
        instruments=list(instruments or ()),
    )


def expect_known(**given: object) -> None:
    """Raise ValueError for a part of the search by a name that does not stand for ours."""
    for name, value in given.items():
        if isinstance(value, str) and value not in _PARTS[name]:
            raise ArgumentValueError(f"{name} {value!r}: it is one of {', '.join(_PARTS[name])}")


def str_of(strategy: object) -> object:
    """Return a strategy's name as it is spelt here: TVM 0.9 wrote it with a _."""
    return strategy.replace("_", "-") if isinstance(strategy, str) else strategy


def tell(progress: Progress[Any]) -> None:
    """Log where a task stands."""
    _log.info(
        "%s: %d trials, %.2f of the default's time", progress.task, progress.trials, progress.score
    )
