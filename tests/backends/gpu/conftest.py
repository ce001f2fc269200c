"""Devices: OpenCL's, which is PoCL where there is no other, and simulated ones."""

import shutil
import sys
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
def simulators(tmp_path_factory):
    """A function from a kind of device that is not here to its simulation."""
    from simulated import SimulatedDevice

    if shutil.which("clang++") is None and shutil.which("g++") is None:
        pytest.skip("no C++ compiler: apt-get install g++")
    made = {}

    def find(kind):
        if kind not in made:
            made[kind] = SimulatedDevice(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    yield find
    for simulator in made.values():
        simulator.leave()


@pytest.fixture(params=["opencl", "metal", "cuda"])
def any_device(request, monkeypatch):
    """A device of each kind; `built` compiles for it."""
    import run_kernels

    if request.param == "opencl":
        return request.getfixturevalue("device")
    simulator = request.getfixturevalue("simulators")(request.param)
    target = tvm.target.Target(request.param, host="llvm")
    monkeypatch.setattr(run_kernels, "current", (target, simulator))
    return tvm.device(request.param, 0)
