"""Devices' own clocks: marks in their queues, and the time between two of them."""

import ctypes
import subprocess
import sys
import time

import pytest
import run_kernels
from simulated import _Api
from tests.backends.gpu import test_kernels

import slipway as tvm
from slipway.runtime.libraries.native_library import native_runtime
from slipway.target import Target

_LAUNCHES = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int32)
_MARK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))
_BETWEEN = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_uint64),
)


class Clock:
    """The functions of a kind's first device."""

    def __init__(self, device_type):
        find = native_runtime().lib.slw_device_find
        find.restype = ctypes.POINTER(_Api)
        api = find(device_type).contents
        self._launches, self._mark = _LAUNCHES(api.launches), _MARK(api.mark)
        self._between = _BETWEEN(api.between)

    def launches(self):
        return self._launches(0)

    def mark(self):
        made = ctypes.c_uint64()
        assert self._mark(0, ctypes.byref(made)) == 0
        return made.value

    def seconds(self, first, last):
        found = ctypes.c_uint64()
        assert self._between(0, first, last, ctypes.byref(found)) == 0
        return found.value * 1e-9


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_a_span_holds_the_kernels_that_are_queued_in_it(kind, device, vulkan):
    dev = {"opencl": device, "vulkan": vulkan}[kind]
    function = tvm.build(*test_kernels.matmul(96, 96, 96, False), Target(kind, host="llvm"))
    x = tvm.nd.array(run_kernels.random(96, 96), dev)
    out = tvm.nd.array(run_kernels.random(96, 96), dev)
    function(x, x, out)  # compiled by the driver
    clock = Clock(dev.device_type)
    before, spans = clock.launches(), []
    for runs in (1, 12):
        dev.sync()
        began = time.perf_counter()
        first = clock.mark()
        for _ in range(runs):
            function(x, x, out)
        spans.append(clock.seconds(first, clock.mark()))
        # The device's clock and the host's run alike.
        assert 0 < spans[-1] <= (time.perf_counter() - began) * 1.05
    assert clock.launches() == before + 13
    assert spans[1] > spans[0]
    for _ in range(70):  # marks are given back
        assert clock.seconds(clock.mark(), clock.mark()) >= 0
    found = function.time_evaluator(function.entry_name, dev, number=2, repeat=2)(x, x, out)
    assert all(seconds > 0 for seconds in found.results)


def test_measuring_on_the_processor_opens_no_driver():
    """An open driver costs threads, memory, and its own calls around each node that is timed."""
    script = (
        "import numpy as np, slipway\n"
        "from slipway import relay\n"
        "x = relay.var('x', shape=(1, 64))\n"
        "m = slipway.compile(relay.Function([x], relay.nn.softmax(relay.exp(x))), quiet=True)\n"
        "m.executor.profile(number=3, repeat=2)\n"
        "m.benchmark(number=3, repeat=2)\n"
        "print(open('/proc/self/maps').read())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    for library in ("libvulkan", "libOpenCL", "libcuda"):
        assert library not in done.stdout, library
