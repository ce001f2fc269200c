"""What only a run tells: the time of each layer beside its limit, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.model_graph import COPY
from slipway.deploy.agreement import Agreement, agreement_of
from slipway.inspect.bisect import arguments_of, trace_of
from slipway.inspect.profile import ModelProfile
from slipway.report.data import Output, Report
from slipway.runtime.model_devices import Caller

Array = np.ndarray[Any, Any]


def add_times(report: Report, profile: ModelProfile) -> None:
    """Write each operator's time, and the least that the device's limits allow, into its layer."""
    copies = [o for o in profile.operators if o.kernel == COPY]
    if copies:
        seconds = sum(o.seconds for o in copies)
        report.notes.append(
            f"{len(copies)} copies between the processor and another device take "
            f"{seconds * 1e6:.3g} µs of a run."
        )
    operators = [o for o in profile.operators if o.kernel != COPY]
    for layer, operator in zip(report.layers, operators, strict=True):
        layer.seconds = operator.seconds
        if operator.bounds:
            layer.limit_seconds, layer.bound_by = operator.limit_seconds, operator.binding
    limits = profile.limits
    if limits is None:
        return
    report.limits.append(("float32 multiply-adds", f"{limits.flops / 1e9:.3g} GFLOP/s"))
    for level in limits.levels:
        text = f"{level.read / 1e9:.3g} GB/s read, {level.copy / 1e9:.3g} GB/s copied"
        report.limits.append((level.name, text))


def add_numbers(
    report: Report,
    factory: ModelFactory,
    inputs: Mapping[str, Array],
    call: Caller,
    tolerance: float,
    progress: Callable[[], None] | None = None,
) -> None:
    """Run every kernel on the inputs that it has in a whole run, beside its NumPy reference.

    So an error is the kernel's own: those of the layers before it do not add to it.
    """
    graph = factory.graph
    trace = trace_of(graph, inputs)
    calls = [(i, n) for i, n in enumerate(graph.nodes) if n.calls_kernel]
    for layer, (number, node) in zip(report.layers, calls, strict=True):
        wanted = list(trace[number])
        got = call(node.function, arguments_of(node, trace), wanted)
        names = [str(i) for i in range(len(wanted))]
        found = agreement_of(
            dict(zip(names, got, strict=True)), dict(zip(names, wanted, strict=True)), "",
            tolerance,
        )  # fmt: skip
        worst = max(found.outputs, key=lambda output: (not output.agrees, output.error))
        layer.error, layer.sqnr_db, layer.agrees = worst.error, worst.sqnr_db, worst.agrees
        if progress is not None:
            progress()


def add_agreement(report: Report, agreement: Agreement) -> None:
    """Write how the whole model agrees with its reference."""
    report.reference, report.tolerance = agreement.reference, agreement.tolerance
    report.agreement = [
        Output(o.name, o.error, o.sqnr_db, o.cosine, o.agrees) for o in agreement.outputs
    ]
