"""Pain 2: wrong triple, ABI or CPU: "file in wrong format", a crash, or wrong numbers."""

import platform

import numpy as np
import pytest

import slipway as tvm
from slipway import rpc, te
from slipway.errors import ArtifactError, SlipwayError, TargetError, ToolchainError
from slipway.toolchain import native
from slipway.toolchain.elf import ElfFile


def exponential(target, path):
    x = te.placeholder((32,), "float32", name="x")
    y = te.compute((32,), lambda i: te.exp(x[i]), name="y")
    tvm.build(te.create_schedule(y.op), [x, y], target, name="e").export_library(path)
    return path


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors than x86-64")
@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("llvm -mtriple=armv7l-linux-gnueabihf", "arm"),
        ("llvm -mtriple=armv6-linux-gnueabihf", "arm"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", "riscv"),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve", "aarch64"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=diamondrapids", "avx10"),
    ],
)
def test_it_is_refused_before_anything_runs(target, named, tmp_path):
    path = exponential(target, tmp_path / "m.tar")
    with pytest.raises(ArtifactError) as here:
        tvm.runtime.load_module(str(path))
    with rpc.Server("127.0.0.1", 0, silent=True) as server:
        session = rpc.connect("127.0.0.1", server.port)
        session.upload(str(path))
        with pytest.raises(SlipwayError) as there:
            session.load_module("m.tar")
        assert session.ping(b"x") == b"x"  # the session goes on
        session.close()
    for told in (str(here.value), str(there.value)):
        assert named in told.lower()  # what it is for,
        assert "m.tar" in told
        assert "ompile it for" in told  # and what to do


def test_a_slip_of_the_pen_is_no_crash():
    with pytest.raises(TargetError, match="Did you mean 'aarch64'"):
        tvm.target.Target("llvm -mtriple=aaarch64-linux-gnu")


def test_a_processor_without_floating_point_is_told_from_a_forgotten_word(tmp_path):
    """gnueabihf says that there is an FPU; ARMv5 and ARMv6 without it get no linker's error."""
    path = exponential("llvm -mtriple=armv6-linux-gnueabihf", tmp_path / "hard.so")
    assert not ElfFile(path.read_bytes(), "hard.so").undefined
    with pytest.raises(ToolchainError, match=r"no instructions for floating point.*\+vfp2"):
        exponential("llvm -mtriple=armv5te-linux-gnueabi", tmp_path / "soft.so")


def test_the_abi_that_was_asked_for_is_the_one_in_the_file(tmp_path, qemu):
    """A hard-float flag that was ignored gave a softmax that was silently wrong on a Pi 3."""
    emulator = qemu("arm")
    server = native.build_device_server("armv7-linux")
    data = np.linspace(-4, 4, 32, dtype="float32")
    results = []
    for abi in ("hard", "softfp", "soft"):
        target = f"llvm -mtriple=armv7l-linux-gnueabi -mfloat-abi={abi} -mattr=+neon"
        path = exponential(target, tmp_path / f"{abi}.tar")
        with rpc.PopenSession([emulator, str(server), "--stdio"]) as session:
            session.upload(str(path))
            device = session.cpu(0)
            out = tvm.nd.empty((32,), "float32", device)
            session.load_module(path.name)["e"](tvm.nd.array(data, device), out)
            results.append(out.numpy())
    np.testing.assert_allclose(results[0], np.exp(data), rtol=2e-6)
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, rtol=3e-7)
