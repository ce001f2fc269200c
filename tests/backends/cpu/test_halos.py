"""Convolutions with a border: what is multiplied, and that no copy is made of the image."""

import re
from math import inf

import numpy as np
import pytest
from kernel_check import run, var

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.schedules.conv import rows as conv_rows
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.kernels import lower_kernel
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.relay.analysis import free_vars
from slipway.relay.ops.nn.windows import taps_inside
from slipway.target import Target

# Size of the image, window, strides, dilation, padding (top, left, bottom, right).
PADDINGS = [
    ((9, 11), (3, 3), 1, 1, (1, 1, 1, 1)),
    ((9, 30), (3, 3), 2, 1, (1, 1, 1, 1)),
    ((6, 6), (3, 3), 2, 1, (0, 0, 1, 1)),
    ((7, 40), (5, 5), 1, 1, (2, 2, 2, 2)),
    ((17, 17), (7, 7), (2, 3), 1, (3, 3, 3, 3)),
    ((33, 33), (3, 3), 1, 12, (12, 12, 12, 12)),
    ((13, 12), (3, 3), (2, 1), (1, 2), (1, 2, 1, 2)),
    ((2, 2), (5, 5), 1, 1, (2, 2, 2, 2)),  # smaller than the window
    ((1, 1), (3, 3), 1, 1, (1, 1, 1, 1)),
    ((3, 1), (3, 7), 1, 1, (0, 5, 2, 4)),
    ((5, 17), (3, 3), 1, 1, (3, 0, 0, 4)),  # whole windows in the border
    ((4, 6), (2, 2), 3, 1, (4, 5, 4, 5)),
    ((8, 25), (1, 4), 1, 3, (0, 9, 0, 0)),
    ((5, 300), (3, 3), 1, 1, (1, 1, 1, 1)),
]


def conv(size, window, strides, dilation, padding, depthwise=False, images=1, lanes=8):
    channels = 2
    weight = (channels, 1, *window, 1, lanes) if depthwise else (3, channels, *window, lanes, lanes)
    make = relay.nn.contrib_depthwise_conv2d_nchwc if depthwise else relay.nn.contrib_conv2d_nchwc
    inner = "1i" if depthwise else f"{lanes}i"
    return make(
        var("x", images, channels, *size, lanes), var("w", *weight), strides, padding, dilation,
        channels * lanes if depthwise else 1, data_layout=f"NCHW{lanes}c",
        kernel_layout=f"OIHW{inner}{lanes}o",
    )  # fmt: skip


@pytest.mark.parametrize("padding", PADDINGS)
def test_rows_of_any_padding(padding, monkeypatch):
    monkeypatch.setattr(conv_rows._Costs, "of_copy", lambda self: inf)
    rows = {"schedules.force": {"nn.contrib_conv2d_nchwc": "conv2d_nchwc.rows"}}
    with tvm.transform.PassContext(config=rows):
        assert run(relay.nn.relu(conv(*padding)), "llvm") == "conv2d_nchwc.rows"


@pytest.mark.parametrize("padding", PADDINGS)
def test_depthwise_of_any_padding(padding):
    body = relay.nn.relu(conv(*padding, depthwise=True))
    assert run(body, "llvm") == "depthwise_nchwc.direct"


@pytest.mark.parametrize("depthwise", [False, True])
def test_parts_of_an_image_have_the_same_halos(depthwise):
    """On five cores, one image of a few blocks is cut between its rows."""
    target = "llvm -num-cores=5"
    run(conv((37, 19), (3, 3), 1, 1, (1, 1, 1, 1), depthwise, images=2), target)
    run(conv((41, 23), (3, 3), 2, 1, (1, 1, 0, 1), depthwise), target)


@pytest.mark.parametrize("depthwise", [False, True])
def test_paddings_in_c(depthwise):
    run(conv((5, 9), (3, 3), 1, 1, (1, 1, 1, 1), depthwise, lanes=4), "c")


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [("max", "pool.columns"), ("max", "pool.window"), ("avg", "pool.window")],
)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("size", "window", "strides", "padding"),
    [
        ((13, 12), (3, 3), 2, (1, 1, 1, 1)),
        ((4, 30), (5, 2), 1, (2, 0, 2, 1)),
        ((2, 3), (3, 3), 3, (1, 1, 1, 1)),
        ((40, 9), (3, 3), (1, 2), (0, 1, 1, 0)),
    ],
)
def test_pools_of_any_padding(kind, strategy, ceil_mode, size, window, strides, padding):
    pool = getattr(relay.nn, f"{kind}_pool2d")
    more = {"count_include_pad": True} if kind == "avg" and ceil_mode else {}
    body = pool(
        var("x", 1, 3, *size, 8), window, strides, padding=padding, layout="NCHW8c",
        ceil_mode=ceil_mode, **more,
    )  # fmt: skip
    force = {f"nn.{kind}_pool2d": {"strategy": strategy}}
    with tvm.transform.PassContext(config={"schedules.force": force}):
        assert run(relay.nn.relu(body), "llvm -num-cores=3") == strategy


@pytest.mark.parametrize(
    "body",
    [
        conv((56, 56), (3, 3), 1, 1, (1, 1, 1, 1)),
        conv((56, 56), (3, 3), 2, 1, (1, 1, 1, 1), depthwise=True),
        relay.nn.max_pool2d(var("x", 1, 2, 56, 56, 8), 3, 2, padding=1, layout="NCHW8c"),
    ],
)
def test_no_copy_is_made(body):
    """What is allocated is a tile of registers."""
    function = body.as_function()
    lowered = lower_kernel("kernel", function.with_attr("Primitive", 1), Target("llvm"))
    sizes = [n.buffer.shape[0].value for n in walk(lowered.body) if isinstance(n, S.Allocate)]
    assert sizes
    assert max(sizes) <= 512


@pytest.mark.parametrize(
    ("size", "filters", "expected"),
    [(56, 4, "rows"), (14, 4, "rows"), (7, 2, "rows"), (4, 1, "direct"), (3, 1, "direct")],
)
def test_rows_are_chosen_where_they_fill_a_tile(size, filters, expected):
    body = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 4, size, size, 16), var("w", filters, 4, 3, 3, 16, 16), 1, 1,
        data_layout="NCHW16c", kernel_layout="OIHW16i16o",
    )  # fmt: skip
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5")
    found = schedule_primitive(body.as_function().with_attr("Primitive", 1), target)
    assert found.implementation == f"conv2d_nchwc.{expected}"


def plain_conv(channels, size, window, strides, dilation, padding, lanes=16):
    """A convolution of plain channels, which no block divides."""
    data = var("x", 1, channels, *size, 1)
    kernel = var("w", 2, channels, *window, 1, lanes)
    return relay.nn.contrib_conv2d_nchwc(
        data, kernel, strides, padding, dilation, data_layout="NCHW1c",
        kernel_layout=f"OIHW1i{lanes}o", out_layout=f"NCHW{lanes}c",
    )  # fmt: skip


@pytest.mark.parametrize(("processor", "lanes"), [("skylake-avx512", 16), ("haswell", 8)])
@pytest.mark.parametrize(
    ("channels", "size", "window", "strides", "dilation", "padding", "expected"),
    [
        (33, (14, 14), (3, 3), 1, 2, (4, 4, 4, 4), "rows"),
        (65, (14, 20), (3, 3), 3, 3, (6, 6, 6, 6), "rows"),
        (17, (20, 20), (3, 3), 1, 4, (4, 4, 4, 4), "rows"),
        (33, (14, 14), (3, 3), 1, 1, (0, 0, 0, 0), "direct"),  # nothing is copied
    ],
)
def test_plain_channels_are_read_where_they_lie(
    processor, lanes, channels, size, window, strides, dilation, padding, expected
):
    body = plain_conv(channels, size, window, strides, dilation, padding, lanes)
    target = f"llvm -mtriple=x86_64-linux-gnu -mcpu={processor}"
    function = body.as_function().with_attr("Primitive", 1)
    found = schedule_primitive(function, Target(target))
    assert found.implementation == f"conv2d_nchwc.{expected}"
    if lanes == 8:
        assert run(body, target) == f"conv2d_nchwc.{expected}"


@pytest.mark.parametrize("kernel", [1, 2, 3, 7])
@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("dilation", [1, 2, 6])
@pytest.mark.parametrize("before", [0, 1, 8])
def test_positions_at_which_a_tap_is_inside(kernel, stride, dilation, before):
    for size in (1, 2, 9):
        extent = 12
        found = taps_inside(extent, size, kernel, stride, dilation, before)
        for tap, positions in enumerate(found):
            offsets = {i: i * stride + tap * dilation - before for i in range(extent)}
            assert list(positions) == [i for i, offset in offsets.items() if 0 <= offset < size]


@pytest.mark.parametrize(
    ("processor", "channels", "window"), [("skylake-avx512", 32, 3), ("haswell", 16, 5)]
)
def test_sums_of_one_input_channel_stay_in_registers(processor, channels, window):
    """No loop parts the taps of a line there, so LLVM holds the weights of all of them."""
    x = relay.var("x", shape=(1, 1, 28, 28))
    weights = relay.const(np.ones((channels, 1, window, window), "float32"))
    body = relay.nn.conv2d(
        x, weights, padding=(window // 2,) * 2, channels=channels, kernel_size=(window, window)
    )
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(body)))
    text = relay.build(module, target=f"llvm -mcpu={processor}").get_lib().get_source("asm")
    assert "vfmadd" in text
    assert not re.findall(r".*mov.*[yz]mm.*\(%rsp\)|.*mov.*\(%rsp\).*[yz]mm.*", text)


@pytest.mark.parametrize(
    ("cpu", "register", "blocks"),
    [("znver4", "zmm", 5), ("znver4", "zmm", 1), ("znver4", "ymm", 5), ("znver3", "ymm", 5)],
)
def test_taps_of_a_line_leave_registers_for_the_sums(cpu, register, blocks):
    """Of single channels LLVM keeps the values of one tap for the next.

    Tiles that leave no registers for them spilled a hundred of them in their innermost loop.
    """
    lanes = {"zmm": 16, "ymm": 8}[register]
    body = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 21, 27, 27, 1), var("w", blocks, 21, 5, 5, 1, lanes), 1, (2, 2, 2, 2), 1, 1,
        data_layout="NCHW1c", kernel_layout=f"OIHW1i{lanes}o", out_layout=f"NCHW{lanes}c",
    )  # fmt: skip
    function = relay.Function(free_vars(body), body)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(function), Target(f"llvm -mcpu={cpu}"))
    text = lib.get_lib().get_source("asm")
    spilled = re.findall(rf"%{register}\d+, -?\d*\(%r[sb]p\)", text)
    assert len(spilled) <= 24, len(spilled)
