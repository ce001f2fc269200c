"""Schedules in threads of a GPU: launches that every device takes, and tables of constants."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi


def _scheduled(output, target="vulkan"):
    with tvm.target.Target(target):
        return topi.testing.get_injective_schedule(target)(output)


@pytest.mark.parametrize("length", [3 * 256, 3 * 256 + 1, 2000])
def test_more_elements_than_blocks_of_a_launch(monkeypatch, length):
    """Vulkan promises 65,535 blocks along an axis; each thread then has several elements."""
    monkeypatch.setattr(topi.cuda, "BLOCKS", 3)
    a = te.placeholder((length,), name="a")
    out = te.compute((length,), lambda i: a[i] + 1.0, name="out")
    s = topi.cuda.schedule_injective(out)
    given, found = np.arange(length, dtype="float32"), np.zeros(length, "float32")
    tvm.testing.run_threads(s, [a, out], [given, found], "vulkan")
    np.testing.assert_array_equal(found, given + 1)
    text = str(tvm.lower(s, [a, out], simple_mode=True))
    assert f"in range({min(3, -(-length // 256))})" in text


def test_a_table_of_constants_that_was_made_before_the_target_was_known():
    theta = te.placeholder((2, 2, 3), name="theta")
    grid = topi.image.affine_grid(theta, (5, 7))
    given = np.random.default_rng(0).random((2, 2, 3)).astype("float32")
    out = np.zeros((2, 2, 5, 7), "float32")
    tvm.testing.run_threads(_scheduled(grid), [theta, grid], [given, out], "vulkan")
    y, x = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 7), indexing="ij")
    wanted = np.einsum("nij,jhw->nihw", given, np.stack([x, y, np.ones_like(x)]))
    np.testing.assert_allclose(out, wanted, atol=1e-5)


def test_statements_that_no_schedule_divides_are_one_threads():
    """Distinct numbers come out of a sort; its loops have no axes that a script could bind."""
    x = te.placeholder((23,), "int32", name="x")
    outs = topi.unique(x, False, True)
    with tvm.target.Target("vulkan"):
        s = topi.cuda.schedule_injective(list(outs))
    given = np.random.default_rng(1).integers(0, 6, 23).astype("int32")
    found = [np.zeros([int(n) for n in t.shape], t.dtype) for t in outs]
    tvm.testing.run_threads(s, [x, *outs], [given, *found], "vulkan")
    values, counts = np.unique(given, return_counts=True)
    assert found[3][0] == len(values)
    where = np.argsort(found[0][: len(values)])
    np.testing.assert_array_equal(found[0][: len(values)][where], values)
    np.testing.assert_array_equal(found[4][: len(values)][where], counts)


def test_an_extern_stage_in_the_threads_that_a_script_names():
    x = te.placeholder((8,), name="x")

    def running(ins, outs):
        builder = tvm.tir.ir_builder.create()
        source, to = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        to[0] = source[0]
        with builder.for_range(1, 8) as i:
            to[i] = to[i - 1] + source[i]
        return builder.get()

    total = te.extern(x.shape, [x], running, dtype="float32", name="total")
    s = te.create_schedule(total.op)
    s[total].env_threads([te.thread_axis(tag) for tag in ("threadIdx.x", "blockIdx.x")])
    given, found = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.testing.run_threads(s, [x, total], [given, found], "opencl")
    np.testing.assert_array_equal(found, np.cumsum(given))
    plain = np.zeros(8, "float32")
    built = tvm.build(s, [x, total], "llvm")
    out = tvm.nd.array(plain)
    built(tvm.nd.array(given), out)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(given))


@pytest.mark.parametrize(("number", "name"), [(0, "avg"), (1, "max")])
def test_regions_are_pooled_by_the_number_of_a_way_too(number, name):
    data, rois = te.placeholder((1, 2, 6, 6), name="data"), te.placeholder((3, 5), name="rois")
    rng = np.random.default_rng(2)
    given = rng.random((1, 2, 6, 6)).astype("float32")
    boxes = np.array([[0, 0, 0, 3, 3], [0, 1, 1, 5, 4], [0, 2, 0, 4, 5]], "float32")
    results = []
    for mode in (number, name):
        out = topi.vision.roi_align_nchw(data, rois, (2, 2), 1.0, mode, 2)
        found = np.zeros((3, 2, 2, 2), "float32")
        s = _scheduled(out)
        tvm.testing.run_threads(s, [data, rois, out], [given, boxes, found], "vulkan")
        results.append(found)
    np.testing.assert_array_equal(*results)
