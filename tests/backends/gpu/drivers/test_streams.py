"""Streams of devices: work of several of them, against NumPy that does it in the order given."""

import numpy as np
import pytest
import run_kernels
from tests.backends.gpu import test_kernels

import slipway as tvm
from slipway.errors import ArgumentTypeError, ArgumentValueError, DeviceError, ExecutionError

N = 1024
STREAMS, ARRAYS, HOSTS = 3, 4, 2


def summed(built):
    """Return the kernel out = x + y of N numbers."""
    return built(*test_kernels.vector_add(N), name="summed")


class Work:
    """Random work of some streams, which waits where two of them meet at an array."""

    def __init__(self, device, kernel, seed):
        self.device, self.kernel = device, kernel
        self.random = np.random.default_rng(seed)
        self.streams = [device.create_raw_stream() for _ in range(STREAMS)]
        self.expected = [self.numbers() for _ in range(ARRAYS + HOSTS)]
        here = [tvm.nd.empty_pinned((N,), "float32", device) for _ in range(HOSTS)]
        self.arrays = [tvm.nd.empty((N,), "float32", device) for _ in range(ARRAYS)] + here
        for array, numbers in zip(self.arrays, self.expected, strict=True):
            array.copyfrom(numbers)
        self.reads = [set() for _ in self.arrays]  # by streams, since the own queue had work last
        self.writes = [set() for _ in self.arrays]

    def numbers(self):
        return self.random.standard_normal(N).astype("float32")

    def choose(self, first, end):
        return int(self.random.integers(first, end))

    def begin(self, reads, writes):
        """Choose a stream, and let it wait for those that it meets."""
        at = self.choose(0, STREAMS + 1)
        if at == STREAMS:  # the own queue, which is in order with all
            for met in self.reads + self.writes:
                met.clear()
            self.device.set_raw_stream(None)
            return
        met = set().union(*(self.writes[i] for i in reads))
        met |= set().union(*(self.reads[i] | self.writes[i] for i in writes))
        for other in met - {at}:
            self.device.stream_sync(self.streams[other], self.streams[at])
        for i in reads:
            self.reads[i].add(at)
        for i in writes:
            self.writes[i].add(at)
        self.device.set_raw_stream(self.streams[at])

    def launch(self):
        x, y, out = (self.choose(0, ARRAYS) for _ in range(3))
        if out not in (x, y):
            self.begin((x, y), (out,))
            self.kernel(*(self.arrays[i] for i in (x, y, out)))
            self.expected[out] = self.expected[x] + self.expected[y]

    def copy(self):
        """Copy there, from there, to there, or within."""
        source, target = (self.choose(0, ARRAYS + HOSTS) for _ in range(2))
        if source != target and min(source, target) < ARRAYS:
            self.begin((source,), (target,))
            self.arrays[source].copyto_async(self.arrays[target])
            self.expected[target] = self.expected[source]

    def write(self):
        """Write pinned memory, once nobody uses it."""
        host = self.choose(ARRAYS, ARRAYS + HOSTS)
        self.wait_for(host)
        self.expected[host] = self.numbers()
        self.arrays[host].copyfrom(self.expected[host])

    def wait_for(self, i):
        for at in self.reads[i] | self.writes[i]:
            self.device.sync(self.streams[at])
        self.device.sync(None)
        self.reads[i].clear()
        self.writes[i].clear()

    def check(self):
        """Read an array in the own queue, or pinned memory after a wait."""
        i = self.choose(0, ARRAYS + HOSTS)
        if i >= ARRAYS:
            self.wait_for(i)
        np.testing.assert_array_equal(self.arrays[i].numpy(), self.expected[i])

    def run(self, steps):
        for _ in range(steps):
            chosen = self.choose(0, 12)
            (self.launch, self.copy, self.write, self.check)[min(chosen // 4, 3 - (chosen == 11))]()
        self.device.set_raw_stream(None)
        for stream in self.streams:  # their work goes on
            self.device.free_raw_stream(stream)
        self.device.sync()
        for array, numbers in zip(self.arrays, self.expected, strict=True):
            np.testing.assert_array_equal(array.numpy(), numbers)


def check_random(device, built, seeds, steps=40):
    kernel = summed(built)
    for seed in seeds:
        Work(device, kernel, seed).run(steps)


@pytest.fixture(scope="module")
def kernel(device):
    return summed(run_kernels.built)


def test_random_work_of_three_streams_agrees_with_numpy(device, kernel):
    for seed in range(12):
        Work(device, kernel, seed).run(40)


def test_a_freed_streams_work_goes_on_and_the_own_queue_is_after_it(device, kernel):
    x, out = (tvm.nd.array(np.full(N, value, "float32"), device) for value in (1, 0))
    for _ in range(40):  # more than are there at a time
        stream = device.create_raw_stream()
        device.set_raw_stream(stream)
        kernel(x, out, out)
        device.set_raw_stream(None)
        device.free_raw_stream(stream)
    np.testing.assert_array_equal(out.numpy(), np.full(N, 40, "float32"))


def test_what_streams_cannot_do_is_told(device, kernel):
    x = tvm.nd.array(np.ones(N, "float32"), device)
    with pytest.raises(DeviceError, match=r"pinned memory .*: make the array with nd.empty_pinned"):
        x.copyto_async(tvm.nd.array(np.ones(N, "float32")))
    with pytest.raises(ArgumentValueError, match="shape and dtype must be equal"):
        x.copyto_async(tvm.nd.empty_pinned((N + 1,), "float32", device))
    with pytest.raises(ArgumentValueError, match=r"cpu\(0\) has no pinned memory"):
        tvm.nd.empty_pinned((N,), "float32", tvm.cpu(0))
    with pytest.raises(ArgumentTypeError, match="takes an NDArray, not list"):
        x.copyto_async([x])
    other = tvm.vulkan(0)
    if other.exist:
        with pytest.raises(ExecutionError, match=r"opencl\(0\) and vulkan\(0\) cannot .* copyto"):
            x.copyto_async(tvm.nd.empty((N,), "float32", other))
    streams = [device.create_raw_stream() for _ in range(32)]
    with pytest.raises(DeviceError, match="has 32 streams already: free those"):
        device.create_raw_stream()
    device.set_raw_stream(streams[7])
    device.free_raw_stream(streams[7])
    with pytest.raises(DeviceError, match=r"it was freed .*: set_raw_stream\(None\)"):
        kernel(x, x, tvm.nd.empty((N,), "float32", device))
    device.set_raw_stream(None)
    for stream in streams[:7] + streams[8:]:
        device.free_raw_stream(stream)


def test_pinned_memory_goes_with_its_last_array(device):
    for dtype, shape in (("uint8", (7,)), ("float16", (3, 5)), ("int64", ()), ("float32", (0, 4))):
        host = tvm.nd.empty_pinned(shape, dtype, device)
        assert (host.dtype, host.shape, host.device) == (dtype, shape, tvm.cpu(0))
        numbers = np.zeros(shape, dtype) + 3
        there = tvm.nd.empty(shape, dtype, device)
        host.copyfrom(numbers).copyto_async(there)
        view = host.numpy()
        del host
        device.sync()
        np.testing.assert_array_equal(there.numpy(), numbers)
        np.testing.assert_array_equal(view, numbers)
