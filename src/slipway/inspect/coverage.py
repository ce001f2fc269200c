"""How the kernels of a model would be computed on a target, told without compiling them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.backends.primitive import schedule_primitive
from slipway.backends.strategy import Choice
from slipway.compiler.model_graph import ModelGraph
from slipway.relay.expr import Function
from slipway.target import Target


@dataclass(frozen=True)
class KernelSchedule:
    """One kernel: its main operator, and the strategy that serves it ("": a backend has none).

    `knobs` are the decisions of that strategy, `cycles` what its cost model predicts, or None.
    """

    operator: str
    schedule: str
    layers: tuple[str, ...]  # the model's nodes that it computes something of
    knobs: str = ""
    cycles: float | None = None


def kernel_schedules(graph: ModelGraph, targets: Mapping[int, Target]) -> list[KernelSchedule]:
    """Return what each kernel call of the graph gets, in order.

    `targets` are those of each kind of device that the model is for.
    """
    (*_, last) = targets.values()
    chosen = {
        name: _schedule_of(function, targets.get(graph.kernel_devices.get(name, 0), last))
        for name, function in graph.kernels.items()
    }
    found = []
    for node in graph.nodes:
        if node.calls_kernel:
            operator, choice = chosen[node.function]
            if choice is None:
                found.append(KernelSchedule(operator, "", node.layers))
            else:
                name, knobs = choice.strategy.name, str(choice.knobs)
                found.append(KernelSchedule(operator, name, node.layers, knobs, choice.cycles))
    return found


def _schedule_of(function: Function, target: Target) -> tuple[str, Choice | None]:
    kernel = schedule_primitive(function, target)
    return kernel.anchor, kernel.choice
