"""Train the digits network that Slipway ships, in plain NumPy, in about a minute.

    python examples/digits/train.py [--out DIRECTORY] [--epochs N]

Writes ``digits.onnx`` and ``digits_test.npz`` (the held-out images, their labels and this
script's own float64 logits, which serve as the reference).  The same NumPy gives the same
files: every random number comes from one seed.

Needs numpy, onnx and scikit-learn, whose ``load_digits`` holds the data set: UCI "Optical
Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998, CC BY 4.0.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

# Before NumPy loads: sums in one order whatever the machine, and no threads for small matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import export
import layers
import numpy as np

SEED = 20
BATCH = 48
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 2e-2
LABEL_SMOOTHING = 0.05
TEST_SHARE = 0.2
SHIPPED = Path(__file__).parents[2] / "src" / "slipway" / "models" / "digits"

Network = list[tuple[str, layers.Layer]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where the two files go")
    parser.add_argument("--epochs", type=int, default=60, help="passes over the training images")
    options = parser.parse_args()

    rng = np.random.default_rng(SEED)
    (x_train, y_train), (x_test, y_test) = load_split(rng)
    network = make_network(rng)
    count = sum(p.value.size for _, layer in network for p in layer.parameters())
    print(f"{len(x_train)} images to train on, {len(x_test)} held out, {count} parameters")

    start = time.perf_counter()
    train(network, x_train, y_train, rng, options.epochs)
    logits = forward(network, x_test, train=False)
    accuracy = np.mean(logits.argmax(axis=1) == y_test)
    seconds = time.perf_counter() - start
    print(f"accuracy on the held-out images: {accuracy:.2%} after {seconds:.0f} s")

    options.out.mkdir(parents=True, exist_ok=True)
    export.to_onnx(network, options.out / "digits.onnx")
    np.savez_compressed(
        options.out / "digits_test.npz",
        images=x_test.transpose(0, 3, 1, 2).astype(np.float32),
        labels=y_test.astype(np.uint8),
        logits=logits.astype(np.float32),
    )
    print(f"wrote digits.onnx and digits_test.npz into {options.out}")


def load_split(rng: np.random.Generator):
    """Return ((images, labels) to train on, (images, labels) held out), the same share per digit.

    Images are (n, 8, 8, 1) float64 in [0, 1].
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images[..., None] / 16.0
    order = rng.permutation(len(images))
    held_out = np.zeros(len(images), dtype=bool)
    for digit in range(10):
        of_digit = order[digits.target[order] == digit]
        held_out[of_digit[: round(TEST_SHARE * len(of_digit))]] = True
    train_set = images[~held_out], digits.target[~held_out]
    test_set = images[held_out], digits.target[held_out]
    return train_set, test_set


def make_network(rng: np.random.Generator) -> Network:
    """Build the untrained network: a stem, two depthwise-separable blocks, a classifier."""

    def separable(name: str, channels_in: int, channels_out: int) -> Network:
        return [
            (f"{name}_depthwise", layers.DepthwiseConv3x3(rng, channels_in)),
            (f"{name}_depthwise_bn", layers.BatchNorm(channels_in)),
            (f"{name}_depthwise_relu", layers.Relu()),
            (f"{name}_pointwise", layers.Pointwise(rng, channels_in, channels_out)),
            (f"{name}_pointwise_bn", layers.BatchNorm(channels_out)),
            (f"{name}_pointwise_relu", layers.Relu()),
        ]

    return [
        ("stem", layers.Conv3x3(rng, 1, 16)),
        ("stem_bn", layers.BatchNorm(16)),
        ("stem_relu", layers.Relu()),
        *separable("block1", 16, 32),
        ("maximum", layers.MaxPool2x2()),
        *separable("block2", 32, 64),
        ("average", layers.AveragePool2x2()),
        ("flatten", layers.Flatten()),
        ("classifier", layers.Dense(rng, 256, 10)),
    ]


def forward(network: Network, x: np.ndarray, train: bool) -> np.ndarray:
    """Return the logits (n, 10) of images (n, 8, 8, 1)."""
    for _, layer in network:
        x = layer.forward(x, train)
    return x


def train(
    network: Network, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, epochs: int
) -> None:
    """Minimise smoothed cross-entropy with AdamW, a cosine learning rate, and shifted images."""
    parameters = [p for _, layer in network for p in layer.parameters()]
    moments = [(np.zeros_like(p.value), np.zeros_like(p.value)) for p in parameters]
    batches = len(images) // BATCH
    steps, step = epochs * batches, 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        losses = []
        for batch in range(batches):
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            x = augment(images[chosen], rng)
            loss, gradient = loss_of(forward(network, x, train=True), labels[chosen])
            for _, layer in reversed(network):
                gradient = layer.backward(gradient)
            step += 1
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            adamw(parameters, moments, rate, step)
            losses.append(loss)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}: loss {np.mean(losses):.4f}")


def augment(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shift every image by a fraction of a pixel either way, bilinearly; zeros come in."""
    n, h, w, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    dy, dx = rng.uniform(-1, 1, (2, n, 1, 1, 1))
    for axis, shift in ((1, dy), (2, dx)):
        other = np.where(shift > 0, np.roll(padded, 1, axis), np.roll(padded, -1, axis))
        padded = (1 - abs(shift)) * padded + abs(shift) * other
    return padded[:, 1 : h + 1, 1 : w + 1]


def loss_of(logits: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean smoothed cross-entropy and its gradient with respect to `logits`."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    wanted = np.full_like(log_p, LABEL_SMOOTHING / 10)
    wanted[np.arange(len(labels)), labels] += 1 - LABEL_SMOOTHING
    loss = -np.sum(wanted * log_p) / len(labels)
    return float(loss), (np.exp(log_p) - wanted) / len(labels)


def adamw(parameters, moments, rate: float, step: int) -> None:
    """One step of AdamW, weights changed in place."""
    beta1, beta2, epsilon = 0.9, 0.99, 1e-8
    for parameter, (first, second) in zip(parameters, moments, strict=True):
        first += (1 - beta1) * (parameter.grad - first)
        second += (1 - beta2) * (parameter.grad**2 - second)
        update = first / (1 - beta1**step)
        update /= np.sqrt(second / (1 - beta2**step)) + epsilon
        if parameter.decay:
            update += WEIGHT_DECAY * parameter.value
        parameter.value -= rate * update


if __name__ == "__main__":
    main()
