"""Modules with open sizes whose assumptions torch.export cannot prove over a range."""

import numpy as np
import pytest
import torch
from compare import assert_same, expected
from torch import nn
from torch.nn import functional

import slipway
from slipway.errors import ModelError
from slipway.relay.dims import Dim

pytestmark = pytest.mark.filterwarnings("ignore")
SIZES = [(4, 4), (5, 31), (17, 16), (32, 32), (9, 10), (4, 7)]


class Half(nn.Module):
    """Exchanges the halves of an axis."""

    def forward(self, x):
        middle = x.shape[2] // 2
        return torch.cat([x[:, :, middle:], x[:, :, :middle]], 2)


class Padded(nn.Module):
    """Pads to a multiple of four, as networks of windows do."""

    def forward(self, x):
        below, beside = (4 - x.shape[2] % 4) % 4, (4 - x.shape[3] % 4) % 4
        return functional.avg_pool2d(functional.pad(x, (0, beside, 0, below)), 4)


class Restored(nn.Module):
    """Halves an image, doubles it, and cuts what is too much."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 4, 3, 2, 1), nn.ConvTranspose2d(4, 3, 2, 2)

    def forward(self, x):
        made = self.up(functional.relu(self.down(x)))
        return made[:, :, : x.shape[2], : x.shape[3]] + x


class Pyramid(nn.Module):
    """Adds a smaller image, enlarged to a larger one's size."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)

    def forward(self, x):
        large = self.first(x)
        small = self.second(large)
        return large + functional.interpolate(small, size=large.shape[-2:], mode="nearest")


class Windows(nn.Module):
    """Cuts an image that it pads into windows, works on each, and joins them, as Swin does."""

    def forward(self, x):
        batch, channels, height, width = x.shape
        below, beside = (4 - height % 4) % 4, (4 - width % 4) % 4
        y = functional.pad(x, (0, beside, 0, below))
        full = y.shape[2:]
        y = y.view(batch, channels, full[0] // 4, 4, full[1] // 4, 4).permute(0, 2, 4, 1, 3, 5)
        y = y.reshape(-1, channels, 16).softmax(-1)
        y = y.view(batch, full[0] // 4, full[1] // 4, channels, 4, 4).permute(0, 3, 1, 4, 2, 5)
        return y.reshape(batch, channels, *full)[:, :, :height, :width]


@pytest.mark.parametrize("kind", [Half, Padded, Restored, Pyramid, Windows])
@pytest.mark.parametrize("traced", [False, True])
def test_sizes_in_range(kind, traced):
    torch.manual_seed(3)
    module = kind().eval()
    given = torch.jit.trace(module, torch.rand(1, 3, 8, 12)) if traced else module
    model = slipway.compile(given, shapes={"x": (1, 3, Dim("h", 4, 32), Dim("w", 4, 32))})
    for height, width in SIZES:
        x = torch.rand(1, 3, height, width)
        assert_same([np.asarray(model(x.numpy()))], expected(module, [x]))


def test_a_branch_that_some_sizes_take_is_told():
    class Branch(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[2] // 4 == 2 else x * 3

    open_height = {"x": (1, 3, Dim("h", 4, 32), 12)}
    with pytest.raises(ModelError, match=r"something else at \w+ = 8, where Ne\(.*smaller range"):
        slipway.compile(Branch(), shapes=open_height)
    model = slipway.compile(Branch(), shapes={"x": (1, 3, Dim("h", 12, 32), 12)})
    x = torch.rand(1, 3, 13, 12)
    assert_same([np.asarray(model(x.numpy()))], [x.numpy() * 3])

    class Large(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[2] > 16 else x * 3

    with pytest.raises(ModelError, match=r"Not all values of h .* satisfy the generated guard"):
        slipway.compile(Large(), shapes=open_height)


def test_sizes_that_are_multiples():
    """Where a module does something else for others, as one that pads only where it has to."""

    class Pooled(nn.Module):
        def forward(self, x):
            y = x if x.shape[2] % 4 == 0 else functional.pad(x, (0, 0, 0, 1))
            return functional.avg_pool2d(y, 4)

    model = slipway.compile(Pooled(), shapes={"x": (1, 3, 4 * Dim("rows", 2, 8), 12)})
    for height in (8, 12, 32):
        x = torch.rand(1, 3, height, 12)
        assert_same([np.asarray(model(x.numpy()))], expected(Pooled(), [x]))
    with pytest.raises(slipway.SlipwayError, match=r"rows"):
        model(np.zeros((1, 3, 10, 12), "float32"))
    with pytest.raises(ModelError, match=r"write Dim\(name, low, high\), or a number of times it"):
        slipway.compile(Pooled(), shapes={"x": (1, 3, Dim("a", 1, 8) + Dim("b", 1, 8), 12)})


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("times", "more"), [(4, 0), (2, 1), (1, 0)])
def test_sizes_from_one_on(times, more, traced):
    """torch takes no length for 1 that follows from others, of which a half may be."""

    class Halves(nn.Module):
        def forward(self, x):
            return x[:, ::2].reshape(x.shape[0], -1) - x.mean(1, keepdim=True)

    module = Halves().eval()
    given = torch.jit.trace(module, torch.rand(1, 3 * times + more)) if traced else module
    model = slipway.compile(given, shapes={"x": (1, times * Dim("k", 1, 8) + more)})
    for k in (1, 2, 8):
        x = torch.rand(1, times * k + more)
        assert_same([np.asarray(model(x.numpy()))], expected(module, [x]))


def test_inputs_of_a_module_that_takes_any_number():
    class Sum(nn.Module):
        def forward(self, *given):
            return given[0] + given[1]

    n = Dim("n", 1, 4)
    model = slipway.compile(Sum(), shapes={"a": (n, 3), "b": (n, 3)})
    for size in (1, 4):
        x = [torch.rand(size, 3), torch.rand(size, 3)]
        found = model({"a": x[0].numpy(), "b": x[1].numpy()})
        assert_same([np.asarray(found)], expected(Sum(), x))


def test_ranges_that_torch_makes_smaller_without_a_word():
    """An image of one patch: torch exports for two and more, and says nothing."""

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 4, 8, 8)

        def forward(self, x):
            y = self.patch(x).flatten(2)
            return torch.softmax(y.transpose(1, 2) @ y, -1)

    module = Patches().eval()
    model = slipway.compile(module, shapes={"x": (1, 3, 8 * Dim("h", 1, 4), 8 * Dim("w", 1, 4))})
    for height, width in ((8, 8), (8, 32), (32, 24)):
        x = torch.rand(1, 3, height, width)
        assert_same([np.asarray(model(x.numpy()))], expected(module, [x]))


def test_a_size_of_values_that_assertions_alone_read():
    """What transformers' deformable detectors check of the levels' sizes."""

    class Checked(nn.Module):
        def forward(self, x):
            sizes = torch.empty(2, dtype=torch.long)
            sizes[0], sizes[1] = x.shape
            whole = torch.sym_ite((sizes.prod() == x.numel()).item(), 1, 0)
            torch._check(whole == 1)
            return x * 2

    x = torch.rand(3, 4)
    model = slipway.compile(torch.export.export(Checked(), (x,), strict=False))
    assert_same([np.asarray(model(x.numpy()))], [2 * x.numpy()])
