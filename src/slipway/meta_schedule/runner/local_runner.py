"""The steps of a run on this machine, and a script's own in their place (classic).

With functions of a script's own a library runs in this process, where they are.  One that crashes
ends it; one that takes too long is left to itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from slipway.meta_schedule.runner.artifact import RunnerInput, RunTimeoutError, device_kind
from slipway.meta_schedule.runner.config import EvaluatorConfig
from slipway.meta_schedule.runner.rpc_runner import (
    T_ARGUMENT_LIST,
    RunSteps,
    filled,
)
from slipway.meta_schedule.runner.rpc_runner import default_run_evaluator as _evaluated
from slipway.meta_schedule.utils import get_global_func_with_default_on_worker
from slipway.nd import array
from slipway.runtime.devices import Device
from slipway.runtime.load import load_module


def default_alloc_argument(
    device: Any, args_info: Sequence[Any], alloc_repeat: int
) -> list[T_ARGUMENT_LIST]:
    """Return the arguments of so many runs, filled with random numbers."""
    return filled(lambda values: array(values, device), args_info, alloc_repeat)


def default_run_evaluator(
    rt_mod: Any,
    device: Any,
    evaluator_config: EvaluatorConfig,
    repeated_args: Sequence[T_ARGUMENT_LIST],
) -> list[float]:
    """Return the seconds of each repeat, for each list of arguments."""
    return _evaluated(None, rt_mod, device, evaluator_config, repeated_args)


def default_cleanup() -> None:
    """Leave the library where it is: its folder is the builder's."""


class LocalSteps(RunSteps):
    """Those of a run in a thread of this process."""

    def seconds(
        self, one: RunnerInput, evaluator: EvaluatorConfig, alloc_repeat: int, timeout_s: float
    ) -> list[float]:
        """Run a library.  Raises RunTimeoutError, and what the steps raise."""
        found: list[list[float]] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                found.append(self._seconds(one, evaluator, alloc_repeat))
            except BaseException as error:  # told by the thread that waits
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if raised:
            raise raised[0]
        if not found:
            raise RunTimeoutError(timeout_s)
        return found[0]

    def _seconds(
        self, one: RunnerInput, evaluator: EvaluatorConfig, alloc_repeat: int
    ) -> list[float]:
        step = get_global_func_with_default_on_worker
        try:
            library = load_module(one.artifact_path)
            device = Device(device_kind(one.device_type))
            infos = [info.as_json() for info in one.args_info]
            arguments = step(self.f_alloc_argument, default_alloc_argument)(
                device, infos, alloc_repeat
            )
            run = step(self.f_run_evaluator, default_run_evaluator)
            return [float(s) for s in run(library, device, evaluator, arguments)]
        finally:
            step(self.f_cleanup, default_cleanup)()
