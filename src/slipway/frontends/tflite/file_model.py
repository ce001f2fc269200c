"""What a TFLite file describes: subgraphs of operators and tensors, and the file's signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Quantization:
    """scale * (q - zero_point); one of each, or one per index of `axis`."""

    scales: Array  # float32
    zero_points: Array  # int64
    axis: int

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation, a float32 value."""
        return float(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation."""
        return int(self.zero_points[0])


@dataclass(frozen=True)
class FileTensor:
    """One tensor of a subgraph; `data` is its value when it is constant."""

    index: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    dtype: str
    quantization: Quantization | None
    data: Array | None
    is_variable: bool


@dataclass(frozen=True)
class Operator:
    """One operator: its name, options by name, and tensor numbers (-1: left out)."""

    kind: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    custom_options: bytes = b""


@dataclass(frozen=True)
class SubGraph:
    """Tensors and operators in order of execution."""

    name: str
    tensors: tuple[FileTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class FileSignature:
    """Inputs and outputs of a subgraph: the tensor of each name."""

    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class FileModel:
    """A whole file, which is entered at subgraph `main`.

    `output_names` are those of a signature, () where the tensors' names stand.
    """

    subgraphs: tuple[SubGraph, ...]
    description: str
    labels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # by the output's position
    signatures: Mapping[str, FileSignature] = field(default_factory=dict)
    main: int = 0
    output_names: tuple[str, ...] = ()
