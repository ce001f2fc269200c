"""A profile of a model: what each of its operators takes, and how far that is from the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.executor.graph import NOP
from slipway.executor.limits import Limits
from slipway.runtime.artifact import read_artifact

FAR = 0.5  # an operator below this share of its limit is far from it
WORTH = 0.01  # of the whole time: what takes less is not worth a look


@dataclass(frozen=True)
class OperatorProfile:
    """One kernel call: the model's nodes in it, its time in seconds, its work and its traffic.

    `limit_seconds` is the shortest time that the device's limits allow; 0 where they are unknown.
    """

    name: str
    nodes: tuple[str, ...]
    kernel: str
    seconds: float
    flops: float
    bytes: int
    limit_seconds: float = 0.0
    binding: str = ""

    @property
    def of_limit(self) -> float:
        """The share of its limit that the operator reaches; 0 where it is unknown.

        Above 1 where the caches hold what counts as memory traffic, and where an algorithm needs
        fewer operations than the definition (Winograd's convolution).
        """
        return self.limit_seconds / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class ModelProfile:
    """All operators in the order in which they run, and the limits they are held against."""

    operators: tuple[OperatorProfile, ...]
    limits: Limits | None

    @property
    def seconds(self) -> float:
        """The time of all operators together."""
        return sum(o.seconds for o in self.operators)

    def is_far(self, operator: OperatorProfile) -> bool:
        """Tell whether an operator takes a part of the time and is far from its limit."""
        return (
            self.limits is not None
            and operator.of_limit < FAR
            and operator.seconds > WORTH * self.seconds
        )

    def share_near(self, share: float = 0.8) -> float:
        """Return the part of the time spent in operators above `share` of their own limit."""
        near = sum(o.seconds for o in self.operators if o.of_limit >= share)
        return near / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; times in seconds."""
        limits = self.limits
        return {
            "seconds": self.seconds,
            "peak_flops_per_second": limits.flops if limits else None,
            "peak_bytes_per_second": limits.bytes if limits else None,
            "time_above_80_percent_of_limit": self.share_near() if limits else None,
            "operators": [
                {
                    "name": o.name, "nodes": list(o.nodes), "kernel": o.kernel,
                    "seconds": o.seconds, "flops": o.flops, "bytes": o.bytes,
                    "flops_per_second": o.flops / o.seconds if o.seconds else None,
                    "bytes_per_second": o.bytes / o.seconds if o.seconds else None,
                    "of_limit": o.of_limit if limits else None, "bound_by": o.binding or None,
                    "far_from_limit": self.is_far(o),
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
            arguments = {
                "kernel": o.kernel, "nodes": list(o.nodes), "GFLOP": o.flops / 1e9,
                "MB": o.bytes / 1e6, "of limit": round(o.of_limit, 3), "bound by": o.binding,
            }  # fmt: skip
            events.append({
                "name": o.name, "cat": "far from its limit" if self.is_far(o) else "operator",
                "ph": "X", "pid": 1, "tid": 1, "ts": start * 1e6, "dur": o.seconds * 1e6,
                "args": arguments,
            })  # fmt: skip
            start += o.seconds
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def metadata_of(artifact: Path) -> dict[str, Any]:
    """Return the metadata of an exported file, which may be for another machine."""
    return read_artifact(artifact.read_bytes(), artifact.name, here=False).metadata


def profile_model(
    module: Any,
    metadata: Mapping[str, Any],
    limits: Limits | None = None,
    number: int = 10,
    repeat: int = 3,
) -> ModelProfile:
    """Measure a graph executor, here or remote, operator by operator.

    `metadata` is the artifact's (or the factory's): it names the model's nodes behind each kernel
    call, and counts its work.  Each operator runs `repeat` x `number` times; the least mean counts.
    """
    costs = metadata.get("operators", {})
    measured: Sequence[tuple[str, str, float]] = module.profile(number=number, repeat=repeat)
    found = []
    for name, kernel, seconds in measured:
        if kernel == NOP:
            continue
        known = costs.get(name, {})
        flops, size = float(known.get("flops", 0)), int(known.get("bytes", 0))
        found.append(
            OperatorProfile(
                known.get("layer") or operators_in(kernel),
                tuple(known.get("nodes", ())), kernel, seconds, flops, size,
                limits.least_seconds(flops, size) if limits else 0.0,
                limits.binding(flops, size) if limits else "",
            )
        )  # fmt: skip
    return ModelProfile(tuple(found), limits)


def operators_in(kernel: str) -> str:
    """Return the operators that a kernel's name lists, for models whose nodes have no names."""
    return kernel.split("_fused_", 1)[-1]
