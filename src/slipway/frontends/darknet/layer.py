"""Layers of Darknet, with the fields that its library's ``struct layer`` has."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from slipway.frontends.darknet.kinds import ACTIVATION, LAYERTYPE

Floats = npt.NDArray[np.float32]
NONE: Floats = np.zeros(0, np.float32)


@dataclass
class DarknetLayer:
    """One layer; the names are those of Darknet's ``struct layer``.

    `h`, `w` and `c` are those of its input.  `pad` counts the rows before the first one; those
    after the last follow from `out_h`.
    """

    type: LAYERTYPE
    location: str  # file, line and section
    batch: int = 1
    h: int = 0
    w: int = 0
    c: int = 0
    out_h: int = 0
    out_w: int = 0
    out_c: int = 0
    inputs: int = 0
    outputs: int = 0
    n: int = 0
    groups: int = 1
    size: int = 0
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    activation: ACTIVATION = ACTIVATION.LINEAR
    batch_normalize: int = 0
    dontloadscales: int = 0
    nbiases: int = 1
    index: int = 0
    input_layers: list[int] = field(default_factory=list)
    group_id: int = 0
    probability: float = 0.5
    temperature: float = 1.0
    spatial: int = 0
    noadjust: int = 0
    scale: float = 1.0
    reverse: int = 0
    steps: int = 1
    classes: int = 0
    coords: int = 4
    background: int = 0
    softmax: int = 0
    total: int = 0
    scale_x_y: float = 1.0
    new_coords: int = 0
    mask: list[int] = field(default_factory=list)
    biases: Floats = field(default_factory=lambda: NONE)
    scales: Floats = field(default_factory=lambda: NONE)
    rolling_mean: Floats = field(default_factory=lambda: NONE)
    rolling_variance: Floats = field(default_factory=lambda: NONE)
    weights: Floats = field(default_factory=lambda: NONE)
    input_layer: DarknetLayer | None = None
    self_layer: DarknetLayer | None = None
    output_layer: DarknetLayer | None = None

    def gives(self, channels: int, height: int, width: int) -> None:
        """Set the sizes of the output."""
        self.out_c, self.out_h, self.out_w = channels, height, width
        self.outputs = channels * height * width


@dataclass
class Network:
    """A network: its layers, and the sizes of its input."""

    layers: list[DarknetLayer]
    h: int
    w: int
    c: int
    inputs: int
    batch: int = 1

    @property
    def n(self) -> int:
        """How many layers there are."""
        return len(self.layers)
