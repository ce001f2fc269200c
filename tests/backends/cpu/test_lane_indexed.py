"""Lane-indexed products: the kernels against their references, and how their work is cut.

AArch64 has the instruction; the schedules themselves compile for any vectors of four, so they are
checked on this machine.
"""

import re

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.graph import cut_units, panel_units
from slipway.backends.cpu.schedules.matmul import lane_fma_rows as rows_lane_indexed
from slipway.backends.cpu.schedules.matmul.gemm import panel_tile
from slipway.backends.cpu.tile import choose_tile, lane_indexed_fma
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.nd import array, empty
from slipway.relay.interpret import interpret
from slipway.target import Target

TARGET = "llvm -vector-width=128"
A72 = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
A7 = Target("llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon")


@pytest.fixture
def lane_fma(monkeypatch):
    """Give every processor the instruction."""
    monkeypatch.setattr(Target, "has_lane_fma", True)


def run(body):
    """Compile one fused function of `body`'s variables and compare it with the reference."""
    function = body.as_function().with_attr("Primitive", 1)
    target = Target(TARGET)
    module = OperatorModule(
        build_module({"kernel": lower_kernel("kernel", function, target)}, target)
    )
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.checked_type.shape).astype("float32") for p in function.params]
    wanted = interpret(function, *arrays)
    out = empty(wanted.shape, "float32")
    module(*(array(a) for a in arrays), out)
    assert np.abs(out.numpy() - wanted).max() <= 2e-6 * np.abs(wanted).max()
    return schedule_primitive(function, target).implementation


def var(name, *shape):
    return relay.var(name, shape=shape)


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("rows", [1, 5, 13])
def test_product_with_packed_weights(rows, block):
    dense = relay.nn.contrib_dense_pack(var("x", rows, 36), var("w", 3, 36, block))
    assert run(dense + var("b", 3 * block)) == "dense_pack.lane_fma"
    run(dense)


@pytest.mark.usefixtures("lane_fma")
def test_one_row_by_a_wide_panel():
    dense = relay.nn.contrib_dense_pack(var("x", 1, 36), var("w", 2, 36, 64))
    assert run(dense) == "dense_pack.lane_fma"


@pytest.mark.usefixtures("lane_fma")
def test_a_depth_that_is_no_multiple_of_four_is_read_value_by_value():
    dense = relay.nn.contrib_dense_pack(var("x", 5, 37), var("w", 2, 37, 16))
    assert run(dense) == "dense_pack.tile"


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(13, 8, 37), (32, 16, 64), (1, 64, 100), (197, 8, 33), (20, 7, 24)]
)
def test_batched_product(transpose_b, m, k, n):
    right = var("b", 3, n, k) if transpose_b else var("b", 3, k, n)
    product = relay.nn.batch_matmul(var("a", 3, m, k), right, transpose_b=transpose_b)
    assert run(product * relay.const(0.5)) == "batch_matmul.tile"


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize(
    ("shape", "stride", "kernel", "pad", "channels"),
    [
        ((1, 2, 9, 9, 4), 1, 3, 1, 5),
        ((2, 2, 7, 7, 4), 1, 1, 0, 3),
        ((1, 3, 11, 17, 4), 2, 5, 2, 2),
        ((1, 140, 8, 8, 4), 1, 1, 0, 6),  # its data is packed
    ],
)
def test_convolution_on_blocks(shape, stride, kernel, pad, channels):
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", *shape), var("w", channels, shape[1], kernel, kernel, 4, 4), stride, pad,
        data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c",
    )  # fmt: skip
    body = relay.nn.relu(conv + var("b", 1, channels, 1, 1, 4))
    assert run(body) == "conv2d_nchwc.direct"


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize(("size", "pad", "side"), [(13, 1, 6), (9, 0, 4)])
def test_winograd_convolution(size, pad, side):
    conv = relay.nn.contrib_conv2d_winograd_nchwc(
        var("x", 1, 3, size, size, 4), var("u", 5, side, side, 3, 4, 4), pad,
        data_layout="NCHW4c", out_layout="NCHW4c",
    )  # fmt: skip
    assert run(relay.nn.relu(conv)) == "conv2d_winograd"


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize(("taps", "side"), [(1, 6), (3, 6), (2, 4)])
def test_winograd_convolution_of_frames(taps, side):
    conv = relay.nn.contrib_conv3d_winograd_nchwc(
        var("x", 1, 3, 4, 9, 7, 4), var("u", 5, side, side, taps * 3, 4, 4), (1, 1, 1),
        data_layout="NCDHW4c", out_layout="NCDHW4c",
    )  # fmt: skip
    assert run(relay.nn.relu(conv)) == "conv3d_winograd"


def test_tiles_fit_the_registers():
    for width in (1, 2, 4):
        for tile in lane_indexed_fma(A72, width).tiles(100, 8):
            sums = tile.rows * tile.vectors * width
            assert sums + tile.rows + 2 <= 32


@pytest.mark.usefixtures("lane_fma")
@pytest.mark.parametrize(("depth", "block"), [(36, 12), (38, 12), (40, 8)])
def test_product_of_eight_rows_in_lanes(depth, block, monkeypatch):
    monkeypatch.setattr(rows_lane_indexed, "vector_registers", lambda target: 32)
    dense = relay.nn.contrib_dense_pack(var("x", 16, depth), var("w", 3, depth, block))
    assert run(dense + var("b", 3 * block)) == "dense_pack.lane_fma_rows"
    run(dense)


def test_the_tile_that_takes_the_fewest_instructions():
    tile = choose_tile(lane_indexed_fma(A72, 4), 1000, 24)
    assert (tile.rows, tile.vectors) == (6, 1)
    assert choose_tile(lane_indexed_fma(A72, 16), 1, 24).rows == 1
    assert panel_tile(197, 48 * 4, "float32", A72, True).width == 4
    # Of eight vectors three would be filled with zeros.
    assert panel_tile(1000, 5 * 4, "float32", A72, True).width != 4


def test_weights_of_a_step_are_packed_for_lane_indexed_fma():
    v4 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")
    assert panel_units(A72, 4, rows=127, units=96) == 16
    assert panel_units(A72, 4, rows=128, units=100) == 16
    assert panel_units(A72, 4, rows=128, units=1000) == 8
    assert panel_units(A72, 4, rows=128, units=96) == 12  # eight rows by three vectors
    assert panel_units(A72, 4, rows=1, units=96) == 64
    assert panel_units(v4, 16, rows=128, units=96) == 16
    assert panel_units(None, 16, rows=1, units=96) == 16
    assert panel_units(A7, 4, rows=1, units=96) == 32  # half of the registers
    assert panel_units(A7, 4, rows=128, units=96) == 16


def test_blocks_that_units_do_not_fill_are_of_the_vectors_that_take_least_time():
    a53 = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53")
    # Tiles of thirty rows by one vector, each loaded by itself, took 2.2 times as long.
    assert cut_units(a53, 4, rows=300, units=25) == 8
    assert cut_units(A72, 4, rows=300, units=25) == 4  # it loads twice as much in a cycle
    assert cut_units(a53, 4, rows=7, units=50) == 12
    assert cut_units(a53, 4, rows=1, units=25) == 4
    v4 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")
    assert cut_units(v4, 16, rows=300, units=25) == 16
    # Three halves take as long as one and a half; of many, tiles of halves read more.
    zen4 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
    assert cut_units(zen4, 16, rows=3, units=24) == 8
    assert cut_units(zen4, 16, rows=1, units=24) == 16
    assert cut_units(zen4, 16, rows=20, units=150) == 16
    assert cut_units(v4, 16, rows=3, units=24) == 16  # two whole ones begin at once
    assert cut_units(None, 16, rows=300, units=24) == 16
    # 61 vectors are 61 tiles, whose three sums wait for each other; of 63, three are a tile.
    assert cut_units(zen4, 16, rows=3, units=973) == 32
    assert cut_units(zen4, 16, rows=3, units=1001) == 16
    assert cut_units(Target("llvm -mcpu=haswell"), 8, rows=3, units=973) == 24
    wasm = Target("llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128")
    assert cut_units(wasm, 4, rows=3, units=1001) == 8  # 251 vectors


def test_which_processors_multiply_lane_indexed():
    assert A72.has_lane_fma
    assert A7.has_lane_fma
    # SVE takes the lane of each part of 128 bits for that part only.
    assert not Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1").has_lane_fma
    assert not Target("llvm -mtriple=armv7l-linux-gnueabi -mattr=-neon").has_lane_fma


def loop_of(module, mark, end):
    """Return the instructions of the loop with the most `mark`."""
    blocks = re.split(r"\n\.\w+:.*\n", module.get_source("asm"))
    return max(blocks, key=lambda text: text.count(mark)).split(end)[0]


def compiled(body, target):
    function = body.as_function().with_attr("Primitive", 1)
    return build_module({"kernel": lower_kernel("kernel", function, target)}, target)


def test_a_row_is_loaded_four_values_at_a_time_on_aarch64():
    """Loads of one value, and registers that do not suffice, would both be seen in the loop."""
    dense = relay.nn.contrib_dense_pack(var("x", 60, 64), var("w", 4, 64, 16))
    loop = loop_of(compiled(dense, A72), "\tfmla", "\tb.ne")
    assert loop.count("\tfmla") == 96
    assert len(re.findall(r"\n\t[a-z]", loop)) <= 116
    assert "[sp" not in loop


@pytest.mark.parametrize(("block", "multiply_adds", "most"), [(12, 96, 111), (8, 128, 149)])
def test_eight_rows_are_lanes_of_two_vectors_on_aarch64(block, multiply_adds, most):
    dense = relay.nn.contrib_dense_pack(var("x", 64, 64), var("w", 4, 64, block))
    body = relay.nn.relu(dense + var("b", 4 * block))
    loop = loop_of(compiled(body, A72), "\tfmla", "\tb.ne")
    assert loop.count("\tfmla") == multiply_adds
    assert len(re.findall(r"\n\t[a-z]", loop)) <= most
    assert "[sp" not in loop


def test_functions_behind_a_product_leave_its_loop_the_registers():
    dense = relay.nn.contrib_dense_pack(var("x", 64, 64), var("w", 4, 64, 12))
    loop = loop_of(compiled(relay.erf(dense), A72), "\tfmla", "\tb.ne")
    assert loop.count("\tfmla") == 48
    assert "[sp" not in loop


def test_one_row_on_the_registers_of_armv7():
    units = panel_units(A7, 4, 1, 128)
    dense = relay.nn.contrib_dense_pack(var("x", 1, 64), var("w", 4, 64, units))
    loop = loop_of(compiled(dense, A7), "\tvmla", "\tbne")
    assert loop.count("\tvmla") == 32
    assert "[sp" not in loop
