"""An OpenCL device: PoCL's, where there is no other."""

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
