"""`tune_tvm` and `tune_relay` (classic): search a model, get a database."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.backends.backend import compile_target
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.relay_build import build
from slipway.ir.function import IRModule
from slipway.meta_schedule.builder import LocalBuilder
from slipway.meta_schedule.database import JSONDatabase
from slipway.meta_schedule.runner import LocalRunner
from slipway.relay.expr import Function
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.builders import Builder
from slipway.tuning.runner import Runner
from slipway.tuning.task import TuningTask
from slipway.tuning.task import extract_tasks as tasks_of
from slipway.tuning.tune import Budget, Progress, tune_model

STRATEGIES = ("evolutionary", "replay-trace", "replay-func")
_log = logging.getLogger("slipway.tuning")


@dataclass(frozen=True)
class TuneConfig:
    """What a search may cost.

    `max_trials_global` None: as many as the tasks need; `strategy` is one of classic TVM's names,
    which all mean the one search there is.
    """

    strategy: str = "evolutionary"
    num_trials_per_iter: int = 32
    max_trials_per_task: int = 64
    max_trials_global: int | None = None

    def budget(self) -> Budget:
        """Return it as the engine's budget; a batch is small enough for one upload."""
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy {self.strategy!r}: it is one of {', '.join(STRATEGIES)}")
        return Budget(
            self.max_trials_per_task,
            self.max_trials_global or 0,
            batch=max(1, min(self.num_trials_per_iter, 16)),
        )


def extract_tasks(
    mod: IRModule | Function, target: Target | str, params: Mapping[str, Any] | None = None
) -> list[TuningTask]:
    """Return the kernels of a model that can be computed in several ways."""
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    with PassContext(opt_level=3):
        return tasks_of(module, compile_target(target), params)


def tune_tvm(
    mod: IRModule | Function,
    target: Target | str,
    config: TuneConfig | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    work_dir: str | Path,
    runner: Runner | None = None,
    builder: LocalBuilder | Builder | None = None,
    database: JSONDatabase | None = None,
    seed: int | None = None,
) -> JSONDatabase:
    """Search the layouts and kernels of a model and return the database of all trials.

    A search that was ended, by Ctrl-C too, goes on where it was when it is called again with the
    same `work_dir`.  `builder` may be one of `tuning.build_cluster.builder_of`, on Dask say.
    Raises TuningError when the device gives no results.
    """
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    places = builder.builder if isinstance(builder, LocalBuilder) else builder
    found = database if database is not None else JSONDatabase(work_dir=work_dir)
    limit = (config or TuneConfig()).budget()
    with PassContext(opt_level=3):
        tune_model(
            module, compile_target(target), params, runner or LocalRunner(), found, limit, _tell,
            seed=seed or 0, builder=places,
        )  # fmt: skip
    return found


def tune_relay(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
    work_dir: str | Path = "",
    max_trials_global: int = 2000,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: LocalBuilder | Builder | None = None,
    runner: Runner | None = None,
    database: JSONDatabase | None = None,
    seed: int | None = None,
) -> JSONDatabase:
    """The same as `tune_tvm` with the limits as arguments."""
    config = TuneConfig(
        num_trials_per_iter=num_trials_per_iter,
        max_trials_per_task=max_trials_per_task or TuneConfig.max_trials_per_task,
        max_trials_global=max_trials_global,
    )
    return tune_tvm(
        mod, target, config, params=params, work_dir=work_dir, runner=runner, builder=builder,
        database=database, seed=seed,
    )  # fmt: skip


def compile_relay(
    database: JSONDatabase,
    mod: IRModule | Function,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    opt_level: int = 3,
) -> ModelFactory:
    """Compile a model with the best choices of a database."""
    with database, PassContext(opt_level=opt_level):
        return build(mod, compile_target(target), params=params)


def _tell(progress: Progress) -> None:
    _log.info(
        "%s: %d trials, %.2f of the default's time", progress.task, progress.trials, progress.score
    )
