"""A task whose candidates are schedules of one te computation, and how they are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from slipway import te
from slipway.compiler.driver import build, lower
from slipway.errors import TuningError
from slipway.ir.expr import IntImm
from slipway.ir.function import BaseFunc
from slipway.relay.types import TensorType
from slipway.runtime.ndarray import array
from slipway.target import Target
from slipway.te.operation import PlaceholderOp
from slipway.tuning.build import LoopsJob
from slipway.tuning.builders import Builder
from slipway.tuning.measure import Bench
from slipway.tuning.runner import Runner
from slipway.tuning.session import Array
from slipway.tuning.space import Candidate, Choices


class ScheduledTask:
    """A computation for a target; `scheduled` says what a candidate's schedule is."""

    target: Target
    key: str

    @property
    def space(self) -> Choices:
        """All candidates."""
        raise NotImplementedError

    @property
    def suffix(self) -> str:
        """The ending of a library of the task's target."""
        return self.target.upload_suffix

    def scheduled(self, candidate: Candidate) -> tuple[te.Schedule, list[Any]]:
        """Return (schedule, arguments) of a candidate."""
        raise NotImplementedError

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures candidates."""
        return Bench(self, self, runner, folder, rounds, builder)

    @property
    def is_portable(self) -> bool:
        """Whether another process can compile candidates: they are lowered in this one."""
        return True

    def job(self, candidates: Sequence[Candidate]) -> LoopsJob:
        """Return what compiles candidates into one library."""
        return LoopsJob.of(self.target, candidates, self.lowered)

    def lowered(self, candidate: Candidate, name: str = "main") -> BaseFunc:
        """Return the loops of a candidate."""
        schedule, args = self.scheduled(candidate)
        read, written = self._parted(args)
        return lower(schedule, [*read, *written], name=name, simple_mode=True)[name]

    def inputs(self) -> list[TensorType]:
        """Return the types of the placeholders."""
        return [type_of(t) for t in self.tensors[0]]

    def outputs(self) -> list[TensorType]:
        """Return the types of the results."""
        return [type_of(t) for t in self.tensors[1]]

    def reference(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the computation gives here without any schedule."""
        read, written = self.tensors
        plain = te.create_schedule([t.op for t in written])
        results = [array(np.zeros(type_of(t).shape, t.dtype)) for t in written]
        build(plain, [*read, *written], target="llvm")(*map(array, inputs), *results)
        return [result.numpy() for result in results]

    @cached_property
    def tensors(self) -> tuple[list[te.Tensor], list[te.Tensor]]:
        """The placeholders and the results."""
        default = self.space.default
        assert default is not None
        return self._parted(self.scheduled(default)[1])

    def _parted(self, args: Iterable[Any]) -> tuple[list[te.Tensor], list[te.Tensor]]:
        given = list(args)
        for one in given:
            if not isinstance(one, te.Tensor):
                raise TuningError(f"{self}: the argument {one!r} is no tensor of a fixed shape")
        read = [t for t in given if isinstance(t.op, PlaceholderOp)]
        return read, [t for t in given if not isinstance(t.op, PlaceholderOp)]


def type_of(tensor: te.Tensor) -> TensorType:
    """Return a tensor's type.  Raises TuningError where its shape is not fixed."""
    if not all(isinstance(n, int | IntImm) for n in tensor.shape):
        raise TuningError(f"the tensor {tensor.name} has no fixed shape: {tensor.shape}")
    return TensorType(tuple(int(n) for n in tensor.shape), tensor.dtype)  # type: ignore[call-overload]
