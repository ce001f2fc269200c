"""`load_network`: a network from a ``.cfg`` and a ``.weights`` file, without Darknet's library.

Sizes follow from layer to layer as Darknet computes them, so that each layer knows those of its
input and of its output.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.darknet.config import Section, read_sections
from slipway.frontends.darknet.kinds import ACTIVATION, LAYERTYPE, SECTIONS
from slipway.frontends.darknet.layer import DarknetLayer, Network
from slipway.frontends.darknet.weights import read_weights


def load_network(
    cfg: str | bytes | Path, weights: str | bytes | Path | None = None, clear: int = 0
) -> Network:
    """Read a network; without `weights` its numbers are zeros.

    `clear` sets the count of images seen in training to zero in Darknet's library, and means
    nothing here.  Raises ModelError for what is not supported, and for files that do not fit.
    """
    sections = read_sections(Path(os.fsdecode(cfg)))
    network = network_of(sections)
    if weights:
        read_weights(Path(os.fsdecode(weights)), network.layers)
    return network


def network_of(sections: list[Section]) -> Network:
    """Return the network that the sections describe, with all sizes, and without weights."""
    net, *rest = sections
    strange = [s for s in rest if s.name not in SECTIONS]
    if strange:
        listed = "\n  ".join(s.location for s in strange)
        raise ModelError(f"the network has layers that are not supported:\n  {listed}")
    if not rest:
        raise net.error("there are no layers below it")
    h, w, c = net.whole("height", 0), net.whole("width", 0), net.whole("channels", 0)
    inputs = net.whole("inputs", h * w * c)
    if inputs <= 0:
        raise net.error("height=, width= and channels=, or inputs=, must say how large the data is")
    network = Network([], h, w, c, inputs)
    steps = net.whole("time_steps", 1)
    sizes = (c, h, w) if h * w * c else (inputs, 1, 1)
    for section in rest:
        layer = DarknetLayer(SECTIONS[section.name], section.location, steps=steps)
        layer.c, layer.h, layer.w = sizes
        layer.inputs = layer.c * layer.h * layer.w
        _DESCRIBED[layer.type](layer, section, network.layers)
        if layer.outputs <= 0:
            raise section.error(f"its data, {layer.c} x {layer.h} x {layer.w}, is too small for it")
        network.layers.append(layer)
        sizes = (layer.out_c, layer.out_h, layer.out_w)
    return network


def _activation(section: Section, default: str) -> ACTIVATION:
    name = section.text("activation", default).upper()
    if name not in ACTIVATION.__members__:
        raise section.error(
            f"activation={name.lower()} is not supported; these are: "
            + ", ".join(a.name.lower() for a in ACTIVATION)
        )
    return ACTIVATION[name]


def _refuse(section: Section, **defaults: int) -> None:
    """Raise for options with a value that changes the numbers in a way that is not supported."""
    for key, default in defaults.items():
        if section.whole(key, default) != default:
            raise section.error(f"{key}={section.options[key]} is not supported")


def _window(layer: DarknetLayer, section: Section, default: int) -> None:
    layer.size, layer.stride = section.whole("size", default), section.whole("stride", 1)
    _refuse(section, stride_x=layer.stride, stride_y=layer.stride)
    if layer.size < 1 or layer.stride < 1:
        raise section.error(f"size={layer.size}, stride={layer.stride}: both must be 1 or more")


def _convolution(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    _refuse(section, binary=0, xnor=0, antialiasing=0, flipped=0, share_index=-1000000000)
    layer.n, layer.groups = section.whole("filters", 1), section.whole("groups", 1)
    _window(layer, section, 1)
    layer.dilation = section.whole("dilation", 1) if layer.size > 1 else 1
    padding = section.whole("padding", 0)
    layer.pad = layer.size // 2 * layer.dilation if section.whole("pad", 0) else padding
    if layer.n < 1 or layer.groups < 1 or layer.c % layer.groups or layer.n % layer.groups:
        raise section.error(
            f"{layer.c} channels and filters={layer.n} do not divide into groups={layer.groups}"
        )
    layer.activation = _activation(section, "logistic")
    layer.batch_normalize = section.whole("batch_normalize", 0)
    layer.dontloadscales = section.whole("dontloadscales", 0)
    layer.nbiases = layer.n
    reach = (layer.size - 1) * layer.dilation + 1
    layer.gives(
        layer.n,
        (layer.h + 2 * layer.pad - reach) // layer.stride + 1,
        (layer.w + 2 * layer.pad - reach) // layer.stride + 1,
    )


def _deconvolution(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.n = section.whole("filters", 1)
    _window(layer, section, 1)
    padding = section.whole("padding", 0)
    layer.pad = layer.size // 2 if section.whole("pad", 0) else padding
    layer.activation = _activation(section, "logistic")
    layer.batch_normalize = section.whole("batch_normalize", 0)
    layer.dontloadscales = section.whole("dontloadscales", 0)
    layer.nbiases = layer.n
    layer.gives(
        layer.n,
        (layer.h - 1) * layer.stride + layer.size - 2 * layer.pad,
        (layer.w - 1) * layer.stride + layer.size - 2 * layer.pad,
    )


def _connected(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.activation = _activation(section, "logistic")
    layer.batch_normalize = section.whole("batch_normalize", 0)
    layer.dontloadscales = section.whole("dontloadscales", 0)
    layer.gives(section.whole("output", 1), 1, 1)


def _recurrent(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    _refuse(section, logistic=0)
    outputs = section.whole("output", 1)
    layer.activation = _activation(section, "logistic")
    layer.batch_normalize = section.whole("batch_normalize", 0)
    layer.gives(outputs, 1, 1)

    def inner(inputs: int) -> DarknetLayer:
        return DarknetLayer(
            LAYERTYPE.CONNECTED, layer.location, h=1, w=1, c=inputs, inputs=inputs, outputs=outputs,
            out_h=1, out_w=1, out_c=outputs, activation=layer.activation,
            batch_normalize=layer.batch_normalize,
        )  # fmt: skip

    layer.input_layer = inner(layer.inputs)
    layer.self_layer, layer.output_layer = inner(outputs), inner(outputs)


def _max_pool(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    _refuse(section, maxpool_depth=0, antialiasing=0)
    layer.stride = section.whole("stride", 1)
    _window(layer, section, layer.stride)
    padding = section.whole("padding", layer.size - 1)
    layer.pad = padding // 2
    layer.gives(
        layer.c,
        (layer.h + padding - layer.size) // layer.stride + 1,
        (layer.w + padding - layer.size) // layer.stride + 1,
    )


def _average_pool(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.gives(layer.c, 1, 1)


def _softmax(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    if "tree" in section:
        raise section.error("tree= is not supported")
    layer.groups, layer.spatial = section.whole("groups", 1), section.whole("spatial", 0)
    layer.temperature = section.real("temperature", 1.0)
    if layer.groups < 1 or layer.inputs % layer.groups or layer.temperature == 0:
        raise section.error(
            f"groups={layer.groups} must divide {layer.inputs} values, and temperature= not be 0"
        )
    layer.gives(layer.c, layer.h, layer.w)


def _same(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.probability = section.real("probability", 0.5)
    layer.gives(layer.c, layer.h, layer.w)


def _active(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.activation = _activation(section, "linear")
    layer.gives(layer.c, layer.h, layer.w)


def _crop(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.noadjust = section.whole("noadjust", 0)
    layer.gives(layer.c, section.whole("crop_height", 1), section.whole("crop_width", 1))
    if layer.out_h > layer.h or layer.out_w > layer.w:
        raise section.error(f"it is larger than its data of {layer.h} x {layer.w}")


def _earlier(section: Section, index: int, layers: list[DarknetLayer]) -> int:
    found = index + len(layers) if index < 0 else index
    if not 0 <= found < len(layers):
        raise section.error(f"layer {index} is not before it: it is layer {len(layers)}")
    return found


def _route(layer: DarknetLayer, section: Section, layers: list[DarknetLayer]) -> None:
    layer.input_layers = [_earlier(section, i, layers) for i in section.wholes("layers")]
    layer.n = len(layer.input_layers)
    layer.groups, layer.group_id = section.whole("groups", 1), section.whole("group_id", 0)
    if not layer.n:
        raise section.error("layers= is missing")
    sources = [layers[i] for i in layer.input_layers]
    first = sources[0]
    for source, index in zip(sources, layer.input_layers, strict=True):
        if (source.out_h, source.out_w) != (first.out_h, first.out_w):
            raise section.error(
                f"layer {index} gives {source.out_h} x {source.out_w}, layer "
                f"{layer.input_layers[0]} {first.out_h} x {first.out_w}: they cannot be joined"
            )
        if source.out_c % layer.groups or not 0 <= layer.group_id < layer.groups:
            raise section.error(
                f"layer {index} has {source.out_c} channels, of which groups={layer.groups}, "
                f"group_id={layer.group_id} names no part"
            )
    layer.gives(sum(s.out_c // layer.groups for s in sources), first.out_h, first.out_w)


def _shortcut(layer: DarknetLayer, section: Section, layers: list[DarknetLayer]) -> None:
    for key in ("weights_type", "weights_normalization"):
        if section.text(key, "none") != "none":
            raise section.error(f"{key}={section.options[key]} is not supported")
    layer.input_layers = [_earlier(section, i, layers) for i in section.wholes("from")]
    layer.n = len(layer.input_layers)
    if not layer.n:
        raise section.error("from= is missing")
    layer.index = layer.input_layers[0]
    layer.activation = _activation(section, "linear")
    layer.gives(layer.c, layer.h, layer.w)


def _reorg(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    _refuse(section, reverse=0, flatten=0, extra=0)
    layer.stride = section.whole("stride", 1)
    s = layer.stride
    if s < 1 or layer.h % s or layer.w % s or layer.c % (s * s):
        raise section.error(f"stride={s} does not divide {layer.c} x {layer.h} x {layer.w}")
    layer.gives(layer.c * s * s, layer.h // s, layer.w // s)


def _upsample(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.stride, layer.scale = section.whole("stride", 2), section.real("scale", 1.0)
    if layer.stride < 1:
        raise section.error(f"stride={layer.stride} is not supported")
    layer.gives(layer.c, layer.h * layer.stride, layer.w * layer.stride)


def _region(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    if "tree" in section:
        raise section.error("tree= is not supported")
    layer.n, layer.classes = section.whole("num", 1), section.whole("classes", 20)
    layer.coords, layer.total = section.whole("coords", 4), layer.n
    layer.background, layer.softmax = section.whole("background", 0), section.whole("softmax", 0)
    _boxes(layer, section, layer.coords + layer.classes + 1)


def _yolo(layer: DarknetLayer, section: Section, _: list[DarknetLayer]) -> None:
    layer.total, layer.classes = section.whole("num", 1), section.whole("classes", 20)
    layer.mask = section.wholes("mask") or list(range(layer.total))
    layer.n = len(layer.mask)
    layer.scale_x_y = section.real("scale_x_y", 1.0)
    layer.new_coords = section.whole("new_coords", 0)
    _boxes(layer, section, layer.classes + 5)


def _boxes(layer: DarknetLayer, section: Section, values: int) -> None:
    if layer.c != layer.n * values:
        raise section.error(
            f"{layer.n} boxes of {values} values want {layer.n * values} channels, its data has "
            f"{layer.c}"
        )
    anchors = section.reals("anchors")
    layer.biases = np.full(2 * layer.total, 0.5, np.float32)
    count = min(len(anchors), layer.biases.size)
    layer.biases[:count] = anchors[:count]
    layer.gives(layer.c, layer.h, layer.w)


_DESCRIBED = {
    LAYERTYPE.CONVOLUTIONAL: _convolution,
    LAYERTYPE.DECONVOLUTIONAL: _deconvolution,
    LAYERTYPE.CONNECTED: _connected,
    LAYERTYPE.RNN: _recurrent,
    LAYERTYPE.MAXPOOL: _max_pool,
    LAYERTYPE.AVGPOOL: _average_pool,
    LAYERTYPE.SOFTMAX: _softmax,
    LAYERTYPE.DROPOUT: _same,
    LAYERTYPE.COST: _same,
    LAYERTYPE.L2NORM: _same,
    LAYERTYPE.ACTIVE: _active,
    LAYERTYPE.CROP: _crop,
    LAYERTYPE.ROUTE: _route,
    LAYERTYPE.SHORTCUT: _shortcut,
    LAYERTYPE.REORG: _reorg,
    LAYERTYPE.UPSAMPLE: _upsample,
    LAYERTYPE.REGION: _region,
    LAYERTYPE.YOLO: _yolo,
}
