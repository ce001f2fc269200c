"""Building a schedule for a device, and running it."""

import numpy as np

import slipway as tvm
from slipway import te
from slipway.target import Target

OPENCL = Target("opencl", host="llvm")
VULKAN = Target("vulkan", host="llvm")
current = (OPENCL, None)  # the target, and what simulates its device


def axis(tag):
    return te.thread_axis(tag)


def built(schedule, args, target=None, name="kernel"):
    chosen, simulator = current
    function = tvm.build(schedule, args, target or chosen, name=name)
    if simulator is not None:
        simulator.learn(function.imported_modules[0])
    return function


def source(function, language="opencl"):
    return function.imported_modules[0].get_source(language)


def run(function, device, inputs, shape, dtype="float32"):
    """Return what `function` computes of arrays on the device."""
    out = tvm.nd.array(np.full(shape, 77, dtype), device)
    function(*(tvm.nd.array(x, device) for x in inputs), out)
    return out.numpy()


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")
