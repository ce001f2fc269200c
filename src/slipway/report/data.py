"""What a report says of a compiled model: plain values, which the page draws.

Sizes are bytes, times seconds; None stands for what was not measured, and `Report.notes` says why.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

FORMAT = 1


@dataclass(frozen=True)
class DrawnNode:
    """One node of a graph: `inputs` are indices of nodes before it.

    `kind` is input, operator or output; `layers` the model's own nodes that it computes something
    of, which both graphs share, so that one can be found in the other.
    """

    label: str
    kind: str
    inputs: tuple[int, ...]
    type: str
    layers: tuple[str, ...] = ()
    weights_bytes: int = 0
    layer: int | None = None  # of the fused graph: its index in `Report.layers`


@dataclass
class KernelRow:
    """One kernel call: what it computes, how, what it takes, and how right it is.

    `alive_bytes` are those of the arena that hold a tensor while it runs.
    """

    name: str
    operators: str
    kernel: str
    nodes: tuple[str, ...]
    type: str
    weights_bytes: int
    alive_bytes: int
    strategy: str = ""
    knobs: str = ""
    cycles: float | None = None
    flops: float | None = None
    bytes: int | None = None
    seconds: float | None = None
    limit_seconds: float | None = None
    bound_by: str = ""
    error: float | None = None
    sqnr_db: float | None = None
    agrees: bool | None = None


@dataclass(frozen=True)
class ArenaTensor:
    """One tensor of the arena: where it lies, and in which steps it must exist."""

    name: str
    pool: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class ArenaPlan:
    """The plan of the arena; `lower_bound` is what no plan can be smaller than."""

    tensors: tuple[ArenaTensor, ...]
    pools: tuple[tuple[str, int], ...]
    size: int
    lower_bound: int
    planner: str


@dataclass(frozen=True)
class Rewritten:
    """What became of one node of the model file."""

    name: str
    operator: str
    status: str
    detail: str


@dataclass(frozen=True)
class Output:
    """One output of the whole model beside the reference's."""

    name: str
    error: float
    sqnr_db: float | None
    cosine: float | None
    agrees: bool


@dataclass(frozen=True)
class BoardFit:
    """A microcontroller board, and what the model leaves of its flash and RAM, by estimate."""

    name: str
    flash: int
    ram: int
    flash_left: int
    ram_left: int


@dataclass
class Report:
    """Everything that the page shows."""

    name: str
    target: str
    where: str
    made: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    before: list[DrawnNode] = field(default_factory=list)
    after: list[DrawnNode] = field(default_factory=list)
    layers: list[KernelRow] = field(default_factory=list)
    memory: ArenaPlan | None = None
    sizes: list[tuple[str, int]] = field(default_factory=list)
    rewritten: list[Rewritten] = field(default_factory=list)
    reference: str = ""
    tolerance: float = 0.0
    agreement: list[Output] = field(default_factory=list)
    run_seconds: list[float] = field(default_factory=list)
    limits: list[tuple[str, str]] = field(default_factory=list)
    flash: list[tuple[str, int]] = field(default_factory=list)
    ram: list[tuple[str, int]] = field(default_factory=list)
    boards: list[BoardFit] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    repeat: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    format: int = FORMAT

    @property
    def weights_bytes(self) -> int:
        """Bytes of all weights, as they are kept for the target."""
        return sum(node.weights_bytes for node in self.after)

    def to_json(self) -> str:
        """Return the report as JSON; what is no finite number becomes a text: "inf", "nan"."""
        return json.dumps(_plain(dataclasses.asdict(self)), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
