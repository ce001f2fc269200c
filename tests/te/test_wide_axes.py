"""Axes with 2^31 steps and more: they count in int64, and positions in their tensors are int64."""

import re

import numpy as np
import pytest

import slipway
from slipway import relay, te
from slipway.backends.backend import compile_target
from slipway.compiler.kernels import LoweredKernels, compile_kernels
from slipway.compiler.relay_build import kernel_graph
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import IRModule
from slipway.ir.visit import walk

SIDE = 1 << 16


def plus_one():
    a = te.placeholder((SIDE, SIDE), name="A", dtype="int8")
    b = te.compute(a.shape, lambda i, j: a[i, j] + te.const(1, "int8"), name="B")
    return te.create_schedule(b.op), a, b


def loops_of(func):
    return [
        (n.loop_var.dtype, ops.as_int(n.extent)) for n in walk(func.body) if isinstance(n, S.For)
    ]


def test_a_fused_axis_counts_in_int64_where_it_has_to():
    s, a, b = plus_one()
    s[b].parallel(s[b].fuse(*b.op.axis))
    func = te.lower(s, [a, b])
    assert loops_of(func) == [("int64", 1 << 32)]
    assert "int32(i.j.fused // 65536i64)" in str(func)
    assert slipway.build(func, target="llvm").get_source("ll")


@pytest.mark.parametrize("factor", [7, 1 << 20])
def test_what_it_is_split_into_does_too(factor):
    s, a, b = plus_one()
    outer, inner = s[b].split(s[b].fuse(*b.op.axis), factor)
    s[b].fuse(outer, s[b].split(inner, nparts=1)[0])
    func = te.lower(s, [a, b])
    assert {dtype for dtype, _ in loops_of(func)} == {"int64"}
    assert np.prod([float(extent) for _, extent in loops_of(func)]) >= 2**32
    assert ("likely" in str(func)) == (factor == 7)
    assert ("< 4294967296i64" in str(func)) == (factor == 7)


def test_few_steps_of_a_long_axis_behind_a_short_one():
    """The fused axis counts in int32, what it is taken apart to in the long axis' int64."""
    a = te.placeholder((3, 1 << 33), name="A", dtype="int8")
    b = te.compute(a.shape, lambda i, j: a[i, j] + te.const(1, "int8"), name="B")
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    outer, inner = s[b].split(j, factor=1 << 30)
    s[b].split(inner, factor=128)
    s[b].parallel(s[b].fuse(i, outer))
    func = te.lower(s, [a, b])
    assert loops_of(func)[0] == ("int32", 24)
    assert slipway.build(func, target="llvm").get_source("ll")


def test_axes_of_fewer_steps_stay_as_they_are():
    a = te.placeholder((1 << 15, SIDE - 1), name="A", dtype="int8")
    b = te.compute(a.shape, lambda i, j: a[i, j] + te.const(1, "int8"), name="B")
    s = te.create_schedule(b.op)
    s[b].fuse(*b.op.axis)
    assert loops_of(te.lower(s, [a, b])) == [("int32", (1 << 15) * (SIDE - 1))]


def test_positions_in_c_do_not_wrap():
    s, a, b = plus_one()
    source = slipway.build(s, [a, b], "c").get_source()
    assert len(re.findall(r"\(int64_t\)i \* INT64_C\(65536\)", source)) == 2
    a = te.placeholder((8, 8), name="A", dtype="int8")
    b = te.compute(a.shape, lambda i, j: a[i, j] + te.const(1, "int8"), name="B")
    assert "(int64_t)i" not in slipway.build(te.create_schedule(b.op), [a, b], "c").get_source()


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_the_last_elements_of_a_large_tensor(target):
    """4 GiB of address space, of which some pages are ever touched."""
    a = te.placeholder((SIDE, SIDE), name="A", dtype="int8")
    b = te.compute((4, 8), lambda i, j: a[i + (SIDE - 4), j + (SIDE - 8)], name="B")
    kernel = slipway.build(te.create_schedule(b.op), [a, b], target)
    data = np.zeros((SIDE, SIDE), "int8")
    data[-4:, -8:] = np.arange(32).reshape(4, 8)
    got = np.zeros((4, 8), "int8")
    kernel(data, got)
    np.testing.assert_array_equal(got, data[-4:, -8:])


def symbolic(fused=False):
    """The last elements of a tensor of any sizes, or its sum by rows of one fused axis."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A", dtype="int8")
    if not fused:
        b = te.compute((4, 8), lambda i, j: a[i + (n - 4), j + (m - 8)], name="B")
        return te.create_schedule(b.op), a, b
    rows, columns = te.reduce_axis((0, n), "r"), te.reduce_axis((0, m), "c")
    b = te.compute((1,), lambda i: te.sum(a[rows, columns], [rows, columns]), name="B")
    s = te.create_schedule(b.op)
    s[b].fuse(*b.op.reduce_axis)
    return s, a, b


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_positions_in_a_tensor_of_symbolic_sizes_do_not_wrap(target):
    s, a, b = symbolic()
    kernel = slipway.build(s, [a, b], target)
    for side in (SIDE, 9):
        data = np.zeros((side, side), "int8")
        data[-4:, -8:] = np.arange(32).reshape(4, 8)
        got = np.zeros((4, 8), "int8")
        kernel(data, got)
        np.testing.assert_array_equal(got, data[-4:, -8:])


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_steps_of_a_fused_symbolic_axis_are_checked_when_it_is_called(target):
    s, a, b = symbolic(fused=True)
    kernel = slipway.build(s, [a, b], target)
    got = np.zeros(1, "int8")
    kernel(np.ones((9, 7), "int8"), got)
    assert got == 63
    with pytest.raises(Exception, match=r"r.c.fused, an axis of B, has 2\^31 steps or more"):
        kernel(np.zeros((SIDE, SIDE), "int8"), got)


CASES = {
    "sum": (lambda x: relay.sum(relay.cast(x, "int32")), (SIDE, SIDE)),
    "sum of three axes": (lambda x: relay.sum(relay.cast(x, "int32")), (1 << 11,) * 3),
    "argmax": (lambda x: relay.argmax(x), (SIDE, SIDE)),
    "mean": (lambda x: relay.mean(relay.cast(x, "float32"), (0, 2)), (1 << 12, 4, 1 << 21)),
    "relu": (lambda x: relay.nn.relu(x), (1 << 16, 1 << 16, 3)),
    "softmax": (lambda x: relay.nn.softmax(relay.cast(x, "float32")), (1 << 22, 1 << 10)),
    "transpose": (lambda x: relay.transpose(x, (2, 0, 1)), (1 << 12, 1 << 10, 1 << 11)),
}


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CASES)
def test_operators_on_large_tensors(name, target):
    make, shape = CASES[name]
    x = relay.var("x", shape=shape, dtype="int8")
    target = compile_target(target)
    graph = kernel_graph(IRModule.from_expr(relay.Function([x], make(x))), target)
    lowered = LoweredKernels(graph, target)
    for kernel in graph.kernels:
        for dtype, extent in loops_of(lowered[kernel]):
            assert extent is None or 0 < extent < (1 << 63 if dtype == "int64" else 1 << 31)
    assert compile_kernels(graph, target, lowered).object_bytes()


@pytest.mark.parametrize("bounds", [1 << 33, (0, 1 << 33), (5, (1 << 31) + 7)])
def test_a_reduction_counts_as_far_as_its_bounds(bounds):
    a = te.placeholder((16,), name="A")
    k = te.reduce_axis(bounds, name="k")
    b = te.compute((1,), lambda i: te.sum(a[k % 16], axis=k), name="B")
    extent = ops.as_int(k.dom.extent)
    assert loops_of(te.lower(te.create_schedule(b.op), [a, b])) == [("int64", extent)]
    s = te.create_schedule(b.op)
    s.rfactor(b, s[b].split(b.op.reduce_axis[0], 64)[1])
    func = te.lower(s, [a, b])
    assert ("int64", -(-extent // 64)) in loops_of(func)
    assert slipway.build(func, target="llvm").get_source("ll")


def test_a_reduction_from_a_begin_to_a_wide_size_has_the_right_sum():
    n = te.var("n", "int64")
    a = te.placeholder((n,), name="A")
    k = te.reduce_axis((3, n), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s.rfactor(b, s[b].split(b.op.reduce_axis[0], 16)[1])
    data, out = np.arange(77, dtype="float32"), slipway.nd.empty((1,))
    slipway.build(s, [a, b], "llvm")(slipway.nd.array(data), out)
    assert out.numpy() == data[3:].sum()
