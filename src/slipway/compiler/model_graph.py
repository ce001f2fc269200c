"""The graph that an executor runs: kernels in order, inputs and parameters first.

A kernel is a primitive relay function under a name; nothing here knows how it is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.relay.expr import Function
from slipway.relay.meaning import NO_MEANINGS, Meanings
from slipway.relay.types import TensorType

NOP = "__nop"
COPY = "__copy"  # from one device to another


@dataclass(frozen=True)
class TensorRef:
    """Output `index` of node `node`."""

    node: int
    index: int = 0


@dataclass(frozen=True)
class GraphNode:
    """A model input or parameter (`function` empty), a kernel call, or a reshape in place (NOP).

    `layer` names the model's own node that the kernel's main operator came from, `layers` all
    nodes that the kernel computes something of.
    """

    name: str
    function: str
    inputs: tuple[TensorRef, ...]
    types: tuple[TensorType, ...]
    layer: str = ""
    layers: tuple[str, ...] = ()

    @property
    def calls_kernel(self) -> bool:
        """Return whether it runs code: reshapes in place and copies between devices do not."""
        return self.function not in ("", NOP, COPY)


@dataclass(frozen=True)
class ExactSize:
    """A size that a value must be, because `axis` of `tensor` has been compiled for it."""

    tensor: TensorRef
    axis: int
    size: int


@dataclass
class ModelGraph:
    """A whole model: nodes in execution order, inputs and parameters first."""

    nodes: list[GraphNode] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    params: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    outputs: list[TensorRef] = field(default_factory=list)
    output_names: tuple[str, ...] = ()  # of all outputs, where the model names them
    names_fields: bool = False  # whether those are the outputs' names in C too
    meanings: Meanings = NO_MEANINGS  # scales and labels, where its file tells them
    input_values: dict[str, dict[str, Any]] = field(default_factory=dict)  # see input_values.py
    kernels: dict[str, Function] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)  # inputs that a run writes: compiler/states.py
    initial: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)  # of states, not zeros
    held: dict[TensorRef, TensorRef] = field(default_factory=dict)  # result -> the state's input
    devices: list[int] = field(default_factory=list)  # kind, of each node; empty: one device
    kernel_devices: dict[str, int] = field(default_factory=dict)  # where `devices` are given
    tellers: dict[str, TensorRef] = field(default_factory=dict)  # of sizes that values decide
    exact: dict[str, ExactSize] = field(default_factory=dict)  # those of one number, to be checked

    def type_of(self, ref: TensorRef) -> TensorType:
        """Return the type of one tensor."""
        return self.nodes[ref.node].types[ref.index]

    def memory_of(self, ref: TensorRef, known: Mapping[TensorRef, TensorRef]) -> TensorRef:
        """Return the tensor whose memory `ref` lies in; `known` has those of earlier nodes."""
        node = self.nodes[ref.node]
        return known[node.inputs[0]] if node.function == NOP else self.held.get(ref, ref)
