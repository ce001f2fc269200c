"""Searches of functions of loops (classic): `tune_tir`, and the best schedule by `compile_tir`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from slipway.backends.backend import compile_target
from slipway.blocks.from_te import create_prim_func
from slipway.blocks.schedule import Schedule
from slipway.errors import TuningError
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.stmt import Block
from slipway.meta_schedule.builder import Builder
from slipway.meta_schedule.database import Database
from slipway.meta_schedule.relay_integration import TuneConfig
from slipway.meta_schedule.runner import PyRunner
from slipway.meta_schedule.space_generator import PostOrderApply
from slipway.meta_schedule.tune import tune_tasks
from slipway.meta_schedule.tune_context import TuneContext, normalized
from slipway.target import Target
from slipway.te.tensor import Tensor
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.runner import Runner


def tune_tir(
    mod: IRModule | PrimFunc,
    target: Target | str,
    work_dir: str | Path = "",
    max_trials_global: int | None = None,
    *,
    config: TuneConfig | None = None,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | EngineBuilder | str = "local",
    runner: Runner | PyRunner | str | None = "local",
    database: Database | str | None = "json",
    cost_model: object = "xgb",
    measure_callbacks: object = "default",
    task_scheduler: object = "gradient",
    space: object = "post-order-apply",
    strategy: object = "evolutionary",
    num_tuning_cores: str | int = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Mapping[str, object] | None = None,
    task_name: str = "main",
    blocks: Iterable[str] | None = None,
    sch_rules: object = None,
    postprocs: object = None,
    mutator_probs: object = None,
) -> Any:
    """Search the schedules of a function of loops, or of all functions of a module.

    Returns the database of all trials; with `config=` (TVM 0.9 and 0.10, which had no
    `max_trials_global`) the best schedule, or None.  `space` is a generator, or a function of a
    schedule; `blocks` are the names of those that rules are applied to.  Every schedule that counts
    as the best has computed what the function computes without one.
    """
    if config is not None:
        strategy = config.strategy if strategy == "evolutionary" else strategy
        num_trials_per_iter = config.num_trials_per_iter
        max_trials_per_task = max_trials_per_task or config.max_trials_per_task
    if max_trials_global is None:
        if config is None:
            raise TuningError("tune_tir needs max_trials_global: how many candidates are tried")
        max_trials_global = config.max_trials_global or config.max_trials_per_task
    functions = _functions(mod, task_name)
    if blocks is not None:
        names = set(blocks)

        def is_named(block: Block) -> bool:
            return block.name in names

        space = PostOrderApply(f_block_filter=is_named)
    parts = {
        "sch_rules": _made(sch_rules), "postprocs": _made(postprocs),
        "mutator_probs": _made(mutator_probs),
    }  # fmt: skip
    tasks = []
    for name, func in functions.items():
        chosen = (special_space or {}).get(name, space)
        if chosen is None:
            continue
        tasks.append(
            TuneContext(
                func, target=target, space_generator=chosen, search_strategy=strategy,
                task_name=name, rand_state=-1 if seed is None else seed,
                num_threads=num_tuning_cores,
                **{key: value for key, value in parts.items() if value is not None},
            ).clone()
        )  # fmt: skip
    found = tune_tasks(
        tasks=tasks, task_weights=[1.0] * len(tasks), work_dir=work_dir,
        max_trials_global=max_trials_global, max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter, builder=builder, runner=runner or "local",
        database=database or "json", cost_model=cost_model, measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler, module_equality=module_equality, seed=seed,
    )  # fmt: skip
    if config is None:
        return found
    return compile_tir(found, next(iter(functions.values())), target)


def tune_te(
    tensors: Iterable[Tensor], target: Target | str, config: TuneConfig,
    work_dir: str | Path = "", **parts: Any,
) -> Schedule | None:  # fmt: skip
    """Search the schedules of a te computation; return the best one (TVM 0.9 and 0.10)."""
    func = create_prim_func(list(tensors))
    found: Schedule | None = tune_tir(func, target, work_dir, config=config, **parts)
    return found


def compile_tir(
    database: Database, mod: IRModule | PrimFunc, target: Target | str
) -> Schedule | None:
    """Return the fastest verified schedule of a function in a database, None without one."""
    return database.query_schedule(normalized(mod), compile_target(target))


def _functions(mod: IRModule | PrimFunc, name: str) -> dict[str, PrimFunc]:
    if isinstance(mod, PrimFunc):
        return {name: mod}
    if not isinstance(mod, IRModule):
        raise TuningError(f"tune_tir takes a function of loops or a module, not {mod!r:.200}")
    found = {str(n): f for n, f in sorted(mod.items()) if isinstance(f, PrimFunc)}
    if not found:
        raise TuningError(
            "the module has no function of loops; tune_relay and tune_tvm search models"
        )
    return found


def _made(part: object) -> Any:
    """Return a list of rules; TVM 0.9 gave a function that returns one."""
    return part() if callable(part) else part
