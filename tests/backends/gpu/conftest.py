"""Devices: OpenCL's, which is PoCL where there is no other, and simulated ones."""

import os
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

import slipway as tvm

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def device():
    """The first OpenCL device."""
    found = tvm.opencl(0)
    if not found.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    return found


@pytest.fixture(scope="session")
def vulkan():
    """The first Vulkan device."""
    found = tvm.vulkan(0)
    if not found.exist:
        pytest.skip("no Vulkan device: apt-get install libvulkan1 mesa-vulkan-drivers")
    return found


@pytest.fixture(scope="session", autouse=True)
def _languages(tmp_path_factory):
    """Let pytest remove what `simulated` keeps: a worker of xdist ends without its own leave.

    The workers of one run share it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "languages"
    folder.mkdir(exist_ok=True)
    os.environ["SLIPWAY_TESTED_LANGUAGES"] = str(folder)


@pytest.fixture(scope="session")
def simulators(tmp_path_factory):
    """A function from a language of kernels to a simulated device that runs it."""
    from chromium_device import ChromiumDevice
    from simulated import SimulatedDevice
    from webgpu_device import WebGpuDevice

    made = {}

    def find(language):
        compiles = language not in ("wgsl", "chromium")
        if compiles and shutil.which("clang++") is None and shutil.which("g++") is None:
            pytest.skip("no C++ compiler: apt-get install g++")
        if language not in made:
            folder = tmp_path_factory.mktemp(language)
            kinds = {"wgsl": WebGpuDevice, "chromium": ChromiumDevice}
            made[language] = kinds.get(language, partial(SimulatedDevice, language))(folder)
        return made[language]

    yield find
    if "chromium" in made:
        made["chromium"].close()


@pytest.fixture(params=["opencl", "vulkan", "metal", "cuda", "ll", "wgsl", "chromium"])
def any_device(request, monkeypatch):
    """A device for each language of kernels; `built` compiles for it."""
    import run_kernels

    if request.param == "opencl":
        yield request.getfixturevalue("device")
        return
    if request.param == "vulkan":
        monkeypatch.setattr(run_kernels, "current", (run_kernels.VULKAN, None))
        yield request.getfixturevalue("vulkan")
        return
    simulator = request.getfixturevalue("simulators")(request.param)
    target = tvm.target.Target(simulator.kind, host="llvm")
    monkeypatch.setattr(run_kernels, "current", (target, simulator))
    simulator.enter()
    yield tvm.device(simulator.kind, 0)
    simulator.leave()
