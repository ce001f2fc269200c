"""Rules for GPUs: what they make of functions of loops, run on PoCL where it is installed."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import te, tir, topi
from slipway.blocks.from_te import create_prim_func
from slipway.meta_schedule.thread_rules import tags_of

RNG = np.random.default_rng(5)
needs_opencl = pytest.mark.skipif(
    not tvm.opencl(0).exist, reason="no OpenCL device: README names the packages that bring one"
)


def product(n, k, m):
    a, b = te.placeholder((n, k), name="a"), te.placeholder((k, m), name="b")
    step = te.reduce_axis((0, k), name="step")
    ab = te.compute((n, m), lambda i, j: te.sum(a[i, step] * b[step, j], axis=step), name="ab")
    return [a, b, te.compute((n, m), lambda i, j: te.max(ab[i, j], 0.0), name="out")]


def convolution():
    data = te.placeholder((1, 6, 7, 7), name="data")
    kernel = te.placeholder((8, 6, 3, 3), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1, 1, "float32"))]


def soft():
    a = te.placeholder((9, 70), name="a")
    return [a, topi.nn.softmax(a)]


def total():
    a = te.placeholder((9, 41), name="a")
    i, j = te.reduce_axis((0, 9), name="i"), te.reduce_axis((0, 41), name="j")
    return [a, te.compute((), lambda: te.max(te.abs(a[i, j]), axis=[i, j]), name="out")]


FUNCTIONS = {
    "a product": product(48, 64, 40),
    "a row": product(1, 301, 11),
    "a convolution": convolution(),
    "softmax": soft(),
    "one number": total(),
}


def context_of(tensors, target="opencl", **parts):
    return ms.TuneContext(
        create_prim_func(tensors), target=target, space_generator="post-order-apply",
        search_strategy="evolutionary", **parts,
    )  # fmt: skip


def values_of(tensors):
    return [RNG.standard_normal([int(n) for n in t.shape]).astype("float32") for t in tensors]


def run(module, target, values):
    arrays = [tvm.nd.array(v, tvm.device(target, 0)) for v in values]
    tvm.build(module, target=target)(*arrays)
    return arrays[-1].numpy()


@needs_opencl
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_rules_make_for_a_gpu_computes_the_same(name):
    tensors, rng = FUNCTIONS[name], random.Random(2)
    space = context_of(tensors).space()
    values = values_of(tensors)
    wanted = run(create_prim_func(tensors), "llvm", values)
    drawn = [*space.defaults.values(), *(space.sample(rng) for _ in range(8))]
    legal = [c for c in dict.fromkeys(drawn) if space.is_legal(c)][:3]
    assert legal
    for candidate in legal:
        found = run(space.schedule(candidate).mod, "opencl", values)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4, err_msg=str(candidate.knobs))


def test_a_product_is_tiled_for_blocks_threads_and_shared_memory():
    first, *_ = context_of(product(64, 64, 64), "cuda").generate_design_space()
    ms.database.finished(first)
    text = str(tvm.lower(first.mod))
    for mark in ("blockIdx.x for", "vthread.x for", "threadIdx.x for", "@shared", "@local"):
        assert mark in text
    assert text.count("threadIdx.x for") == 3  # the threads fill both panels, too


def test_memory_of_a_tile_is_as_large_as_the_tile():
    """Of a thread its own results, of a block what all of its threads read."""
    a, b, out = product(64, 128, 96)
    sch = tir.Schedule(create_prim_func([a, b, out]))
    block = sch.get_block("ab")
    i, j, k = sch.get_loops(block)
    i = sch.split(i, [None, 2, 8, 1])
    j = sch.split(j, [None, 1, 8, 2])
    k = sch.split(k, [None, 16])
    sch.reorder(*(one for pair in zip(i[:3], j[:3], strict=True) for one in pair), *k, i[3], j[3])
    blocks, virtual, threads = (sch.fuse(i[n], j[n]) for n in range(3))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(virtual, "vthread.x")
    sch.bind(threads, "threadIdx.x")
    sch.reverse_compute_at(sch.get_block("out"), threads)
    sch.set_scope(block, 0, "local")
    for number in (0, 1):
        sch.compute_at(sch.cache_read(block, number, "shared"), k[0])
    text = str(tvm.lower(sch.mod))
    assert "float32[2] @local" in text  # one row of two
    assert text.count("float32[256] @shared") == 2  # 16 rows of 16, and 16 of 16 columns


def test_memory_inside_of_a_loop_is_as_large_as_a_step():
    a = te.placeholder((64, 64), name="a")
    twice = te.compute((64, 64), lambda i, j: a[i, j] * 2.0, name="twice")
    out = te.compute((64, 63), lambda i, j: twice[i, j] + twice[i, j + 1], name="out")
    sch = tir.Schedule(create_prim_func([a, out]))
    i, _ = sch.get_loops("out")
    sch.compute_at("twice", i)
    assert "twice: float32[64]" in str(tvm.lower(sch.mod))
    values = values_of([a, out])
    found = run(sch.mod, "llvm", values)
    np.testing.assert_allclose(found, 2 * (values[0][:, :-1] + values[0][:, 1:]), 1e-6)


def test_threads_are_no_more_than_the_target_has():
    sch, *_ = context_of(soft()).generate_design_space()
    text = str(sch.trace)
    assert "sample_categorical(candidates=[32, 64]" in text
    assert "256, 512" not in text
    verify = ms.postproc.VerifyGPUCode()
    verify._initialize_with_tune_context(context_of(soft()))
    bound = tir.Schedule(create_prim_func(soft()))
    bound.bind(bound.get_loops("divide")[0], "blockIdx.x")
    assert verify.apply(bound)
    long = te.placeholder((2, 300), name="long")
    twice = te.compute((2, 300), lambda i, j: long[i, j] * 2.0, name="twice")
    wide = tir.Schedule(create_prim_func([long, twice]))
    wide.bind(wide.get_loops("twice")[1], "threadIdx.x")
    assert not verify.apply(wide)


@pytest.mark.parametrize(
    ("tensors", "block", "tags"),
    [
        (soft(), "divide", ["blockIdx.x", "threadIdx.x"]),
        (total(), "out", ["blockIdx.x", "threadIdx.x"]),
    ],
)
def test_blocks_that_nobody_bound_are_bound(tensors, block, tags):
    sch = tir.Schedule(create_prim_func(tensors))
    assert ms.postproc.RewriteUnboundBlock().apply(sch)
    assert tags_of(sch, sch.get_block(block)) == tags


@needs_opencl
def test_a_search_on_a_gpu_finds_what_is_right(tmp_path):
    tensors = product(48, 64, 40)
    func = create_prim_func(tensors)
    database = ms.tune_tir(func, "opencl", tmp_path, max_trials_global=6, num_trials_per_iter=6)
    best = ms.tir_integration.compile_tir(database, func, "opencl")
    values = values_of(tensors)
    found = run(best.mod, "opencl", values)
    np.testing.assert_allclose(found, np.maximum(values[0] @ values[1], 0), 1e-4, 1e-4)
