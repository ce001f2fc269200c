"""What one library for all sizes takes longer than a build for a size, operator by operator.

    python -m benchmarks open_sizes [NAME ...] [--repeat 7]

Each PyTorch module is compiled twice, for its example and with open batch, height and width, or
length; both run on the example in turns, on one thread, and the shortest times count.  Prints a
table, the worst ratio first; outputs are compared with PyTorch's.
"""

import argparse
import os

ROWS = 64  # and columns of the images, of 32 to 96


class _Do:
    """A function that `modules` makes a module of."""

    def __init__(self, function):
        self.function = function


def _embedded(torch):
    table = torch.randn(200, 64)

    def rows(x):
        return table[(x.abs() * 60).long().clamp(max=199)]

    return rows


def _attended(x, causal=False):
    from torch.nn.functional import scaled_dot_product_attention

    heads = x.unflatten(-1, (4, 32)).transpose(1, 2)
    made = scaled_dot_product_attention(heads, heads * 0.5, heads + 1, is_causal=causal)
    return made.transpose(1, 2).flatten(2)


def _scattered(x):
    import torch

    positions = (x.abs() * 20).long().clamp(max=31)
    return torch.zeros(x.shape[0], 32, 64).scatter_add(1, positions, x)


def modules():
    """Return {name: (module, shape, open axes)}: "i" images, "t" and "k" lengths, "n" batches."""
    from torch import nn

    class Done(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    return {
        name: (Done(module.function) if isinstance(module, _Do) else module, shape, axes)
        for name, (module, shape, axes) in _cases().items()
    }


def _cases():
    import torch
    from torch import nn

    torch.manual_seed(0)
    image, wide = (1, 32, ROWS, ROWS), (1, 64, ROWS, ROWS)
    every = {0: "n", 2: "i", 3: "i"}

    encoder = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return {
        "convolution 7x7, stride 2, of 3 channels": (
            nn.Conv2d(3, 64, 7, 2, 3), (1, 3, ROWS, ROWS), every),
        "convolution 3x3": (nn.Conv2d(32, 64, 3, padding=1), image, every),
        "convolution 1x1": (nn.Conv2d(64, 128, 1), wide, every),
        "depthwise 3x3": (nn.Conv2d(64, 64, 3, padding=1, groups=64), wide, every),
        "convolution to 3 channels": (nn.Conv2d(64, 3, 3, padding=1), wide, every),
        "convolution of a sequence, 5 wide": (
            nn.Conv1d(40, 64, 5, padding=2), (1, 40, 100), {0: "n", 2: "t"}),
        "transposed 2x2, stride 2": (nn.ConvTranspose2d(32, 16, 2, 2), image, every),
        "transposed 4x4, stride 2": (nn.ConvTranspose2d(32, 16, 4, 2, 1), image, every),
        "maximum of 2x2": (nn.MaxPool2d(2), image, every),
        "maximum of 3x3, stride 2": (nn.MaxPool2d(3, 2, 1), image, every),
        "mean of 2x2": (nn.AvgPool2d(2), image, every),
        "mean of an image": (nn.AdaptiveAvgPool2d(1), image, every),
        "group norm": (nn.GroupNorm(8, 64), wide, every),
        "resize to twice the size, bilinear": (
            nn.Upsample(scale_factor=2, mode="bilinear"), image, every),
        "dense 256 to 512": (nn.Linear(256, 512), (1, 100, 256), {0: "n", 1: "t"}),
        "layer norm": (nn.LayerNorm(256), (1, 100, 256), {0: "n", 1: "t"}),
        "softmax over a length": (nn.Softmax(-1), (1, 64, 100), {0: "n", 2: "t"}),
        "softmax over channels": (nn.Softmax(1), image, every),
        "batch norm and a sigmoid": (
            nn.Sequential(nn.BatchNorm2d(32), nn.SiLU()), image, every),
        "images to rows of channels": (_Do(lambda x: x.flatten(2).mT.contiguous()), image, every),
        "channels last": (_Do(lambda x: x.permute(0, 2, 3, 1).contiguous()), image, every),
        "concatenate": (_Do(lambda x: torch.cat([x, x * 2], 1)), image, every),
        "concatenate along the length": (
            _Do(lambda x: torch.cat([x, x * 2], 1)), (1, 100, 64), {0: "n", 1: "t"}),
        "every other column": (_Do(lambda x: x[..., ::2] + 1), image, every),
        "the length reversed": (_Do(lambda x: x.flip(1) * 2), (1, 100, 64), {0: "n", 1: "t"}),
        "embedding": (_Do(_embedded(torch)), (1, 100), {0: "n", 1: "t"}),
        "product of two computed matrices": (
            _Do(lambda x: x @ x.mT), (1, 100, 64), {0: "n", 1: "t"}),
        "sum over the length": (_Do(lambda x: x.sum(1)), (1, 100, 64), {0: "n", 1: "t"}),
        "largest of a row": (_Do(lambda x: x.amax(-1)), (1, 64, 100), {0: "n", 2: "t"}),
        "running sum": (_Do(lambda x: x.cumsum(1)), (1, 100, 64), {0: "n", 1: "t"}),
        "padding of an image": (nn.ReflectionPad2d(1), image, every),
        "attention of four heads": (
            _Do(_attended), (1, 100, 128), {0: "n", 1: "t"}),
        "attention, no row sees those behind it": (
            _Do(lambda x: _attended(x, causal=True)), (1, 100, 128), {0: "n", 1: "t"}),
        "convolution of 3 axes, 3 wide": (
            nn.Conv3d(8, 16, 3, padding=1), (1, 8, 8, 32, 32), {0: "n", 3: "i", 4: "i"}),
        "transposed convolution of a sequence": (
            nn.ConvTranspose1d(40, 32, 4, 2, 1), (1, 40, 100), {0: "n", 2: "t"}),
        "dilated convolution of a sequence": (
            nn.Conv1d(40, 64, 3, padding=4, dilation=4), (1, 40, 100), {0: "n", 2: "t"}),
        "convolution of two groups": (nn.Conv2d(32, 64, 3, padding=1, groups=2), image, every),
        "resize by one and a half, nearest": (nn.Upsample(scale_factor=1.5), image, every),
        "resize to twice the size, bicubic": (
            nn.Upsample(scale_factor=2, mode="bicubic"), image, every),
        "ten largest of each row": (
            _Do(lambda x: torch.topk(x, 10).values), (1, 64, 100), {0: "n", 2: "k"}),
        "rows sorted": (_Do(lambda x: x.sort(-1).values), (1, 64, 100), {0: "n", 2: "t"}),
        "rows added at places": (
            _Do(_scattered), (1, 100, 64), {0: "n", 1: "t"}),
        "zeros around an image": (nn.ZeroPad2d(1), image, every),
        "instance norm": (nn.InstanceNorm2d(32), image, every),
        "root mean square norm": (nn.RMSNorm(256), (1, 100, 256), {0: "n", 1: "t"}),
        "variance over the length": (
            _Do(lambda x: x.var(1)), (1, 100, 64), {0: "n", 1: "t"}),
        "lower triangle": (_Do(torch.tril), (1, 100, 64), {0: "n", 1: "t"}),
        "channels shuffled into space": (nn.PixelShuffle(2), image, every),
        "rows split into two heads": (
            _Do(lambda x: x.reshape(x.shape[0], x.shape[1], 2, 32).transpose(1, 2).contiguous()),
            (1, 100, 64), {0: "n", 1: "t"}),
        "encoder layer of a transformer": (encoder, (1, 100, 128), {0: "n", 1: "t"}),
    }  # fmt: skip


def compare(module, shape, axes, repeat):
    """Return (milliseconds of the fixed build, of the open one, largest error beside PyTorch)."""
    import torch

    import slipway

    ranges = {"n": (1, 4), "i": (32, 96), "t": (1, 128), "k": (10, 128)}
    dims = {
        axis: torch.export.Dim(f"{kind}{axis}", min=ranges[kind][0], max=ranges[kind][1])
        for axis, kind in axes.items()
    }
    example = torch.randn(2, *shape[1:])
    program = torch.export.export(
        module.eval(), (example,), dynamic_shapes=(dims,), strict=False
    )  # a batch of one would be taken for a constant
    x = torch.randn(*shape)
    fixed = slipway.compile(module, example=x, quiet=True)
    every = slipway.compile(program, quiet=True)
    name = every.inputs[0].name
    with torch.no_grad():
        wanted = module(x).numpy()
    error = abs(every(x) - wanted).max() / abs(wanted).max()
    fixed_s = open_s = float("inf")
    for _ in range(repeat):
        fixed_s = min(fixed_s, fixed.benchmark(number=5, repeat=1).min)
        open_s = min(open_s, every.benchmark(number=5, repeat=1, **{name: x}).min)
    return fixed_s * 1e3, open_s * 1e3, error


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of those to run; all if none")
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    os.environ["SLIPWAY_NUM_THREADS"] = "1"
    rows = []
    for name, (module, shape, axes) in modules().items():
        if not args.names or any(part in name for part in args.names):
            fixed, every, error = compare(module, shape, axes, args.repeat)
            rows.append((every / fixed, name, fixed, every, error))
    print("| operator | fixed, ms | open, ms | ratio |\n| --- | --- | --- | --- |")
    for ratio, name, fixed, every, error in sorted(rows, reverse=True):
        assert error < 1e-4, f"{name}: {error}"
        print(f"| {name} | {fixed:.3g} | {every:.3g} | {ratio:.2f} |")
