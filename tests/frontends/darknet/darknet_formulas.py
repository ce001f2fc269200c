"""Networks of Darknet computed in NumPy from their two files, after the formulas of its C sources.

It shares nothing with the importer: it reads the text and the numbers itself, keeps one image, and
computes sums in float64.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

ACTIVATE = {
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: x * (x > 0),
    "relie": lambda x: np.where(x > 0, x, 0.01 * x),
    "linear": lambda x: x,
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
    "tanh": np.tanh,
    "plse": lambda x: np.where(
        x < -4, 0.01 * (x + 4), np.where(x > 4, 0.01 * (x - 4) + 1, 0.125 * x + 0.5)
    ),
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "elu": lambda x: np.where(x >= 0, x, np.expm1(np.minimum(x, 0))),
    "loggy": lambda x: 2 / (1 + np.exp(-x)) - 1,
    "stair": lambda x: np.where(
        np.floor(x) % 2 == 0, np.floor(x / 2), x - np.floor(x) + np.floor(x / 2)
    ),
    "hardtan": lambda x: np.clip(x, -1, 1),
    "lhtan": lambda x: np.where(x < 0, 0.001 * x, np.where(x > 1, 0.001 * (x - 1) + 1, x)),
    "selu": lambda x: np.where(x >= 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(np.minimum(x, 0))),
    "relu6": lambda x: np.clip(x, 0, 6),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x**3)),
}


def sections(cfg: Path) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    for raw in cfg.read_text().splitlines():
        line = raw.replace(" ", "")
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif line and line[0] not in "#;":
            key, value = line.split("=")
            found[-1][1][key] = value
    return found


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def conv(x, weight, stride, pad, groups, dilation=1):
    n, per, k, _ = weight.shape
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    reach = (k - 1) * dilation + 1
    rows, columns = ((d - reach) // stride + 1 for d in x.shape[1:])
    out = np.zeros((n, rows, columns))
    for f in range(n):
        first = f // (n // groups) * per
        for i in range(k):
            for j in range(k):
                r, c = i * dilation, j * dilation
                part = x[
                    first : first + per,
                    r : r + rows * stride : stride,
                    c : c + columns * stride : stride,
                ][:, :rows, :columns]
                out[f] += np.tensordot(weight[f, :, i, j], part, 1)
    return out


class Weights:
    def __init__(self, path: Path) -> None:
        self.numbers = np.frombuffer(path.read_bytes(), "<f4", offset=20)
        self.at = 0

    def take(self, *shape):
        count = int(np.prod(shape))
        self.at += count
        return self.numbers[self.at - count : self.at].reshape(shape).astype(np.float64)

    def norm(self, n):
        return [self.take(n) for _ in range(3)]


def scaled(x, norm, bias):
    to = (-1,) + (1,) * (x.ndim - 1)
    if norm is not None:
        scale, mean, variance = norm
        x = (x - mean.reshape(to)) / (np.sqrt(variance.reshape(to)) + 1e-6) * scale.reshape(to)
    return x + bias.reshape(to)


def reorg(x, stride):
    """`reorg_cpu` with forward = 0, element by element."""
    c, h, w = x.shape
    flat, out = x.reshape(-1), np.zeros(x.size)
    out_c = c // stride**2
    for k in range(c):
        c2, offset = k % out_c, k // out_c
        for j in range(h):
            for i in range(w):
                w2, h2 = i * stride + offset % stride, j * stride + offset // stride
                out[i + w * (j + h * k)] = flat[w2 + w * stride * (h2 + h * stride * c2)]
    return out.reshape(c * stride**2, h // stride, w // stride)


def connected(options, weights, outputs, x):
    bias, matrix = weights.take(outputs), None
    matrix = weights.take(outputs, x.size)
    norm = weights.norm(outputs) if options.get("batch_normalize") == "1" else None
    return scaled(matrix @ x.reshape(-1), norm, bias)


def run(cfg: Path, weight_file: Path, x):
    """Return the outputs of all layers for one image (channels, height, width)."""
    weights, outs = Weights(weight_file), []
    for name, o in sections(cfg)[1:]:
        whole = {k: int(v) for k, v in o.items() if v.lstrip("-").isdigit()}.get
        stride = whole("stride", 1)
        act = ACTIVATE[o.get("activation", "linear")]
        if name == "convolutional":
            n, k, g = whole("filters", 1), whole("size", 1), whole("groups", 1)
            pad = k // 2 if whole("pad") else whole("padding", 0)
            bias = weights.take(n)
            norm = weights.norm(n) if whole("batch_normalize") else None
            weight = weights.take(n, len(x) // g, k, k)
            x = act(scaled(conv(x, weight, stride, pad, g), norm, bias))
        elif name == "connected":
            x = act(connected(o, weights, whole("output"), x)).reshape(-1, 1, 1)
        elif name == "maxpool":
            k = whole("size", stride)
            padding = whole("padding", k - 1)
            rows, columns = ((d + padding - k) // stride + 1 for d in x.shape[1:])
            before = padding // 2
            big = np.full((len(x), *(d + 2 * k + padding for d in x.shape[1:])), -np.inf)
            big[:, before : before + x.shape[1], before : before + x.shape[2]] = x
            x = np.array(
                [
                    [
                        [p[i * stride :, j * stride :][:k, :k].max() for j in range(columns)]
                        for i in range(rows)
                    ]
                    for p in big
                ]
            )
        elif name == "avgpool":
            x = x.mean((1, 2), keepdims=True)
        elif name == "softmax":
            x = softmax(x.reshape(whole("groups", 1), -1) / float(o.get("temperature", 1)), 1)
            x = x.reshape(-1, 1, 1)
        elif name == "route":
            parts = [outs[int(i)] for i in o["layers"].split(",")]
            g, which = whole("groups", 1), whole("group_id", 0)
            x = np.concatenate([p[len(p) // g * which : len(p) // g * (which + 1)] for p in parts])
        elif name == "shortcut":
            add = outs[whole("from")]
            step, c = add.shape[1] // x.shape[1], min(len(add), len(x))
            x = x.copy()
            x[:c] += add[:c, ::step, ::step][:, : x.shape[1], : x.shape[2]]
            x = act(x)
        elif name == "upsample":
            x = x.repeat(stride, 1).repeat(stride, 2) * float(o.get("scale", 1))
        elif name == "reorg":
            x = reorg(x, stride)
        elif name == "l2norm":
            x = x / np.sqrt((x**2).sum(0, keepdims=True))
        elif name == "activation":
            x = act(x)
        elif name == "crop":
            h, w = whole("crop_height"), whole("crop_width")
            top, left = (x.shape[1] - h) // 2, (x.shape[2] - w) // 2
            x = x[:, top : top + h, left : left + w]
            x = x if whole("noadjust") else 2 * x - 1
        elif name in ("region", "yolo"):
            x = boxes(name, o, x)
        elif name not in ("dropout", "cost"):
            raise KeyError(name)
        outs.append(x)
    return outs


def boxes(name, o, x):
    classes = int(o["classes"])
    n = len(o["mask"].split(",")) if name == "yolo" else int(o["num"])
    out = x.reshape(n, -1, *x.shape[1:]).copy()
    assert out.shape[1] == classes + 5
    logistic = ACTIVATE["logistic"]
    out[:, :2], out[:, 4] = logistic(out[:, :2]), logistic(out[:, 4])
    if o.get("softmax") == "1":
        out[:, 5:] = softmax(out[:, 5:], 1)
    else:
        out[:, 5:] = logistic(out[:, 5:])
    spread = float(o.get("scale_x_y", 1))
    out[:, :2] = out[:, :2] * spread - 0.5 * (spread - 1)
    return out.reshape(x.shape)
