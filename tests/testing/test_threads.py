"""Kernels whose threads the interpreter runs concurrently, and what is told of wrong ones."""

import re

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentTypeError, CodegenError, ExecutionError
from slipway.script import tir as T
from slipway.target import Target

CUDA = Target("cuda -arch=sm_80", host="llvm")
TARGETS = ("cuda -arch=sm_80", "opencl", "vulkan", "metal", "rocm", "webgpu")


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def zeros(*shape):
    return np.full(shape, 77, "float32")


def refused(function, *arrays, target=CUDA):
    """Return what is said of a kernel that is wrong."""
    with pytest.raises(ExecutionError) as error:
        tvm.testing.run_threads(function, None, arrays, target)
    return str(error.value)


def bound(schedule, stage, axes, tags):
    for axis, tag in zip(axes, tags, strict=True):
        schedule[stage].bind(axis, te.thread_axis(tag))


# -- right ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "scope", "dtype"),
    [
        ((5, 7, 4), "global.texture", "float32"),
        ((2, 3, 5, 9, 4), "global.texture", "float16"),
        ((6, 3, 5, 9, 4), "global.texture-weight", "float32"),
        ((2, 3, 7, 8, 4), "global.texture-nhwc", "float32"),
    ],
)
def test_images_between_kernels(shape, scope, dtype):
    a = te.placeholder(shape, dtype, name="a")
    *front, columns, lanes = shape
    k = te.reduce_axis((0, 3), name="k")

    def three(*at):
        *before, x, c = at
        return te.sum(a(*before, x + k, c).astype("float32"), axis=[k])

    out = te.compute((*front, columns - 2, lanes), three, name="out")
    s = te.create_schedule(out.op)
    copied = s[s.cache_read(a, scope, [out])]
    computed = s[out]
    computed.reorder(*computed.op.axis[:-1], k, computed.op.axis[-1])
    for stage in (copied, computed):
        stage.vectorize(stage.op.axis[-1])
        block, thread = stage.split(stage.fuse(*stage.op.axis[:-1]), factor=16)
        bound(s, stage.op, [block, thread], ["blockIdx.x", "threadIdx.x"])
    given, found = floats(*shape).astype(dtype), zeros(*front, columns - 2, lanes)
    tvm.testing.run_threads(s, [a, out], [given, found], "opencl")
    x = given.astype("float32")
    wanted = x[..., :-2, :] + x[..., 1:-1, :] + x[..., 2:, :]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("image", ["a", "c"])
def test_arguments_that_are_images(image):
    there = {name: "global.texture" if name == image else "global" for name in "ac"}

    @T.prim_func
    def reverse(p: T.handle, q: T.handle):
        a = T.match_buffer(p, (5, 7, 4), "float32", scope=there["a"])
        c = T.match_buffer(q, (5, 7, 4), "float32", scope=there["c"])
        for b in T.thread_binding(5, thread="blockIdx.x"):
            for t in T.thread_binding(7, thread="threadIdx.x"):
                for lane in T.vectorized(4):
                    c[b, t, lane] = a[b, 6 - t, lane] * T.float32(2)

    given, found = floats(5, 7, 4), zeros(5, 7, 4)
    tvm.testing.run_threads(reverse, None, [given, found], "opencl")
    np.testing.assert_array_equal(found, given[:, ::-1] * 2)


def test_a_column_that_an_image_does_not_have():
    @T.prim_func
    def shifted(p: T.handle, q: T.handle):
        a = T.match_buffer(p, (5, 7, 4), "float32", scope="global.texture")
        c = T.match_buffer(q, (5, 7, 4), "float32")
        for b in T.thread_binding(5, thread="blockIdx.x"):
            for t in T.thread_binding(7, thread="threadIdx.x"):
                for lane in T.vectorized(4):
                    c[b, t, lane] = a[b, t + 1, lane]

    said = refused(shifted, floats(5, 7, 4), zeros(5, 7, 4), target="opencl")
    assert "thread (6, 0, 0) of block (0, 0, 0): column 7 of image 'a', which has 7" in said


@pytest.mark.parametrize("target", TARGETS)
def test_a_reduction_across_threads_with_rows_beside_it(target):
    a = te.placeholder((6, 32), name="a")
    k = te.reduce_axis((0, 32), "k")
    total = te.compute((6,), lambda i: te.max(a[i, k], axis=k), name="total")
    s = te.create_schedule(total.op)
    bound(s, total, [total.op.axis[0], s[total].op.reduce_axis[0]], ["blockIdx.x", "threadIdx.x"])
    given, out = floats(6, 32), zeros(6)
    tvm.testing.run_threads(s, [a, total], [given, out], Target(target, host="llvm"))
    np.testing.assert_array_equal(out, given.max(1))


@pytest.mark.parametrize("options", ["-arch=sm_80", "-arch=sm_53", "-thread_warp_size=1"])
def test_a_product_with_panels_in_shared_memory(options):
    """With copies that go on while threads compute, from sm_80 on."""
    n, m, depth = 12, 10, 9
    a, b = te.placeholder((n, depth), name="a"), te.placeholder((depth, m), name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    own = s.cache_write(c, "local")
    panels = [s.cache_read(t, "shared", [own]) for t in (a, b)]
    by, ty = s[c].split(c.op.axis[0], factor=4)
    bx, tx = s[c].split(c.op.axis[1], factor=4)
    s[c].reorder(by, bx, ty, tx)
    bound(s, c, [by, bx, ty, tx], ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"])
    s[own].compute_at(s[c], tx)
    outer, _ = s[own].split(s[own].op.reduce_axis[0], factor=3)
    for panel in panels:
        s[panel].compute_at(s[own], outer)
        bound(s, panel, s[panel].op.axis, ["threadIdx.y", "threadIdx.x"])
        s[panel].double_buffer(2)
    x, y, out = floats(n, depth), floats(depth, m, seed=1), zeros(n, m)
    tvm.testing.run_threads(s, [a, b, c], [x, y, out], Target(f"cuda {options}", host="llvm"))
    np.testing.assert_allclose(out, x @ y, rtol=1e-5, atol=1e-5)


def test_two_kernels_hand_memory_to_each_other_and_extents_are_the_callers():
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    doubled = te.compute((n,), lambda i: a[i] * 2.0, name="doubled")
    reverse = te.compute((n,), lambda i: doubled[n - 1 - i], name="reverse")
    s = te.create_schedule(reverse.op)
    for stage in (doubled, reverse):
        bound(s, stage, s[stage].split(stage.op.axis[0], factor=8), ["blockIdx.x", "threadIdx.x"])
    given, out = floats(21), zeros(21)
    tvm.testing.run_threads(s, [a, reverse], [given, out], CUDA)
    np.testing.assert_array_equal(out, 2 * given[::-1])


def test_numbers_and_bfloat16_arrays():
    a = te.placeholder((16,), "bfloat16", name="a")
    by = te.var("by", "float32")
    out = te.compute((16,), lambda i: a[i].astype("float32") * by, name="out")
    s = te.create_schedule(out.op)
    s[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    given, found = floats(16).astype(ml_dtypes.bfloat16), zeros(16)
    tvm.testing.run_threads(s, [a, by, out], [given, 0.5, found], CUDA)
    np.testing.assert_array_equal(found, given.astype("float32") * 0.5)


def test_values_that_threads_of_a_warp_hand_on():
    @T.prim_func
    def handed(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            c[t] = T.tvm_warp_shuffle_down(
                T.uint32(0xFFFFFFFF),
                T.tvm_warp_shuffle_up(T.uint32(0xFFFFFFFF), a[t], 3, 16, 32),
                1, 32, 32,
            )  # fmt: skip

    given, out = floats(64), zeros(64)
    tvm.testing.run_threads(handed, None, [given, out], CUDA)
    lanes = np.arange(64)
    up = given[np.where(lanes % 16 >= 3, lanes - 3, lanes)]
    np.testing.assert_array_equal(out, up[np.where(lanes % 32 < 31, lanes + 1, lanes)])


def test_a_barrier_in_a_loop_that_all_threads_take_alike():
    @T.prim_func
    def rotate(c: T.Buffer((8,), "float32")):
        tile = T.alloc_buffer((8,), "float32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            tile[t] = c[t]
            for _ in range(3):
                T.evaluate(T.tvm_storage_sync("shared"))
                c[t] = tile[(t + 1) % 8]
                T.evaluate(T.tvm_storage_sync("shared"))
                tile[t] = c[t]

    given = floats(8)
    out = given.copy()
    tvm.testing.run_threads(rotate, None, [out], CUDA)
    np.testing.assert_array_equal(out, np.roll(given, -3))


# -- wrong ones ------------------------------------------------------------------------------------


@T.prim_func
def shifted_in_place(a: T.Buffer((16,), "float32")):
    for t in T.thread_binding(16, thread="threadIdx.x"):
        a[t] = a[(t + 1) % 16] * 2.0


@T.prim_func
def counted(a: T.Buffer((16,), "int32"), counts: T.Buffer((4,), "int32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.y"):
            counts[a[b * 8 + t]] = counts[a[b * 8 + t]] + 1


@T.prim_func
def of_the_next_block(a: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.z"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            c[b * 4 + t] = a[b * 4 + t] + c[(b * 4 + t + 4) % 16]


@T.prim_func
def mirrored(a: T.Buffer((4, 4), "float32")):
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for x in T.thread_binding(4, thread="threadIdx.x"):
            a[y, x] = a[x, y]


RACES = [
    (shifted_in_place, (floats(16),), "'a'", "'a'", "threadIdx.x"),
    (counted, (np.arange(16, dtype="int32") // 3 % 4, np.zeros(4, "int32")), "'counts'",
     "'counts'", "threadIdx.y"),
    (of_the_next_block, (floats(16), zeros(16)), "'c'", "'c'", "blockIdx.z"),
    (mirrored, (floats(4, 4),), "'a'", "'a'", "threadIdx.x and threadIdx.y"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arrays", "first", "second", "axis"), RACES)
def test_a_race_is_told_with_stages_and_axes(function, arrays, first, second, axis):
    said = refused(function, *(a.copy() for a in arrays))
    name = function.attr("global_symbol")
    wanted = (
        rf"^{name}_kernel0: a race at element \d+ of global memory '\w+': thread .* (reads|writes) "
        rf"it in stage {first}, and thread .*, apart along {axis}, (reads|writes) it in stage "
        rf"{second}, without a barrier between\."
    )
    assert re.match(wanted, said), said


@T.prim_func
def under_a_condition(a: T.Buffer((8, 4), "float32"), c: T.Buffer((8, 4), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        for y in T.thread_binding(4, thread="threadIdx.y"):
            c[x, y] = a[x, y]
            if y < 2:
                T.evaluate(T.tvm_storage_sync("shared"))


@T.prim_func
def as_often_as_its_number(a: T.Buffer((8,), "float32"), c: T.Buffer((8,), "float32")):
    for z in T.thread_binding(8, thread="threadIdx.z"):
        for i in range(z):
            c[z] = a[z] + a[i]
            T.evaluate(T.tvm_storage_sync("shared"))


@T.prim_func
def one_on_each_side(a: T.Buffer((8,), "float32"), c: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        if t % 2 == 0:
            c[t] = a[t]
            T.evaluate(T.tvm_storage_sync("shared"))
        else:
            c[t] = a[t] + 1.0
            T.evaluate(T.tvm_storage_sync("shared"))


@T.prim_func
def until_it_is_large(a: T.Buffer((8,), "float32"), c: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        c[t] = a[t]
        while c[t] < 3.0:
            c[t] = c[t] + 1.0
            T.evaluate(T.tvm_storage_sync("shared"))


BARRIERS = [
    (under_a_condition, (8, 4), "if threadIdx.y < 2", "threadIdx.y", "ends"),
    (as_often_as_its_number, (8,), "loop i of threadIdx.z steps", "threadIdx.z", "ends"),
    (one_on_each_side, (8,), "if threadIdx.x % 2 == 0", "threadIdx.x", "waits at another one"),
    (until_it_is_large, (8,), "while c", "threadIdx.x", "ends"),
]


@pytest.mark.parametrize(("function", "shape", "under", "axis", "other"), BARRIERS)
def test_a_barrier_that_only_some_threads_reach(function, shape, under, axis, other):
    said = refused(function, floats(*shape), zeros(*shape))
    name = function.attr("global_symbol")
    assert said.startswith(f"{name}_kernel0: a divergent barrier in stage 'c': thread (")
    assert f"which stands under `{under}" in said
    assert f"apart along {axis}, {other} without having come to it" in said


def test_a_shuffle_that_only_some_threads_reach():
    @T.prim_func
    def half(a: T.Buffer((32,), "float32"), c: T.Buffer((32,), "float32")):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            if t < 16:
                c[t] = T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), a[t], 16, 32, 32)

    said = refused(half, floats(32), zeros(32))
    assert "half_kernel0, block (0, 0, 0): thread 0 of a warp asks thread 16 for a value by" in said


def test_an_index_outside_of_its_buffer():
    @T.prim_func
    def twice(a: T.Buffer((8,), "float32"), c: T.Buffer((8,), "float32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            c[t] = a[t * 2]

    said = refused(twice, floats(8), zeros(8))
    assert said.startswith(
        "twice_kernel0: thread (4, 0, 0) of block (0, 0, 0): index 8 of buffer a"
    )


def test_limits_and_arguments_are_asked_as_build_asks_them():
    a = te.placeholder((2048,), name="a")
    out = te.compute((2048,), lambda i: a[i] + 1.0, name="out")
    s = te.create_schedule(out.op)
    s[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    given = [floats(2048), zeros(2048)]
    with pytest.raises(CodegenError, match="2048"):
        tvm.testing.run_threads(s, [a, out], given, CUDA)
    with pytest.raises(ArgumentTypeError, match=r"array\.numpy"):
        tvm.testing.run_threads(s, [a, out], [tvm.nd.array(x) for x in given], CUDA)
