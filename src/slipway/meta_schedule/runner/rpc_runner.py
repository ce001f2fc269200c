"""The steps of a run on a device, and a script's own in their place (classic).

``RPCRunner(config, f_alloc_argument=f)``: a function, or a name that `register_func` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.meta_schedule.arg_info import ArgInfo
from slipway.meta_schedule.runner.artifact import ENTRY, RunnerInput, device_kind
from slipway.meta_schedule.runner.config import EvaluatorConfig, RPCConfig
from slipway.meta_schedule.utils import get_global_func_with_default_on_worker
from slipway.relay.types import TensorType
from slipway.rpc.client import RPCSession
from slipway.tuning.measure import random_array

Step = Callable[..., Any]
T_ARG_INFO_JSON_OBJ = list[Any]
T_ARG_INFO_JSON_OBJ_LIST = list[T_ARG_INFO_JSON_OBJ]
T_ARGUMENT = Any
T_ARGUMENT_LIST = list[T_ARGUMENT]


def default_create_session(rpc_config: RPCConfig) -> RPCSession:
    """Return a session on a device of the configuration's key."""
    return rpc_config.connect_server()


def default_upload_module(session: RPCSession, local_path: str, remote_path: str) -> Any:
    """Bring a library to the device, and return it loaded."""
    session.upload(local_path, remote_path)
    return session.load_module(remote_path)


def default_alloc_argument(
    session: RPCSession, device: Any, args_info: Sequence[Any], alloc_repeat: int
) -> list[T_ARGUMENT_LIST]:
    """Return the arguments of so many runs, filled with random numbers."""
    del session

    def brought(values: Any) -> Any:
        return device.empty(values.shape, str(values.dtype)).copyfrom(values)

    return filled(brought, args_info, alloc_repeat)


def default_run_evaluator(
    session: RPCSession | None,
    rt_mod: Any,
    device: Any,
    evaluator_config: EvaluatorConfig,
    repeated_args: Sequence[T_ARGUMENT_LIST],
) -> list[float]:
    """Return the seconds of each repeat, for each list of arguments."""
    del session
    flushes = evaluator_config.enable_cpu_cache_flush
    evaluator = rt_mod.time_evaluator(
        ENTRY, device, number=evaluator_config.number, repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
        f_preproc="cache_flush_cpu_non_first_arg" if flushes else "",
    )  # fmt: skip
    return [float(s) for arguments in repeated_args for s in evaluator(*arguments).results]


def default_cleanup(session: RPCSession | None, remote_path: str | None) -> None:
    """Delete the library on the device."""
    if session is not None and remote_path is not None:
        session.remove(remote_path)


def filled(make: Step, args_info: Sequence[Any], alloc_repeat: int) -> list[T_ARGUMENT_LIST]:
    """Return `alloc_repeat` lists of what `make` makes of arrays of random numbers."""
    types = [TensorType(tuple(i.shape), i.dtype) for i in map(ArgInfo.from_json, args_info)]
    found = []
    for _ in range(max(1, alloc_repeat)):
        values = [random_array(ty, number) for number, ty in enumerate(types)]
        found.append([make(v) for v in values])
    return found


@dataclass(frozen=True)
class RunSteps:
    """A script's functions in place of the steps of a run, here or on a device."""

    f_alloc_argument: Step | str | None = None
    f_run_evaluator: Step | str | None = None
    f_cleanup: Step | str | None = None

    def __bool__(self) -> bool:
        return any(step is not None for step in vars(self).values())


@dataclass(frozen=True)
class RemoteSteps(RunSteps):
    """Those of a run on a device, and what brings the library there."""

    f_create_session: Step | str | None = None
    f_upload_module: Step | str | None = None

    def seconds(
        self, one: RunnerInput, rpc: RPCConfig, evaluator: EvaluatorConfig, alloc_repeat: int
    ) -> list[float]:
        """Run a library; clean up however that ends."""
        step = get_global_func_with_default_on_worker
        session, remote = None, None
        try:
            session = step(self.f_create_session, default_create_session)(rpc)
            device = session.device(device_kind(one.device_type))
            remote = Path(one.artifact_path).name
            upload = step(self.f_upload_module, default_upload_module)
            library = upload(session, one.artifact_path, remote)
            infos = [info.as_json() for info in one.args_info]
            allocate = step(self.f_alloc_argument, default_alloc_argument)
            arguments = allocate(session, device, infos, alloc_repeat)
            run = step(self.f_run_evaluator, default_run_evaluator)
            return [float(s) for s in run(session, library, device, evaluator, arguments)]
        finally:
            step(self.f_cleanup, default_cleanup)(session, remote)
            if session is not None:
                session.close()
