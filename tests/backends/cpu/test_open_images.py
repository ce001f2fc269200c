"""Convolutions of images whose height and width are open: in registers, and right at each size."""

import re
from math import prod

import numpy as np
import pytest
import torch

import slipway
from slipway import relay, te
from slipway.backends import size_versions
from slipway.backends.cpu.schedules.conv.winograd import WinogradTile
from slipway.backends.primitive import schedule_primitive
from slipway.backends.ways import ways_of
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.relay_build import kernel_graph
from slipway.contrib.graph_executor import GraphModule
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.target import Target

torch.manual_seed(0)  # weights are the same whatever modules of tests were read before
CONVOLUTIONS = {
    "stem": torch.nn.Conv2d(3, 32, 7, 2, 3),
    "few filters": torch.nn.Conv2d(8, 3, 3, padding=1),
    "3x3": torch.nn.Conv2d(16, 40, 3, padding=1),
    "Winograd's": torch.nn.Conv2d(64, 64, 3, padding=1),
    "1x1": torch.nn.Conv2d(24, 32, 1),
    "strided": torch.nn.Conv2d(16, 16, 3, 2),
    "uneven": torch.nn.Sequential(torch.nn.ZeroPad2d((0, 1, 2, 0)), torch.nn.Conv2d(8, 16, 3)),
    "dilated": torch.nn.Conv2d(16, 16, 3, padding=2, dilation=2),
    "grouped": torch.nn.Conv2d(32, 64, 3, padding=1, groups=4),
    "depthwise": torch.nn.Conv2d(24, 24, 3, padding=1, groups=24),
    "depthwise, strided": torch.nn.Conv2d(32, 32, 5, 2, 2, groups=32),
}  # fmt: skip
SIZES = [(1, 9, 9), (2, 17, 40), (1, 64, 33), (2, 31, 64)]
SHAPE = {0: ("n", 1, 2), 2: ("h", 9, 64), 3: ("w", 9, 64)}


def exported(module, shape, dims):
    dynamic = {axis: torch.export.Dim(name, min=a, max=b) for axis, (name, a, b) in dims.items()}
    return torch.export.export(
        module.eval(), (torch.randn(*shape),), dynamic_shapes=(dynamic,), strict=False
    )


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_numbers_beside_pytorch(name, target):
    torch.manual_seed(0)
    module = CONVOLUTIONS[name]
    channels = next(m for m in module.modules() if hasattr(m, "in_channels")).in_channels
    program = exported(module, (2, channels, 24, 28), SHAPE)
    try:
        model = slipway.compile(program, target, quiet=True)
        model(torch.zeros(1, channels, 9, 9))
    except slipway.TVMError as error:
        if "AVX-512" in str(error) or "avx512" in str(error):
            pytest.skip("this processor has no AVX-512")
        raise
    for n, h, w in SIZES:
        x = torch.randn(n, channels, h, w)
        with torch.no_grad():
            wanted = module(x).numpy()
        error = abs(model(x) - wanted).max() / abs(wanted).max()
        assert error < 1e-5, (n, h, w)


POOLS = {
    "3x3, overlapping": torch.nn.MaxPool2d(3, 2, 1),
    "2x2": torch.nn.MaxPool2d(2),
    "dilated": torch.nn.MaxPool2d(3, 1, 1, dilation=2),
    "5x5, stride 3": torch.nn.MaxPool2d(5, 3, 2),
    "mean of 2x2": torch.nn.AvgPool2d(2),
    "mean of 3x3": torch.nn.AvgPool2d(3, 2, 1),
    "mean without padding": torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False),
}


WHOLE = {
    "mean": torch.nn.AdaptiveAvgPool2d(1),
    "largest": torch.nn.AdaptiveMaxPool2d(1),
    "group norm": torch.nn.GroupNorm(4, 16),
    "instance norm": torch.nn.InstanceNorm2d(16, affine=True),
    "softmax over a row": torch.nn.Softmax(-1),
    "softmax over channels": torch.nn.Softmax(1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_reductions_of_whole_images(name):
    torch.manual_seed(0)
    module = WHOLE[name]
    model = slipway.compile(exported(module, (2, 16, 24, 28), SHAPE), quiet=True)
    for n, h, w in [*SIZES, (1, 10, 12), (2, 9, 10)]:
        x = torch.randn(n, 16, h, w)
        with torch.no_grad():
            wanted = module(x).numpy()
        assert abs(model(x) - wanted).max() / abs(wanted).max() < 1e-5, (n, h, w)


TRANSPOSED = {
    "2x2, stride 2": torch.nn.ConvTranspose2d(16, 24, 2, 2),
    "4x4, stride 2": torch.nn.ConvTranspose2d(16, 8, 4, 2, 1),
    "3x3, output padding": torch.nn.ConvTranspose2d(16, 16, 3, 2, 1, output_padding=1),
    "5x5, stride 3": torch.nn.ConvTranspose2d(8, 16, 5, 3),
    "stride 1": torch.nn.ConvTranspose2d(8, 16, 3, 1, 1),
    "dilated": torch.nn.ConvTranspose2d(8, 16, 3, 1, 2, dilation=2),
    "dilated, stride 2": torch.nn.ConvTranspose2d(8, 16, 3, 2, 1, dilation=3),
    "dilated as the stride": torch.nn.ConvTranspose2d(8, 16, 3, 2, 1, dilation=2),
    "uneven strides": torch.nn.ConvTranspose2d(8, 8, 3, (2, 1), 1),
    "grouped": torch.nn.ConvTranspose2d(16, 16, 4, 2, 1, groups=4),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed(name):
    torch.manual_seed(0)
    module = TRANSPOSED[name]
    program = exported(module, (2, module.in_channels, 24, 28), SHAPE)
    model = slipway.compile(program, quiet=True)
    for n, h, w in [*SIZES, (1, 10, 12)]:
        x = torch.randn(n, module.in_channels, h, w)
        with torch.no_grad():
            wanted = module(x).numpy()
        assert abs(model(x) - wanted).max() / abs(wanted).max() < 1e-5, (n, h, w)


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name, blocked):
    """Alone, and between convolutions, whose channels lie in blocks."""
    torch.manual_seed(0)
    module = POOLS[name]
    if blocked:
        first, last = torch.nn.Conv2d(8, 32, 3, padding=1), torch.nn.Conv2d(32, 8, 1)
        module = torch.nn.Sequential(first, module, last)
    model = slipway.compile(exported(module, (2, 8, 24, 28), SHAPE), quiet=True)
    for n, h, w in [*SIZES, (1, 10, 12), (1, 11, 64)]:
        x = torch.randn(n, 8, h, w)
        with torch.no_grad():
            wanted = module(x).numpy()
        assert abs(model(x) - wanted).max() / abs(wanted).max() < 1e-5, (n, h, w)


@pytest.mark.parametrize("kind", [torch.nn.Conv1d, torch.nn.Conv3d])
def test_other_numbers_of_axes(kind):
    torch.manual_seed(0)
    module = kind(16, 24, 3, padding=1).eval()
    open_axes = {1: ({0: ("n", 1, 2), 2: ("t", 4, 70)}, [(1, 4), (2, 33), (1, 70)])}
    open_axes[3] = (SHAPE | {2: ("d", 3, 6)}, [(1, 3, 9, 7), (2, 6, 20, 7)])
    axes = {torch.nn.Conv1d: 1, torch.nn.Conv3d: 3}[kind]
    dims, sizes = open_axes[axes]
    if axes == 3:
        dims = {0: ("n", 1, 2), 2: ("d", 3, 6), 3: ("h", 9, 20)}
    program = exported(module, (2, 16, *{1: (30,), 3: (4, 12, 7)}[axes]), dims)
    model = slipway.compile(program, quiet=True)
    for n, *size in sizes:
        x = torch.randn(n, 16, *size)
        with torch.no_grad():
            wanted = module(x).numpy()
        assert abs(model(x) - wanted).max() / abs(wanted).max() < 1e-5, (n, size)


DEPTHWISE = {
    "3": (torch.nn.Conv1d(16, 16, 3, padding=1, groups=16), [(1,), (5,), (8,), (33,), (70,)]),
    "5, stride 2": (torch.nn.Conv1d(16, 16, 5, 2, 2, groups=16), [(3,), (7,), (17,), (70,)]),
    "3x3": (torch.nn.Conv2d(32, 32, 3, padding=1, groups=32), [(1, 1), (2, 9), (40, 40), (3, 16)]),
    "uneven": (
        torch.nn.Sequential(
            torch.nn.ZeroPad2d((0, 2, 1, 3)), torch.nn.Conv2d(16, 16, (4, 3), groups=16)
        ),
        [(1, 1), (1, 24), (9, 8), (40, 39)],
    ),
    "dilated, stride 2": (
        torch.nn.Conv2d(16, 16, 3, 2, 2, dilation=2, groups=16), [(3, 3), (9, 17), (40, 40)],
    ),
    "3x3x3": (torch.nn.Conv3d(8, 8, 3, padding=1, groups=8), [(2, 1, 1), (3, 5, 24), (6, 9, 8)]),
}  # fmt: skip


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "c"])
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_of_any_size(name, target):
    """Rows shorter than a tile, of one tile, and with tiles of which all taps are inside."""
    torch.manual_seed(0)
    module, sizes = DEPTHWISE[name]
    conv = module if hasattr(module, "in_channels") else module[1]
    axes = len(sizes[0])
    shape = (2, conv.in_channels, *(12,) * axes)
    low = 1 if max(conv.stride) == 1 else 3  # torch.export takes one position for a constant
    dims = {0: ("n", 1, 3)} | {2 + a: (f"s{a}", low, 70 if axes == 1 else 40) for a in range(axes)}
    model = slipway.compile(exported(module, shape, dims), target, quiet=True)
    for n, size in zip((1, 3, 2, 1, 2), sizes, strict=False):
        x = torch.randn(n, conv.in_channels, *size)
        with torch.no_grad():
            wanted = module(x).numpy()
        assert abs(model(x) - wanted).max() / abs(wanted).max() < 1e-5, (n, size)


def test_depthwise_copies_no_image():
    """In the middle of a row the taps are read where they lie, as of an image of known size."""
    x = slipway.relay.var("x", shape=(Dim("n", 1, 4), 2, Dim("h", 1, 64), Dim("w", 8, 96), 16))
    weight = slipway.relay.var("weight", shape=(2, 1, 3, 3, 1, 16))
    body = slipway.relay.nn.contrib_depthwise_conv2d_nchwc(x, weight, groups=32, padding=1)
    function = body.as_function().with_attr("Primitive", 1)
    target = Target("llvm -mcpu=x86-64-v4")
    assert schedule_primitive(function, target).implementation == "depthwise_nchwc.direct"
    lowered = lower_kernel("kernel", function, target)
    assert "pad" not in str(lowered)
    choices = [s for s in walk(lowered.body) if isinstance(s, S.IfThenElse) and is_likely(s)]
    guarded = [any(isinstance(s, S.IfThenElse) for s in walk(c.then_case)) for c in choices]
    assert not all(guarded)  # inside of rows and images nothing is asked any more


@pytest.mark.parametrize(("window", "rows"), [(3, 3), (7, 261)])
def test_rows_that_few_others_read_are_copied_where_they_are_read(window, rows):
    """Those of a stem of 3x3 and stride 2; one of 7x7 would copy each of them four times."""
    x = relay.var("x", shape=(1, 3, Dim("h", 32, 256), Dim("w", 32, 256), 1))
    weight = relay.var("weight", shape=(1, 3, window, window, 1, 16))
    body = relay.nn.contrib_conv2d_nchwc(x, weight, strides=2, padding=window // 2)
    function = body.as_function().with_attr("Primitive", 1)
    lowered = lower_kernel("kernel", function, Target("llvm -mcpu=znver4"))
    made = [n.buffer for n in walk(lowered.body) if isinstance(n, S.Allocate)]
    padded = [buffer for buffer in made if "pad" in buffer.name]
    width = 256 + window - 1 if window == 7 else 257  # columns that a stride of two reads
    assert padded
    assert all(prod(map(int, b.shape)) <= 3 * rows * width for b in padded)
    assert any(prod(map(int, b.shape)) > 3 * (rows - 1) * (width - 2) for b in padded)


def is_likely(choice):
    return any(isinstance(n, E.Call) and n.op == "likely" for n in walk(choice.condition))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_every_version_keeps_its_sums_in_registers(name):
    """Plain loops take a hundred times as long, and no number tells."""
    relay = slipway.relay
    module = CONVOLUTIONS[name]
    channels = next(m for m in module.modules() if hasattr(m, "in_channels")).in_channels
    program = exported(module, (2, channels, 24, 28), SHAPE)
    mod, params = relay.frontend.from_pytorch(program)
    target = Target("llvm -mcpu=x86-64-v4")
    with slipway.transform.PassContext(opt_level=3):
        graph = kernel_graph(mod, target, params)
    for function in graph.kernels.values():
        found = size_versions.size_versions(function, target)
        parts = [version.function for version in found[1]] if found else [function]
        for part in parts:
            made = schedule_primitive(part, target)
            if "conv" in made.anchor:
                assert not made.implementation.startswith("loops."), made.implementation


def test_a_choice_that_needs_the_size_is_made_for_the_smallest():
    x = slipway.relay.var("x", shape=(Dim("n", 1, 4), 3, Dim("h", 16, 64), 32))
    weight = slipway.relay.const(np.zeros((4, 3, 3, 3), "float32"))
    function = slipway.relay.Function([x], slipway.relay.nn.conv2d(x, weight, padding=1))
    target = Target("llvm -mcpu=x86-64-v4")
    graph = kernel_graph(slipway.IRModule.from_expr(function), target, {})
    (kernel,) = graph.kernels.values()
    made = schedule_primitive(kernel, target)
    assert made.implementation == "conv2d.positions"
    assert made.choice.knobs.rows <= 16
    assert made.choice.cycles > 0  # told for the usual sizes


@pytest.mark.parametrize("name", POOLS)
def test_pools_of_channels_in_blocks_keep_their_tiles(name):
    """Window by window they take four times as long, and no number tells."""
    relay = slipway.relay
    x = relay.var("x", shape=(Dim("n", 1, 2), 4, Dim("h", 32, 96), Dim("w", 32, 96), 8))
    pool = POOLS[name]
    size, stride = ((v, v) if isinstance(v, int) else v for v in (pool.kernel_size, pool.stride))
    fields = {"pool_size": size, "strides": stride, "padding": pool.padding, "layout": "NCHW8c"}
    if isinstance(pool, torch.nn.MaxPool2d):
        body = relay.nn.max_pool2d(x, **fields, dilation=pool.dilation)
    else:
        body = relay.nn.avg_pool2d(x, **fields, count_include_pad=pool.count_include_pad)
    function = relay.Function([x], body).with_attr("Primitive", 1)
    made = schedule_primitive(function, Target("llvm -mcpu=x86-64-v3"))
    assert made.implementation in ("pool.columns", "pool.window"), made.implementation


TRANSFORMED = {
    "from one pixel on": (Dim("h", 1, 40), Dim("w", 1, 40), 1, [(1, 1), (3, 2), (17, 40), (40, 5)]),
    "the width alone": (24, Dim("w", 4, 90), 1, [(24, 4), (24, 37), (24, 90)]),
    "the height alone": (Dim("h", 4, 90), 20, 1, [(4, 20), (37, 20), (90, 20)]),
    "a strip": (4, Dim("w", 4, 90), 1, [(4, 4), (4, 37), (4, 90)]),
    "thirty-twos": (32 * Dim("a", 1, 3), 32 * Dim("b", 1, 3), 1, [(32, 96), (64, 64)]),
    "no padding": (Dim("h", 3, 33), Dim("w", 3, 33), 0, [(3, 3), (4, 6), (33, 32)]),
    "uneven padding": (Dim("h", 3, 33), Dim("w", 3, 33), (2, 0, 0, 1), [(3, 3), (4, 6), (33, 32)]),
}  # fmt: skip


def by_tiles(function):
    """A kernel as it computes large images, where it computes small ones in another way."""
    ways = ways_of(function)
    return function if ways is None else ways.other


@pytest.mark.parametrize("name", TRANSFORMED)
def test_winograds_algorithm_of_open_images(name):
    """Its tiles of an image are counted row by row, with a division by an open length."""
    relay = slipway.relay
    height, width, padding, sizes = TRANSFORMED[name]
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((40, 48, 3, 3), np.float32) / 20
    x = relay.var("x", shape=(1, 48, height, width))
    body = relay.nn.relu(relay.nn.conv2d(x, relay.const(weight), padding=padding))
    mod = slipway.IRModule.from_expr(relay.Function([x], body))
    graph = kernel_graph(mod, Target("llvm -mcpu=x86-64-v4"), {})
    assert any("winograd" in str(function) for function in map(by_tiles, graph.kernels.values()))
    module = GraphModule(relay.build(mod, target="llvm")["default"](slipway.cpu(0)))
    top, left, bottom, right = padding if isinstance(padding, tuple) else (padding,) * 4
    for h, w in sizes:
        data = rng.standard_normal((1, 48, h, w), np.float32)
        module.run(x=data)
        given = torch.nn.functional.pad(torch.from_numpy(data), (left, right, top, bottom))
        wanted = torch.relu(torch.nn.functional.conv2d(given, torch.from_numpy(weight))).numpy()
        found = module.get_output(0).numpy()
        assert found.shape == wanted.shape
        assert abs(found - wanted).max() / abs(wanted).max() < 1e-5, (h, w)


def test_no_product_of_winograds_algorithm_is_guarded():
    """A guard among the sums of a last tile spills all of them."""
    relay = slipway.relay
    x = relay.var("x", shape=(1, 48, Dim("h", 7, 100), Dim("w", 7, 100)))
    body = relay.nn.conv2d(x, relay.const(np.ones((48, 48, 3, 3), "float32")), padding=1)
    target = Target("llvm -mcpu=x86-64-v4")
    graph = kernel_graph(slipway.IRModule.from_expr(relay.Function([x], body)), target, {})
    found = map(by_tiles, graph.kernels.values())
    (kernel,) = (function for function in found if "winograd" in str(function))
    lines = str(lower_kernel("kernel", kernel, target)).splitlines()
    sums = [n for n, line in enumerate(lines) if "for ic_chunk" in line]
    assert len(sums) >= 2
    for first in sums:
        depth = len(lines[first]) - len(lines[first].lstrip())
        for line in lines[first + 1 :]:
            if len(line) - len(line.lstrip()) <= depth:
                break
            assert "if " not in line, line


def transformed_kernel():
    """The loops of Winograd's algorithm with two rows of tiles in a block, of open size."""
    relay = slipway.relay
    x = relay.var("x", shape=(1, 4, Dim("h", 8, 128), Dim("w", 8, 128), 16))
    weight = relay.var("k", shape=(4, 6, 6, 4, 16, 16))
    call = relay.op.nn.contrib_conv2d_winograd_nchwc(x, weight, 1, "NCHW16c")
    function = call.as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=znver4"), WinogradTile(4, 4, 2))
    return str(te.lower(kernel.schedule, list(kernel.args)))


def test_tiles_below_an_image_are_not_computed():
    """The last block of rows of tiles has fewer where the image ends in it."""
    loops = transformed_kernel()
    below = [line for line in loops.splitlines() if "if q" in line and "(h + 3) // 4" in line]
    assert len(below) == 2  # transforms of the data, and products


def test_planes_of_a_transform_are_an_odd_number_of_lines_apart():
    """Those of 4,096 bytes would all be in one set of the first-level cache."""
    loops = transformed_kernel()
    for name in ("data_transform", "products"):
        (strides,) = re.findall(rf"allocate {name}: .* strides \[(.*)\]", loops)
        *_, plane, _, _ = strides.split(", ")
        for width in (4, 30, 57, 96):
            floats = eval(plane, {"w": width})
            assert floats >= 16 * 2 * -(-width // 4)  # of two rows of tiles
            assert floats // 16 % 2 == 1


def test_planes_of_a_small_image_lie_together():
    """They are as far apart as its own tiles ask, not those of the largest: pages that are read."""
    (room,) = re.findall(r"allocate products: .*?\[(.*?)\]", transformed_kernel())
    (strides,) = re.findall(r"allocate products: .* strides \[(.*)\]", transformed_kernel())
    whole, *_ = strides.split(", ")
    small, large = (eval(whole, {"w": width}) for width in (8, 96))
    assert small * 5 < large
    assert large <= np.prod([int(extent) for extent in room.split(", ")]) * 1.1


def test_rows_that_padded_windows_read_are_those_of_the_image():
    """Else each vector of a row asks whether it lies in the image."""
    relay = slipway.relay
    x = relay.var("x", shape=(1, 32, Dim("h", 32, 96), Dim("w", 32, 96)))
    body = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    target = Target("llvm -mcpu=x86-64-v4")
    graph = kernel_graph(slipway.IRModule.from_expr(relay.Function([x], body)), target, {})
    (kernel,) = graph.kernels.values()
    text = str(lower_kernel("kernel", kernel, target))
    assert "allocate tall: float32[96]" in text
    assert "likely" not in text


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW16c"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_that_ceil_mode_adds_see_the_data_alone(kind, layout):
    """With odd sizes the last window of 2 x 2 has one row or column of data."""
    for window, padding in ((2, 0), (3, 1), (3, 0)):
        model = slipway.compile(
            _pool(kind, layout, (Dim("h", 5, 40), Dim("w", 5, 40)), window, padding)
        )
        for size in ((5, 5), (6, 7), (39, 40), (22, 33), (13, 6)):
            module = _pool(kind, layout, size, window, padding)
            shape = module["main"].params[0].type.shape
            x = np.random.default_rng(size[1]).standard_normal(shape).astype(np.float32)
            wanted = interpret(relay.transform.InferType()(module)["main"], x)
            np.testing.assert_allclose(model(x), wanted, rtol=1e-6, atol=1e-6, err_msg=str(size))


def _pool(kind, layout, size, window, padding):
    shape = {"NCHW": (1, 16, *size), "NHWC": (1, *size, 16), "NCHW16c": (1, 1, *size, 16)}[layout]
    x = relay.var("x", shape=shape)
    make = getattr(relay.nn, f"{kind}_pool2d")
    made = make(x, (window, window), (2, 2), padding=padding, layout=layout, ceil_mode=True)
    return slipway.IRModule.from_expr(relay.Function([x], made))
