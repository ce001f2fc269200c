"""A model compiled ahead of time, on a board: built, flashed, and asked for labels (classic)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import slipway.compiler.relay_build
from slipway.errors import ArgumentValueError
from slipway.micro.project import GeneratedProject, generate_project
from slipway.micro.session import Session
from slipway.relay.backend import Executor, Runtime
from slipway.target import Target
from slipway.toolchain.tempdir import lasting
from slipway.transform.context import PassContext


def create_aot_session(
    platform: str,
    board: str,
    target: Target,
    mod: Any,
    params: Mapping[str, Any] | None,
    build_dir: str | Path | None = None,
    tune_logs: Any = None,
    timeout_override: Any = None,
    use_cmsis_nn: bool = False,
    project_options: Mapping[str, Any] | None = None,
    use_existing: bool = False,
) -> Session:
    """Compile a model, make a project of it for a board, build and flash it; return a session.

    `tune_logs` is a file of autotvm's records.  `use_cmsis_nn` changes nothing: the integer kernels
    for the board's core are Slipway's own.
    """
    del use_cmsis_nn
    folder = (lasting("aot-") if build_dir is None else Path(build_dir)) / "project"
    options = {"board": board, "project_type": "host_driven", **(project_options or {})}
    if use_existing:
        project = GeneratedProject.from_directory(folder, options)
    else:
        if tune_logs is not None:
            raise ArgumentValueError(
                "create_aot_session takes no tune_logs: compile under autotvm.apply_history_best, "
                "and make the project with micro.generate_project"
            )
        with PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
            built = slipway.compiler.relay_build.build(
                mod,
                target,
                params=dict(params or {}),
                executor=Executor("aot"),
                runtime=Runtime("crt", {"system-lib": True}),
            )
        project = generate_project(platform, built, folder, options)
    project.build()
    project.flash()
    return Session(project.transport(), timeout_override=timeout_override)


def predict_labels_aot(
    session: Session, aot_executor: Any, input_data: Iterable[Any], runs_per_sample: int = 1
) -> Iterator[tuple[int, float]]:
    """Yield (label, seconds of a run) for each sample, of a model with one input and one output."""
    if (aot_executor.get_num_inputs(), aot_executor.get_num_outputs()) != (1, 1):
        raise ArgumentValueError("predict_labels_aot takes a model of one input and one output")
    for sample in input_data:
        aot_executor.get_input(0).copyfrom(sample)
        timer = aot_executor.module.time_evaluator("run", session.device, number=runs_per_sample)
        seconds = timer().mean
        yield int(aot_executor.get_output(0).numpy().argmax()), seconds
