"""Convolutions of plain images, positions as lanes, against the reference; which stay plain."""

import re

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay
from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.strategy import Problem, strategies
from slipway.ir.function import IRModule
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.target import Target


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "filters", "kernel", "strides", "padding", "dilation"),
    [
        ((2, 5, 9, 40), 2, 3, 1, 1, 1), ((1, 3, 37, 61), 1, (1, 5), (2, 1), (0, 2), 1),
        ((1, 4, 20, 33), 2, 3, 1, (0, 2, 3, 1), 2), ((1, 2, 5, 200), 2, 1, 1, 0, 1),
    ],
)  # fmt: skip
def test_few_filters(target, shape, filters, kernel, strides, padding, dilation):
    size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    conv = relay.nn.conv2d(
        var("x", *shape), var("w", filters, shape[1], *size), strides, padding, dilation
    )
    assert run(conv, target) == "conv2d.positions"
    run(relay.nn.relu(conv + var("b", filters, 1, 1)), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "filters", "groups", "kernel", "padding", "dilation"),
    [
        ((1, 7, 9, 29), 37, 1, 3, 1, 1), ((2, 6, 7, 53), 9, 3, 3, 1, 1),
        ((1, 4, 11, 41), 6, 2, 5, 2, 1),
        ((1, 19, 5, 17), 23, 1, 1, 0, 1), ((1, 22, 6, 21), 46, 2, (1, 5), (0, 2), 1),
        ((1, 6, 5, 14), 7, 1, 3, 1, 1), ((1, 4, 3, 5), 6, 2, 1, 0, 1),  # rows of half a vector
    ],
)  # fmt: skip
def test_any_number_of_filters_and_groups(
    target, shape, filters, groups, kernel, padding, dilation
):
    size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    weight = var("w", filters, shape[1] // groups, *size)
    conv = relay.nn.conv2d(var("x", *shape), weight, 1, padding, dilation, groups)
    assert run(conv, target) == "conv2d.positions"
    run(relay.nn.relu(conv + var("b", filters, 1, 1)), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "filters", "kernel", "strides", "padding", "dilation"),
    [
        ((1, 5, 11, 41), 5, 5, 1, 2, 1), ((2, 3, 11, 34), 6, 3, 1, 2, 2),  # two filters of each
        ((1, 7, 19, 16), 7, 3, (2, 1), (1, 0), 1), ((1, 2, 3, 64), 2, (1, 9), 1, (0, 4), 1),
        ((1, 4, 30, 20), 4, (3, 5), (3, 1), (0, 2, 3, 1), (2, 1)), ((3, 2, 5, 6), 2, 3, 1, 0, 1),
    ],
)  # fmt: skip
def test_a_filter_of_its_own_for_each_channel(
    target, shape, filters, kernel, strides, padding, dilation
):
    size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    conv = relay.nn.conv2d(
        var("x", *shape), var("w", filters, 1, *size), strides, padding, dilation, shape[1]
    )
    assert run(conv, target) == "conv2d.depthwise"
    run(relay.nn.relu(conv + var("b", filters, 1, 1)), target)


@pytest.mark.parametrize(
    ("filters", "width", "stride", "plain"),
    [(4, 16, 1, True), (5, 16, 1, False), (4, 15, 1, False), (3, 40, 2, False)],
)
def test_they_stay_plain(filters, width, stride, plain):
    weight = var("w", filters, 8, 3, 3)
    conv = relay.nn.conv2d(var("x", 1, 8, 9, width), weight, (1, stride), 1)
    calls = list(post_order(alter_layout(conv.as_function(), 16).body))
    assert any(is_call_of(call, "nn.conv2d") for call in calls) == plain


@pytest.mark.parametrize(("window", "plain"), [(1, False), (3, True)])
def test_a_window_of_one_reads_blocks_where_there_are_blocks(window, plain):
    first = relay.nn.conv2d(var("x", 1, 16, 9, 40), var("v", 16, 16, 3, 3), 1, 1)
    conv = relay.nn.conv2d(first, var("w", 2, 16, window, window), 1, window // 2)
    calls = list(post_order(alter_layout(conv.as_function(), 16).body))
    assert any(is_call_of(call, "nn.conv2d") for call in calls) == plain


@pytest.mark.parametrize(
    ("target", "shape", "filters", "tile"),
    [
        # Engines hold the weights of a step as well: 11 filters by a vector would take 24 of 15.
        ("llvm -mtriple=wasm32-unknown-wasi -mattr=+simd128", (1, 11, 101, 101), 11, (4, 2)),
        ("llvm -mtriple=wasm32-unknown-wasi -mattr=+simd128", (1, 8, 30, 30), 3, (3, 2)),
        # Seven vectors of a row, where pairs take eight.
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", (1, 11, 101, 101), 11, (11, 1)),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", (1, 11, 101, 128), 11, (11, 2)),
    ],
)  # fmt: skip
def test_a_tile_fits_the_registers_and_the_row(target, shape, filters, tile):
    conv = relay.nn.conv2d(var("x", *shape), var("w", filters, shape[1], 1, 1))
    types = [a.checked_type for a in conv.args]
    problem = Problem("nn.conv2d", conv.attrs, types, (conv.checked_type,), Target(target))
    (positions,) = (
        s for s in strategies("nn.conv2d", Target(target)) if s.name == "conv2d.positions"
    )
    knobs = positions.knobs_for(problem)
    assert (knobs.filters, knobs.vectors) == tile


@pytest.mark.parametrize("cpu", ["haswell", "znver4"])
def test_sums_of_a_tile_stay_in_registers(cpu):
    """A sum stored and read in each step costs up to half the time, by where the stack lies."""
    data, weight = var("x", 1, 66, 27, 27), var("w", 66, 11, 3, 3)
    conv = relay.nn.conv2d(data, weight, padding=1, groups=6)
    module = IRModule.from_expr(relay.Function([data, weight], conv))
    library = relay.build(module, target=f"llvm -mcpu={cpu}").get_lib()
    blocks = re.split(r"^\.?\w+:", library.get_source("asm"), flags=re.M)
    loops = [b for b in blocks if b.count("vfmadd") >= 10]
    assert loops
    assert not [b for b in loops if re.search(r"vmovups\s+%[yz]mm\d+, \d*\(%rsp\)", b)]
