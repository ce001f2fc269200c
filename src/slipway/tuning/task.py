"""What there is to decide in a model: its kernels that can be computed in more than one way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slipway.backends.backend import compile_target
from slipway.backends.choices import key_of
from slipway.backends.primitive import schedule_primitive
from slipway.backends.strategy import Problem
from slipway.compiler.cost import kernel_cost
from slipway.compiler.relay_build import kernel_graph
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.target import Target
from slipway.tuning.space import Space


@dataclass
class TuningTask:
    """One kernel of a model.

    `weight` is how often the model calls kernels of its problem, `layers` are the model's nodes in
    the first of them.
    """

    name: str
    function: Function
    target: Target
    problem: Problem
    weight: float
    layers: tuple[str, ...] = field(default=())

    @cached_property
    def space(self) -> Space:
        """All candidates."""
        return Space(self.problem)

    @cached_property
    def key(self) -> str:
        """What the task is found by in a database: its problem's record key, hashed."""
        text = "\n".join(key_of(self.problem))
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def task_name(self) -> str:
        """Its name, by classic TVM's word."""
        return self.name

    @cached_property
    def mod(self) -> IRModule:
        """Its function as a module, by classic TVM's word."""
        return IRModule.from_expr(self.function)

    @property
    def dispatched(self) -> list[IRModule]:
        """The functions that are searched, by classic TVM's word: the task's own."""
        return [self.mod]

    @property
    def op(self) -> str:
        """The operator that is decided about."""
        return self.problem.op

    @cached_property
    def flops(self) -> float:
        """Operations of one call."""
        return float(kernel_cost(self.function).flops)

    def __str__(self) -> str:
        shapes = " ".join(str(t) for t in self.problem.in_types)
        return f"{self.op} {shapes} -> {' '.join(str(t) for t in self.problem.out_types)}"


def extract_tasks(
    module: IRModule, target: Target | str, params: Mapping[str, Any] | None = None
) -> list[TuningTask]:
    """Return the kernels of "main" that can be computed in more than one way, by their work.

    Kernels of one problem are one task, whatever their epilogues are: they share a record.  The
    PassContext decides about the graph as it does for `relay.build`.
    """
    chosen = compile_target(target)
    graph = kernel_graph(module, chosen, params)
    calls: dict[str, int] = {}
    layers: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.calls_kernel:
            calls[node.function] = calls.get(node.function, 0) + 1
            layers.setdefault(node.function, node.layers)
    found: dict[str, TuningTask] = {}
    own = chosen.kind.device_type  # a GPU's processor keeps its choices
    for name, function in graph.kernels.items():
        if graph.kernel_devices.get(name, own) != own:
            continue
        choice = schedule_primitive(function, chosen).choice
        if choice is None:
            continue
        task = TuningTask(
            name, function, chosen, choice.problem, calls.get(name, 1), layers.get(name, ())
        )
        if task.key in found:
            found[task.key].weight += task.weight
        elif len(task.space) > 1:
            found[task.key] = task
    return sorted(found.values(), key=lambda task: -task.weight * task.flops)
