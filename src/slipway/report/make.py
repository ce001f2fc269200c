"""A report of a compiled model, with as much as can be measured where it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.compiler.model_factory import ModelFactory
from slipway.deploy.agreement import TOLERANCE, agreement_of
from slipway.deploy.progress import step
from slipway.deploy.reference import random_inputs, reference_of
from slipway.deploy.tensors import specs_of
from slipway.errors import ExecutionError, SlipwayError
from slipway.inspect.limits import Probes
from slipway.inspect.profile import profile_model
from slipway.report.boards import add_boards
from slipway.report.collect import collect
from slipway.report.data import Report
from slipway.report.loaded import LoadedArtifact, why_not_here, why_not_there
from slipway.report.measure import add_agreement, add_numbers, add_times
from slipway.rpc.client import RPCSession

RUNS = 5
SECONDS_A_SERIES = 1.0  # about; ten runs at most


def make_report(
    factory: ModelFactory,
    name: str,
    artifact: Path | None,
    *,
    session: RPCSession | None = None,
    where: str = "this machine",
    source: Any = None,
    constants: Mapping[str, Any] | None = None,
    signature: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    numbers: bool = True,
    limits: bool = True,
    quiet: bool = False,
) -> Report:
    """Return the report of a compiled model.

    Parameters
    ----------
    factory
        what `relay.build` returned.
    name
        of the model, for people.
    artifact
        its exported file, which is run; None for a microcontroller's.
    session, where
        the device to run it on, and what to call it; without one this machine, where it can.
    source, constants, signature
        what it was compiled from, as `deploy.reference.reference_of` takes them.
    inputs
        by name; what is not given is random.
    numbers
        whether each kernel is held against its NumPy reference, which takes its time.
    limits
        whether the device's own limits are measured too.
    quiet
        no progress, which a terminal shows otherwise.

    """
    with step("Describing the model", quiet):
        report = collect(factory, name, artifact)
    if isinstance(factory, AotExecutorFactoryModule):
        add_boards(report, factory)
    if artifact is None:
        report.notes.append(
            "Nothing was run: a microcontroller's model runs as firmware (`slipway micro`). Cycles "
            "are those that the cost models predict, code and stack an estimate."
        )
        return report
    if session is None and (hindrance := why_not_here(artifact)):
        report.notes.append(f"Nothing was measured, because no device was named: {hindrance}")
        return report
    if session is not None and (hindrance := why_not_there(artifact, session)):
        report.notes.append(f"Nothing was measured: {hindrance}")
        return report
    loaded = LoadedArtifact(artifact, session, where)
    report.where = where
    specs = specs_of(factory.metadata["inputs"])
    arrays = {**random_inputs(specs, seed=0), **(inputs or {})}
    _run(report, factory, loaded, arrays, limits, quiet)
    if numbers:
        with step(f"Comparing {len(report.layers)} kernels with their references", quiet):
            call = loaded.devices.caller(loaded.library, factory.graph.kernel_devices)
            add_numbers(report, factory, arrays, call, TOLERANCE)
    _compare(report, factory, loaded, arrays, source, constants or {}, signature)
    return report


def _run(
    report: Report, factory: ModelFactory, loaded: LoadedArtifact,
    arrays: Mapping[str, Any], limits: bool, quiet: bool,
) -> None:  # fmt: skip
    executor = loaded.executor
    for name, value in arrays.items():
        executor.set_input(name, np.asarray(value, order="C"))
    start = time.perf_counter()
    executor.run()
    executor.get_output(0)
    number = max(1, min(10, int(SECONDS_A_SERIES / max(time.perf_counter() - start, 1e-9))))
    with step(f"Timing it on {loaded.name}", quiet):
        timing = executor.benchmark(loaded.devices.main, number=1, repeat=max(RUNS, number))
        report.run_seconds = [float(value) for value in timing.results]
    probes = None
    is_bare = factory.target.parsed_triple.is_bare  # its limits nothing measures
    if limits and loaded.devices.is_processor and not is_bare:
        try:
            with step("Preparing to measure the device's limits", quiet):
                probes = Probes(
                    factory.target, loaded.devices.main, loaded.load_built, loaded.threads
                )
        except SlipwayError as error:
            report.notes.append(f"The device's limits were not measured: {error}")
    with step("Timing each layer", quiet):
        profile = profile_model(
            executor, factory.metadata, probes, factory.tables if probes else None, number, 3
        )
    add_times(report, profile)


def _compare(
    report: Report, factory: ModelFactory, loaded: LoadedArtifact,
    arrays: Mapping[str, Any], source: Any, constants: Mapping[str, Any],
    signature: str | None,
) -> None:  # fmt: skip
    if source is None:
        report.notes.append(
            "The whole model was not compared: what it was compiled from is not known as a file, "
            "a PyTorch module or an ONNX model."
        )
        return
    try:
        reference, run = reference_of(source, constants, signature)
    except ExecutionError as error:
        report.notes.append(f"The whole model was not compared: {error}")
        return
    names = [port["name"] for port in factory.metadata["outputs"]]
    wanted = dict(zip(names, (np.asarray(value) for value in run(arrays)), strict=True))
    for name, value in arrays.items():
        loaded.executor.set_input(name, np.asarray(value, order="C"))
    loaded.executor.run()
    got = {n: np.array(loaded.executor.get_output(i).numpy()) for i, n in enumerate(names)}
    add_agreement(report, agreement_of(got, wanted, reference, TOLERANCE))
