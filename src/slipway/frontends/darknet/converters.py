"""One layer of Darknet as relay: functions by the layer's type.

They read only fields of Darknet's ``struct layer``, so that a layer may be one of its library, seen
through cffi, or one that `load_network` has read.  Parameters are variables of the names that TVM
gave them: ``LAYERTYPE_CONVOLUTIONAL0_weight``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.darknet.activation import ACTIVATIONS
from slipway.frontends.darknet.kinds import ACTIVATION, LAYERTYPE
from slipway.frontends.darknet.layer import Floats
from slipway.relay.expr import Expr, Var
from slipway.relay.types import TensorType

# Darknet adds this to the root of the variance.
EPSILON = 1e-6


class DarknetView:
    """What a converter sees: the layer, its inputs, and where its parameters are kept."""

    def __init__(
        self,
        layer: Any,
        number: int | str,
        inputs: Sequence[Expr],
        params: dict[str, np.ndarray[Any, Any]],
        variables: dict[str, Var],
    ) -> None:
        self.layer = layer
        self.type = LAYERTYPE(layer.type)
        self.prefix = f"LAYERTYPE_{self.type.name}{number}"
        self.inputs = list(inputs)
        self.params = params
        self.variables = variables
        self.sources: list[Any] = []  # the layers that a shortcut adds

    def option(self, name: str, default: Any) -> Any:
        """Return a field that structs of older libraries do not have."""
        return getattr(self.layer, name, default)

    def error(self, problem: str) -> ModelError:
        """Return the error for what this layer asks for and there is not."""
        return ModelError(f"{self.option('place', self.prefix)}: {problem}")

    def parameter(self, item: str, values: np.ndarray[Any, Any]) -> Var:
        """Return the variable of a parameter; the second time the same one."""
        name = f"{self.prefix}_{item}"
        if name not in self.variables:
            self.params[name] = np.asarray(values, order="C")
            self.variables[name] = Var(name, TensorType(values.shape, str(values.dtype)))
        return self.variables[name]

    def floats(self, field: str, *shape: int) -> Floats:
        """Return floats of the layer; zeros where nothing was loaded."""
        data = getattr(self.layer, field)
        count = int(np.prod(shape))
        if isinstance(data, np.ndarray):
            flat = data.reshape(-1).astype(np.float32)
            return (flat if flat.size else np.zeros(count, np.float32)).reshape(shape)
        return _through_cffi(data, count).reshape(shape)

    def normed(self) -> bool:
        """Return whether the sums are normalised before the bias is added."""
        return bool(self.layer.batch_normalize) and not self.layer.dontloadscales

    def finished(self, sums: Expr, size: int) -> Expr:
        """Return the sums with bias or normalisation, and activated."""
        biases = self.floats("biases", size)
        if self.normed():
            deviation = np.sqrt(self.floats("rolling_variance", size)) + np.float32(EPSILON)
            sums = relay.nn.batch_norm(
                sums,
                self.parameter("gamma", self.floats("scales", size)),
                self.parameter("beta", biases),
                self.parameter("moving_mean", self.floats("rolling_mean", size)),
                self.parameter("moving_var", deviation * deviation),
                epsilon=0.0,
            )[0]
        else:
            sums = relay.nn.bias_add(sums, self.parameter("bias", biases), axis=1)
        return self.activated(sums)

    def activated(self, data: Expr) -> Expr:
        """Return the data with the layer's activation."""
        return ACTIVATIONS[ACTIVATION(self.layer.activation)](data)


def _through_cffi(data: Any, count: int) -> Floats:
    """Copy the floats behind a pointer of cffi; a slice of it knows its length."""
    return np.fromiter(data[0:count], np.float32, count)


def _convolution(view: DarknetView) -> Expr:
    layer = view.layer
    shape = (layer.n, layer.c // layer.groups, layer.size, layer.size)
    sums = relay.nn.conv2d(
        view.inputs[0],
        view.parameter("weight", view.floats("weights", *shape)),
        strides=(layer.stride, layer.stride),
        padding=(layer.pad, layer.pad),
        dilation=(view.option("dilation", 1),) * 2,
        groups=layer.groups,
        channels=layer.n,
        kernel_size=(layer.size, layer.size),
    )
    return view.finished(sums, layer.n)


def _deconvolution(view: DarknetView) -> Expr:
    layer = view.layer
    sums = relay.nn.conv2d_transpose(
        view.inputs[0],
        view.parameter("weight", view.floats("weights", layer.c, layer.n, layer.size, layer.size)),
        strides=(layer.stride, layer.stride),
        padding=(layer.pad, layer.pad),
        channels=layer.n,
        kernel_size=(layer.size, layer.size),
    )
    return view.finished(sums, layer.n)


def _connected(view: DarknetView) -> Expr:
    layer = view.layer
    weight = view.parameter("weight", view.floats("weights", layer.outputs, layer.inputs))
    data = relay.nn.batch_flatten(view.inputs[0])
    return view.finished(relay.nn.dense(data, weight, units=layer.outputs), layer.outputs)


def _max_pool(view: DarknetView) -> Expr:
    layer = view.layer

    def after(size: int, out: int) -> int:
        needed = (out - 1) * layer.stride + layer.size - size - layer.pad
        return int(max(0, needed))

    pooled: Expr = relay.nn.max_pool2d(
        view.inputs[0],
        pool_size=(layer.size, layer.size),
        strides=(layer.stride, layer.stride),
        padding=(
            layer.pad, layer.pad, after(layer.h, layer.out_h), after(layer.w, layer.out_w)
        ),
    )  # fmt: skip
    return pooled


def _softmax(view: DarknetView) -> Expr:
    layer, data = view.layer, view.inputs[0]
    if layer.temperature not in (0, 1):
        data = data / relay.const(float(layer.temperature), "float32")
    if view.option("spatial", 0):
        return relay.nn.softmax(data, axis=1)
    groups = max(layer.groups, 1)
    if groups == 1:
        return relay.nn.softmax(relay.nn.batch_flatten(data), axis=1)
    apart = relay.reshape(data, (-1, groups, layer.inputs // groups))
    return relay.reshape(relay.nn.softmax(apart, axis=2), (-1, layer.inputs))


def _crop(view: DarknetView) -> Expr:
    layer = view.layer
    top, left = (layer.h - layer.out_h) // 2, (layer.w - layer.out_w) // 2
    cut = relay.strided_slice(
        view.inputs[0], (top, left), (top + layer.out_h, left + layer.out_w), axes=(2, 3)
    )
    if layer.noadjust:
        return cut
    return cut * relay.const(2.0, "float32") - relay.const(1.0, "float32")


def _route(view: DarknetView) -> Expr:
    groups = view.option("groups", 1)
    inputs = view.inputs
    if groups > 1:
        inputs = [relay.split(i, groups, axis=1)[view.layer.group_id] for i in inputs]
    return inputs[0] if len(inputs) == 1 else relay.concatenate(inputs, axis=1)


def _shortcut(view: DarknetView) -> Expr:
    data, *others = view.inputs
    for other, source in zip(others, view.sources, strict=True):
        data = data + _like(view, other, source)
    return view.activated(data)


def _like(view: DarknetView, other: Expr, source: Any) -> Expr:
    """Return another layer's output in the sizes of this one's: every stride-th, zeros around.

    Only the channels that both have are added, as Darknet does.
    """
    layer = view.layer
    if source.out_h < layer.out_h or source.out_w < layer.out_w:
        raise view.error(
            f"from= names a layer of {source.out_h} x {source.out_w}, smaller than its data of "
            f"{layer.out_h} x {layer.out_w}; that is not supported"
        )
    step = source.out_w // layer.out_w
    common = min(source.out_c, layer.out_c)
    if step > 1 or source.out_c > common or source.out_h != layer.out_h:
        other = relay.strided_slice(
            other, (0, 0, 0), (common, layer.out_h * step, layer.out_w * step), (1, step, step),
            axes=(1, 2, 3),
        )  # fmt: skip
    if layer.out_c > common:
        other = relay.nn.pad(other, ((0, 0), (0, layer.out_c - common), (0, 0), (0, 0)))
    return other


def _upsample(view: DarknetView) -> Expr:
    layer = view.layer
    out = relay.nn.upsampling(view.inputs[0], layer.stride, layer.stride)
    scale = view.option("scale", 1.0)
    return out if scale in (0, 1) else out * relay.const(float(scale), "float32")


def _region(view: DarknetView) -> Expr:
    layer = view.layer
    coords = layer.coords
    boxes, shape = _boxes(view, coords + layer.classes + 1)
    centers, extents, object_, classes = relay.split(boxes, (2, coords, coords + 1), axis=2)
    parts = [
        relay.sigmoid(centers),
        extents,
        object_ if layer.background else relay.sigmoid(object_),
        relay.nn.softmax(classes, axis=2) if layer.softmax else relay.sigmoid(classes),
    ]
    return relay.reshape(relay.concatenate(parts, axis=2), shape)


def _yolo(view: DarknetView) -> Expr:
    boxes, shape = _boxes(view, view.layer.classes + 5)
    centers, extents, scores = relay.split(boxes, (2, 4), axis=2)
    scale = float(view.option("scale_x_y", 1.0))
    if view.option("new_coords", 0):  # the layer before it is activated
        activated = boxes
        if scale != 1:
            activated = relay.concatenate([_spread(centers, scale), extents, scores], axis=2)
    else:
        parts = [_spread(relay.sigmoid(centers), scale), extents, relay.sigmoid(scores)]
        activated = relay.concatenate(parts, axis=2)
    return relay.reshape(activated, shape)


def _spread(centers: Expr, scale: float) -> Expr:
    if scale == 1:
        return centers
    return centers * relay.const(scale, "float32") - relay.const(0.5 * (scale - 1), "float32")


def _boxes(view: DarknetView, values: int) -> tuple[Expr, tuple[int, ...]]:
    layer = view.layer
    apart = (-1, layer.n, values, layer.h, layer.w)
    return relay.reshape(view.inputs[0], apart), (-1, layer.c, layer.h, layer.w)


CONVERTERS: dict[LAYERTYPE, Callable[[DarknetView], Expr]] = {
    LAYERTYPE.CONVOLUTIONAL: _convolution,
    LAYERTYPE.DECONVOLUTIONAL: _deconvolution,
    LAYERTYPE.CONNECTED: _connected,
    LAYERTYPE.MAXPOOL: _max_pool,
    LAYERTYPE.AVGPOOL: lambda view: relay.nn.global_avg_pool2d(view.inputs[0]),
    LAYERTYPE.SOFTMAX: _softmax,
    LAYERTYPE.DROPOUT: lambda view: view.inputs[0],
    LAYERTYPE.COST: lambda view: view.inputs[0],
    LAYERTYPE.BLANK: lambda view: view.inputs[0],
    LAYERTYPE.ACTIVE: lambda view: view.activated(view.inputs[0]),
    LAYERTYPE.CROP: _crop,
    LAYERTYPE.ROUTE: _route,
    LAYERTYPE.SHORTCUT: _shortcut,
    LAYERTYPE.REORG: lambda view: relay.vision.yolo_reorg(view.inputs[0], view.layer.stride),
    LAYERTYPE.UPSAMPLE: _upsample,
    LAYERTYPE.L2NORM: lambda view: relay.nn.l2_normalize(view.inputs[0], eps=0.0, axis=[1]),
    LAYERTYPE.REGION: _region,
    LAYERTYPE.YOLO: _yolo,
}
