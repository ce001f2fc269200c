"""The rounding error of Winograd's convolution beside that of direct sums.

    python -m benchmarks winograd_error [--layers 40] [--seed 0]

Random 3x3 layers of 16 to 512 channels on images of 14 to 56 points, compiled with tiles of either
size, whatever the compiler would choose, and with ``-strict=1``, and held against the same sums in
float64.  An error is the largest difference of a
layer, relative to its largest result; data is normal, or normal behind a ReLU, and weights are
normal with the variance that keeps that of the data.
"""

import argparse
from unittest.mock import patch

import numpy as np

CHOICE = "slipway.backends.cpu.lowering.alter_layout.winograd_tile"
# Name, tile (0: direct sums) and options of the target.
WAYS = (("F(4x4, 3x3)", 4, ""), ("F(2x2, 3x3)", 2, ""), ("direct", 0, " -strict=1"))


def exact(data, weight):
    """The convolution of one image with a border of one, in float64."""
    wide = np.pad(data.astype("float64"), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", windows, weight.astype("float64"), optimize=True)


def compiled(data, weight, tile, target):
    """What the code for `target` with such tiles makes of it, and the names of its kernels."""
    import slipway as tvm
    from slipway import relay
    from slipway.contrib import graph_executor

    x = relay.var("x", shape=(1, *data.shape), dtype="float32")
    function = relay.Function([x], relay.nn.conv2d(x, relay.const(weight), padding=(1, 1)))
    with tvm.transform.PassContext(opt_level=3), patch(CHOICE, return_value=tile):
        library = relay.build(tvm.IRModule.from_expr(function), target=target)
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(x=data[None])
    return model.get_output(0).numpy()[0], library.graph.kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    found = {name: [] for name, _, _ in WAYS}
    for number in range(arguments.layers):
        channels, outputs = rng.choice([16, 32, 64, 128, 256, 512], 2)
        size = int(rng.choice([14, 28, 56] if channels < 256 else [14, 28]))
        data = rng.standard_normal((channels, size, size)).astype("float32")
        if number % 2:
            data = np.maximum(data, 0)
        weight = rng.standard_normal((outputs, channels, 3, 3)) / np.sqrt(9 * channels)
        weight = weight.astype("float32")
        want = exact(data, weight)
        for name, tile, options in WAYS:
            got, kernels = compiled(data, weight, tile, "llvm" + options)
            assert any("winograd" in kernel for kernel in kernels) == (tile > 0)
            found[name].append(np.abs(got - want).max() / np.abs(want).max())
    print("| convolution | median of layers | largest |\n| --- | ---: | ---: |")
    for name, errors in found.items():
        print(f"| {name} | {np.median(errors):.1e} | {np.max(errors):.1e} |")
    return 0
