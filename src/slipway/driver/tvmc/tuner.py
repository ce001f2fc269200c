"""`tvmc.tune`: the fastest choice for each kernel of a model, as a file of records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.model import TVMCException, TVMCModel
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.database import Database
from slipway.tuning.runner import LocalRunner, Runner, TrackerRunner
from slipway.tuning.tune import Budget
from slipway.tuning.tune import tune_model as search_model


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
    **classic: Any,
) -> str:
    """Search the ways to compute each kernel and return the path of the best of them.

    `trials` are those of all kernels together; a kernel that nothing makes faster rests.  With
    `rpc_key` the tracker at `hostname`:`port` gives the devices.  Every trial is kept beside
    `tuning_records`: a search that was ended goes on where it was.  `tvmc.compile` takes the path.
    """
    unknown = [name for name in classic if name not in _CLASSIC]
    if unknown:
        raise TVMCException(f"tvmc.tune takes no {', '.join(unknown)}")
    if enable_autoscheduler or tuner not in ("xgb", "xgb_knob", "xgb_curve", "xgb_itervar"):
        raise TVMCException(
            "tvmc.tune has one search, tuner='xgb': other orders are those of autotvm.tuner, and "
            "there is no auto_scheduler"
        )
    if prior_records is not None:
        raise TVMCException(
            "tvmc.tune: prior_records is not there: a search goes on with the trials beside "
            "tuning_records"
        )
    if trials < 1 or (early_stopping is not None and early_stopping < 1):
        raise TVMCException("tvmc.tune: trials and early_stopping are at least 1")
    runner: Runner = LocalRunner(timeout)
    if rpc_key or hostname:
        if not (rpc_key and hostname):
            raise TVMCException("tvmc.tune takes hostname and rpc_key, of a tracker's devices")
        runner = TrackerRunner(hostname, int(port), rpc_key, timeout)
    records = Path(
        tuning_records or Path(tvmc_model.default_package_path()).with_suffix(".records")
    )
    known = Database(f"{os.fspath(records)}.sqlite")
    per_task = min(trials, early_stopping or 64)
    try:
        with PassContext(opt_level=3):
            chosen, limit = Target(target, host=target_host), Budget(per_task, in_all=trials)
            search_model(tvmc_model.mod, chosen, tvmc_model.params, runner, known, limit)
    finally:  # what was found is worth keeping, whatever ended the search
        known.write_records(records)
        known.close()
    return str(records)


# How classic TVM's search and runner are set; here the engine measures until trials differ.
_CLASSIC = (
    "min_repeat_ms", "number", "repeat", "parallel", "cooldown_interval", "hardware_params",
    "include_simple_tasks", "log_estimated_latency",
)  # fmt: skip
