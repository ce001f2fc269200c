"""Which convolutions use Winograd's algorithm, and with which tile."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.graph import allows_winograd
from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.cpu.lowering.winograd_choice import winograd_tile
from slipway.target.cores import Core


def tile(channels, size, lanes, core=None, **attrs):
    weight = relay.const(np.zeros((channels, channels, 3, 3), "float32"))
    call = relay.nn.conv2d(relay.var("x", shape=(1, channels, size, size)), weight, **attrs)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(call))
    return winograd_tile(mod["main"].body, lanes, core=core)


@pytest.mark.parametrize(
    ("channels", "size", "lanes", "wanted"),
    [
        (64, 58, 16, 4),  # many tiles: multiply least
        (128, 30, 16, 4),
        (256, 16, 16, 2),  # 14x14 results: 9.4 MB of weights for 16 tiles, or 4.2 for 49
        (256, 16, 4, 4),  # with short vectors multiplying takes longer than reading
        (512, 9, 16, 0),  # 7x7: 16.8 MB for 16 tiles take longer than 9.4 MB for 49 positions
        (128, 9, 16, 2),
        (64, 16, 16, 4),
        (8, 58, 16, 4),  # 0.62 of the direct way's time on Zen 4, 1.03 on Zen 3
        (8, 9, 16, 0),  # few channels: transforms count double, and take longer than is saved
        (3, 58, 16, 0),  # less than a vector of four channels
    ],
)
def test_the_tile_that_takes_least_time(channels, size, lanes, wanted):
    assert tile(channels, size, lanes) == wanted


def of_sizes(channels, low, high, batch=1):
    """The operators that a convolution of images of so many rows and columns becomes."""
    rng = np.random.default_rng(0)
    weight = relay.const(rng.standard_normal((channels, channels, 3, 3)).astype("float32"))
    size = [relay.Dim(name, low, high) for name in "hw"]
    data = relay.var("x", shape=(batch, channels, *size))
    conv = relay.nn.conv2d(data, weight, padding=(1, 1))
    main = relay.transform.InferType()(tvm.IRModule.from_expr(conv))["main"]
    return re.findall(r"nn\.contrib_conv2d\w+", str(alter_layout(main, 16, winograd=True)))


@pytest.mark.parametrize(
    ("low", "high", "way"),
    [
        (1, 64, "nchwc_by_size"),  # one position takes less directly
        (2, 40, "nchwc_by_size"),
        (32, 64, "winograd_nchwc"),
        (1, 2, "nchwc"),
    ],
)
def test_images_of_open_size_are_computed_both_ways_where_the_smallest_want_it(low, high, way):
    assert of_sizes(64, low, high) == [f"nn.contrib_conv2d_{way}"]


def test_an_open_batch_chooses_as_well():
    """One image of 7x7 reads too many weights for its 4 tiles; 32 images share them."""
    assert of_sizes(256, 7, 7, relay.Dim("n", 1, 32)) == ["nn.contrib_conv2d_nchwc_by_size"]


def test_only_plain_convolutions():
    assert tile(64, 58, 16, strides=(2, 2)) == 0
    assert tile(64, 58, 16, dilation=(2, 2)) == 0


def test_a_core_that_multiplies_slowly_pays_more_for_products_than_for_their_kernel():
    """Half of the units of a usual core with these vectors, and twice as many."""
    slow, fast = (Core(fma_bits=bits, load_bits=1024) for bits in (512, 2048))
    assert tile(256, 16, 16, core=slow) == 4
    assert tile(128, 9, 16, core=fast) == 0


@pytest.mark.parametrize(
    ("triple", "allowed"),
    [("thumbv7em-none-eabi", False), ("arm-none-eabi", False), ("riscv32-none-elf", False),
     ("thumbv7-linux-gnueabihf", True), ("aarch64-none-elf", True)],
)  # fmt: skip
def test_a_microcontroller_keeps_its_weights_small(triple, allowed):
    """The transformed weights are four times as large; how the triple is spelt says nothing."""
    assert allows_winograd(tvm.target.Target(f"llvm -mtriple={triple}")) is allowed
