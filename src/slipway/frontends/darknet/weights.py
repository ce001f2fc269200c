"""The numbers of a ``.weights`` file: a header, then the layers' floats in the order of the net.

The header is three int32 (major, minor, revision) and how many images were seen, which has eight
bytes from version 0.2 on and four before.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.darknet.kinds import LAYERTYPE
from slipway.frontends.darknet.layer import DarknetLayer, Floats

# Versions over this one, major or minor, hold the matrices of connected layers transposed.
TRANSPOSED_OVER = 1000


class _Reader:
    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self.contents = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
        if len(self.contents) < 16:
            raise ModelError(f"{self.name} is too short for a .weights file of Darknet")
        major, minor, _ = np.frombuffer(self.contents, "<i4", 3).tolist()
        wide = major * 10 + minor >= 2 and major < TRANSPOSED_OVER and minor < TRANSPOSED_OVER
        self.transposed = major > TRANSPOSED_OVER or minor > TRANSPOSED_OVER
        self.at = 20 if wide else 16

    def floats(self, layer: DarknetLayer, *shape: int) -> Floats:
        count = int(np.prod(shape))
        end = self.at + 4 * count
        if end > len(self.contents):
            raise ModelError(
                f"{self.name} ends before the weights of {layer.location}: it has "
                f"{len(self.contents):,} bytes and would need {end:,} so far. It is cut short, or "
                "belongs to another .cfg file"
            )
        found = np.frombuffer(self.contents, "<f4", count, self.at).reshape(shape)
        self.at = end
        return found.astype(np.float32)

    def norm(self, layer: DarknetLayer, size: int) -> None:
        layer.scales = self.floats(layer, size)
        layer.rolling_mean = self.floats(layer, size)
        layer.rolling_variance = self.floats(layer, size)


def read_weights(path: Path, layers: list[DarknetLayer]) -> None:
    """Give every layer its numbers from the file; raise ModelError where it is too short."""
    reader = _Reader(path)
    for layer in layers:
        if layer.type == LAYERTYPE.CONVOLUTIONAL:
            layer.biases = reader.floats(layer, layer.n)
            if layer.batch_normalize and not layer.dontloadscales:
                reader.norm(layer, layer.n)
            shape = (layer.n, layer.c // layer.groups, layer.size, layer.size)
            layer.weights = reader.floats(layer, *shape)
        elif layer.type == LAYERTYPE.DECONVOLUTIONAL:
            layer.biases = reader.floats(layer, layer.n)
            if layer.batch_normalize and not layer.dontloadscales:
                reader.norm(layer, layer.n)
            layer.weights = reader.floats(layer, layer.c, layer.n, layer.size, layer.size)
        elif layer.type == LAYERTYPE.CONNECTED:
            _connected(reader, layer)
        elif layer.type == LAYERTYPE.RNN:
            for inner in (layer.input_layer, layer.self_layer, layer.output_layer):
                assert inner is not None
                _connected(reader, inner)
    left = len(reader.contents) - reader.at
    if left:
        warnings.warn(
            f"{reader.name} has {left:,} bytes after the weights of the last layer; it may belong "
            "to another .cfg file",
            UserWarning,
            stacklevel=3,
        )


def _connected(reader: _Reader, layer: DarknetLayer) -> None:
    layer.biases = reader.floats(layer, layer.outputs)
    if reader.transposed:
        layer.weights = np.asarray(reader.floats(layer, layer.inputs, layer.outputs).T, order="C")
    else:
        layer.weights = reader.floats(layer, layer.outputs, layer.inputs)
    if layer.batch_normalize and not layer.dontloadscales:
        reader.norm(layer, layer.outputs)
