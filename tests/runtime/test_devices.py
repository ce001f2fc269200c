"""Devices of this process: their streams."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.target import Target


def doubled(kind):
    """A function that doubles 64 numbers."""
    x = te.placeholder((64,), name="x")
    y = te.compute((64,), lambda i: x[i] * 2.0, name="y")
    schedule = te.create_schedule(y.op)
    if kind != "cpu":
        schedule[y].bind(y.op.axis[0], te.thread_axis("threadIdx.x"))
    target = Target("llvm") if kind == "cpu" else Target(kind, host="llvm")
    return tvm.build(schedule, [x, y], target)


@pytest.mark.parametrize("kind", ["cpu", "opencl", "vulkan"])
def test_streams_see_what_others_were_given_before(kind):
    """Work of one stream, then of another that waits for it, then a wait."""
    device = tvm.device(kind, 0)
    if not device.exist:
        pytest.skip(f"no {kind} device: README names the packages that bring one")
    function = doubled(kind)
    first, second = device.create_raw_stream(), device.create_raw_stream()
    x = tvm.nd.array(np.arange(64, dtype="float32"), device)
    y, z = (tvm.nd.array(np.zeros(64, "float32"), device) for _ in range(2))
    device.set_raw_stream(first)
    function(x, y)
    device.stream_sync(first, second)
    device.set_raw_stream(second)
    function(y, z)
    device.set_raw_stream(None)
    device.sync(second)
    np.testing.assert_array_equal(z.numpy(), np.arange(64, dtype="float32") * 4)
    for stream in (first, second):
        device.free_raw_stream(stream)


def test_what_is_no_stream_of_a_device_is_told():
    device = tvm.cpu(0)
    stream = device.create_raw_stream()
    with pytest.raises(ArgumentValueError, match=r"a stream of cpu\(0\) is none of cuda\(1\)"):
        tvm.cuda(1).set_raw_stream(stream)
    with pytest.raises(ArgumentTypeError, match=r"7 is no stream: pass one of cpu\(0\).create_raw"):
        device.sync(7)
    device.free_raw_stream(stream)
    for use in (device.sync, device.set_raw_stream, device.free_raw_stream):
        with pytest.raises(ArgumentValueError, match="was freed: create another"):
            use(stream)
