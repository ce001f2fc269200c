"""Products of bytes, four at a time: exact on every device, by the instruction where it is."""

import re

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, built
from tests.backends.gpu import test_ptx

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.ir import expr as E
from slipway.ir.instructions.dot4 import DOTS
from slipway.script import tir as T
from slipway.target import Target

IN_STEP = "-thread_warp_size=32 -max_threads_per_block=256"
OLD, NEW = (Target(f"cuda -arch={arch} {IN_STEP}", host="llvm") for arch in ("sm_53", "sm_61"))


def values(*shape, dtype="int8", seed=0):
    info = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)
    found.flat[:4] = info.min  # the largest products
    return found


def words(a, b, c, kinds):
    """What NumPy computes of bytes."""
    wide = [x.view({"s": "int8", "u": "uint8"}[k]).reshape(-1, 4).astype("int64")
            for x, k in zip((a, b), kinds, strict=True)]  # fmt: skip
    return ((wide[0] * wide[1]).sum(1) + c).astype("int32")


def dots(n):
    """Return a schedule of all four kinds of dots."""
    a, b, c = (te.placeholder((n,), "int32", name) for name in "ABC")
    outs = [
        te.compute((n,), lambda i, kind=kind: E.Call("int32", kind, (a[i], b[i], c[i])), name=kind)
        for kind in DOTS
    ]
    s = te.create_schedule([out.op for out in outs])
    for out in outs:
        block, thread = s[out].split(out.op.axis[0], factor=16)
        s[out].bind(block, axis("blockIdx.x"))
        s[out].bind(thread, axis("threadIdx.x"))
    return s, [a, b, c, *outs]


def test_every_language_has_them(any_device, request):
    x, y, z = (values(160, seed=seed).view("int32") for seed in range(3))
    function = built(*dots(40), name="dots")
    found = [tvm.nd.array(np.zeros(40, "int32"), any_device) for _ in DOTS]
    function(*(tvm.nd.array(v, any_device) for v in (x, y, z)), *found)
    for kind, array in zip(DOTS, found, strict=True):
        np.testing.assert_array_equal(array.numpy(), words(x, y, z, kind[-2:]), err_msg=kind)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_processors_have_them(target):
    arguments = dots(40)[1]
    function = tvm.build(te.create_schedule([t.op for t in arguments[3:]]), arguments, target)
    x, y, z = (values(160, seed=seed).view("int32") for seed in range(3))
    found = [tvm.nd.array(np.zeros(40, "int32")) for _ in DOTS]
    function(*map(tvm.nd.array, (x, y, z)), *found)
    for kind, array in zip(DOTS, found, strict=True):
        np.testing.assert_array_equal(array.numpy(), words(x, y, z, kind[-2:]), err_msg=kind)


def dense(x_dtype, w_dtype, rows=50, columns=45, depth=70):
    x = relay.var("x", shape=(rows, depth), dtype=x_dtype)
    w = relay.var("w", shape=(columns, depth), dtype=w_dtype)
    y = relay.nn.dense(x, w, out_dtype="int32")
    return relay.Function([x, w], y + relay.const(np.int32(3)))


def library(function, target):
    return relay.build(tvm.IRModule.from_expr(function), target=target)


def output(made, device, **inputs):
    module = graph_executor.GraphModule(made["default"](device))
    module.run(**inputs)
    return module.get_output(0).numpy()


@pytest.mark.parametrize("kinds", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
def test_dense_layers(device, kinds):
    x, w = values(50, 70, dtype=kinds[0]), values(45, 70, dtype=kinds[1])
    made = library(dense(*kinds), Target(f"opencl {IN_STEP}", host="llvm"))
    assert "slw_dot4_" in made.lib.imported_modules[0].get_source("opencl")
    wanted = x.astype("int64") @ w.T.astype("int64") + 3
    np.testing.assert_array_equal(output(made, device, x=x, w=w), wanted)


def convolution(layout, groups, x, w):
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    given = relay.var("x", shape=x.shape, dtype="int8")
    y = relay.nn.conv2d(
        given, relay.const(w), padding=(1, 1, 2, 0), strides=(2, 1), groups=groups,
        channels=w.shape[kernel.index("O")], kernel_size=(3, 3), data_layout=layout,
        kernel_layout=kernel, out_dtype="int32",
    )  # fmt: skip
    return relay.Function([given], relay.nn.relu(y))


def reference(x, w, groups):
    """Of channels first."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (1, 0))).astype("int64")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2]
    parts = zip(np.split(windows, groups, 1), np.split(w.astype("int64"), groups), strict=True)
    return np.maximum(
        np.concatenate([np.einsum("nchwij,ocij->nohw", a, b) for a, b in parts], 1), 0
    )


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(device, layout, groups):
    x, w = values(1, 18, 9, 8), values(64, 18 // groups, 3, 3, seed=1)
    wanted = reference(x, w, groups)
    if layout == "NHWC":
        x, w, wanted = (
            x.transpose(0, 2, 3, 1),
            w.transpose(2, 3, 1, 0),
            wanted.transpose(0, 2, 3, 1),
        )
    x, w = map(np.ascontiguousarray, (x, w))
    made = library(convolution(layout, groups, x, w), Target(f"opencl {IN_STEP}", host="llvm"))
    assert "slw_dot4_" in made.lib.imported_modules[0].get_source("opencl")
    np.testing.assert_array_equal(output(made, device, x=x), wanted)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_groups_that_no_tile_divides(device, dtype):
    """A block of whose channels would be of two groups: compiled by another strategy."""
    x, w = values(1, 18, 9, 8), values(70, 9, 3, 3, seed=1)
    given = relay.var("x", shape=x.shape, dtype=dtype)
    y = relay.nn.conv2d(
        given, relay.const(w.astype(dtype)), padding=(1, 1, 2, 0), strides=(2, 1), groups=2,
        channels=70, kernel_size=(3, 3), out_dtype="int32" if dtype == "int8" else dtype,
    )  # fmt: skip
    made = library(relay.Function([given], y), Target(f"opencl {IN_STEP}", host="llvm"))
    found = np.maximum(output(made, device, x=x.astype(dtype)), 0)
    np.testing.assert_array_equal(found, reference(x, w, 2))  # float32 holds these sums


def test_products_do_not_race(simulators, monkeypatch):
    simulator = simulators("ll")
    monkeypatch.setattr(run_kernels, "current", (NEW, simulator))
    simulator.enter()
    x, w = values(50, 70), values(45, 70, seed=1)
    made = library(dense("int8", "int8"), NEW)
    simulator.learn(made.lib.imported_modules[0])
    wanted = x.astype("int64") @ w.T.astype("int64") + 3
    np.testing.assert_array_equal(output(made, tvm.cuda(0), x=x, w=w), wanted)
    simulator.leave()


@pytest.mark.parametrize("kinds", [("int8", "int8"), ("uint8", "int8")])
def test_nvidias_instruction_adds_to_the_sum(kinds, tmp_path):
    text = library(dense(*kinds, 128, 128, 256), NEW).lib.imported_modules[0].get_source("ptx")
    kind = "u32" if kinds[0] == "uint8" else "s32"
    assert f"dp4a.{kind}.s32" in text
    body = text[text.index("dp4a") : text.rindex("dp4a")]
    assert "mul.lo" not in body  # and no product beside it
    assert test_ptx.spilt(test_ptx.assembled(text, "sm_61", tmp_path)) == 0


def test_devices_without_the_instruction_have_other_kernels():
    assert "dp4a" not in library(dense("int8", "int8"), OLD).lib.imported_modules[0].get_source(
        "ptx"
    )


@pytest.mark.parametrize(
    ("cpu", "kinds", "instruction"),
    [
        ("gfx906", ("int8", "int8"), "v_dot4_i32_i8"),
        ("gfx1030", ("uint8", "uint8"), "v_dot4_u32_u8"),
        ("gfx1100", ("uint8", "int8"), "v_dot4_i32_iu8"), ("gfx900", ("int8", "int8"), ""),
    ],
)  # fmt: skip
def test_amds_instructions(cpu, kinds, instruction):
    force = {"nn.dense": "threads.dot"} if instruction else {}  # gfx11 has matrix units besides
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": force}):
        made = library(dense(*kinds), Target(f"rocm -mcpu={cpu} {IN_STEP}", host="llvm"))
    found = re.findall(r"v_dot4\w+", made.lib.imported_modules[0].get_source("asm"))
    assert set(found) == ({instruction} if instruction else set())


def test_bits_of_vectors_are_regrouped(any_device):
    @T.prim_func
    def regrouped(a: T.Buffer((32,), "int8"), b: T.Buffer((8,), "int32"),
                  c: T.Buffer((32,), "uint8")):  # fmt: skip
        for i in T.thread_binding(8, thread="threadIdx.x"):
            b[i] = T.reinterpret("int32", a[T.ramp(i * 4, 1, 4)])
            c[T.ramp(i * 4, 1, 4)] = T.reinterpret("uint8x4", b[i])

    target, simulator = run_kernels.current
    made = tvm.build(regrouped, target=target, name="regrouped")
    if simulator is not None:
        simulator.learn(made.imported_modules[0])
    data = np.arange(-90, 38, 4, dtype="int8")
    words = tvm.nd.array(np.zeros(8, "int32"), any_device)
    again = tvm.nd.array(np.zeros(32, "uint8"), any_device)
    made(tvm.nd.array(data, any_device), words, again)
    assert words.numpy().tobytes() == again.numpy().tobytes() == data.tobytes()
