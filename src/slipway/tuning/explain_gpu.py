"""Why a kernel is computed the way it is on a GPU: its blocks and threads, and the other ways.

No device is asked: what is told follows from the schedule, its loops and the target's limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway.backends.backend import compile_target
from slipway.backends.gpu.backend import kernels_of
from slipway.backends.gpu.limits import most_threads, shared_bytes
from slipway.backends.gpu.warps import runs_in_step
from slipway.backends.primitive import schedule_primitive
from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.compiler.cost import kernel_cost
from slipway.compiler.kernels import lower_kernel
from slipway.ir import ops
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.tuning.database import Database, TrialRow
from slipway.tuning.explain import NAMED, chosen_text, measured_text, values_of
from slipway.tuning.space import Candidate, candidate_of
from slipway.tuning.task import TuningTask, extract_tasks


@dataclass(frozen=True)
class Launch:
    """One kernel of a function: its blocks and the threads of each along x, y and z.

    An extent that only the host knows when it runs is None.
    """

    blocks: tuple[int | None, ...]
    threads: tuple[int | None, ...]
    shared_bytes: int

    @property
    def text(self) -> str:
        """The launch in words."""
        text = f"{_counted('block', self.blocks)} of {_counted('thread', self.threads)}"
        return text + (f" with {self.shared_bytes:,} bytes shared" if self.shared_bytes else "")


@dataclass(frozen=True)
class GpuExplanation:
    """What can be said of the choice for one task.

    `others` are choices of the same strategy with their predicted cost over that of this one: the
    costs of two strategies are not in one unit. `strategies` are the others that can compute it.
    """

    task: TuningTask
    chosen: Candidate
    launches: tuple[Launch, ...]
    flops: float
    bytes: float
    others: tuple[tuple[Candidate, float], ...]
    strategies: tuple[str, ...]
    trials: tuple[TrialRow, ...] = ()

    @property
    def paragraph(self) -> str:
        """The explanation in words."""
        sentences = [chosen_text(self.chosen), self._launched(), self._limits(), self._traffic()]
        sentences += [self._compared(), measured_text(self.chosen, self.trials)]
        return " ".join(word for word in sentences if word)

    @property
    def values(self) -> dict[str, Any]:
        """The explanation as plain values, for JSON."""
        target = self.task.target
        return {
            **values_of(self.task, self.chosen, self.trials),
            "launches": [
                {
                    "blocks": list(launch.blocks),
                    "threads": list(launch.threads),
                    "shared_bytes": launch.shared_bytes,
                }
                for launch in self.launches
            ],
            "most_threads": most_threads(target),
            "most_shared_bytes": shared_bytes(target),
            "flops": self.flops,
            "bytes": self.bytes,
            "others": [{"choice": str(c), "cost_ratio": ratio} for c, ratio in self.others[:8]],
            "strategies": list(self.strategies),
            "paragraph": self.paragraph,
        }

    def _launched(self) -> str:
        if len(self.launches) == 1:
            return f"One kernel: {self.launches[0].text}."
        each = "; ".join(launch.text for launch in self.launches)
        return f"{len(self.launches)} kernels, one after the other: {each}."

    def _limits(self) -> str:
        target = self.task.target
        text = (
            f"A block of this target has {most_threads(target):,} threads and "
            f"{shared_bytes(target):,} shared bytes at most"
        )
        if not runs_in_step(target):
            text += (
                ", and nothing says that threads run in step (-thread_warp_size), so shared memory "
                "is no default"
            )
        return text + "."

    def _traffic(self) -> str:
        if not self.flops:
            return f"It multiplies nothing, and reads and writes {self.bytes / 1024:,.1f} KB."
        rate = self.flops / 2 / self.bytes if self.bytes else 0.0
        return (
            f"Its {self.flops / 2e6:.3g} million multiply-adds read and write "
            f"{self.bytes / 1024:,.1f} KB: {rate:.3g} for each byte."
        )

    def _compared(self) -> str:
        parts = []
        if self.others:
            named = "; ".join(f"{c} {ratio:.2f} times" for c, ratio in self.others[:NAMED])
            parts.append(f"The nearest of its knobs by prediction: {named}.")
        if self.strategies:
            parts.append(f"It could be computed by {', '.join(self.strategies)} as well.")
        return " ".join(parts)


def explain_gpu_task(
    task: TuningTask, database: Database | None = None, device: str = "local"
) -> GpuExplanation:
    """Return why a task is computed the way it is, by the records and wishes that count now."""
    choice = schedule_primitive(task.function, task.target).choice
    assert choice is not None  # or it would be no task
    chosen = candidate_of(choice.strategy.name, choice.knobs)
    kernels = kernels_of(lower_kernel(task.name, task.function, task.target), task.target)
    cost = kernel_cost(task.function)
    trials = sorted(database.trials(task, device), key=lambda t: t.score) if database else []
    strategies = tuple(name for name in task.space.defaults if name != chosen.strategy)
    return GpuExplanation(
        task, chosen, tuple(map(_launch, kernels)), cost.flops, cost.bytes,
        _others(task, chosen), strategies, tuple(trials),
    )  # fmt: skip


def explain_gpu_model(
    module: IRModule,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    database: Database | None = None,
    device: str = "local",
) -> list[GpuExplanation]:
    """Explain the kernels on the GPU that can be computed in more than one way, by their work."""
    tasks = extract_tasks(module, compile_target(target), params)
    return [explain_gpu_task(task, database, device) for task in tasks]


def _launch(kernel: DeviceKernel) -> Launch:
    extents = [ops.as_int(extent) for extent in kernel.grid()]
    return Launch(tuple(extents[:3]), tuple(extents[3:]), kernel.known_shared_bytes)


def _counted(what: str, extents: Sequence[int | None]) -> str:
    """Return how many blocks or threads there are, and of which sides where that says more."""
    known = [n for n in extents if n is not None]
    if len(known) < len(extents):
        return " x ".join("?" if n is None else f"{n:,}" for n in extents) + f" {what}s"
    count = prod(known)
    sides = " x ".join(f"{n:,}" for n in known)
    made = f" ({sides})" if sum(n > 1 for n in known) > 1 else ""
    return f"{count:,} {what}{'' if count == 1 else 's'}{made}"


def _others(task: TuningTask, chosen: Candidate) -> tuple[tuple[Candidate, float], ...]:
    """Return the legal neighbours of a choice with their predicted cost over the chosen's."""
    predicted = task.space.predicted(chosen)
    if not predicted:
        return ()
    found = {}
    for candidate in task.space.neighbours(chosen):
        cost = task.space.predicted(candidate)
        if cost:
            found[candidate] = cost / predicted
    return tuple(sorted(found.items(), key=lambda item: item[1]))
