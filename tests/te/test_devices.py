"""Element types, symbolic shapes and hardware intrinsics, run on x86-64, aarch64 and armv7."""

import shutil
import subprocess

import numpy as np
import pytest
from intrinsic_products import operands, product

import slipway as tvm
from slipway import te
from slipway.errors import CodegenError, TargetError
from slipway.ir.hardware import HARDWARE
from slipway.ir.interpreter.interpret import round_bfloat16, run
from slipway.target import Target
from slipway.te.hardware import available, hardware_intrinsic
from slipway.transform.loop.pipeline import run_pipeline

TYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32"]


def softened(x):
    """A small program: elementwise work, a reduction, and a stencil over its result."""
    n, m = x.shape
    k = te.reduce_axis((0, m), "k")
    scaled = te.compute((n, m), lambda i, j: x[i, j] * te.const(3, x.dtype) + x[i, j], "scaled")
    total = te.compute((n,), lambda i: te.max(scaled[i, k], axis=k), "total")
    return te.compute((n, m), lambda i, j: scaled[i, j] - total[i], "out"), scaled, total


def reference(x):
    scaled = x * x.dtype.type(3) + x
    return scaled - scaled.max(1, keepdims=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(device, dtype):
    x = te.placeholder((5, 24), dtype, name="X")
    out, scaled, total = softened(x)
    s = te.create_schedule(out.op)
    s[scaled].compute_at(s[out], out.op.axis[0])
    s[total].compute_at(s[out], out.op.axis[0])
    s[scaled].vectorize(scaled.op.axis[1])
    s[out].vectorize(out.op.axis[1])
    data = np.random.default_rng(0).integers(0, 20, (5, 24)).astype(dtype)
    got = device.array(np.zeros((5, 24), dtype))
    device.build(s, [x, out])(device.array(data), got)
    np.testing.assert_array_equal(got.numpy(), reference(data))


def test_bfloat16(device):
    x = te.placeholder((4, 32), "bfloat16", name="X")
    y = te.compute((4, 32), lambda i, j: x[i, j] * x[i, j] + te.const(1.5, x.dtype), "Y")
    s = te.create_schedule(y.op)
    s[y].vectorize(y.op.axis[1])
    wide = round_bfloat16(np.random.default_rng(0).random((4, 32)).astype("float32"))
    bits = (wide.view(np.uint32) >> 16).astype(np.uint16)
    from slipway import nd

    source = nd.empty((4, 32), "bfloat16", device.array(bits).device)
    result = nd.empty((4, 32), "bfloat16", source.device)
    source[:] = wide
    device.build(s, [x, y])(source, result)
    got = np.asarray(result.numpy()).astype("float32")
    np.testing.assert_allclose(got, wide * wide + 1.5, rtol=2**-7)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_four_bits(device, dtype):
    x = te.placeholder((3, 7), dtype, name="X")
    y = te.compute((3, 7), lambda i, j: x[i, j] * te.const(3, dtype), "Y")
    data = np.random.default_rng(0).integers(0, 8, (3, 7)).astype("int8")
    source = tvm.nd.empty((3, 7), dtype, device.array(data).device)
    result = tvm.nd.empty((3, 7), dtype, source.device)
    source[:] = data
    device.build(te.create_schedule(y.op), [x, y])(source, result)
    want = data * 3 % 16
    want = np.where(want > 7, want - 16, want) if dtype == "int4" else want
    np.testing.assert_array_equal(result.numpy().astype("int8"), want)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_symbolic_shapes(device, dtype):
    n, m = te.size_var("n"), te.size_var("m")
    x = te.placeholder((n, m), dtype, name="X")
    out, _, _ = softened(x)
    s = te.create_schedule(out.op)
    _, inner = s[out].split(out.op.axis[1], 8)
    s[out].vectorize(inner)
    function = device.build(s, [x, out])
    for shape in ((1, 1), (3, 8), (5, 21)):
        data = np.random.default_rng(0).integers(0, 20, shape).astype(dtype)
        got = device.array(np.zeros(shape, dtype))
        function(device.array(data), got)
        np.testing.assert_array_equal(got.numpy(), reference(data))


# Each intrinsic on the device whose processor has it; tests/te/test_boards.py has the others.
INTRINSIC_DEVICES = [
    (device, kind, name)
    for name in HARDWARE
    for device in {"x86": ["host"], "neon": ["aarch64"], "neon32": ["armv7"], "arm": ["armv7"]}.get(
        name.partition(".")[0], []
    )
    for kind in ("llvm", "c")
]


@pytest.mark.parametrize(("device", "kind", "name"), INTRINSIC_DEVICES, indirect=["device"])
def test_hardware_intrinsics(device, kind, name):
    entry = HARDWARE[name]
    flags = " -mattr=" + ",".join("+" + f for f in entry.features)
    if device.name == "host":
        flags = " -mcpu=native"
    elif device.name == "armv7":
        flags = ",+dsp"
    target = Target(device.target.replace("llvm", kind) + flags)
    if name not in available(target):
        assert device.name == "host", f"{device.name} should have {name}"
        pytest.skip(f"this processor has no {name}")
    s, args = product(entry, hardware_intrinsic(name, target))
    function = device.build(s, args, target)
    a, b, want = operands(entry, args)
    if entry.a_dtype == "bfloat16":
        from slipway import nd

        buffers = []
        for data in (a, b):
            buffers.append(nd.empty(data.shape, "bfloat16"))
            buffers[-1][:] = data.astype("float32")
    else:
        buffers = [device.array(x.astype(t)) for x, t in ((a, entry.a_dtype), (b, entry.b_dtype))]
    got = device.array(np.zeros(want.shape, entry.c_dtype))
    function(*buffers, got)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", HARDWARE)
def test_the_interpreter_computes_the_meaning(name):
    entry = HARDWARE[name]
    s, args = product(entry, hardware_intrinsic(name))
    a, b, want = operands(entry, args)
    bfloat = entry.a_dtype == "bfloat16"

    def stored(x, dtype):
        return (
            (x.astype("float32").view(np.uint32) >> 16).astype(np.uint16)
            if bfloat
            else (x.astype(dtype))
        )

    got = np.zeros(want.shape, entry.c_dtype)
    func = run_pipeline(te.lower(s, args))
    run(func, stored(a, entry.a_dtype), stored(b, entry.b_dtype), got)
    np.testing.assert_array_equal(got, want)


def test_a_target_without_the_feature_is_an_error():
    with pytest.raises(TargetError, match="needs avx512vnni, which the target"):
        hardware_intrinsic("x86.vnni", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    with pytest.raises(TargetError, match=r"no hardware intrinsic 'x86.vni'. Did you mean"):
        hardware_intrinsic("x86.vni")


@pytest.mark.parametrize(
    ("target", "name", "instruction"),
    [
        ("thumbv8.1m.main-none-eabi -mcpu=cortex-m55", "mve.vmladava.s8", "vmlav.s8"),
        ("thumbv8.1m.main-none-eabi -mcpu=cortex-m55", "mve.vmladava.u8", "vmlav.u8"),
        ("thumbv8.1m.main-none-eabi -mcpu=cortex-m55", "mve.vmladava.s16", "vmlav.s16"),
        ("thumbv7em-none-eabi -mcpu=cortex-m4", "arm.smlad", "smlad"),
    ],
)
def test_microcontroller_intrinsics_become_their_instruction(target, name, instruction):
    target = "llvm -mtriple=" + target
    s, args = product(HARDWARE[name], hardware_intrinsic(name, target))
    assert instruction in tvm.build(s, args, target).get_source("asm")


@pytest.mark.parametrize(
    ("name", "instruction", "flags"),
    [
        ("x86.vnni", "vpdpbusd", ["-mavx512vnni"]),
        ("x86.vnni.256", "vpdpbusd", ["-mavx512vnni", "-mavx512vl"]),
        ("x86.avxvnni", "vpdpbusd", ["-mavxvnni"]),
        ("x86.pmaddwd", "vpmaddwd", ["-mavx2"]),
        ("x86.pmaddwd.bytes", "vpmovsxbw", ["-mavx2"]),
        ("x86.bf16", "vdpbf16ps", ["-mavx512bf16"]),
    ],
)
def test_x86_intrinsics_become_their_instruction(name, instruction, flags, tmp_path):
    """For machines without the instruction; test_hardware_intrinsics runs it on those with it."""
    entry = HARDWARE[name]
    features = ",".join("+" + f for f in (*entry.features, *(["avx512f"] * ("512" in flags[0]))))
    for kind in ("llvm", "c"):
        target = f"{kind} -mtriple=x86_64-linux-gnu -mattr={features}"
        s, args = product(entry, hardware_intrinsic(name, target))
        module = tvm.build(s, args, target)
        if kind == "llvm":
            assert instruction in module.get_source("asm")
            continue
        assert f"#include <{entry.header}>" in module.get_source("c")
        assert module.compiled.objects  # Clang takes it
        gcc = shutil.which("gcc")
        if gcc is None:
            pytest.skip("gcc is not installed")
        (tmp_path / "kernel.c").write_text(module.get_source("c"))
        command = [gcc, "-O2", "-S", *flags, "kernel.c", "-o", "kernel.s"]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert instruction in (tmp_path / "kernel.s").read_text()


def test_c_without_the_feature_is_an_error():
    s, args = product(HARDWARE["x86.vnni"], hardware_intrinsic("x86.vnni"))
    for kind in ("c", "llvm"):
        with pytest.raises(CodegenError, match=r"'x86.vnni' needs avx512vnni, which the target"):
            tvm.build(s, args, f"{kind} -mtriple=x86_64-linux-gnu -mcpu=haswell").get_source()
