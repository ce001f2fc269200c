"""A profile of a model: what each of its operators takes, and how far that is from the limit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import median
from typing import Any

from slipway.compiler.model_graph import COPY, NOP
from slipway.inspect.limits import SIZES, Limits, Probes, best_levels
from slipway.inspect.traffic import Traffic, traffic_of
from slipway.inspect.units import time_text
from slipway.runtime.graph.graph_format import GraphTables

FAR = 0.5  # an operator below this share of its limit is far from it
WORTH = 0.01  # of the whole time: what takes less is not worth a look


@dataclass(frozen=True)
class OperatorProfile:
    """One kernel call: the model's nodes in it, its time in seconds, its work and its traffic.

    `flops` and `bytes` are None where the artifact does not say what the operator computes.
    `bounds` are the shortest times that each of the device's limits allows, in seconds, by the
    limit's name; empty where they are unknown.
    """

    name: str
    nodes: tuple[str, ...]
    kernel: str
    seconds: float
    flops: float | None
    bytes: int | None
    bounds: Mapping[str, float] = field(default_factory=dict)

    @property
    def limit_seconds(self) -> float:
        """The shortest time that all limits allow; 0 where they are unknown."""
        return max(self.bounds.values(), default=0.0)

    @property
    def binding(self) -> str:
        """The limit that binds: "FMA", or where the bytes come from ("L2", "64 MB")."""
        return max(self.bounds, key=self.bounds.__getitem__, default="")

    @property
    def of_limit(self) -> float:
        """The share of its limit that the operator reaches; 0 where it is unknown."""
        return self.limit_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def flops_per_second(self) -> float | None:
        """The rate of operations; None where it is unknown."""
        return self.flops / self.seconds if self.flops is not None and self.seconds else None

    @property
    def bytes_per_second(self) -> float | None:
        """The rate of bytes read and written; None where it is unknown."""
        return self.bytes / self.seconds if self.bytes is not None and self.seconds else None


@dataclass(frozen=True)
class ModelProfile:
    """All operators in the order in which they run, and the limits that were measured meanwhile."""

    operators: tuple[OperatorProfile, ...]
    measured: tuple[Limits, ...] = ()

    def __str__(self) -> str:
        """Return a table of the operators, the slowest first."""
        whole = self.seconds or 1.0
        rows = [
            f"{time_text(o.seconds):>8} {o.seconds / whole:6.1%}  {o.name}: "
            f"{operators_in(o.kernel)}"
            for o in sorted(self.operators, key=lambda o: -o.seconds)
        ]
        return "\n".join([*rows, f"{time_text(self.seconds):>8}  all {len(rows)} operators"])

    @property
    def limits(self) -> Limits | None:
        """The measurement with the fastest clock; None if there is none."""
        return max(self.measured, key=lambda limits: limits.flops, default=None)

    @property
    def missing(self) -> str:
        """What the artifact does not say, and what to do about it; "" where nothing is missing."""
        if all(o.flops is not None for o in self.operators if o.kernel != COPY):
            return ""
        return (
            "The artifact does not say what its operators compute, so that their rates and limits "
            "are unknown: compile the model again with this Slipway."
        )

    @property
    def seconds(self) -> float:
        """The time of all operators together."""
        return sum(o.seconds for o in self.operators)

    def is_far(self, operator: OperatorProfile) -> bool:
        """Return whether an operator takes a part of the time and is far from its limit."""
        return (
            bool(operator.bounds)
            and operator.of_limit < FAR
            and operator.seconds > WORTH * self.seconds
        )

    def of_limits(self) -> float:
        """Return the minimum time of all operators together, by their limits, over their time."""
        lower_bound = sum(o.limit_seconds for o in self.operators)
        return lower_bound / self.seconds if self.seconds else 0.0

    def share_at_limit(self, share: float = 0.8) -> float:
        """Return the part of the time spent in operators above `share` of their own limit."""
        at_limit = sum(o.seconds for o in self.operators if o.of_limit >= share)
        return at_limit / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; times in seconds."""
        limits = self.limits
        return {
            "seconds": self.seconds,
            "missing": self.missing or None,
            "peak_flops_per_second": limits.flops if limits else None,
            "levels": [
                {"working_set_bytes": size, "name": level.name,
                 "read_bytes_per_second": level.read, "copy_bytes_per_second": level.copy}
                for size, level in zip(SIZES, limits.levels if limits else (), strict=False)
            ],
            "time_above_80_percent_of_limit": self.share_at_limit() if limits else None,
            "of_limits": self.of_limits() if limits else None,
            "operators": [
                {
                    "name": o.name, "nodes": list(o.nodes), "kernel": o.kernel,
                    "seconds": o.seconds, "flops": o.flops, "bytes": o.bytes,
                    "flops_per_second": o.flops_per_second,
                    "bytes_per_second": o.bytes_per_second,
                    "of_limit": o.of_limit if o.bounds else None, "bound_by": o.binding or None,
                    "least_seconds": dict(o.bounds),
                    "far_from_limit": self.is_far(o) if o.bounds else None,
                }
                for o in self.operators
            ],
        }  # fmt: skip

    def to_chrome_trace(self, process: str) -> dict[str, Any]:
        """Return the trace of one run for chrome://tracing and Perfetto; times in microseconds."""
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": process}},
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "operators"}},
        ]
        start = 0.0
        for o in self.operators:
            arguments: dict[str, Any] = {"kernel": o.kernel, "nodes": list(o.nodes)}
            if o.flops is not None and o.bytes is not None:
                arguments |= {"GFLOP": o.flops / 1e9, "MB": o.bytes / 1e6}
            if o.bounds:
                arguments |= {"of limit": round(o.of_limit, 3), "bound by": o.binding}
            events.append({
                "name": o.name, "cat": "far from its limit" if self.is_far(o) else "operator",
                "ph": "X", "pid": 1, "tid": 1, "ts": start * 1e6, "dur": o.seconds * 1e6,
                "args": arguments,
            })  # fmt: skip
            start += o.seconds
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def profile_model(
    module: Any,
    metadata: Mapping[str, Any],
    probes: Probes | None = None,
    tables: GraphTables | None = None,
    number: int = 10,
    repeat: int = 3,
) -> ModelProfile:
    """Measure a graph executor, here or remote, operator by operator.

    `metadata` is the artifact's (or the factory's): it names the model's nodes behind each kernel
    call, and counts its work.  `number` runs are measured `repeat` times; the smallest mean of an
    operator counts.  With `probes`, and the graph's `tables`, the device's multiply-adds are timed
    between all runs: an operator is held against their median rate around the runs that count, so
    that both had the same clock, or that of all runs where it is higher.
    """
    costs = metadata.get("operators", {})
    traffic = traffic_of(tables, SIZES) if probes is not None and tables is not None else {}
    levels = [probes.levels()] if probes is not None else []
    rounds = []
    for _ in range(repeat):
        rates: list[float] = []
        if probes is None:
            measured: Sequence[tuple[str, str, float]] = module.profile(number=number, repeat=1)
        else:
            measured, rates = _measure_between(module, probes, number)
        rounds.append((measured, rates))
    if probes is not None:
        levels.append(probes.levels())
    found: list[OperatorProfile] = []
    usual = median([rate for _, rates in rounds for rate in rates] or [0.0])
    limits = [
        Limits(max(usual, median(rates)), best_levels(*levels)) for _, rates in rounds if rates
    ]
    for (measured, _), limit in zip_longest(rounds, limits):
        again = [
            _operator(name, kernel, seconds, costs.get(name, {}), limit, traffic.get(name))
            for name, kernel, seconds in measured
            if kernel != NOP
        ]
        pairs = zip(found or again, again, strict=True)
        found = [a if a.seconds <= b.seconds else b for a, b in pairs]
    return ModelProfile(tuple(found), tuple(limits))


def _measure_between(
    module: Any, probes: Probes, number: int
) -> tuple[list[tuple[str, str, float]], list[float]]:
    """Return the mean seconds of each step in `number` runs, and the rates around each run."""
    rates = [probes.flops()]
    steps: list[tuple[str, str]] = []
    seconds: list[float] = []
    for _ in range(number):
        measured = module.profile(number=1, repeat=1)
        rates.append(probes.flops())
        steps = [(name, kernel) for name, kernel, _ in measured]
        times = [spent / number for _, _, spent in measured]
        seconds = [a + b for a, b in zip(seconds or [0.0] * len(times), times, strict=True)]
    return [(*step, spent) for step, spent in zip(steps, seconds, strict=True)], rates


def _operator(
    name: str,
    kernel: str,
    seconds: float,
    cost: Mapping[str, Any],
    limits: Limits | None,
    traffic: Traffic | None,
) -> OperatorProfile:
    if "flops" not in cost:
        return OperatorProfile(operators_in(kernel), (), kernel, seconds, None, None)
    flops, size = float(cost["flops"]), int(cost["bytes"])
    bounds: Mapping[str, float] = {}
    if limits is not None:
        passing = (traffic or Traffic((), ())).at_most(size)
        bounds = limits.bounds(float(cost.get("work", flops)), passing)
    return OperatorProfile(
        cost.get("layer") or operators_in(kernel),
        tuple(cost.get("nodes", ())), kernel, seconds, flops, size, bounds,
    )  # fmt: skip


def operators_in(kernel: str) -> str:
    """Return the operators that a kernel's name lists, for models whose nodes have no names."""
    return kernel.split("_fused_", 1)[-1]


def operators_text(kernel: str) -> str:
    """Return the operators of a compiled function in words: "conv2d_nchwc add relu"."""
    names = re.sub(r"_[0-9]+$", "", operators_in(kernel))
    return names.replace("nn_contrib_", "").replace("nn_", "")
