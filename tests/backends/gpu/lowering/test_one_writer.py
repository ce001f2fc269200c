"""Threads that read and write one element at once are refused; those that do not are left alone."""

import pytest

from slipway import build
from slipway.errors import LoweringError
from slipway.script import tir as T


@T.prim_func
def no_known_sum(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] * T.float32(0.5) + A[vi, vk]


@T.prim_func
def largest_of_row(
    A: T.Buffer((8, 64), "float32"), where: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")
):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    where[vi] = -1
                    B[vi] = T.float32(-1e30)
                if A[vi, vk] > B[vi]:
                    where[vi] = vk
                    B[vi] = A[vi, vk]


@T.prim_func
def fused(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    for f in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(8, f // 16)
            vk = T.axis.reduce(16, f % 16)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def one_element(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    for f in T.thread_binding(64, thread="threadIdx.x"):
        B[0] = B[0] + A[f]


@T.prim_func
def over_blocks(A: T.Buffer((64,), "float32"), B: T.Buffer((4,), "float32")):
    for f in T.thread_binding(64, thread="blockIdx.x"):
        B[f % 4] = T.max(B[f % 4], A[f])


@T.prim_func
def overlapping(A: T.Buffer((64, 4), "float32"), B: T.Buffer((67,), "float32")):
    for f in T.thread_binding(64, thread="threadIdx.x"):
        for k in range(4):
            B[f + k] = B[f + k] + A[f, k]


@T.prim_func
def diagonals(A: T.Buffer((8, 8), "float32"), B: T.Buffer((16,), "float32")):
    for f in T.thread_binding(8, thread="threadIdx.x"):
        for k in T.thread_binding(8, thread="threadIdx.y"):
            B[f + k] = B[f + k] + A[f, k]


@pytest.mark.parametrize(
    ("func", "axes"),
    [
        (no_known_sum, "threadIdx.x"),
        (largest_of_row, "threadIdx.x"),
        (fused, "threadIdx.x"),
        (one_element, "threadIdx.x"),
        (over_blocks, "blockIdx.x"),
        (overlapping, "threadIdx.x"),
        (diagonals, "threadIdx.x, threadIdx.y"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_threads_that_add_to_one_element_are_refused(func, axes):
    with pytest.raises(LoweringError, match=f"threads along {axes} read and write one element, B"):
        build(func, target="opencl")


@T.prim_func
def apart(A: T.Buffer((8, 8), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    for f in T.thread_binding(8, thread="threadIdx.x"):
        for k in T.thread_binding(8, thread="blockIdx.x"):
            for _ in range(n):
                B[f * 8 + k] = B[f * 8 + k] + A[f, k]


@T.prim_func
def by_one(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for f in T.thread_binding(64, thread="threadIdx.x"):
        if f == 3:
            B[0] = B[0] + A[f]
        B[f // 8 + f % 8 * 8] = B[f // 8 + f % 8 * 8] + A[f]


@T.prim_func
def by_what_memory_says(N: T.Buffer((64,), "int32"), B: T.Buffer((64,), "float32")):
    for f in T.thread_binding(64, thread="threadIdx.x"):
        B[N[f]] = B[N[f]] * 2.0


@T.prim_func
def each_its_own(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            B[i, 0] = T.float32(0)
            B[i, 0] = B[i, 0] + A[i, 0]
            B[i, k] = A[i, k]


@T.prim_func
def a_stride_apart(A: T.Buffer((64,), "float32"), b: T.handle, n: T.int32, m: T.int32):
    B = T.match_buffer(b, (m,), "float32")
    for f in T.thread_binding(64, thread="threadIdx.x"):
        B[f * n] = B[f * n] + A[f]


@T.prim_func
def one_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    for f in T.thread_binding(64, thread="threadIdx.x"):
        if f >= n:
            B[f // n] = B[f // n] + A[f]


@pytest.mark.parametrize(
    "func", [a_stride_apart, one_beyond, apart, by_one, by_what_memory_says, each_its_own]
)
def test_threads_that_write_elements_of_their_own_are_not(func):
    build(func, target="opencl")
