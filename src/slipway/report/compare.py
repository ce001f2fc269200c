"""Two compiled models compared: sizes, kernels, times where both run, numbers."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slipway.deploy.agreement import TOLERANCE, Agreement, agreement_of
from slipway.deploy.reference import random_inputs
from slipway.deploy.tensors import Array, specs_of
from slipway.errors import ExecutionError
from slipway.inspect.profile import operators_text
from slipway.report.collect import now, port_text, sizes_of, versions
from slipway.report.loaded import LoadedArtifact
from slipway.report.real_values import real_outputs, shared_inputs
from slipway.runtime.artifact import Artifact, open_artifact
from slipway.runtime.graph.graph_format import GraphTables

ROUNDS = 11  # each measures both, so that what disturbs one disturbs the other
RUNS_A_ROUND_S = 0.05
LAYER_ROUNDS = 3


@dataclass
class ComparedKernel:
    """One kernel call: the model's node that it is for, what it computes, and its time."""

    name: str
    operators: str
    flops: float | None
    bytes: int | None
    seconds: float | None = field(default=None, compare=False)


@dataclass
class Side:
    """One of the two: its file and what it says of itself."""

    name: str
    target: str
    inputs: list[str]
    outputs: list[str]
    sizes: dict[str, int]
    kernels: list[ComparedKernel]
    seconds: list[float] = field(default_factory=list)
    why_not_run: str = ""

    @property
    def median_s(self) -> float | None:
        """The median time of a run; None where it did not run."""
        return statistics.median(self.seconds) if self.seconds else None


@dataclass(frozen=True)
class Change:
    """A kernel that only one side has, or that differs; what it is on each, "" for nothing."""

    name: str
    kind: str  # added, removed, changed
    a: str
    b: str


@dataclass(frozen=True)
class Numbers:
    """An output of B beside that of A, for the same inputs."""

    output: str
    error: float
    sqnr_db: float | None
    agrees: bool


@dataclass
class Comparison:
    """Everything that ``slipway compare`` tells; B is held against A."""

    a: Side
    b: Side
    made: str
    changes: list[Change] = field(default_factory=list)
    same: dict[str, bool] = field(default_factory=dict)  # code, weights: byte for byte
    numbers: list[Numbers] = field(default_factory=list)
    unequal: str = ""  # why the same inputs give outputs that cannot be compared
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def slower(self) -> float | None:
        """By which part B is slower than A (0.05: 5 %); None where one was not measured.

        The median over the rounds, each of which measured both: what slows a whole round down
        does not count.
        """
        ratios = self._ratios()
        return statistics.median(ratios) - 1 if ratios else None

    @property
    def slower_between(self) -> tuple[float, float] | None:
        """Between which two parts `slower` lies, with 95 % confidence as far as rounds tell.

        The bounds of a median by the order of its samples, of however they are distributed.
        """
        ratios = sorted(self._ratios())
        if not ratios:
            return None
        beyond = max(0, int((len(ratios) - 1.96 * len(ratios) ** 0.5) / 2))
        return ratios[beyond] - 1, ratios[-1 - beyond] - 1

    def _ratios(self) -> list[float]:
        if not self.a.seconds or not self.b.seconds:
            return []
        return [b / a for a, b in zip(self.a.seconds, self.b.seconds, strict=True)]

    @property
    def bigger(self) -> float:
        """By which part the file of B is larger than that of A."""
        return self.b.sizes["file"] / self.a.sizes["file"] - 1

    def sameness(self) -> str:
        """Say that the kernels are the same ones, and of what the bytes are as well."""
        parts = [name for name, same in self.same.items() if same]
        same = f"; the same bytes: {', '.join(parts)}" if parts else ""
        return f"The same {len(self.a.kernels)} kernels{same}"

    def judge(self, slower_than: float | None, bigger_than: float | None) -> None:
        """Write into `faults` which limits B breaks.  Raises ExecutionError without times."""
        if slower_than is not None:
            between = self.slower_between
            if self.slower is None or between is None:
                reason = self.b.why_not_run or self.a.why_not_run
                raise ExecutionError(f"--slower-than needs the times of both, and {reason}")
            low, high = between
            if low <= slower_than < self.slower:
                self.notes.append(
                    f"Whether B is more than {slower_than:.1%} slower cannot be told apart from "
                    f"what disturbs this machine: {low:+.1%} to {high:+.1%} over the rounds"
                )
            elif self.slower > slower_than:
                self.faults.append(
                    f"B is {self.slower:.1%} slower than A, and {slower_than:.1%} is allowed"
                )
        if bigger_than is not None and self.bigger > bigger_than:
            self.faults.append(
                f"B is {self.bigger:.1%} larger than A, and {bigger_than:.1%} is allowed"
            )
        if self.unequal:
            self.faults.append(self.unequal)
        for output in self.numbers:
            if not output.agrees:
                self.faults.append(f"output {output.output!r} differs by {output.error:.2g}")

    def to_json(self) -> str:
        """Return everything as JSON, with the two ratios and the medians."""
        found = dataclasses.asdict(self)
        found["slower"], found["bigger"] = self.slower, self.bigger
        found["slower_between"] = self.slower_between
        for name, side in (("a", self.a), ("b", self.b)):
            found[name]["median_s"] = side.median_s
        for output in found["numbers"]:
            if output["sqnr_db"] == float("inf"):
                output["sqnr_db"] = None
        return json.dumps(found, indent=1)


def side_of(path: Path, name: str) -> Side:
    """Return what an exported model says of itself.  Raises ArtifactError, ExecutionError."""
    artifact = open_artifact(path)
    if artifact.graph is None:
        raise ExecutionError(f"{path} holds operators and no model: there is nothing to compare")
    described = artifact.metadata
    memory = described.get("memory", {})
    sizes = {"file": path.stat().st_size, "code": len(artifact.library)}
    sizes |= {name: size for name, size in sizes_of(path)[1:] if name != "code"}
    if memory:
        sizes["weights"] = memory["params_bytes"]
        sizes["tensors"] = memory["workspace_bytes"]
    return Side(
        name,
        described["target"],
        [port_text(port) for port in described["inputs"]],
        [port_text(port) for port in described["outputs"]],
        sizes,
        kernels_of(artifact),
    )


def kernels_of(artifact: Artifact) -> list[ComparedKernel]:
    """Return the kernel calls of a model in their order."""
    assert artifact.graph is not None
    costs = artifact.metadata.get("operators", {})
    found = []
    for node in GraphTables.from_binary(artifact.graph).nodes:
        if not node.function or node.function == "__nop":
            continue
        cost = costs.get(node.name, {})
        found.append(
            ComparedKernel(
                cost.get("layer") or operators_text(node.function),
                operators_text(node.function),
                cost.get("flops"),
                cost.get("bytes"),
            )
        )
    return found


def same_parts(a: Path, b: Path) -> dict[str, bool]:
    """Return whether code and weights are the same, byte for byte."""
    one, other = open_artifact(a), open_artifact(b)
    return {"code": one.library == other.library, "weights": one.params == other.params}


def changes_of(a: Sequence[ComparedKernel], b: Sequence[ComparedKernel]) -> list[Change]:
    """Return what differs between two lists of kernels, those of one name in their order."""
    changes = []
    left, right = _by_name(a), _by_name(b)
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name, []), right.get(name, [])
        for i in range(max(len(one), len(other))):
            before = one[i] if i < len(one) else None
            after = other[i] if i < len(other) else None
            if before is None:
                changes.append(Change(name, "added", "", kernel_text(after)))
            elif after is None:
                changes.append(Change(name, "removed", kernel_text(before), ""))
            elif before != after:
                changes.append(Change(name, "changed", kernel_text(before), kernel_text(after)))
    return changes


def _by_name(kernels: Sequence[ComparedKernel]) -> dict[str, list[ComparedKernel]]:
    found: dict[str, list[ComparedKernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.name, []).append(kernel)
    return found


def kernel_text(kernel: ComparedKernel | None) -> str:
    """Return a kernel in words."""
    if kernel is None:
        return ""
    parts = [kernel.operators]
    if kernel.flops is not None:
        parts.append(f"{kernel.flops:,.0f} operations")
    return ", ".join(parts)


def compare(
    a: Path, b: Path, names: tuple[str, str],
    artifacts: tuple[LoadedArtifact | str, LoadedArtifact | str], tolerance: float = TOLERANCE,
) -> Comparison:  # fmt: skip
    """Return how two exported models differ; an artifact that is a text says why one cannot run.

    Both get the same values, quantised for a model that takes integers.  `tolerance` is the share
    of A's largest value that B's outputs may be off.
    """
    found = Comparison(side_of(a, names[0]), side_of(b, names[1]), now(), versions=versions())
    found.changes = changes_of(found.a.kernels, found.b.kernels)
    found.same = same_parts(a, b)
    sides = (found.a, found.b)
    for side, loaded in zip(sides, artifacts, strict=True):
        if isinstance(loaded, str):
            side.why_not_run = f"{side.name} did not run: {loaded}"
            found.notes.append(side.why_not_run)
    said = [open_artifact(path).metadata for path in (a, b)]
    shared = shared_inputs(said[0]["inputs"], said[1]["inputs"])
    if shared is None:
        found.notes.append("the inputs differ, so that numbers cannot be compared")
        shared = tuple(random_inputs(specs_of(own["inputs"]), seed=0) for own in said)
        can_compare = False
    else:
        can_compare = True
    running, results = [], []
    for side, loaded, inputs in zip(sides, artifacts, shared, strict=True):
        if isinstance(loaded, LoadedArtifact):
            running.append((side, loaded))
            results.append(_outputs(loaded, inputs))
    _measure(running)
    if len(running) == 2 and can_compare:
        _add_numbers(found, results, (said[0]["outputs"], said[1]["outputs"]), tolerance)
    return found


def _outputs(loaded: LoadedArtifact, inputs: Mapping[str, Any]) -> list[Array]:
    for name, value in inputs.items():
        loaded.executor.set_input(name, np.asarray(value, order="C"))
    loaded.executor.run()
    count = loaded.executor.get_num_outputs()
    return [np.array(loaded.executor.get_output(i).numpy()) for i in range(count)]


def _measure(running: Sequence[tuple[Side, LoadedArtifact]]) -> None:
    """Time all of them, round by round, each as long in a round."""
    counts = []
    for _, loaded in running:
        once = loaded.executor.benchmark(loaded.devices.main, number=1, repeat=3)
        counts.append(max(1, int(RUNS_A_ROUND_S / max(once.median, 1e-9))))
    for number in range(ROUNDS):
        order = list(zip(running, counts, strict=True))
        for (side, loaded), count in order if number % 2 else order[::-1]:
            timing = loaded.executor.benchmark(loaded.devices.main, number=count, repeat=1)
            side.seconds.append(float(timing.results[0]))
    for number in range(LAYER_ROUNDS):
        for side, loaded in running if number % 2 else running[::-1]:
            measured = loaded.executor.profile(number=max(1, ROUNDS // 2), repeat=1)
            times = [seconds for _, kernel, seconds in measured if kernel != "__nop"]
            for kernel, seconds in zip(side.kernels, times, strict=True):
                kernel.seconds = min(kernel.seconds or seconds, seconds)


def _add_numbers(
    found: Comparison, results: Sequence[list[Array]],
    ports: tuple[Sequence[Any], Sequence[Any]], tolerance: float,
) -> None:  # fmt: skip
    if [r.shape for r in results[0]] != [r.shape for r in results[1]]:
        shown = [", ".join(str(list(r.shape)) for r in side) for side in results]
        found.unequal = f"the outputs have other shapes: A's are {shown[0]}, and B's {shown[1]}"
        return
    results = real_outputs(results[0], results[1], ports)
    outputs = [text.partition(":")[0] for text in found.b.outputs]
    agreement: Agreement = agreement_of(
        dict(zip(outputs, results[1], strict=True)), dict(zip(outputs, results[0], strict=True)),
        found.a.name, tolerance,
    )  # fmt: skip
    found.numbers = [Numbers(o.name, o.error, o.sqnr_db, o.agrees) for o in agreement.outputs]


def layer_times(found: Comparison) -> list[tuple[str, float, float]]:
    """Return (name, seconds of A, of B) of the layers in both, the largest difference first."""
    left, right = _by_name(found.a.kernels), _by_name(found.b.kernels)
    rows = []
    for name in left:
        one = [kernel.seconds for kernel in left[name]]
        other = [kernel.seconds for kernel in right.get(name, [])]
        if other and None not in one and None not in other:
            rows.append((name, sum(s for s in one if s), sum(s for s in other if s)))
    return sorted(rows, key=lambda row: -abs(row[2] - row[1]))
