"""A device and the processor that drives it, in one text."""

import pytest

from slipway.errors import TargetError
from slipway.target import Target

ARM = "llvm -mtriple=aarch64-linux-gnu"


@pytest.mark.parametrize(
    ("text", "device", "host"),
    [
        ("cpu+opencl", "opencl", "llvm"),
        ("opencl+llvm", "opencl", "llvm"),
        ("opencl,llvm", "opencl", "llvm"),
        ("llvm, vulkan", "vulkan", "llvm"),
        (f"opencl -device=mali, {ARM}", "opencl -device=mali", ARM),
        (f"{ARM}, cuda -arch=sm_87", "cuda -arch=sm_87", ARM),
        ("vulkan , llvm", "vulkan", "llvm"),
        ("mesa/lavapipe, llvm", "mesa/lavapipe", "llvm"),
    ],
)
def test_a_device_and_its_processor(text, device, host):
    assert Target(text) == Target(device, host=host)
    assert str(Target(text).host) == str(Target(host))


@pytest.mark.parametrize(
    "text", ["cuda -keys=cuda,gpu -arch=sm_80", "llvm -mattr=+avx2,+fma", "llvm -mattr=+avx2,-fma"]
)
def test_commas_of_options_divide_nothing(text):
    assert Target(text).host is None
    assert Target(str(Target(text))) == Target(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("opencl+vulkan", 'names 2 targets.*"opencl, llvm".*relay.build'),
        ("llvm, c", "names 2 targets"),
        ("cuda, opencl, llvm", "names 3 targets"),
        ("cpu+nonsense", "unknown target kind 'nonsense'"),
        ("opencl,", "ends with a comma or a plus sign, or begins with one"),
        ("+llvm", "ends with a comma or a plus sign, or begins with one"),
        ("opencl -host=llvm, llvm", "a host twice"),
    ],
)
def test_what_is_no_pair_is_said(text, said):
    with pytest.raises(TargetError, match=said):
        Target(text)
