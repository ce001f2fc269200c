"""The layers of the digits network, forward and backward, in plain NumPy.

Activations are NHWC while training, because then a 1x1 convolution is one matrix product
and a depthwise convolution is nine shifted multiplications.  ``export.py``
turns the weights into the NCHW convention that ONNX prescribes.

A layer has ``forward(x, train)``, ``backward(dy) -> dx`` (which leaves the gradients of its
weights behind) and ``parameters()``, what the optimiser updates in place.
"""

from __future__ import annotations

import numpy as np


class Parameter:
    """A weight array and the gradient that the last backward pass left for it."""

    def __init__(self, value: np.ndarray, decay: bool = True):
        self.value = value
        self.grad = np.zeros_like(value)
        self.decay = decay


class Layer:
    """Base class: a layer without weights."""

    def parameters(self) -> list[Parameter]:
        return [v for v in vars(self).values() if isinstance(v, Parameter)]


class Conv3x3(Layer):
    """Dense 3x3 convolution, stride 1, padding 1; weight shape (9 * in, out)."""

    def __init__(self, rng: np.random.Generator, channels_in: int, channels_out: int):
        fan_in = 9 * channels_in
        scale = np.sqrt(2.0 / fan_in)
        self.weight = Parameter(rng.normal(0, scale, (fan_in, channels_out)))

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.columns = np.concatenate(list(shifted(x)), axis=-1)
        return self.columns @ self.weight.value

    def backward(self, dy: np.ndarray) -> np.ndarray:
        flat = self.columns.reshape(-1, self.columns.shape[-1])
        self.weight.grad = flat.T @ dy.reshape(-1, dy.shape[-1])
        dcolumns = np.split(dy @ self.weight.value.T, 9, axis=-1)
        return unshifted(dcolumns)


class DepthwiseConv3x3(Layer):
    """One 3x3 filter per channel, stride 1, padding 1; weight shape (9, channels)."""

    def __init__(self, rng: np.random.Generator, channels: int):
        self.weight = Parameter(rng.normal(0, np.sqrt(2.0 / 9), (9, channels)))

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.taps = list(shifted(x))
        return sum(tap * w for tap, w in zip(self.taps, self.weight.value, strict=True))

    def backward(self, dy: np.ndarray) -> np.ndarray:
        self.weight.grad = np.stack([np.einsum("nhwc,nhwc->c", tap, dy) for tap in self.taps])
        return unshifted([dy * w for w in self.weight.value])


class Pointwise(Layer):
    """1x1 convolution; weight shape (in, out)."""

    def __init__(self, rng: np.random.Generator, channels_in: int, channels_out: int):
        scale = np.sqrt(2.0 / channels_in)
        self.weight = Parameter(rng.normal(0, scale, (channels_in, channels_out)))

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.x = x
        return x @ self.weight.value

    def backward(self, dy: np.ndarray) -> np.ndarray:
        self.weight.grad = self.x.reshape(-1, self.x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
        return dy @ self.weight.value.T


class BatchNorm(Layer):
    """y = gamma * (x - mean) / sqrt(var + eps) + beta over all axes but the last."""

    epsilon = 1e-5
    momentum = 0.9

    def __init__(self, channels: int):
        self.gamma = Parameter(np.ones(channels), decay=False)
        self.beta = Parameter(np.zeros(channels), decay=False)
        self.mean = np.zeros(channels)
        self.var = np.ones(channels)

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        if train:
            mean, var = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.var = self.momentum * self.var + (1 - self.momentum) * var
        else:
            mean, var = self.mean, self.var
        self.inv_std = 1.0 / np.sqrt(var + self.epsilon)
        self.normal = (x - mean) * self.inv_std
        return self.normal * self.gamma.value + self.beta.value

    def backward(self, dy: np.ndarray) -> np.ndarray:
        self.gamma.grad = np.einsum("nhwc,nhwc->c", dy, self.normal)
        self.beta.grad = dy.sum(axis=(0, 1, 2))
        count = dy.size // dy.shape[-1]
        centred = dy - (self.beta.grad + self.normal * self.gamma.grad) / count
        return centred * (self.gamma.value * self.inv_std)


class Relu(Layer):
    """y = max(x, 0)."""

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy: np.ndarray) -> np.ndarray:
        return dy * self.mask


class MaxPool2x2(Layer):
    """Maximum of each 2x2 window, stride 2."""

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        n, h, w, c = x.shape
        windows = x.reshape(n, h // 2, 2, w // 2, 2, c)
        y = windows.max(axis=(2, 4))
        self.mask = windows == y[:, :, None, :, None, :]
        return y

    def backward(self, dy: np.ndarray) -> np.ndarray:
        # A tie splits the gradient, so that the sum stays what came in.
        share = dy / self.mask.sum(axis=(2, 4))
        dx = self.mask * share[:, :, None, :, None, :]
        n, h, _, w, _, c = dx.shape
        return dx.reshape(n, 2 * h, 2 * w, c)


class AveragePool2x2(Layer):
    """Mean of each 2x2 window, stride 2."""

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        n, h, w, c = x.shape
        return x.reshape(n, h // 2, 2, w // 2, 2, c).mean(axis=(2, 4))

    def backward(self, dy: np.ndarray) -> np.ndarray:
        return np.repeat(np.repeat(dy, 2, axis=1), 2, axis=2) / 4


class Flatten(Layer):
    """(n, h, w, c) -> (n, c * h * w): the order in which ONNX flattens NCHW."""

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.shape = x.shape
        return x.transpose(0, 3, 1, 2).reshape(len(x), -1)

    def backward(self, dy: np.ndarray) -> np.ndarray:
        n, h, w, c = self.shape
        return dy.reshape(n, c, h, w).transpose(0, 2, 3, 1)


class Dense(Layer):
    """y = x @ weight + bias; weight shape (in, out)."""

    def __init__(self, rng: np.random.Generator, channels_in: int, channels_out: int):
        scale = np.sqrt(1.0 / channels_in)
        self.weight = Parameter(rng.normal(0, scale, (channels_in, channels_out)))
        self.bias = Parameter(np.zeros(channels_out), decay=False)

    def forward(self, x: np.ndarray, train: bool) -> np.ndarray:
        self.x = x
        return x @ self.weight.value + self.bias.value

    def backward(self, dy: np.ndarray) -> np.ndarray:
        self.weight.grad = self.x.T @ dy
        self.bias.grad = dy.sum(axis=0)
        return dy @ self.weight.value.T


def shifted(x: np.ndarray):
    """Yield `x` shifted by each of the nine taps of a 3x3 window, zeros outside."""
    _, h, w, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    for ky in range(3):
        for kx in range(3):
            yield padded[:, ky : ky + h, kx : kx + w]


def unshifted(taps: list[np.ndarray]) -> np.ndarray:
    """Add the nine gradients of `shifted` back together; the adjoint of `shifted`."""
    n, h, w, c = taps[0].shape
    padded = np.zeros((n, h + 2, w + 2, c))
    for index, tap in enumerate(taps):
        ky, kx = divmod(index, 3)
        padded[:, ky : ky + h, kx : kx + w] += tap
    return padded[:, 1:-1, 1:-1]
