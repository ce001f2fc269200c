"""How the kernels of a model would be computed on a target, told without compiling them."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.backends import strategy as registry
from slipway.compiler.graph import NOP, ModelGraph
from slipway.relay import op_registry
from slipway.relay.expr import Call, Function
from slipway.relay.visit import post_order
from slipway.target import Target


@dataclass(frozen=True)
class KernelSchedule:
    """One kernel: its main operator, and the schedule written for it ("": the general one)."""

    operator: str
    schedule: str
    layers: tuple[str, ...]  # the model's nodes that it computes something of


def kernel_schedules(graph: ModelGraph, target: Target) -> list[KernelSchedule]:
    """Return what each kernel call of the graph gets, in order."""
    chosen = {name: _schedule_of(function, target) for name, function in graph.kernels.items()}
    return [
        KernelSchedule(*chosen[node.function], node.layers)
        for node in graph.nodes
        if node.function not in ("", NOP)
    ]


def _schedule_of(function: Function, target: Target) -> tuple[str, str]:
    """Choose as `schedules.primitive` does: the last of the operators hardest to fuse decides."""
    best, operator, schedule = -1, "copy", ""
    for expr in post_order(function.body, into_functions=False):
        definition = op_registry.call_definition(expr)
        if definition is not None and isinstance(expr, Call) and definition.pattern >= best:
            types = [argument.checked_type for argument in expr.args]
            found = registry.select(definition.name, expr.attrs, types, target)
            best, operator = int(definition.pattern), definition.name
            schedule = found.name if found else ""
    return operator, schedule
