"""The kernels of a model as tasks: their choices are strategies with knobs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.backends.choices import key_of
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.relay.types import TensorType, Type, flatten
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.builders import Builder
from slipway.tuning.measure import Bench, kernel_bench
from slipway.tuning.runner import Runner
from slipway.tuning.space import Candidate, Space
from slipway.tuning.task import TuningTask, extract_tasks


class KernelTask:
    """One kernel; `config_space` holds the candidates, `args` are the types of its inputs."""

    def __init__(self, task: TuningTask) -> None:
        self.kernel = task
        self.name, self.target, self.key = task.op, task.target, task.key
        self.args: tuple[Any, ...] = tuple(
            ("TENSOR", tuple(t.shape), t.dtype) for t in _tensors(task.problem.in_types)
        )
        self.kwargs: dict[str, Any] = {}
        # What only moves elements counts one operation for each, as speeds are compared by them.
        self.flop = task.flops or float(
            sum(math.prod(t.shape) for t in _tensors(task.problem.out_types))
        )
        self.workload = (self.name, *self.args)

    @property
    def config_space(self) -> Space:
        """All candidates."""
        return self.kernel.space

    space = config_space

    @property
    def head(self) -> dict[str, Any]:
        """What a line of a log begins with."""
        op, attrs, *types = key_of(self.kernel.problem)
        return {"op": op, "attrs": attrs, "inputs": types[:-1], "target": types[-1]}

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures its candidates."""
        return kernel_bench(self.kernel, runner, folder, rounds, builder)

    def config_of(self, candidate: Candidate) -> Candidate:
        """Return what callbacks are given for a candidate: itself."""
        return candidate

    def candidate_of(self, config: Candidate) -> Candidate:
        """Return the candidate of a log's line: itself."""
        return config

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={{}})"


def extract_from_program(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
    target_host: Target | str | None = None,
    ops: Iterable[Any] | None = None,
) -> list[KernelTask]:
    """Return the kernels of a model that can be computed in several ways, by their work.

    `ops` limits them to operators, given as `relay.op.get` does or by name.
    """
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    names = None if ops is None else {str(getattr(op, "name", op)) for op in ops}
    with PassContext(opt_level=3):
        tasks = extract_tasks(module, Target(target, host=target_host), params)
    return [KernelTask(t) for t in tasks if names is None or plain_name(t.op) in names]


def extract_from_multiple_program(
    mods: Sequence[IRModule | Function],
    params: Sequence[Mapping[str, Any] | None],
    target: Target | str = "llvm",
    target_host: Target | str | None = None,
    ops: Iterable[Any] | None = None,
) -> list[KernelTask]:
    """Return the kernels of several models, each problem once."""
    wanted = None if ops is None else list(ops)
    found: dict[str, KernelTask] = {}
    for mod, values in zip(mods, params, strict=True):
        for task in extract_from_program(mod, values, target, target_host, wanted):
            found.setdefault(task.key, task)
    return list(found.values())


def _tensors(types: Iterable[Type]) -> list[TensorType]:
    """Return the types of tensors, those of tuples among them: concatenation takes one."""
    return [tensor for type_ in types for tensor in flatten(type_)]


def plain_name(op: str) -> str:
    """Return the operator that one of a chosen layout stands for."""
    return re.sub(r"^nn\.contrib_(.*?)(_winograd)?(_pack|_pairs|_nchwc)$", r"nn.\1", op)
