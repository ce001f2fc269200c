"""``tvmc.autotuner``: the fastest choice for each kernel of a model, as a file of records.

There is one search, `slipway.tuning`'s, of whole models; the tuners "ga", "random" and "gridsearch"
of autotvm propose in their own order, one kernel after another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway import auto_scheduler, autotvm
from slipway.auto_scheduler import HardwareParams
from slipway.driver.tvmc.model import TVMCException, TVMCModel
from slipway.driver.tvmc.transform import convert_graph_layout
from slipway.errors import did_you_mean
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.link import write_file
from slipway.transform.context import PassContext
from slipway.tuning.database import Database
from slipway.tuning.runner import LocalRunner, Runner, TrackerRunner
from slipway.tuning.tune import Budget
from slipway.tuning.tune import tune_model as search_model

__all__ = [
    "autoscheduler_get_tuning_tasks", "autotvm_get_tuning_tasks", "schedule_tasks", "tune_model",
    "tune_tasks",
]  # fmt: skip

_TUNERS: dict[str, Callable[[Any], autotvm.tuner.Tuner]] = {
    "ga": autotvm.tuner.GATuner,
    "random": autotvm.tuner.RandomTuner,
    "gridsearch": autotvm.tuner.GridSearchTuner,
}
# Of classic TVM's names of the search by a learned model, which differ in what it learns from.
LEARNED = ("xgb", "xgb_knob", "xgb_curve", "xgb_itervar", "xgb_rank")
TUNERS = (*LEARNED, *_TUNERS)
# How classic TVM's search and runner are set; here the engine measures until trials differ.
_CLASSIC = (
    "min_repeat_ms", "number", "repeat", "parallel", "cooldown_interval", "hardware_params",
    "include_simple_tasks", "log_estimated_latency", "additional_target_options",
)  # fmt: skip


def tune_model(
    tvmc_model: TVMCModel,
    target: str | Target,
    tuning_records: str | None = None,
    prior_records: str | None = None,
    enable_autoscheduler: bool = False,
    rpc_key: str | None = None,
    hostname: str | None = None,
    port: int | str = 9090,
    trials: int = 10000,
    target_host: str | None = None,
    tuner: str = "xgb",
    timeout: float = 10.0,
    early_stopping: int | None = None,
    desired_layout: str | None = None,
    **classic: Any,
) -> str:
    """Search the ways to compute each kernel and return the path of the best of them.

    `trials` are those of all kernels together; a kernel that nothing makes faster rests.  With
    `rpc_key` the tracker at `hostname`:`port` gives the devices.  Every trial is kept beside
    `tuning_records`: a search that was ended goes on where it was.  `prior_records` of an earlier
    search hold where this one finds nothing better.  `enable_autoscheduler` changes nothing: the
    choices of both of classic TVM's searches are searched.  `tvmc.compile` takes the path.
    """
    del enable_autoscheduler
    unknown = [name for name in classic if name not in _CLASSIC]
    if unknown:
        raise TVMCException(
            f"tvmc.tune takes no {', '.join(unknown)}.{did_you_mean(unknown[0], _CLASSIC)}"
        )
    _check_tuner(tuner)
    if trials < 1 or (early_stopping is not None and early_stopping < 1):
        raise TVMCException("tvmc.tune: trials and early_stopping are at least 1")
    if bool(rpc_key) != bool(hostname):
        raise TVMCException("tvmc.tune takes hostname and rpc_key, of a tracker's devices")
    prior = ""
    if prior_records is not None:
        if not Path(prior_records).is_file():
            raise TVMCException(f"prior_records: there is no file {prior_records}")
        prior = Path(prior_records).read_text(encoding="utf-8")
    records = Path(tuning_records or tvmc_model.default_tuning_records_path())
    module = tvmc_model.mod
    if desired_layout:
        module = convert_graph_layout(module, desired_layout)
    chosen = Target(target, host=target_host)
    if tuner in _TUNERS:
        tasks = autotvm_get_tuning_tasks(module, tvmc_model.params, chosen)
        run: Any = autotvm.LocalRunner(timeout)
        if rpc_key:
            run = autotvm.RPCRunner(rpc_key, hostname, int(port), timeout=timeout)
        option = autotvm.measure_option(autotvm.LocalBuilder(timeout), run)
        each = max(1, trials // max(1, len(tasks)))
        tune_tasks(tasks, str(records), option, tuner, each, early_stopping, prior_records)
        return str(records)
    runner: Runner = LocalRunner(timeout)
    if rpc_key and hostname:
        runner = TrackerRunner(hostname, int(port), rpc_key, timeout)
    known = Database(f"{os.fspath(records)}.sqlite")
    per_task = min(trials, early_stopping or 64)
    try:
        with PassContext(opt_level=3):
            limit = Budget(per_task, in_all=trials)
            search_model(module, chosen, tvmc_model.params, runner, known, limit)
    finally:  # what was found is worth keeping, whatever ended the search
        known.write_records(records)
        known.close()
        if prior:
            found = records.read_text(encoding="utf-8")
            write_file(records, f"{prior.rstrip()}\n{found}".encode())
    return str(records)


def _check_tuner(tuner: str) -> None:
    if tuner not in TUNERS:
        raise TVMCException(
            f"there is no tuner {tuner!r}; there are {', '.join(TUNERS)}."
            f"{did_you_mean(tuner, TUNERS)}"
        )


def autotvm_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any] | None,
    target: str | Target,
    target_host: str | None = None,
    alter_layout: str | None = None,
) -> list[Any]:
    """Return the kernels of a model as tasks of autotvm."""
    if alter_layout:
        mod = convert_graph_layout(mod, alter_layout)
    return autotvm.task.extract_from_program(mod, params, Target(target, host=target_host))


def autoscheduler_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any] | None,
    target: str | Target,
    target_host: str | None = None,
    alter_layout: str | None = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
) -> tuple[list[Any], list[float]]:
    """Return the kernels of a model as tasks of auto_scheduler, and how often each runs."""
    if alter_layout:
        mod = convert_graph_layout(mod, alter_layout)
    chosen = Target(target, host=target_host)
    return auto_scheduler.extract_tasks(
        mod, params, chosen, None, hardware_params, include_simple_tasks
    )


def schedule_tasks(
    tasks: Sequence[Any],
    task_weights: Sequence[float],
    tuning_options: auto_scheduler.TuningOptions,
    prior_records: str | None = None,
    log_estimated_latency: bool = False,
) -> None:
    """Search tasks of auto_scheduler together; `prior_records` are learned from."""
    del log_estimated_latency
    scheduler = auto_scheduler.TaskScheduler(tasks, task_weights, load_log_file=prior_records)
    scheduler.tune(tuning_options)


def tune_tasks(
    tasks: Sequence[Any],
    log_file: str,
    measure_option: Any,
    tuner: str,
    trials: int,
    early_stopping: int | None = None,
    tuning_records: str | None = None,
) -> None:
    """Make `trials` trials of each task of autotvm; `log_file` has a line for each."""
    _check_tuner(tuner)
    make = _TUNERS.get(tuner, autotvm.tuner.XGBTuner)
    for number, task in enumerate(tasks, 1):
        search = make(task)
        if tuning_records:
            search.load_history(autotvm.record.load_from_file(tuning_records))
        prefix = f"[Task {number:2d}/{len(tasks):2d}] "
        search.tune(
            n_trial=trials,
            early_stopping=early_stopping,
            measure_option=measure_option,
            callbacks=[
                autotvm.callback.progress_bar(trials, prefix=prefix),
                autotvm.callback.log_to_file(log_file),
            ],
        )
