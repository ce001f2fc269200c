"""The kernels of a model as tasks, and the best of a log for them and for te computations."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.auto_scheduler.compute_dag import ComputeDAG
from slipway.auto_scheduler.loop_state import StateObject
from slipway.auto_scheduler.records import (
    Trial,
    best_of,
    check_compatible,
    is_of_kernel,
    lines_of,
    load_records,
)
from slipway.auto_scheduler.search_task import HardwareParams, KernelSearchTask
from slipway.auto_scheduler.workload_registry import is_registered
from slipway.autotvm import record
from slipway.autotvm.task.dispatcher import ApplyHistoryBest as _Kernels
from slipway.autotvm.task.kernel import extract_from_program
from slipway.errors import TuningError
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.target import Target
from slipway.transform.context import PassContext

_log = logging.getLogger("slipway.auto_scheduler")


def extract_tasks(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
    target_host: Target | str | None = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | None = None,
    opt_level: int = 3,
    other_targets: Sequence[Target] | None = None,
) -> tuple[list[KernelSearchTask], list[float]]:
    """Return the kernels of a model that can be computed in several ways, and how often each runs.

    `include_simple_tasks` changes nothing: a kernel without a choice is no task.
    """
    del include_simple_tasks
    if dump_workload_to_dag_log or other_targets or opt_level != 3:
        raise TuningError(
            "extract_tasks compiles as relay.build does at opt_level 3, for one target, and dumps "
            "no graphs: leave opt_level, other_targets and dump_workload_to_dag_log out"
        )
    found = extract_from_program(mod, params, target, target_host)
    tasks = [KernelSearchTask(task, hardware_params) for task in found]
    return tasks, [task.kernel.weight for task in found]


class ApplyHistoryBest:
    """A context in which `relay.build` uses the best of a log; `query` finds a te schedule."""

    def __init__(
        self,
        records: str | Path | Iterable[Trial] | None,
        n_lines: int | None = None,
        include_compatible: bool = False,
    ) -> None:
        check_compatible(include_compatible)
        self._trials: list[Trial] = []
        self._kernels = _Kernels(None)
        if records is not None:
            self.load(records, n_lines)

    def load(
        self, records: str | Path | Iterable[str | Path | Trial], n_lines: int | None = None
    ) -> None:
        """Take the trials of one more log, or of several."""
        if isinstance(records, str | Path):
            lines = [line for line in lines_of(records) if is_of_kernel(line)]
            self._kernels.load([record.decode(line) for line in lines[:n_lines]])
            self._trials += list(load_records(records))[:n_lines]
            return
        for one in records:
            if isinstance(one, str | Path):
                self.load(one, n_lines)
            else:
                self._trials.append(one)

    def query(
        self, target: Target | str, workload_key: str, has_complex_op: bool = False,
        dag: ComputeDAG | None = None, func_name: str | None = None,
    ) -> Any:  # fmt: skip
        """Return the best state of a te computation, None where the log has none."""
        del has_complex_op, func_name
        found = best_of(self._trials, workload_key, target)
        if found is None:
            return None
        steps = found[0].state.transform_steps
        return found[0].state if dag is None else StateObject(dag, steps)

    def __enter__(self) -> ApplyHistoryBest:
        unknown = {i.task.workload_key for i, _ in self._trials}
        unused = [key for key in unknown if not is_registered(key)]
        if unused:
            _log.warning(
                "the log has schedules of %d computations that are registered nowhere, as classic "
                "TVM's kernels of a model are (%s): they change nothing. A model's kernels are "
                "chosen from the target's description; slipway tune or a search of its tasks "
                "writes lines that are used",
                len(unused), min(unused)[:60],
            )  # fmt: skip
        self._kernels.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._kernels.__exit__(*exception)


def is_auto_scheduler_enabled() -> bool:
    """Return whether the present PassContext asks for what was found."""
    return bool(PassContext.current().config.get("relay.backend.use_auto_scheduler", False))
