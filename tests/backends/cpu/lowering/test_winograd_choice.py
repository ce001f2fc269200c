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


def volume_tile(channels, window, size, core=None, **attrs):
    weight = relay.const(np.zeros((channels, channels, *window), "float32"))
    call = relay.nn.conv3d(relay.var("x", shape=(1, channels, *size)), weight, **attrs)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(call))
    return winograd_tile(mod["main"].body, 16, core=core)


@pytest.mark.parametrize(
    ("channels", "window", "size", "wanted"),
    [
        (64, (3, 3, 3), (10, 30, 30), 4),
        (64, (1, 3, 3), (8, 30, 30), 4),  # frames by themselves
        (512, (1, 3, 3), (1, 9, 9), 0),  # as one image: its kernel takes longer to read
        (512, (1, 3, 3), (16, 9, 9), 4),  # that is read once for all frames
        (64, (3, 3, 1), (10, 30, 30), 0),
        (64, (3, 1, 1), (10, 30, 30), 0),
    ],
)
def test_frames_of_volumes_are_images(channels, window, size, wanted):
    assert volume_tile(channels, window, size) == wanted


def test_a_volume_with_strides_or_of_open_size_has_no_tiles():
    assert volume_tile(64, (3, 3, 3), (10, 30, 30), strides=(2, 1, 1)) == 0
    assert volume_tile(64, (3, 3, 3), (10, 30, 30), dilation=(2, 1, 1)) == 0
    assert volume_tile(64, (3, 3, 3), (relay.Dim("d", 4, 16), 30, 30)) == 0


@pytest.mark.parametrize(
    ("channels", "frames", "taps"), [((32, 32), 6, 3), ((37, 50), 5, 2), ((20, 24), 3, 1)]
)
def test_volumes_give_what_the_direct_sum_gives(channels, frames, taps):
    """Also with channels that no block divides, whose zeros stand behind those of each frame."""
    rng = np.random.default_rng(3)
    inner, outer = channels
    weight = relay.const(rng.standard_normal((outer, inner, taps, 3, 3)).astype("float32"))
    data = relay.var("x", shape=(2, inner, frames, 21, 18))
    body = relay.nn.relu(relay.nn.conv3d(data, weight, padding=(taps - 1, 1, 0)))
    x = rng.standard_normal((2, inner, frames, 21, 18)).astype("float32")
    results = []
    for options in ("", " -strict=1"):
        module = tvm.IRModule.from_expr(body)
        library = relay.build(module, target=f"llvm -mcpu=x86-64-v3{options}")
        assert any("winograd" in name for name in library.graph.kernels) == (not options)
        model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
        model.run(x=x)
        results.append(model.get_output(0).numpy())
    tiles, direct = results
    np.testing.assert_allclose(tiles, direct, atol=2e-5 * np.abs(direct).max())


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
