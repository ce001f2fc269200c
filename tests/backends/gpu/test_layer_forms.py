"""Layers in another form for GPUs.

Convolutions in Winograd's are three kernels; dense layers have their constant weights transposed,
so that neighbouring threads read contiguous ones.
"""

from dataclasses import replace

import numpy as np
import pytest
import run_kernels
from run_kernels import OPENCL, random

import slipway as tvm
from slipway import relay
from slipway.backends.gpu import winograd
from slipway.backends.gpu.schedules.tile import tile_knobs
from slipway.backends.strategy import Problem
from slipway.contrib import graph_executor
from slipway.target import Target

ORDERS = {"NCHW": ("OIHW", 1, (0, 1, 2, 3)), "NHWC": ("HWIO", 3, (2, 3, 1, 0))}


def network(layout, images, channels, filters, size, dtype="float32", padding=(1, 0, 1, 1)):
    """Return a convolution with a bias and a relu, and its input."""
    kernels, axis, order = ORDERS[layout]
    shape = (images, channels, *size) if layout == "NCHW" else (images, *size, channels)
    x = relay.var("x", shape=shape, dtype=dtype)
    weights = random(filters, channels, 3, 3) / np.float32(3 * channels**0.5)
    weights = np.ascontiguousarray(weights.transpose(order)).astype(dtype)
    y = relay.nn.conv2d(
        x, relay.const(weights), padding=padding, channels=filters, kernel_size=(3, 3),
        data_layout=layout, kernel_layout=kernels,
    )  # fmt: skip
    y = relay.nn.bias_add(y, relay.const(random(filters, seed=1).astype(dtype)), axis)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y)))
    return mod, random(*(n if isinstance(n, int) else 5 for n in shape), seed=2).astype(dtype)


def result(mod, x, target, where, simulator=None):
    """Return what a module computes, and how many kernels it has."""
    lib = relay.build(mod, target=target)
    if simulator is not None:
        simulator.learn(lib.lib.imported_modules[0])
    module = graph_executor.GraphModule(lib["default"](where))
    module.run(x=x)
    made = lib.lib.imported_modules
    return module.get_output(0).numpy(), len(made[0].kernels) if made else 0


@pytest.fixture
def free_launches(monkeypatch):
    """Images that are small enough for a test are worth Winograd's three kernels."""
    monkeypatch.setattr(winograd, "ANY_GPU", replace(winograd.ANY_GPU, launch_cost=0))


@pytest.mark.usefixtures("free_launches")
@pytest.mark.parametrize("layout", ORDERS)
def test_three_kernels_in_every_language(any_device, layout):
    """Tiles that stick out below and at the right, and one more so that there are fours."""
    target, simulator = run_kernels.current
    mod, x = network(layout, 1, 65, 66, (12, 11))
    found, kernels = result(mod, x, target, any_device, simulator)
    assert kernels == 3
    wanted, _ = result(mod, x, Target("llvm -strict=1"), tvm.cpu(0))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * wanted.max())


@pytest.mark.parametrize(
    ("images", "channels", "filters", "size", "m"),
    [
        (1, 64, 64, (56, 56), 4),
        (8, 512, 512, (7, 7), 4),
        (1, 512, 512, (7, 7), 2),  # of m = 4 there are 36 weights for 4 tiles
        (1, 256, 256, (10, 10), 2),
        (1, 3, 64, (224, 224), 0),
        (1, 512, 512, (1, 1), 0),
        (1, 32, 32, (28, 28), 0),  # done before two more kernels are launched
    ],
)
def test_long_sums_are_worth_the_transforms(images, channels, filters, size, m):
    assert winograd.winograd_tile(images, channels, filters, *size) == m


@pytest.mark.usefixtures("free_launches")
@pytest.mark.parametrize(
    ("target", "change"),
    [
        ("opencl -strict=1", {}),
        ("opencl", {"channels": 3}),
        ("opencl", {"images": relay.Dim("n", 1, 8)}),
    ],
)
def test_others_are_computed_directly(device, target, change):
    given = {"images": 1, "channels": 64, "filters": 64, "size": (13, 13), **change}
    mod, x = network("NCHW", **given)
    found, kernels = result(mod, x, Target(target, host="llvm"), device)
    assert kernels == 1
    wanted, _ = result(mod, x, Target("llvm -strict=1"), tvm.cpu(0))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("free_launches")
def test_an_image_of_halves_is_read_as_it_is(device):
    mod, x = network("NHWC", 1, 64, 64, (13, 13), "float16")
    found, kernels = result(mod, x, OPENCL, device)
    assert kernels == 3
    wanted, _ = result(mod, x, Target("llvm -strict=1"), tvm.cpu(0))
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.usefixtures("free_launches")
def test_a_pass_of_the_name_can_be_disabled(device):
    mod, x = network("NCHW", 1, 64, 64, (13, 13))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["WinogradConv"]):
        assert result(mod, x, OPENCL, device)[1] == 1


@pytest.mark.parametrize(
    ("name", "one", "other"), [("matmul", False, False), ("batch_matmul", True, False)]
)
def test_products_in_shared_memory_take_operands_either_way(simulators, name, one, other):
    simulator = simulators("ll")
    simulator.enter()
    batch = (2,) if name == "batch_matmul" else ()
    shapes = [(33, 40) if one else (40, 33), (50, 33) if other else (33, 50)]
    given = [relay.var(n, shape=(*batch, *s)) for n, s in zip("xy", shapes, strict=True)]
    body = getattr(relay.nn, name)(*given, transpose_a=one, transpose_b=other)
    mod = tvm.IRModule.from_expr(relay.Function(given, body))
    lib = relay.build(mod, Target(simulator.kind, host="llvm"))
    simulator.learn(lib.lib.imported_modules[0])
    assert "shared" in lib.lib.imported_modules[0].get_source("cuda")
    module = graph_executor.GraphModule(lib["default"](tvm.device(simulator.kind, 0)))
    x, y = (random(*batch, *s, seed=k) for k, s in enumerate(shapes))
    module.run(x=x, y=y)
    wanted = (np.swapaxes(x, -1, -2) if one else x) @ y
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, atol=1e-4)
    simulator.leave()


def layer(rows, depth, columns, target, dtype="float32", knobs=None):
    """Compile a layer with a relu after it; return it and its weights."""
    weights = random(columns, depth).astype(dtype)
    x = relay.var("x", shape=(rows, depth), dtype=dtype)
    body = relay.nn.relu(relay.nn.dense(x, relay.const(weights)))
    config = {"schedules.force": {"nn.matmul": knobs}} if knobs else {}
    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target), weights


def kernels(lib):
    return lib.lib.imported_modules[0].get_source()


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "dtype"),
    [(16, 128, 7, "float32"), (50, 129, 64, "float32"), (32, 256, 33, "float16")],
)
def test_weights_are_transposed_and_the_numbers_are_right(device, rows, depth, columns, dtype):
    lib, weights = layer(rows, depth, columns, OPENCL, dtype)
    assert "nn_matmul" in kernels(lib)
    module = graph_executor.GraphModule(lib["default"](device))
    x = random(rows, depth, seed=1).astype(dtype)
    module.run(x=x)
    wanted = np.maximum(x.astype("float32") @ weights.astype("float32").T, 0)
    rtol = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=rtol, atol=rtol)


def test_a_product_of_matrices_is_computed_in_tiles():
    tile = {"strategy": "threads.tile", "rows": 4, "columns": 4, "threads": 64}
    default = kernels(layer(64, 128, 64, OPENCL)[0])
    assert default == kernels(
        layer(64, 128, 64, OPENCL, knobs={**tile, "rows": 2, "columns": 2})[0]
    )
    assert default != kernels(layer(64, 128, 64, OPENCL, knobs=tile)[0])


@pytest.mark.parametrize(
    ("rows", "depth", "target"),
    [(8, 256, OPENCL), (32, 64, OPENCL), (64, 256, Target("cuda", host="llvm"))],
)
def test_few_rows_short_sums_and_panels_in_shared_memory_take_rows(rows, depth, target):
    assert "nn_matmul" not in kernels(layer(rows, depth, 64, target)[0])


@pytest.mark.parametrize(
    ("channels", "size", "tile"),
    [
        (512, (56, 56), (4, 4)),
        (512, (7, 7), (2, 7)),  # reads 9 for 14 products, where 4 x 1 reads 5 for 4
        (96, (35, 35), (3, 5)),
        (256, (14, 14), (8, 2)),
        (1000, (13, 13), (4, 1)),  # 8 x 1 reads a tenth less, with half of the threads
        (5, (37, 41), (5, 1)),
        (16, (7, 7), (1, 1)),  # of larger tiles there are too few
    ],
)
def test_a_tile_is_the_one_that_reads_least(channels, size, tile):
    out = relay.TensorType((1, channels, *size))
    attrs = relay.nn.conv2d(
        relay.var("x", shape=(1, 8, *size)), relay.const(random(channels, 8, 1, 1)),
        channels=channels, kernel_size=(1, 1),
    ).attrs  # fmt: skip
    knobs = tile_knobs(Problem("nn.conv2d", attrs, (), (out,), OPENCL))
    assert (knobs.rows, knobs.columns) == tile


def test_columns_beside_each_other_need_save_nothing():
    out = relay.TensorType((1, 16384))
    knobs = tile_knobs(Problem("nn.matmul", None, (), (out,), OPENCL))
    assert (knobs.rows, knobs.columns) == (1, 8)


@pytest.mark.parametrize(
    "tag", ["mesa/lavapipe", "google/swiftshader", "google/swiftshader-webgpu"]
)
def test_a_processor_that_runs_threads_in_lanes_has_larger_tiles(tag):
    def knobs(target):
        (out,) = (relay.TensorType((32, 256), "float32"),)
        return tile_knobs(Problem("nn.matmul", None, (), (out,), target))

    there, elsewhere = knobs(Target(tag, host="llvm")), knobs(OPENCL)
    assert (there.rows, there.columns) == (8, 16)
    assert elsewhere.rows * elsewhere.columns == 8  # of 1,024 threads
    # PoCL runs a thread after the other, with the registers of a processor.
    assert knobs(Target("opencl -device_type=cpu", host="llvm")) == elsewhere


@pytest.mark.parametrize("length", [96, 1000, 1013, 1025])
def test_a_row_of_exponentials_is_kept_where_threads_run_in_lanes(length, vulkan):
    """Rows of up to 1,024 elements; an iteration has as many of them as divide the row."""
    x = run_kernels.random(40, length)
    given = relay.var("x", shape=x.shape)
    softmax, norm = relay.nn.softmax(given), relay.nn.log_softmax(given)

    def built(body, target):
        module = tvm.IRModule.from_expr(relay.Function([given], body))
        return relay.build(module, target=target)

    def result(lib, device):
        ran = graph_executor.GraphModule(lib["default"](device))
        ran.run(x=x)
        return ran.get_output(0).numpy()

    for body in (softmax, norm):
        lib = built(body, Target("mesa/lavapipe", host="llvm"))
        found, wanted = result(lib, vulkan), result(built(body, Target("llvm")), tvm.cpu())
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    text = built(softmax, Target("mesa/lavapipe", host="llvm")).lib.imported_modules[0]
    expanded = text.get_source("spirv").count("OpExtInst %12 %1 Fma")
    each = max(count for count in range(1, 9) if length % count == 0)
    assert expanded == 8 * each * (1 if length <= 1024 else 2)


def test_lavapipe_computes_larger_tiles(vulkan):
    x, y = run_kernels.random(1, 5, 16, 24), run_kernels.random(32, 40)
    w, v = run_kernels.random(16, 5, 3, 3, seed=1), run_kernels.random(64, 40, seed=2)
    image, rows = relay.var("x", shape=x.shape), relay.var("y", shape=y.shape)
    conv = relay.nn.conv2d(image, relay.const(w), padding=(1, 1), channels=16, kernel_size=(3, 3))
    both = relay.Tuple([relay.nn.relu(conv), relay.nn.dense(rows, relay.const(v))])
    module = tvm.IRModule.from_expr(relay.Function([image, rows], both))

    def results(target, device):
        ran = graph_executor.GraphModule(relay.build(module, target=target)["default"](device))
        ran.run(x=x, y=y)
        return [ran.get_output(number).numpy() for number in range(2)]

    found = results(Target("mesa/lavapipe", host="llvm"), vulkan)
    for got, wanted in zip(found, results(Target("llvm"), tvm.cpu()), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "tile"), [(196, (4, 4)), (197, (2, 8)), (49, (7, 2)), (1, (1, 1))]
)
def test_rows_of_a_product_need_not_be_divided_by_its_tile(rows, tile):
    """Of 197 tokens a thread had one row, and read half as much again."""
    (out,) = (relay.TensorType((rows, 1536), "float32"),)
    knobs = tile_knobs(Problem("nn.matmul", None, (), (out,), OPENCL))
    assert (knobs.rows, knobs.columns) == tile


@pytest.mark.parametrize(("rows", "sums"), [(197, False), (61, True)])
def test_a_tile_of_rows_that_are_not_there_is_right(any_device, rows, sums):
    target, simulator = run_kernels.current
    x = relay.var("x", shape=(rows, 24))
    body = relay.nn.relu(relay.nn.dense(x, relay.const(run_kernels.random(96, 24, seed=3))))
    if sums:  # not joined: its tiles have rows that are not there
        body = relay.sum(body, axis=0)
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    force = {"strategy": "threads.tile", "rows": 4, "columns": 4, "threads": 64}
    given = run_kernels.random(rows, 24)

    def result(target, device, config):
        with tvm.transform.PassContext(opt_level=3, config=config):
            library = relay.build(module, target=target)
        if simulator is not None and target.kind.name != "llvm":
            simulator.learn(library.lib.imported_modules[0])
        ran = graph_executor.GraphModule(library["default"](device))
        ran.run(x=given)
        return ran.get_output(0).numpy()

    found = result(target, any_device, {"schedules.force": {"nn.dense": force}})
    wanted = result(Target("llvm"), tvm.cpu(), {})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
